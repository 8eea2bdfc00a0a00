"""CFL's Algorithm 1 as printed, and exhaustive search: slow references for the fast bipartition."""

import numpy as np

from clustered_fl.methods.groups import Bipartition


def literal_algorithm(similarity: np.ndarray) -> Bipartition:
    """CFL's Algorithm 1 line by line: join the most similar pair until two sets are left.

    The diagonal must be ones. The sort is stable, as the paper does not say what happens to ties.
    """
    clients = len(similarity)
    sets = [{client} for client in range(clients)]
    for position in np.argsort(-similarity, axis=None, kind="stable"):
        first, second = divmod(int(position), clients)
        touched = [members for members in sets if first in members or second in members]
        sets = [members for members in sets if members not in touched]
        sets.append(set().union(*touched))
        if len(sets) == 2:
            break
    return halves(similarity, np.array([client in sets[0] for client in range(clients)]))


def exhaustive_bipartition(similarity: np.ndarray) -> Bipartition:
    """Try all 2^(clients-1) - 1 bipartitions (CFL eq. 23); the first of several best ones."""
    clients = len(similarity)
    numbers = np.arange(1, 2 ** (clients - 1))
    # Bit i - 1 of a number says whether client i > 0 is in the half without client 0.
    apart = np.zeros((len(numbers), clients), dtype=bool)
    apart[:, 1:] = numbers[:, None] >> np.arange(clients - 1) & 1
    across = apart[:, :, None] & ~apart[:, None, :]
    cross_max = np.where(across, similarity, -np.inf).max(axis=(1, 2))
    return halves(similarity, apart[cross_max.argmin()])


def halves(similarity: np.ndarray, chosen: np.ndarray) -> Bipartition:
    """The bipartition into chosen [clients] and other clients; the half of client 0 comes first."""
    same = chosen == chosen[0]
    first, second = np.flatnonzero(same), np.flatnonzero(~same)
    return Bipartition(first, second, float(similarity[np.ix_(first, second)].max()))
