"""Two labels are swapped in each group (CFL section V-A, "label-swap augmentation")."""

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.label_maps import label_swaps, relabelled
from clustered_fl.data.shares import Count, Number
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    groups: Number,
    samples: Number | None = None,
    swaps: tuple[tuple[Count, Count], ...] = (),
    newcomers: Count = 0,
) -> Federation:
    """Equal random shares; one pair of swapped labels per group.

    Args:
        clients: number of clients.
        groups: number of clusters; each swaps another pair of labels.
        samples: training samples per client; None for all.
        swaps: pairs of labels of the first groups; the others are random.
        newcomers: samples of one newcomer per group; 0 for no newcomers.
    """
    maps = label_swaps(len(dataset.classes), groups, swaps, generator(seed, "swaps"))
    return relabelled(dataset, seed, clients, samples, newcomers, maps)
