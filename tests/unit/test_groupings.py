"""Relatedness found before training: every step against a slow twin, and what is refused."""

import copy
import warnings
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import literal_flt as literal
import numpy as np
import pytest
import torch
from refusals import told
from scipy.cluster.hierarchy import dendrogram, fcluster, linkage

from clustered_fl.data import dataset as datasets
from clustered_fl.data.federation import Federation
from clustered_fl.encoders.training import TrainingSettings, embed
from clustered_fl.groupings import flt, grouping_module, pca_kmeans_hc, signatures
from clustered_fl.groupings.agreement import agreement
from clustered_fl.groupings.clients import Clients, clients_of, found_by
from clustered_fl.groupings.distances import (
    client_distances,
    components,
    same_group,
    threshold,
    ward,
)
from clustered_fl.groupings.profiles import clusters as means
from clustered_fl.groupings.signatures import Manifold, on_manifold, signature
from clustered_fl.models.autoencoder import build_autoencoder
from clustered_fl.options import call
from clustered_fl.records.relatedness import require_clients

BETWEEN = {"minimum": literal.minimum, "matching": literal.matching}


# ---- Distances, threshold, components -----------------------------------------------------------


@pytest.mark.parametrize("kind", BETWEEN)
@pytest.mark.parametrize(("clients", "k", "u"), [(6, 1, 2), (5, 2, 3), (4, 4, 2), (1, 3, 2)])
def test_distances_are_those_of_a_loop_over_pairs_of_clients_and_points(kind, clients, k, u):
    points = np.random.default_rng(0).normal(size=(clients, k, u)).astype(np.float32)
    found = client_distances(points, kind)
    assert found.dtype == np.float32
    expected = literal.distances(points.astype(np.float64), BETWEEN[kind])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(found, found.T)


def test_the_nearest_points_need_not_be_matched():
    # Point 1 of the first client is nearest to 0 of the second, but that leaves 0 and 9 over.
    points = np.array([[[0.0], [4.0]], [[5.0], [9.0]]])
    assert client_distances(points, "minimum")[0, 1] == 1
    assert client_distances(points, "matching")[0, 1] == pytest.approx(np.sqrt(25 + 25) / 2)


