"""What must hold for every relatedness, every partition of FLT, and every average by them."""

import math
from contextlib import suppress

import literal_flt as literal
import numpy as np
import pytest
import torch
from hypothesis import event, given
from hypothesis import strategies as st

from clustered_fl.data.dataset import build
from clustered_fl.data.partitions import build_federation
from clustered_fl.data.partitions.structured import sizes
from clustered_fl.errors import InputError
from clustered_fl.groupings.agreement import agreement
from clustered_fl.groupings.distances import client_distances, components, threshold, ward
from clustered_fl.methods.fedsem import coordinates
from clustered_fl.methods.flt_code import sweep
from clustered_fl.methods.one_shot import alike

KINDS = ("minimum", "matching")
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def relatednesses(draw, most=8):
    """Symmetric or one-sided, every client related to itself."""
    clients = draw(st.integers(1, most))
    rows = st.lists(st.booleans(), min_size=clients, max_size=clients)
    related = np.array(draw(st.lists(rows, min_size=clients, max_size=clients)))
    if draw(st.booleans()):
        related = related | related.T
    return (related | np.eye(clients, dtype=bool)).astype(np.uint8)


@st.composite
def signatures(draw):
    """Points on a grid of few places, so that ties and coincidences happen: [M, k, u]."""
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    places = draw(
        st.lists(st.integers(-3, 3), min_size=math.prod(shape), max_size=math.prod(shape))
    )
    return np.array(places, dtype=np.float32).reshape(shape)


@given(relatednesses())
def test_components_are_found_by_walking(related):
    assert components(related).tolist() == literal.components(related)


@given(relatednesses(), st.data())
def test_names_of_clients_do_not_matter(related, data):
    order = np.array(data.draw(st.permutations(range(len(related)))))
    shuffled = related[np.ix_(order, order)]
    expected = {
        frozenset(order.tolist().index(i) for i in own) for own in literal.sets(components(related))
    }
    assert literal.sets(components(shuffled)) == expected


@given(relatednesses(), st.data())
def test_agreement_is_that_of_counting_pairs(related, data):
    label = st.integers(0, 2)
    true = np.array(data.draw(st.lists(label, min_size=len(related), max_size=len(related))))
    upper = np.triu(related, 1)
    related = upper | upper.T | np.eye(len(related), dtype=np.uint8)
    assert agreement(related, true) == pytest.approx(literal.agreement(related, true), nan_ok=True)


@given(relatednesses(), st.data())
def test_ward_makes_so_many_clusters_and_parts_twins_only_if_it_must(related, data):
    clusters = data.draw(st.integers(1, len(related)))
    for order in ("client", "leaf"):
        assert set(ward(related, clusters, order).tolist()) == set(range(clusters))
    rows = alike(related)
    pairs = set(zip(rows, ward(related, clusters).tolist(), strict=True))
    assert len(pairs) == max(clusters, len(set(rows)))


@given(relatednesses())
def test_clients_are_alike_when_their_rows_are(related):
    groups = alike(related)
    for i, one in enumerate(related):
        for j, other in enumerate(related):
            assert (groups[i] == groups[j]) == (one.tolist() == other.tolist())


@pytest.mark.parametrize("kind", KINDS)
@given(points=signatures())
def test_distances_are_those_of_the_literal_formula(kind, points):
    between = {"minimum": literal.minimum, "matching": literal.matching}[kind]
    expected = literal.distances(points.astype(np.float64), between)
    np.testing.assert_allclose(client_distances(points, kind), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@given(points=signatures(), seed=SEEDS)
def test_points_of_a_client_have_no_order(kind, points, seed):
    rng = np.random.default_rng(seed)
    shuffled = np.stack([own[rng.permutation(len(own))] for own in points])
    found = client_distances(shuffled, kind)
    np.testing.assert_allclose(found, client_distances(points, kind), rtol=1e-6)


@given(signatures(), st.floats(0.1, 5.0))
def test_clients_that_are_matched_closely_have_close_points(points, gamma):
    nearest, matched = (client_distances(points, kind) for kind in KINDS)
    assert (nearest <= matched * np.sqrt(points.shape[1]) * (1 + 1e-6)).all()
    fewer, more = threshold(matched, gamma), threshold(matched, gamma + 1)
    assert (fewer <= more).all()
    assert (np.diag(fewer) == 1).all()


@given(relatednesses(), st.data())
def test_a_sweep_averages(related, data):
    """Every model becomes a mean of earlier models, each of a client that is linked to it."""
    samples = data.draw(st.lists(st.integers(1, 9), min_size=len(related), max_size=len(related)))
    shares = related * np.array(samples, dtype=np.float64)
    shares = torch.from_numpy(shares / shares.sum(1, keepdims=True))
    weights = torch.eye(len(related), dtype=torch.float64)
    sweep(weights, shares)
    np.testing.assert_allclose(weights.sum(1), 1)
    assert (weights >= 0).all()
    groups = components(related)
    apart = groups[:, None] != groups[None, :]
    assert (weights.numpy()[apart] == 0).all()


@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=7))
def test_coordinates_keep_distances_also_of_equal_vectors(vectors):
    points = coordinates([torch.tensor(vector, dtype=torch.float32) for vector in vectors])
    for i, one in enumerate(vectors):
        for j, other in enumerate(vectors):
            expected = literal.distance(one, other)
            assert literal.distance(points[i], points[j]) == pytest.approx(expected, abs=1e-6)


