"""PACFL against a slow twin: power iteration, angles by projection, clusters joined one by one."""

from itertools import combinations

import numpy as np
import pytest
import torch
from refusals import told

from clustered_fl.groupings import grouping_module, pacfl
from clustered_fl.groupings.clients import Clients
from clustered_fl.options import call

SIDE = 6


def clients_of(groups, images=14, seed=0):
    """Clients with images near three directions of their group, on pixels of its own."""
    rng, parts = np.random.default_rng(seed), []
    spaces = [np.zeros((3, SIDE * SIDE)) for _ in range(max(groups) + 1)]
    for group, space in enumerate(spaces):
        space[:, 12 * group : 12 * (group + 1)] = rng.random((3, 12))
    for group in groups:
        flat = rng.random((images, 3)) @ spaces[group] * 80 + 2 * rng.random((images, SIDE * SIDE))
        parts.append(flat.astype(np.uint8))
    x = torch.from_numpy(np.concatenate(parts).reshape(-1, 1, SIDE, SIDE))
    rows = tuple(np.split(np.arange(len(x)), len(groups)))
    return Clients(x, rows, len(groups), np.array(groups), np.zeros(0, np.int64))


def settings(**options):
    return call(pacfl.Settings, "grouping pacfl", options)


# ---- The twin -----------------------------------------------------------------------------------


def singular_vectors(columns, count):
    """Left singular vectors by power iteration, each on what the others leave over."""
    left, found = columns.astype(np.float64), []
    for _ in range(count):
        vector = np.ones(len(left)) + np.arange(len(left)) / 100
        for _ in range(3000):
            vector = left @ (left.T @ vector)
            vector /= np.linalg.norm(vector)
        found.append(vector)
        left = left - np.outer(vector, vector @ left)
    return np.stack(found, axis=1)


def principal_angles(first, second):
    """The closest pair of directions, then the closest at right angles to it, and so on."""
    angles = []
    for _ in range(first.shape[1]):
        best, a, b = singular_pair(first.T @ second)
        angles.append(np.degrees(np.arccos(min(1.0, best))))
        first, second = without(first, a), without(second, b)
    return angles


def singular_pair(products):
    b = np.ones(products.shape[1]) + np.arange(products.shape[1]) / 10
    for _ in range(3000):
        a = products @ b
        a /= np.linalg.norm(a)
        b = products.T @ a
        b /= np.linalg.norm(b)
    return float(a @ products @ b), a, b


def without(basis, direction):
    """An orthonormal basis of what is at a right angle to one direction within a span."""
    rest = []
    for unit in np.eye(len(direction)):
        for done in (direction, *rest):
            unit = unit - done * (done @ unit)
        if np.linalg.norm(unit) > 1e-6:
            rest.append(unit / np.linalg.norm(unit))
    return basis @ np.stack(rest, axis=1) if rest else basis[:, :0]


def join(distances, clusters=None, threshold=None):
    """Join the nearest two clusters, both counting alike, until there are few or they are far."""
    members = {client: [client] for client in range(len(distances))}
    apart = {pair: distances[pair] for pair in combinations(members, 2)}
    while len(members) > (clusters or 1):
        first, second = pair = min(apart, key=apart.get)
        if threshold is not None and apart[pair] > threshold:
            break
        members[first] += members.pop(second)
        for other in members.keys() - {first}:
            keys = [tuple(sorted((each, other))) for each in pair]
            apart[keys[0]] = (apart[keys[0]] + apart.pop(keys[1])) / 2
        del apart[pair]
    return {frozenset(group) for group in members.values()}


def partition(groups):
    return {frozenset(np.flatnonzero(groups == group).tolist()) for group in set(groups.tolist())}


# ---- Against it ---------------------------------------------------------------------------------


def test_the_span_is_that_of_the_singular_vectors():
    pixels = clients_of([0]).images(np.arange(14)).flatten(1).numpy()
    found, expected = pacfl.basis(pixels, 3), singular_vectors(pixels.T, 3)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-6)