def test_clients_closer_than_gamma_are_related_and_each_to_itself():
    apart = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]], dtype=np.float32)
    for gamma, expected in [
        (0.0, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (1.0, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (2.5, [[1, 1, 1], [1, 1, 0], [1, 0, 1]]),
    ]:
        related = threshold(apart, gamma)
        assert related.tolist() == expected
        assert related.dtype == np.uint8


def sparse(clients, density, seed):
    upper = np.triu(np.random.default_rng(seed).random((clients, clients)) < density, 1)
    return (upper | upper.T | np.eye(clients, dtype=bool)).astype(np.uint8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("density", [0.0, 0.05, 0.1, 0.3, 1.0])
def test_components_are_found_by_walking(density, seed):
    related = sparse(15, density, seed)
    found = components(related)
    assert found.tolist() == literal.components(related)
    assert found.dtype == np.int64


def test_a_chain_is_one_component():
    related = np.eye(5, dtype=np.uint8) | np.eye(5, k=1, dtype=np.uint8)
    assert components(related | related.T).tolist() == [0] * 5


def test_related_are_clients_of_one_cluster():
    groups = np.array([2, 0, 2, 1])
    related = same_group(groups)
    for i, j in product(range(4), repeat=2):
        assert related[i, j] == (groups[i] == groups[j])
    assert related.dtype == np.uint8


# ---- Ward's method ------------------------------------------------------------------------------


def blocks(groups, flipped=0.0, seed=0):
    """The relatedness of true groups, with some pairs related wrongly."""
    groups = np.array(groups)
    wrong = np.triu(np.random.default_rng(seed).random((len(groups),) * 2) < flipped, 1)
    return ((groups[:, None] == groups[None, :]) ^ wrong ^ wrong.T).astype(np.uint8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("groups", [1, 2, 3, 7, 12])
def test_ward_merges_what_costs_least(groups, seed):
    rows = np.random.default_rng(seed).random((12, 12))  # no two mergers cost the same
    found = ward(rows, groups)
    assert literal.sets(found) == {frozenset(own) for own in literal.ward(rows, groups)}
    first = [found.tolist().index(group) for group in range(groups)]
    assert first == sorted(first)  # numbered by first appearance


SORTED, SHUFFLED = np.repeat([0, 1, 2], 8), np.tile([0, 1, 2], 8)


@pytest.mark.parametrize("true", [SORTED, SHUFFLED], ids=["sorted", "shuffled"])
def test_ward_finds_the_groups_behind_a_noisy_relatedness(true):
    found = ward(blocks(true, flipped=0.04), 3)
    assert found.tolist() == true.tolist()
    assert found.dtype == np.int64


def coded_groups(related, groups):
    """`cluster.py`, line 531: leaves at the places of a cluster's clients."""
    tree = linkage(related.astype(float), method="ward")
    labels = fcluster(tree, groups, criterion="maxclust")
    leaves = dendrogram(tree, no_plot=True)["leaves"]
    members = [[leaves[place] for place in np.flatnonzero(labels == c + 1)] for c in range(groups)]
    return {frozenset(own) for own in members}


@pytest.mark.parametrize("true", [SORTED, SHUFFLED], ids=["sorted", "shuffled"])
def test_clusters_read_in_the_order_of_leaves_are_right_for_sorted_clients_only(true):
    related = blocks(true)
    found = ward(related, 3, "leaf")
    assert literal.sets(found) == coded_groups(related, 3)
    assert (literal.sets(found) == literal.sets(true)) is (true is SORTED)
    assert literal.sets(ward(related, 3, "client")) == literal.sets(true)


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 6])
@pytest.mark.parametrize(
    "related", [np.eye(12), blocks(np.repeat([0, 1, 2, 3], 3)), np.ones((12, 12))]
)
def test_ties_do_not_change_the_number_of_clusters(related, groups):
    """`fcluster` with `maxclust` finds a single cluster in four equal blocks if asked for three."""
    found = ward(related, groups)
    assert sorted(set(found)) == list(range(groups))
    if groups <= len(np.unique(related, axis=0)):  # clients that are alike stay together
        assert len({*zip(map(tuple, related), found, strict=True)}) == len(
            np.unique(related, axis=0)
        )


def test_one_client_is_one_cluster():
    assert ward(np.ones((1, 1)), 1).tolist() == [0]
    assert components(np.ones((1, 1))).tolist() == [0]


@pytest.mark.parametrize("groups", [0, 5])
def test_more_clusters_than_clients_are_refused(groups):
    expected = f"{groups} clusters of 4 clients; allowed are 1 to the number of clients"
    assert told(ward, np.eye(4), groups) == expected


# ---- Agreement with the true groups -------------------------------------------------------------


@pytest.mark.parametrize(
    ("related", "true"),
    [
        (sparse(12, 0.1, 0), SORTED[:12]),
        (sparse(12, 0.2, 1), SHUFFLED[:12]),
        (blocks(SHUFFLED, 0.02), SHUFFLED),
        (blocks(SHUFFLED), SHUFFLED),
        (np.ones((6, 6)), SHUFFLED[:6]),
        (np.eye(6), SHUFFLED[:6]),
        (np.eye(6), np.zeros(6, int)),
        (np.eye(6), np.arange(6)),
        (np.ones((1, 1)), np.zeros(1, int)),
    ],
)
def test_agreement_is_that_of_counting_pairs(related, true):
    found = agreement(related, true)
    assert found == pytest.approx(literal.agreement(related, true), nan_ok=True)
    assert all(isinstance(value, float) for value in found.values())


# ---- What a client sends ------------------------------------------------------------------------


def blobs(counts, dimensions=6, seed=0):
    """Codes in blobs far apart, and the blobs' means."""
    rng = np.random.default_rng(seed)
    places = 50 * rng.normal(size=(len(counts), dimensions))
    own = [
        place + rng.normal(size=(n, dimensions)) for place, n in zip(places, counts, strict=True)
    ]
    codes = np.concatenate(own)[rng.permutation(sum(counts))]
    return codes.astype(np.float32), np.stack([each.mean(0) for each in own])


def ordered(points):
    return points[np.lexsort(points.T)]


def test_centres_of_blobs_are_their_means():
    codes, means = blobs([5, 12, 1, 30])
    found = signature(codes, 4, seed=0, client=3)
    assert found.dtype == np.float32
    np.testing.assert_allclose(ordered(found), ordered(means), rtol=1e-4)


def test_a_signature_is_its_clients_and_its_seeds_alone():
    codes = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    found = {
        (seed, client): signature(codes, 6, seed, client).tobytes()
        for seed in (0, 1)
        for client in (0, 1)
    }
    assert len(set(found.values())) > 1
    np.random.default_rng(7).random()
    assert signature(codes, 6, 1, 0).tobytes() == found[1, 0]


def test_too_few_samples_for_a_signature_are_refused():
    expected = (
        "client 7 has 4 samples, too few for a signature of k = 5 centres; choose a smaller k or "
        "give every client 5 samples"
    )
    assert told(signature, np.zeros((4, 3), np.float32), 5, 0, 7) == expected


def test_as_many_samples_as_centres_are_the_centres():
    codes, _ = blobs([1, 1, 1, 1])
    np.testing.assert_allclose(ordered(signature(codes, 4, 0, 0)), ordered(codes), rtol=1e-6)


def test_equal_images_have_centres_that_coincide():
    codes = np.repeat(np.array([[1.0, 2.0]], np.float32), 8, axis=0)
    assert signature(codes, 5, 0, 0).tolist() == [[1.0, 2.0]] * 5


@pytest.mark.parametrize(("clients", "k"), [(3, 5), (5, 3), (2, 2)])
def test_a_neighbourhood_of_all_centres_is_refused(clients, k):
    found = told(on_manifold, np.zeros((clients, k, 4)), Manifold(), 0)
    assert found == (
        f"UMAP with 15 neighbours needs more centres than that; {clients} clients of k = {k} have "
        f"{clients * k}"
    )


class Flat:
    """Stands for UMAP: its layout is the first coordinates, moved when a client comes by itself."""

    def __init__(self, settings, seed):
        self.settings, self.seed = settings, seed

    def fit_transform(self, points):
        return points[:, : self.settings.dimensions].astype(np.float64)

    def transform(self, points):
        return points[:, : self.settings.dimensions] + len(points)


@pytest.fixture
def flat(monkeypatch):
    """Use `Flat` and collect what it is made with."""
    made = []

    def make(settings, seed):
        made.append(Flat(settings, seed))
        return made[-1]

    monkeypatch.setattr(signatures, "_umap", make)
    return made


@pytest.mark.parametrize("transform", [False, True])
def test_points_are_those_of_the_fit_or_of_every_client_by_itself(flat, transform):
    sent = np.random.default_rng(0).normal(size=(4, 3, 5)).astype(np.float32)
    settings = Manifold(neighbours=4, dimensions=2, transform=transform)
    found = on_manifold(sent, settings, 17)
    np.testing.assert_allclose(found, sent[..., :2] + (3 if transform else 0), rtol=1e-6)
    assert found.dtype == np.float32
    assert [umap.seed for umap in flat] == [17]


# ---- FLT ----------------------------------------------------------------------------------------

SIDE, EACH = 8, 12
THREE = np.array([0, 1, 2, 1, 0, 2, 0, 1])


def pictures(groups, newcomers=0, seed=0, replaced=()):
    """Clients with noisy pictures of two things; every group has things of its own."""
    rng = np.random.default_rng(seed)
    things = rng.integers(0, 256, (max(groups) + 1, 2, 1, SIDE, SIDE))
    x = np.concatenate([things[g][np.arange(EACH) % 2] for g in groups])
    x = (0.85 * x + 0.15 * rng.integers(0, 256, x.shape)).astype(np.uint8)
    rows = tuple(np.arange(i * EACH, (i + 1) * EACH) for i in range(len(groups)))
    number = len(groups) - newcomers
    true, gone = np.array(groups)[:number], np.array(replaced, dtype=int)
    return Clients(torch.from_numpy(x), rows, number, true, gone)


@pytest.fixture(scope="module")
def encoder():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build_autoencoder("conv_autoencoder", (1, SIDE, SIDE), code=6).eval()


def literal_signatures(clients, encoder, k, seed):
    codes = [embed(encoder, clients.x[rows].float() / 255) for rows in clients.rows]
    return np.stack([signature(code, k, seed, client) for client, code in enumerate(codes)])


FLAT = Manifold(neighbours=3, dimensions=4)
TUNING = TrainingSettings(epochs=1, batch_size=5)


@pytest.mark.parametrize("kind", BETWEEN)
@pytest.mark.parametrize("gamma", [1e-6, 0.01, 0.03, 1e6])
def test_relatedness_is_encode_cluster_lay_out_and_compare(flat, encoder, kind, gamma):
    clients = pictures(THREE)
    settings = flt.Settings(k=2, manifold=FLAT, distance=kind, gamma=gamma)
    found, _ = flt.relate(clients, encoder, settings, seed=3)
    sent = literal_signatures(clients, encoder, 2, 3)
    np.testing.assert_array_equal(found.signatures, sent)
    np.testing.assert_array_equal(found.points, sent[..., :4])
    expected = literal.distances(found.points.astype(np.float64), BETWEEN[kind])
    np.testing.assert_allclose(found.distances, expected, rtol=1e-5)
    related = (expected < gamma) | np.eye(8, dtype=bool)
    assert found.related.tolist() == related.astype(int).tolist()
    assert found.groups.tolist() == literal.components(related)
    assert flat[0].seed == 3
    edges = {1e-6: 8, 1e6: 64}
    assert found.related.sum() == edges.get(gamma, found.related.sum())


def test_clients_with_the_same_things_are_related(flat, encoder):
    settings = flt.Settings(k=2, manifold=FLAT, distance="matching", gamma=0.03)
    found, _ = flt.relate(pictures(THREE), encoder, settings, seed=0)
    assert found.related.tolist() == same_group(THREE).tolist()
    assert found.groups.tolist() == [0, 1, 2, 1, 0, 2, 0, 1]


@pytest.mark.parametrize("case", ["relatedness", "groups"])
def test_disjoint_clusters_are_a_relatedness_of_blocks(flat, encoder, case):
    settings = {"k": 2, "manifold": FLAT, "distance": "matching", "gamma": 0.03, "groups": 2}
    found, _ = flt.relate(pictures(THREE), encoder, flt.Settings(**settings, case=case), seed=0)
    plain = threshold(found.distances, 0.03)
    np.testing.assert_array_equal(found.groups, ward(plain, 2))
    assert len(set(found.groups)) == 2
    expected = same_group(found.groups) if case == "groups" else plain
    np.testing.assert_array_equal(found.related, expected)


def test_the_mistake_of_the_leaves_reaches_the_groups(flat, encoder):
    settings = {"k": 2, "manifold": FLAT, "distance": "matching", "gamma": 0.03, "groups": 3}
    coded = flt.Settings(**settings, case="groups", order="leaf")
    found, _ = flt.relate(pictures(THREE), encoder, coded, seed=0)
    assert literal.sets(found.groups) == coded_groups(same_group(THREE), 3)
    assert literal.sets(found.groups) != literal.sets(THREE)
    np.testing.assert_array_equal(found.related, same_group(found.groups))


def test_newcomers_go_to_the_cluster_with_the_nearest_mean_signature(flat, encoder):
    groups = [*THREE, 2, 0, 1]
    clients = pictures(groups, newcomers=3)
    settings = flt.Settings(k=2, manifold=FLAT, distance="matching", gamma=0.03)
    found, _ = flt.relate(clients, encoder, settings, seed=0)
    sent = literal_signatures(clients, encoder, 2, 0)
    np.testing.assert_array_equal(found.signatures, sent)
    assert (found.points.shape, found.related.shape) == ((8, 2, 4), (8, 8))
    for newcomer, host in enumerate(found.placed):
        away = {}
        for cluster in literal.sets(found.groups):
            middle = np.mean([centre for i in cluster for centre in sent[i]], axis=0)
            away[min(cluster)] = literal.distance(sent[8 + newcomer].mean(0), middle)
        assert host == min(away, key=away.__getitem__)
    assert [THREE[host] for host in found.placed] == [2, 0, 1]


def test_without_newcomers_no_client_is_placed(flat, encoder):
    settings = flt.Settings(k=2, manifold=FLAT)
    placed = flt.relate(pictures(THREE), encoder, settings, seed=0)[0].placed
    assert (placed.shape, placed.dtype) == ((0,), np.int64)


def test_found_again_all_clients_that_are_there_are_compared_after_fine_tuning(flat, encoder):
    clients = pictures([*THREE, 2, 0, 1], newcomers=3, replaced=[0, 3])
    settings = flt.Settings(
        k=2, manifold=FLAT, distance="matching", gamma=0.03, tuning_epochs=1, batch_size=5
    )
    plain, _ = flt.relate(clients, encoder, settings, seed=4)
    assert plain.later.shape == (0, 0)
    found, _ = flt.relate(clients, encoder, replace(settings, again=True), seed=4)
    np.testing.assert_array_equal(found.related, plain.related)
    sent = {}
    for client in (1, 2, 4, 5, 6, 7, 8, 9, 10):
        own, images = copy.deepcopy(encoder), clients.x.float() / 255
        literal.tune_one(own, images, clients.rows[client], TUNING, 4, client)
        codes = embed(own, images[torch.from_numpy(clients.rows[client])])
        sent[client] = signature(codes, 2, 4, client)[:, :4].astype(np.float64)
    near = {(i, j) for i in sent for j in sent if literal.matching(sent[i], sent[j]) < 0.03}
    expected = np.array([[i == j or (i, j) in near for j in range(11)] for i in range(11)])
    assert found.later.tolist() == expected.astype(int).tolist()
    assert 11 < expected.sum() < 81
    assert found.later[0].sum() == found.later[:, 3].sum() == 1


def test_a_single_client_is_related_to_itself(encoder):
    found, rows = flt.relate(pictures([0]), encoder, flt.Settings(k=2), seed=0)
    assert (found.related.tolist(), found.groups.tolist()) == ([[1]], [0])
    assert {row["components"] for row in rows} == {1.0}


def test_every_combination_of_settings_is_compared(flat, encoder):
    compare = flt.Comparison(seeds=2, k=(1, 2, 3), gammas=(0.01, 0.03))
    settings = flt.Settings(k=2, manifold=FLAT, compare=compare)
    clients = pictures(THREE)
    _, rows = flt.relate(clients, encoder, settings, seed=5)
    keys = [(row["k"], row["umap_seed"], row["distance"], row["gamma"]) for row in rows]
    assert sorted(keys) == sorted(product((1, 2, 3), (0, 1), BETWEEN, (0.01, 0.03)))
    for row in rows:
        points = literal_signatures(clients, encoder, row["k"], 5)[..., :4].astype(np.float64)
        near = literal.distances(points, BETWEEN[row["distance"]]) < row["gamma"]
        expected = literal.agreement(near | np.eye(8, dtype=bool), THREE)
        assert {name: row[name] for name in expected} == pytest.approx(expected, nan_ok=True)
    assert [umap.seed for umap in flat] == [5, 0, 1, 0, 1, 0, 1]


def test_fine_tuning_changes_what_clients_send(flat, encoder):
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    sent = {}
    for tuning in ("none", "independent", "sequential", "pooled"):
        settings = flt.Settings(k=2, manifold=FLAT, tuning=tuning, tuning_epochs=1, batch_size=6)
        sent[tuning] = flt.relate(pictures(THREE), encoder, settings, seed=0)[0].signatures
    assert len({each.tobytes() for each in sent.values()}) == 4
    np.testing.assert_array_equal(sent["independent"][0], sent["sequential"][0])
    assert all(torch.equal(before[name], now) for name, now in encoder.state_dict().items())


def test_what_flt_cannot_do_is_told(encoder):
    clients = pictures(THREE)
    line = told(flt.relate, clients, None, flt.Settings(), 0)
    assert line == "grouping flt needs an encoder: `encoder:` of the entry, or `network=`"
    line = told(flt.relate, clients, encoder, flt.Settings(k=EACH + 1), 0)
    assert line.startswith("client 0 has 12 samples, too few for a signature of k = 13 centres;")
    line = told(flt.relate, clients, encoder, flt.Settings(k=1), 0)
    assert line.startswith("UMAP with 15 neighbours needs more centres than that; 8 clients of k")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"gama": 1}, "grouping flt has no setting 'gama'; allowed are k, tuning,"),
        (
            {"manifold": {"neighbors": 3}},
            "grouping flt has no setting 'manifold.neighbors'; allowed are neighbours, min_dist, ",
        ),
        ({"manifold": {"neighbours": 1}}, "grouping flt: manifold.neighbours = 1 is not allowed:"),
        ({"distance": "mean"}, "grouping flt: distance = 'mean' is not allowed: input should be"),
        ({"gamma": 0}, "grouping flt: gamma = 0 is not allowed: input should be greater than 0"),
    ],
)
def test_settings_that_cannot_be_are_told(options, line):
    assert told(call, flt.Settings, "grouping flt", options).startswith(line)


