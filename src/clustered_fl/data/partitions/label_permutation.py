"""In each group all labels are permuted at random (CFL eqs. 48, 49)."""

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.label_maps import label_permutations
from clustered_fl.data.relabelled import relabelled
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: int,
    groups: int,
    samples: int | None = None,
    newcomers: int = 0,
) -> Federation:
    """Equal random shares; one permutation of the labels per group."""
    rng = generator(seed, "permutations")
    maps = label_permutations(len(dataset.classes), groups, rng)
    return relabelled(dataset, seed, clients, samples, newcomers, maps)
