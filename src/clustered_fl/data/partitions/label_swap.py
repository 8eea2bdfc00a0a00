"""In each group two labels are exchanged (CFL section V-A, "label-swap augmentation")."""

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.label_maps import label_swaps
from clustered_fl.data.relabelled import relabelled
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: int,
    groups: int,
    samples: int | None = None,
    swaps: tuple[tuple[int, int], ...] = (),
    newcomers: int = 0,
) -> Federation:
    """Equal random shares; `swaps` names the pairs of the first groups, others are drawn."""
    maps = label_swaps(len(dataset.classes), groups, swaps, generator(seed, "swaps"))
    return relabelled(dataset, seed, clients, samples, newcomers, maps)