@pytest.mark.filterwarnings("ignore")  # of its imports, and of what little data there is
def test_umap_tells_groups_apart_and_is_the_same_for_the_same_seed():
    from umap import UMAP

    rng = np.random.default_rng(0)
    places = 20 * rng.normal(size=(3, 2, 8))
    sent = (places[THREE] + 0.1 * rng.normal(size=(8, 2, 8))).astype(np.float32)
    settings = Manifold(neighbours=4, dimensions=2)
    points = on_manifold(sent, settings, 42)
    assert (points.shape, points.dtype) == ((8, 2, 2), np.float32)
    apart = client_distances(points, "matching")
    same = same_group(THREE) > 0
    assert apart[same].max() < apart[~same].min()
    assert points.tobytes() == on_manifold(sent, settings, 42).tobytes()
    assert points.tobytes() != on_manifold(sent, settings, 43).tobytes()
    # UMAP's pool of threads would have given torch its number (see `__main__`).
    assert torch.get_num_threads() == 1
    umap = UMAP(n_neighbors=4, min_dist=0.1, n_components=2, random_state=42, n_jobs=1)
    umap.fit(sent.reshape(16, 8))
    by_itself = on_manifold(sent, Manifold(neighbours=4, dimensions=2, transform=True), 42)
    np.testing.assert_array_equal(by_itself, np.stack([umap.transform(own) for own in sent]))