@given(st.integers(1, 60), st.integers(0, 2000))
def test_sizes_use_every_image_and_leave_no_client_empty(clients, more):
    found = sizes(clients + more, clients)
    assert found.sum() == clients + more
    assert found.min() >= 1
    assert (np.diff(found[1:]) >= 0).all()


# ---- Partitions ---------------------------------------------------------------------------------

TRAIN, TEST, CLASSES = 120, 40, 8


def tiny_dataset():
    """One-pixel images of unequally frequent classes, written by seven writers."""
    rng = np.random.default_rng(0)
    frequent = np.arange(1, CLASSES + 1) / 36
    y = np.concatenate([rng.choice(CLASSES, TRAIN, p=frequent), np.arange(TEST) % CLASSES])
    owner = np.concatenate([rng.permutation(np.arange(n) % 7) for n in (TRAIN, TEST)])
    pixels = np.zeros((TRAIN + TEST, 1, 1, 1), dtype=np.uint8)
    return build("tiny", "builtin", pixels, y, TRAIN, tuple("abcdefgh"), owner=owner)


DATASET = tiny_dataset()
FEW = st.integers(-1, 4)
SETTINGS = {
    "disjoint_labels": {
        "clients": st.integers(0, 12),
        "groups": FEW,
        "labels": FEW,
        "samples": st.none() | FEW,
        "newcomers": FEW,
        "changed": FEW,
        "shuffled": st.booleans(),
        "padded": st.booleans(),
    },
    "shared_label_ring": {
        "clients": st.integers(0, 12),
        "groups": FEW,
        "samples": FEW,
        "sampling": st.sampled_from(["blocks", "random"]),
    },
    "structured": {
        "clients": st.integers(0, 24),
        "labels": st.integers(-1, 9),
        "zero_row": st.booleans(),
    },
    "writers": {"clients": st.integers(0, 8)},
}


def built(kind, settings, seed):
    """The federation, or None where it is refused."""
    with suppress(InputError):
        return build_federation(DATASET, seed, kind, **settings)


@pytest.mark.parametrize("kind", SETTINGS)
@given(data=st.data(), seed=SEEDS)
def test_a_federation_is_whole_or_refused(kind, data, seed):
    settings = {name: data.draw(values) for name, values in SETTINGS[kind].items()}
    federation = built(kind, settings, seed)
    if federation is None:
        return
    event("built")
    clients = len(federation.train)
    assert federation.clients + len(federation.replaces) == clients or not len(federation.replaces)
    assert federation.clients >= 1
    parts = (federation.test_of, federation.groups, federation.label_maps)
    assert [len(part) for part in parts] == [clients] * 3
    own_labels = {group: set() for group in federation.groups.tolist()}
    for client, group in enumerate(federation.groups.tolist()):
        rows, tested = federation.train[client], federation.test_sets[federation.test_of[client]]
        assert 0 <= rows.min() <= rows.max() < TRAIN <= tested.min()
        if not settings.get("padded"):
            assert len(set(rows.tolist())) == len(rows)
            assert set(DATASET.y[rows]) <= set(DATASET.y[tested]) or kind == "writers"
            own_labels[group] |= set(DATASET.y[rows].tolist())
    held = np.concatenate(federation.train)
    if kind in {"disjoint_labels", "structured", "writers"} and not settings.get("padded"):
        assert len(set(held.tolist())) == len(held)
    if kind in {"disjoint_labels", "structured"}:
        assert sum(map(len, own_labels.values())) == len(set().union(*own_labels.values()))


@pytest.mark.parametrize("kind", SETTINGS)
@given(data=st.data(), seed=SEEDS)
def test_a_seed_is_a_federation(kind, data, seed):
    settings = {name: data.draw(values) for name, values in SETTINGS[kind].items()}
    one, again = (built(kind, settings, seed) for _ in range(2))
    assert (one is None) == (again is None)
    if one is not None:
        assert [rows.tolist() for rows in one.train] == [rows.tolist() for rows in again.train]
        assert one.groups.tolist() == again.groups.tolist()
