"""Random groups, FL+HC and FedGroup, each against a slow twin."""

from itertools import combinations

import literal_repa as literal
import numpy as np
import pytest
from refusals import told
from test_repa_groupings import (  # noqa: F401
    SGD,
    clients,
    data,
    federation,
    folder,
    literal_updates,
    network_after,
    profiler,
)

from clustered_fl.groupings import fedgroup, hierarchical, random_groups
from clustered_fl.groupings.distances import same_group
from clustered_fl.options import call

PRESENT = 6


@pytest.fixture(scope="module")
def changes(folder, data, federation):  # noqa: F811
    """Updates of all clients, newcomers last, by the literal training."""
    network = network_after(folder, "node0.model")
    found = literal_updates(network, data, federation, SGD, 3, 5)
    return np.stack([own.double().numpy() for own in found])


def sets(groups):
    return {frozenset(np.flatnonzero(np.array(groups) == group)) for group in set(groups)}


# ---- Random groups -------------------------------------------------------------------------------


@pytest.mark.parametrize(("clusters", "sizes"), [(1, [6]), (2, [3, 3]), (4, [2, 2, 1, 1])])
def test_random_groups_are_equal_to_within_one_client(clients, clusters, sizes):  # noqa: F811
    found, rows = random_groups.relate(clients, None, random_groups.Settings(clusters), 0)
    counts = np.bincount(found.groups)
    assert sorted(counts.tolist(), reverse=True) == sizes
    assert found.groups[0] == 0
    np.testing.assert_array_equal(found.related, same_group(found.groups))
    assert found.signatures[0].size == 0
    assert set(found.placed.tolist()) <= set(range(PRESENT))
    assert (len(found.placed), rows) == (2, [])


def test_random_groups_are_drawn_by_the_seed(clients):  # noqa: F811
    settings = random_groups.Settings(clusters=3)

    def drawn(seed):
        return tuple(random_groups.relate(clients, None, settings, seed)[0].groups.tolist())

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(40)}) > 8  # of the 15 ways to pair six clients


def test_more_random_groups_than_clients_are_refused(clients):  # noqa: F811
    line = told(random_groups.relate, clients, None, random_groups.Settings(clusters=7), 0)
    assert line == "7 groups of 6 clients; too many"


# ---- FL+HC ---------------------------------------------------------------------------------------


def spread(points, members):
    """Sum of squared distances to the mean."""
    own = points[list(members)]
    return float(((own - own.mean(0)) ** 2).sum())


def between(points, first, second, linkage):
    """Distance of two clusters, by the definition of each linkage."""
    if linkage == "ward":
        apart = spread(points, (*first, *second))
        return apart - spread(points, first) - spread(points, second)
    pairs = [float(np.linalg.norm(points[a] - points[b])) for a in first for b in second]
    return {"complete": max, "average": np.mean, "single": min}[linkage](pairs)


def literal_tree(points, clusters, linkage):
    """Join the two nearest clusters until so many are left."""
    parts = [(client,) for client in range(len(points))]
    while len(parts) > clusters:
        a, b = min(combinations(parts, 2), key=lambda pair: between(points, *pair, linkage))
        parts = [part for part in parts if part not in (a, b)] + [a + b]
    return {frozenset(part) for part in parts}


@pytest.mark.parametrize("linkage", ["ward", "complete", "average", "single"])
@pytest.mark.parametrize("clusters", [1, 2, 3, 7])
def test_clusters_are_those_of_joining_one_by_one(clusters, linkage):
    settings = hierarchical.Settings(clusters=clusters, linkage=linkage)
    for seed in range(4):
        points = np.random.default_rng(seed).normal(size=(12, 3))
        found = hierarchical.joined(points, settings)
        assert sets(found.groups) == literal_tree(points, clusters, linkage)
        for group, centre in enumerate(found.centres):
            np.testing.assert_allclose(centre, points[found.groups == group].mean(0))


@pytest.mark.parametrize("normalise", [True, False])
def test_fl_hc_is_train_and_join(profiler, clients, changes, normalise):  # noqa: F811
    settings = hierarchical.Settings(clusters=2, training=SGD, normalise=normalise)
    found, _ = hierarchical.relate(clients, profiler, settings, seed=5)
    points = [literal.shortened(own) if normalise else own for own in changes]
    assert sets(found.groups) == literal_tree(np.stack(points[:PRESENT]), 2, "ward")
    for newcomer, host in zip(points[PRESENT:], found.placed, strict=True):
        groups = found.groups.tolist()
        assert groups[host] == literal.nearest(newcomer, points[:PRESENT], groups)


# ---- FedGroup ------------------------------------------------------------------------------------


def literal_cosines(changes, directions):
    """Cosine of every update with every left singular vector of the updates that are there."""
    left = np.linalg.svd(changes[:PRESENT].T, full_matrices=False)[0][:, :directions]
    lengths = np.linalg.norm(changes, axis=1)
    return np.stack([own @ left / length for own, length in zip(changes, lengths, strict=True)])


@pytest.mark.parametrize("directions", [1, 3, 6])
def test_cosines_are_those_with_the_singular_vectors(directions):
    changes = np.random.default_rng(0).normal(size=(8, 400)) * np.arange(1, 9)[:, None]
    found = fedgroup.decomposed_cosines(changes @ changes.T, PRESENT, directions)
    expected = literal_cosines(changes, directions)
    signs = np.sign((found * expected).sum(0))  # a singular vector has no sign
    np.testing.assert_allclose(found * signs, expected, atol=1e-8)


def test_an_update_of_length_zero_has_no_cosine():
    changes = np.random.default_rng(0).normal(size=(8, 20))
    changes[[2, 7]] = 0
    found = fedgroup.decomposed_cosines(changes @ changes.T, PRESENT, PRESENT)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[[2, 7]], 0)


@pytest.mark.parametrize("directions", [None, 3])
def test_fedgroup_is_train_decompose_and_cluster(profiler, clients, changes, directions):  # noqa: F811
    settings = fedgroup.Settings(clusters=2, directions=directions, training=SGD)
    found, _ = fedgroup.relate(clients, profiler, settings, seed=5)
    points = list(literal_cosines(changes, directions or 2))
    groups = found.groups.tolist()
    least = literal.best_inertia(points[:PRESENT], 2)
    assert literal.inertia(points[:PRESENT], groups) == pytest.approx(least, rel=0.01)
    for newcomer, host in zip(points[PRESENT:], found.placed, strict=True):
        assert groups[host] == literal.nearest(newcomer, points[:PRESENT], groups)


# ---- Both ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fedgroup", "hierarchical"])
def test_what_they_cannot_do_is_told(profiler, clients, name):  # noqa: F811
    module = {"fedgroup": fedgroup, "hierarchical": hierarchical}[name]
    line = told(module.relate, clients, None, module.Settings(clusters=2), 0)
    assert (
        line == f"grouping {name} needs the model of a run: `profiler:` of the entry, or `network=`"
    )
    line = told(module.relate, clients, profiler, module.Settings(7, training=SGD), 0)
    assert "6" in line
    assert line.endswith("too many")
    line = told(call, module.Settings, f"grouping {name}", {"clusters": 0})
    assert line.startswith(f"grouping {name}: clusters = 0 is not allowed")