@pytest.mark.filterwarnings("ignore")  # of its imports
def test_clusters_that_share_no_neighbours_are_no_warning():
    """UMAP would warn of the spectral embedding for every fit, and the console would show it."""
    from umap import UMAP

    rng = np.random.default_rng(0)
    far = 1000 * np.eye(8)[np.arange(80) % 8]
    sent = (far + rng.normal(size=(80, 8))).astype(np.float32).reshape(40, 2, 8)

    def warnings_of(fit):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            fit()
        return [each for each in given if "fully connected" in str(each.message)]

    umap = UMAP(n_neighbors=5, n_components=2, random_state=0, n_jobs=1)
    assert warnings_of(lambda: umap.fit(sent.reshape(80, 8)))
    assert not warnings_of(lambda: on_manifold(sent, Manifold(neighbours=5, dimensions=2), 0))


# ---- PCA+kM+HC ----------------------------------------------------------------------------------


def absolute_scores(pixels, dimensions):
    """Scores on the principal components by a singular value decomposition, without signs."""
    left, sizes, _ = np.linalg.svd(pixels - pixels.mean(0), full_matrices=False)
    return np.abs(left * sizes)[:, :dimensions]


def test_principal_components_are_those_of_a_singular_value_decomposition():
    pixels = np.random.default_rng(0).random((20, 9)).astype(np.float32)
    found = pca_kmeans_hc.principal_components(pixels, 4)
    assert (found.shape, found.dtype) == ((20, 4), np.float32)
    expected = absolute_scores(pixels.astype(np.float64), 4)
    np.testing.assert_allclose(np.abs(found), expected, atol=1e-6)
    centred = pixels - pixels.mean(0)
    whole = pca_kmeans_hc.principal_components(pixels, 9)
    np.testing.assert_allclose(whole @ whole.T, centred @ centred.T, atol=1e-5)


