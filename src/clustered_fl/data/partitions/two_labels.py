"""Clients with exactly two labels (REPA, "only two out of the ten available classes")."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import same_labels, with_validation
from clustered_fl.data.label_clusters import rows_of
from clustered_fl.data.shares import Count, Fraction, Number, equal_shares
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    newcomers: Count = 0,
    samples: Number | None = None,
    held_out: Fraction = 0.2,
) -> Federation:
    """Every label is cut into the same number of equal shares; a client has shares of two labels.

    McMahan's shards, which REPA cites, may span two labels (see `shards`). REPA's text says two
    labels per client, and so it is here. True groups: clients with the same two labels.

    Args:
        clients: number of training clients.
        newcomers: number of holdout clients, see `held_out.with_validation`.
        samples: images per label and client; None for all.
        held_out: fraction of a client's images used for tests.
    Raises: InputError if there are too few labels or images.
    """
    total, classes = clients + newcomers, len(dataset.classes)
    if classes < 2:
        raise InputError(f"{dataset.name} has {classes} label; partition two_labels needs two")
    pairs = label_pairs(total, classes, generator(seed, "labels"))
    shares: list[list[np.ndarray]] = [[] for _ in range(total)]
    for label in np.unique(pairs):
        holders = np.flatnonzero((pairs == label).any(1))
        rng = generator(seed, "shares", int(label))
        own = equal_shares(rows_of(dataset, int(label), seed), len(holders), samples, rng)
        for client, rows in zip(holders, own, strict=True):
            shares[client].append(rows)
    whole = [np.concatenate(own) for own in shares]
    return with_validation(dataset, whole, newcomers, held_out, seed, same_labels(pairs))


def label_pairs(clients: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Two different labels of each client, int64 [clients, 2], with all labels equally frequent.

    Labels are dealt at random. A client that got one label twice swaps one with a client without
    that label, which exists because no label is dealt more often than there are clients.
    """
    places = rng.permutation(classes)[np.arange(2 * clients) % classes]
    pairs = rng.permutation(places).reshape(clients, 2)
    for client in range(clients):
        if pairs[client, 0] == pairs[client, 1]:
            other = rng.choice(np.flatnonzero((pairs != pairs[client, 0]).all(1)))
            pairs[[client, other], 1] = pairs[[other, client], 1]
    return pairs
