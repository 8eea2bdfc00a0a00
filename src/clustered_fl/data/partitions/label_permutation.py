"""A random permutation of all labels in each group (CFL eqs. 48, 49)."""

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.label_maps import label_permutations, relabelled
from clustered_fl.data.shares import Count, Number
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    groups: Number,
    samples: Number | None = None,
    newcomers: Count = 0,
) -> Federation:
    """Equal random shares; one permutation of the labels per group.

    Args:
        clients: number of clients.
        groups: number of permutations.
        samples: training samples per client; None for all.
        newcomers: samples of one newcomer per group; 0 for no newcomers.
    """
    rng = generator(seed, "permutations")
    maps = label_permutations(len(dataset.classes), groups, rng)
    return relabelled(dataset, seed, clients, samples, newcomers, maps)
