"""Clients with texts of a single topic (CFL Fig. 10)."""

import numpy as np

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import with_tests
from clustered_fl.data.shares import Fraction, Number, equal_shares, group_of_clients
from clustered_fl.randomness import generator


def build(
    dataset: Dataset, seed: int, clients: Number, held_out: Fraction, samples: Number | None = None
) -> Federation:
    """Equal shares of one topic; a client is tested on its own texts.

    Args:
        clients: number of clients, divided equally among the topics.
        held_out: fraction of a client's texts used for tests.
        samples: texts per client, including its tests; None for all.
    """
    groups = group_of_clients(clients, len(dataset.classes))
    train, tests = [], []
    for topic in range(len(dataset.classes)):
        rows = np.flatnonzero(dataset.y[: dataset.train_rows] == topic)
        members = int((groups == topic).sum())
        for share in equal_shares(rows, members, samples, generator(seed, "shares", topic)):
            cut = round(len(share) * held_out)
            tests.append(share[:cut])
            train.append(share[cut:])
    return with_tests(dataset, train, tests, groups)
