"""McMahan et al. (2017), "pathological non-IID": two shards of sorted images per client."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import same_labels, with_validation
from clustered_fl.data.shares import Count, Fraction, Number
from clustered_fl.errors import InputError
from clustered_fl.randomness import generator


def build(
    dataset: Dataset,
    seed: int,
    clients: Number,
    newcomers: Count = 0,
    shards: Number = 2,
    held_out: Fraction = 0.2,
) -> Federation:
    """Cut the images, sorted by label, into shards: for MNIST and 100 clients, 200 of 300 images.

    A shard may span two labels, so a client with two shards has one to four labels; for exactly two
    see `two_labels`. True groups: clients with the same labels.

    Args:
        clients: number of training clients.
        newcomers: number of holdout clients, see `held_out.with_validation`.
        shards: number per client.
        held_out: fraction of a client's images used for tests.
    Raises: InputError if there are too few images.
    """
    total = clients + newcomers
    size = dataset.train_rows // (total * shards)
    if size < 1:
        most = f"{dataset.train_rows // shards} clients of {dataset.train_rows} images"
        raise InputError(f"{total} clients of {shards} shards; allowed are 1 to {most}")
    # A copy's order within a label must not matter, see `label_clusters.rows_of`.
    order = generator(seed, "order of rows").permutation(dataset.train_rows)
    by_label = order[np.argsort(dataset.y[order], kind="stable")]
    parts = by_label[: total * shards * size].reshape(-1, size)
    dealt = generator(seed, "shards").permutation(len(parts)).reshape(total, shards)
    shares = parts[dealt].reshape(total, -1)
    groups = same_labels(dataset.y[shares])
    return with_validation(dataset, shares, newcomers, held_out, seed, groups)
