"""Settings of every partition: newcomers, held-out tests, smaller shares and drift.

A partition's own setting of the same name takes precedence.
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from clustered_fl.data.drift import Drift
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import hold_out
from clustered_fl.data.shares import Count, Fraction, last_of_each, refuse_shared
from clustered_fl.randomness import generator

Share = Annotated[float, Field(gt=0, le=1)]


def modified(
    federation: Federation,
    seed: int,
    own_tests: bool,
    newcomers: Count = 0,
    held_out: Fraction | None = None,
    share: Share | None = None,
    drift: Drift | None = None,
) -> Federation:
    """Modifications of any federation, applied in the order of the settings.

    Args:
        own_tests: whether clients are tested on their own `held_out` images.
        newcomers: number of clients, the last ones of each true group, that join later.
        held_out: fraction of a client's training rows used as tests, in place of its tests.
        share: fraction of its rows that a client keeps, at least one row. This reduces the work
            and keeps the number of clients and their relative sizes. Clients with their own tests
            have shuffled rows and keep the first of training and tests; others keep a random part
            of their training rows.
        drift: transforms of clients' images, see `data.transforms`; it changes no rows. True groups
            are then clients of one group that also share a pipeline.
    Raises: InputError if a group has too few clients, or clients with drift share images.
    """
    if newcomers:
        federation = _joined_later(federation, newcomers)
    if held_out is not None:
        refuse_shared(federation.train, "held_out")
        train, tests = map(tuple, hold_out(federation.train, held_out, seed))
        test_of = np.arange(len(train))
        federation = replace(federation, train=train, test_sets=tests, test_of=test_of)
    if share is not None:
        federation = _thinned(federation, share, seed, own_tests)
    if drift is not None:
        refuse_shared([federation.rows_of(i) for i in range(len(federation.train))], "drift")
        federation = replace(federation, groups=drift.groups(federation.groups))
    return federation


def _joined_later(federation: Federation, count: int) -> Federation:
    """Move the last clients of each true group to the end, as newcomers."""
    clients = np.arange(len(federation.train))
    late = last_of_each(federation.groups, clients, count)
    order = np.concatenate([np.setdiff1d(clients, late), late])
    moved = {n: getattr(federation, n)[order] for n in ("test_of", "label_maps", "groups")}
    train = tuple(federation.train[client] for client in order)
    return replace(federation, train=train, newcomers=len(late), **moved)


def _thinned(federation: Federation, share: float, seed: int, own_tests: bool) -> Federation:
    train, tests = [], list(federation.test_sets)
    for client, rows in enumerate(federation.train):
        # Rows of newcomers may be sorted by label, and be their tests as well.
        key = None if own_tests and client < federation.clients else (seed, "thinned", client)
        train.append(_part(rows, share, key))
        if own_tests:
            tests[federation.test_of[client]] = _part(federation.tests_of(client), share, key)
    return replace(federation, train=tuple(train), test_sets=tuple(tests))


def _part(rows: np.ndarray, share: float, key: tuple[int, str, int] | None) -> np.ndarray:
    """The first rows, or with a key a random choice of them, ascending."""
    kept = max(1, round(share * len(rows)))
    return rows[:kept] if key is None else np.sort(generator(*key).permutation(rows)[:kept])
