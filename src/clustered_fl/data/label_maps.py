"""Clients that call the same thing by different names: label maps [groups, classes]."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from clustered_fl.errors import InputError


def label_swaps(
    classes: int, groups: int, first: Sequence[Sequence[int]], rng: Generator
) -> np.ndarray:
    """One pair of labels exchanged per group, pairs disjoint: label maps [groups, classes].

    The paper names "1" <-> "7" and "3" <-> "5" for its first two clusters "and so on"; `first`
    keeps those and the others are drawn from the labels left.

    Raises:
        InputError: if there are not two labels left for each group, or the labels of `first` are
            not different labels of the data.
    Source: CFL section V-A, "label-swap augmentation".
    """
    if 2 * groups > classes:
        raise InputError(
            f"label swap of {groups} groups needs {2 * groups} labels, there are {classes}"
        )
    used = [label for pair in first[:groups] for label in pair]
    if len(set(used)) < len(used) or not set(used) <= set(range(classes)):
        raise InputError(
            f"label swap of {first[:groups]}: allowed are different labels from 0 to {classes - 1}"
        )
    free = rng.permutation(np.setdiff1d(np.arange(classes), used))
    pairs = [*used, *free][: 2 * groups]
    maps = np.tile(np.arange(classes), (groups, 1))
    for group, (a, b) in enumerate(np.reshape(pairs, (groups, 2))):
        maps[group, [a, b]] = b, a
    return maps


def label_permutations(classes: int, groups: int, rng: Generator) -> np.ndarray:
    """A random permutation of all labels per group: label maps [groups, classes].

    Raises:
        InputError: if there are no groups.
    Source: CFL eqs. (48), (49).
    """
    if groups < 1:
        raise InputError(f"label permutation of {groups} groups; there must be 1 or more")
    return np.stack([rng.permutation(classes) for _ in range(groups)])


def single_model_ceiling(label_maps: np.ndarray) -> float:
    """Best mean accuracy of any single model under several labellings of the same balanced images.

    For an image of class y a model can do no better than answer with the label that most clients
    give to y.

    Args:
        label_maps: [clients, classes].
    """
    votes = [np.bincount(labels).max() for labels in label_maps.T]
    return float(np.mean(votes) / len(label_maps))