def test_with_fewer_samples_than_components_samples_are_repeated():
    pixels = np.random.default_rng(0).random((3, 9)).astype(np.float32)
    found = pca_kmeans_hc.principal_components(pixels, 7)
    assert found.shape == (7, 7)
    repeated = pixels[[0, 1, 2, 0, 1, 2, 0]].astype(np.float64)
    np.testing.assert_allclose(np.abs(found[:, :2]), absolute_scores(repeated, 2), atol=1e-6)
    np.testing.assert_allclose(found[:, 2:], 0, atol=1e-6)


def test_equal_images_have_no_components():
    found = pca_kmeans_hc.principal_components(np.full((6, 9), 0.5, np.float32), 4)
    np.testing.assert_allclose(found, 0, atol=1e-6)


def test_more_components_than_pixels_are_refused():
    line = told(pca_kmeans_hc.principal_components, np.zeros((3, 9)), 10)
    assert line == "10 principal components of 9 pixels; allowed are 1 to 9"


GAMMA = 0.02


@pytest.mark.parametrize(("case", "groups"), [("relatedness", None), ("groups", 2)])
def test_pca_compares_clients_by_their_own_components(case, groups):
    clients = pictures([*THREE, 1], newcomers=1)
    settings = pca_kmeans_hc.Settings(dimensions=5, k=2, gamma=GAMMA, case=case, groups=groups)
    found, (row,) = pca_kmeans_hc.relate(clients, None, settings, seed=2)
    pixels = [clients.x[rows].flatten(1).numpy() / 255 for rows in clients.rows[:8]]
    scores = [pca_kmeans_hc.principal_components(own.astype(np.float32), 5) for own in pixels]
    sent = np.stack([signature(own, 2, 2, client) for client, own in enumerate(scores)])
    np.testing.assert_allclose(found.signatures, sent, atol=1e-5)
    expected = literal.distances(sent.astype(np.float64), literal.matching)
    np.testing.assert_allclose(found.distances, expected, rtol=1e-4, atol=1e-5)
    plain = threshold(found.distances, GAMMA)
    assert 8 < plain.sum() < 64
    clusters = components(plain) if groups is None else ward(plain, groups)
    np.testing.assert_array_equal(found.groups, clusters)
    np.testing.assert_array_equal(
        found.related, same_group(clusters) if case == "groups" else plain
    )
    np.testing.assert_array_equal(found.points, found.signatures)
    assert len(found.placed) == 0
    measured = literal.agreement(plain, THREE)
    assert {name: row[name] for name in measured} == pytest.approx(measured, nan_ok=True)
    assert (row["k"], row["distance"], row["gamma"], row["umap_seed"]) == (2, "matching", GAMMA, -1)


