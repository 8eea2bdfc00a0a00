"""Clients with different labels for the same class: label maps [groups, classes]."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.shares import equal_shares, group_of_clients
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def label_swaps(
    classes: int, groups: int, first: Sequence[Sequence[int]], rng: Generator
) -> np.ndarray:
    """Label maps [groups, classes] that swap one pair of labels per group; pairs are disjoint.

    The paper names "1" <-> "7" and "3" <-> "5" for its first two clusters "and so on". `first`
    gives those, and may have more than there are groups; other pairs are drawn from the remaining
    labels.
    Raises: InputError if there are too few labels, or those of `first` are unknown or repeated.
    Source: CFL section V-A, "label-swap augmentation".
    """
    if 2 * groups > classes:
        raise InputError(
            f"label swap of {groups} groups needs {2 * groups} labels, there are {classes}"
        )
    used = [label for pair in first for label in pair]
    if len(set(used)) < len(used) or not set(used) <= set(range(classes)):
        raise InputError(
            f"label swap of {first}: allowed are different labels from 0 to {classes - 1}"
        )
    free = rng.permutation(np.setdiff1d(np.arange(classes), used))
    pairs = [*used, *free][: 2 * groups]
    maps = np.tile(np.arange(classes), (groups, 1))
    for own, (a, b) in zip(maps, np.reshape(pairs, (groups, 2)), strict=True):
        own[[a, b]] = b, a
    return maps


def label_permutations(classes: int, groups: int, rng: Generator) -> np.ndarray:
    """A random permutation of all labels per group [groups, classes] (CFL eqs. 48, 49)."""
    return np.stack([rng.permutation(classes) for _ in range(groups)])


def relabelled(
    dataset: Dataset, seed: int, clients: int, samples: int | None, newcomers: int, maps: np.ndarray
) -> Federation:
    """Equal random shares, with one of `maps` [groups, classes] per group; all use all test rows.

    Args:
        newcomers: samples of each group's newcomer, test rows that no newcomer is tested on.
    """
    groups = group_of_clients(clients, len(maps))
    rows, test = np.split(np.arange(len(dataset.y)), [dataset.train_rows])
    train = equal_shares(rows, clients, samples, generator(seed, "shares"))
    sets, test_of = [test], [0] * clients
    if newcomers:
        rng = generator(seed, "newcomers")
        joining = equal_shares(test, len(maps) * 2, newcomers, rng)[: len(maps)]
        train, groups = train + joining, np.concatenate([groups, np.arange(len(maps))])
        sets, test_of = [test, np.setdiff1d(test, joining)], test_of + [1] * len(maps)
    return Federation(
        tuple(train), tuple(sets), np.array(test_of), maps[groups], groups, len(groups) - clients
    )


def single_model_ceiling(label_maps: np.ndarray) -> float:
    """Best mean accuracy of a single model on balanced images, under label maps [clients, classes].

    The best answer for an image is the label that most clients give to its class.
    """
    votes = [np.bincount(labels).max() for labels in label_maps.T]
    return float(np.mean(votes) / len(label_maps))