@pytest.mark.parametrize("vectors", [1, 2, 4])
def test_distances_are_the_principal_angles(vectors):
    rng = np.random.default_rng(vectors)
    bases = np.stack([np.linalg.qr(rng.normal(size=(12, vectors)))[0] for _ in range(4)])
    least, total = pacfl.apart(bases, "smallest"), pacfl.apart(bases, "sum")
    for i, j in combinations(range(4), 2):
        angles = principal_angles(bases[i], bases[j])
        assert least[i, j] == least[j, i] == pytest.approx(min(angles), abs=1e-4)
        assert total[i, j] == total[j, i] == pytest.approx(sum(angles), abs=1e-4)
    assert (np.diag(total) == 0).all()


def test_angles_do_not_depend_on_signs_and_order_of_the_vectors():
    rng = np.random.default_rng(0)
    bases = np.stack([np.linalg.qr(rng.normal(size=(9, 3)))[0] for _ in range(2)])
    other = np.stack([bases[0], -bases[1][:, [2, 0, 1]]])
    for measure in ("smallest", "sum"):
        found, same = pacfl.apart(bases, measure), pacfl.apart(other, measure)
        np.testing.assert_allclose(found, same, atol=1e-6)


@pytest.mark.parametrize("how", [{"clusters": 3}, {"clusters": 1}, {"threshold": 60.0}])
def test_clusters_are_joined_as_by_the_literal_algorithm(how):
    for seed in range(5):
        points = np.random.default_rng(seed).random((9, 2)) * 100
        distances = np.linalg.norm(points[:, None] - points[None], axis=2)
        found = pacfl.joined(distances, settings(**how))
        assert partition(found) == join(distances, **how)
        assert found[0] == 0


@pytest.mark.parametrize("measure", ["smallest", "sum"])
def test_clients_of_one_space_are_found(measure):
    groups = [0, 1, 2, 0, 1, 2, 2, 1]
    chosen = settings(clusters=3, measure=measure, vectors=3)
    found, (row,) = pacfl.relate(clients_of(groups), None, chosen, 0)
    assert found.groups.tolist() == groups
    assert (row["ari"], row["components"]) == (1, 3)
    np.testing.assert_array_equal(found.related, np.equal.outer(groups, groups))
    assert found.signatures.shape == (8, 3, SIDE * SIDE)


def test_newcomers_do_not_take_part():
    groups = [0, 1, 0, 1]
    clients = clients_of([*groups, 1])
    number = len(groups)
    some = Clients(clients.x, clients.rows, number, clients.groups[:4], clients.replaced)
    found, _ = pacfl.relate(some, None, settings(clusters=2, vectors=4), 0)
    assert found.groups.tolist() == groups


# ---- What is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"clusters": 2, "threshold": 5.0}])
def test_number_or_threshold_must_be_given(options):
    line = told(settings, **options)
    assert line == "grouping pacfl needs `clusters` or `threshold`, one of them"


def test_what_cannot_be_is_told():
    few = clients_of([0, 1], images=2)
    line = told(pacfl.relate, few, None, settings(clusters=1), 0)
    assert line == "3 singular vectors of 2 images; too few images"
    line = told(pacfl.relate, clients_of([0, 1]), None, settings(clusters=3), 0)
    assert line == "3 clusters of 2 clients; too many"


def test_its_name_in_the_ledger_is_the_module_s():
    assert grouping_module("pacfl") == "clustered_fl.groupings.pacfl"


def test_a_mean_that_all_images_share_hides_in_the_smallest_angle():
    """Which is why the sum is the default."""
    clients = clients_of([0, 1, 0, 1])
    lighter = (clients.x.int() + 100).clamp(max=255).to(torch.uint8)
    shared = Clients(lighter, clients.rows, 4, clients.groups, clients.replaced)
    bases = [pacfl.basis(shared.images(rows).flatten(1).numpy(), 3) for rows in shared.rows]
    found = pacfl.apart(np.stack(bases), "smallest")
    assert found.max() < 15
    assert pacfl.relate(shared, None, settings(clusters=2), 0)[1][0]["ari"] == 1