# ---- What there is ------------------------------------------------------------------------------


def test_clients_see_images_and_no_labels():
    x = np.random.default_rng(0).integers(0, 256, (10, 1, 2, 2), dtype=np.uint8)
    data = datasets.build("mnist", "builtin", x, np.arange(10) % 2, 8, ("a", "b"))
    train = (np.array([3, 1]), np.array([0]), np.array([5]))
    federation = Federation(
        train, (np.array([8]),), np.zeros(3, int), np.zeros((3, 2), int), np.array([1, 0, 1]), 1
    )
    clients = clients_of(data, federation)
    assert (clients.number, clients.groups.tolist()) == (2, [1, 0])
    np.testing.assert_allclose(clients.images(clients.rows[0]), x[[3, 1]] / 255, rtol=1e-6)
    assert not hasattr(clients, "y")


def test_texts_are_refused():
    words = np.ones((6, 4), np.int32)
    data = datasets.build(
        "ag_news", "builtin", words, np.zeros(6, int), 4, ("a",), vocabulary=("x", "y")
    )
    assert told(clients_of, data, None) == "ag_news has no images; this grouping needs images"


def test_an_unknown_grouping_is_told():
    line = told(grouping_module, "distances")
    assert line.startswith("unknown grouping 'distances'; allowed are fedgroup, flt, hierarchical")


# ---- A user's own method ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ({}, "grouping mine must define `relate` (`clustered_fl.groupings`)"),
        ({"relate": lambda *_: None}, "`relate` of grouping mine must return a Relatedness and a"),
        (
            {"relate": lambda *_: (same_group(np.zeros(5, int)), [])},
            "`relate` of grouping mine must return a Relatedness and a list of rows",
        ),
        (
            {"relate": lambda *_: (means.related(np.eye(5), means.cluster(np.eye(5), 2, 0)), [])},
            "the grouping is of 5 clients; there are 8",
        ),
    ],
    ids=["no function", "nothing", "a matrix", "other clients"],
)
def test_a_method_that_returns_something_else_is_refused(method, sentence):
    line = told(found_by, "mine", SimpleNamespace(**method), pictures(THREE), None, None, 0)
    assert line.startswith(sentence)


@pytest.mark.parametrize("groups", [[1, 1, 1, 2], [0, 0, 2, 2], [0, 0, 0, 0]])
def test_clusters_with_gaps_in_their_numbers_are_refused(groups):
    points = np.arange(8.0).reshape(4, 2)
    line = told(means.related, points, means.Clusters(np.array(groups), points[:2]))
    assert line == "`groups` must be numbered from 0 without gaps, one for each centre"


def test_relatedness_is_0_or_1():
    found = means.related(np.eye(4), means.cluster(np.eye(4), 2, 0))
    line = told(require_clients, replace(found, related=-found.related.astype(int)), 4, 0)
    assert line == "`related` must hold 0 and 1 only"
