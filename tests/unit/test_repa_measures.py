"""What is measured of clients' vectors: new clients, pipelines, correlation, uniformity."""

from dataclasses import replace

import literal_repa as literal
import numpy as np
import pandas as pd
import pytest
import torch
from refusals import told
from torch.nn.utils import parameters_to_vector

from clustered_fl.data import dataset as datasets
from clustered_fl.data.drift import Drift
from clustered_fl.data.federation import Federation
from clustered_fl.data.transforms import pipeline, transformed
from clustered_fl.files import write_json
from clustered_fl.groupings import repa, wd
from clustered_fl.groupings.clients import clients_of
from clustered_fl.groupings.profiles import measurements, probes, similarity
from clustered_fl.groupings.profiles.clusters import Clusters
from clustered_fl.groupings.profiles.measurements import Measures
from clustered_fl.groupings.profiles.network import Profiler
from clustered_fl.groupings.profiles.probes import Robustness, outcomes, similar_counts
from clustered_fl.metrics.repa import correlation, profiles, robustness, uniformity, validation
from clustered_fl.models import build_model
from clustered_fl.randomness import generator
from clustered_fl.records import index, relatedness

SIDE, EACH, NUMBER, TESTS = 24, 12, 5, 90
CLIENTS = NUMBER + 1
COUNTS = np.array([[12, 0, 0], [10, 2, 0], [0, 0, 12], [0, 3, 9], [4, 4, 4], [0, 12, 0]])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.concatenate([np.repeat(np.arange(3), own) for own in COUNTS] + [np.arange(TESTS) % 3])
    things = rng.integers(0, 256, (3, 3, SIDE, SIDE))
    x = (0.7 * things[y] + 0.3 * rng.integers(0, 256, (len(y), 3, SIDE, SIDE))).astype(np.uint8)
    return datasets.build("cifar10", "builtin", x, y, CLIENTS * EACH, ("a", "b", "c"))


@pytest.fixture(scope="module")
def federation():
    """No client holds a test image; the last client is a newcomer."""
    rows = tuple(np.arange(i * EACH, (i + 1) * EACH) for i in range(CLIENTS))
    maps, groups = np.tile(np.arange(3), (CLIENTS, 1)), np.zeros(CLIENTS, int)
    return Federation(rows, rows, np.arange(CLIENTS), maps, groups, 1)


@pytest.fixture(scope="module")
def make(data, federation):
    """Profilers with random networks, after one round and after two."""
    models = {}
    for number in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(number)
            network = build_model("supervised_autoencoder", (3, SIDE, SIDE), 3, code=4)
        models[number] = parameters_to_vector(network.parameters()).detach()

    def make(drift=None):
        config = {"federation": {"drift": drift} if drift else {}}
        config["model"] = {"name": "supervised_autoencoder", "code": 4}
        return Profiler("encoder", config, 2, models, data, federation)

    return make


# ---- Algorithm 1 --------------------------------------------------------------------------------


def test_without_noise_counts_are_scaled_alike():
    counts = np.array([100, 0, 50])
    settings = Robustness(noise=0.0, smallest=0.2, largest=1.4)
    for seed in range(50):
        found = similar_counts(counts, settings, np.random.default_rng(seed))
        assert found[1] == 0
        assert abs(found[0] - 2 * found[2]) <= 1.5
        assert 20 <= found[0] <= 140


def test_noise_is_a_part_of_the_mean_count_and_never_negative():
    counts, settings = np.array([300, 0, 0]), Robustness(noise=0.1, smallest=1, largest=1)
    rng = np.random.default_rng(0)
    found = np.stack([similar_counts(counts, settings, rng) for _ in range(2000)])
    assert found.min() == 0
    assert found[:, 0].std() == pytest.approx(10, rel=0.1)
    assert (found[:, 1] > 0).mean() == pytest.approx(0.5, abs=0.05)


def test_too_few_images_are_drawn_again_and_never_enough_is_told():
    small = np.array([6, 1])
    settings = Robustness(images=9, noise=0.0)
    for seed in range(20):
        assert similar_counts(small, settings, np.random.default_rng(seed)).sum() >= 9
    line = told(similar_counts, np.array([2, 1]), settings, np.random.default_rng(0))
    assert line == ("a client of 3 images has too few for others like it to have 9; ask for fewer")


GROUPS = np.array([0, 0, 1, 1, 0])


def clusters_of(groups):
    return Clusters(groups, np.zeros((groups.max() + 1, 1)))


def test_every_cluster_is_asked_as_often_and_a_hit_is_its_own_number(make):
    asked = []

    def place(new):
        asked.append(new)
        return np.arange(len(new)) % 2

    settings = Robustness(iterations=7)
    rows = list(outcomes(make(), clusters_of(GROUPS), settings, 3, place))
    assert [row["first"] for row in rows] == [0] * 7 + [1] * 7
    assert [row["value"] for row in rows] == [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert [len(each) for each in asked] == [7, 7]
    for row in rows:
        assert GROUPS[row["second"]] == row["first"]
    assert len({row["second"] for row in rows if row["first"] == 0}) > 1


def seen(make, settings, drift=None):
    found = []

    def place(new):
        found.extend(new)
        return np.zeros(len(new), int)

    list(outcomes(make(drift), clusters_of(GROUPS), settings, 3, place))
    return found


def test_new_clients_hold_unseen_images_with_the_labels_of_their_reference(make, data):
    unseen = {image.tobytes(): label for image, label in zip(data.x[72:], data.y[72:], strict=True)}
    for probe in seen(make, Robustness(iterations=10, noise=0.0)):
        assert [unseen[image.tobytes()] for image in probe.images] == probe.labels.tolist()
        assert len({image.tobytes() for image in probe.images}) == len(probe.images) >= 9
        held = set(np.flatnonzero(COUNTS[probe.reference]))
        assert set(probe.labels.tolist()) <= held
    labels = [set(p.labels.tolist()) for p in seen(make, Robustness(iterations=10, noise=0.5))]
    assert max(map(len, labels)) == 3


def test_a_label_that_has_run_out_gives_all_that_there_are(make):
    settings = Robustness(iterations=3, noise=0.0, smallest=20, largest=30)
    for probe in seen(make, settings):
        counts = np.bincount(probe.labels, minlength=3)
        held = COUNTS[probe.reference] > 0
        assert counts.tolist() == np.where(held, 30, 0).tolist()


def test_new_clients_see_through_the_pipeline_of_their_reference(make, data, monkeypatch):
    used = []

    def remember(drift, seed, client):
        used.append((drift, seed, client))
        return pipeline(drift, seed, client)

    monkeypatch.setattr(probes, "pipeline", remember)
    found = seen(make, Robustness(iterations=4), drift={"transforms": 1})
    assert used == [(Drift(transforms=1), 3, probe.reference) for probe in found]
    plain = {image.tobytes() for image in data.x}
    assert any(image.tobytes() not in plain for probe in found for image in probe.images)


def test_robustness_needs_images_that_no_client_holds(make, data, federation):
    profiler = make()
    rows = np.arange(CLIENTS * EACH, len(data.y))
    everything = Federation(
        federation.train, (rows,), np.zeros(CLIENTS, int), federation.label_maps, GROUPS
    )
    taken = Profiler(profiler.run, profiler.config, 2, profiler.models, data, everything)
    line = told(list, outcomes(taken, clusters_of(GROUPS), Robustness(), 0, len))
    assert line == "robustness needs test images that no client holds; there are none"


def test_training_images_that_no_client_holds_are_not_unseen(make, data, federation):
    """They have the clients' look where there is drift, and may have tuned an encoder."""
    profiler = make()
    fewer = Federation(
        federation.train[:NUMBER],
        federation.test_sets[:NUMBER],
        np.arange(NUMBER),
        federation.label_maps[:NUMBER],
        GROUPS,
    )
    free = Profiler(profiler.run, profiler.config, 2, profiler.models, data, fewer)
    tests = {image.tobytes() for image in data.x[data.train_rows :]}
    settings = Robustness(iterations=5, smallest=20, largest=30)

    def place(new):
        assert all(image.tobytes() in tests for probe in new for image in probe.images)
        return np.zeros(len(new), int)

    assert len(list(outcomes(free, clusters_of(GROUPS), settings, 0, place))) == 10


@pytest.mark.parametrize("method", ["repa", "wd"])
def test_groupings_place_new_clients_like_newcomers(make, data, federation, method):
    """A new client with exactly a known one's images must land in that one's cluster."""
    module, clients = {"repa": repa, "wd": wd}[method], clients_of(data, federation)
    placing = []

    def stop(profiler, settings, vectors, points, clusters, now, seed, place):
        placing.append((clusters, place))
        return iter(())

    maps = federation.label_maps.copy()
    maps[3] = [2, 0, 1]  # clients like one with names of its own have the same names
    profiler = replace(make(), federation=replace(federation, label_maps=maps))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "measured", stop)
        settings = module.Settings(clusters=3)
        found, _ = module.relate(clients, profiler, settings, seed=1)
    clusters, place = placing[0]
    known = [probes.Probe(i, data.x[r], data.y[r]) for i, r in enumerate(federation.train)]
    placed = place(known[::-1])[::-1]
    assert placed[:NUMBER].tolist() == found.groups.tolist()
    assert clusters.hosts[placed[NUMBER]] == found.placed[0]


# ---- Pipelines ----------------------------------------------------------------------------------


def test_divergence_is_that_of_a_loop_over_pairs_images_and_classes():
    rng = np.random.default_rng(0)
    said = rng.dirichlet([0.3] * 5, size=(4, 6))
    said[0, 0] = [1, 0, 0, 0, 0]
    said[1, 0] = [0, 1, 0, 0, 0]
    expected = [
        [np.mean([literal.divergence(p, q) for p, q in zip(a, b, strict=True)]) for b in said]
        for a in said
    ]
    np.testing.assert_allclose(similarity.mean_divergence(said), expected, atol=1e-12)


def test_opposite_answers_diverge_by_one_bit_and_equal_ones_not_at_all():
    said = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]]])
    assert similarity.mean_divergence(said).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_similarity_is_of_the_same_images_through_every_clients_pipeline(make, data):
    profiler, drift = make({"transforms": 2}), Drift(transforms=2)
    found = similarity.pipeline_similarity(profiler, drift, 8, seed=5)
    rows = generator(5, "images to compare by").permutation(np.arange(72, 162))[:8]
    said = []
    for client in range(NUMBER):
        draw = int(generator(5, "compared images", client).integers(2**31))
        images = transformed(data.x[rows], pipeline(drift, 5, client), draw)
        with torch.no_grad():
            scores = profiler.network()(torch.from_numpy(images) / 255)[0]
        said.append(scores.softmax(1).numpy())
    for i in range(NUMBER):
        for j in range(NUMBER):
            apart = [literal.divergence(p, q) for p, q in zip(said[i], said[j], strict=True)]
            assert found[i, j] == pytest.approx(1 - np.mean(apart), abs=1e-5)
    assert np.diag(found) == pytest.approx(1)


# ---- The table ----------------------------------------------------------------------------------


def measured(make, data, federation, method, measure, drift=None):
    module = {"repa": repa, "wd": wd}[method]
    settings = module.Settings(clusters=2, measure=measure)
    return module.relate(clients_of(data, federation), make(drift), settings, seed=0)


@pytest.fixture(scope="module")
def written(make, data, federation, tmp_path_factory):
    """The folder of a grouping with everything that can be measured."""
    folder = tmp_path_factory.mktemp("grouping")
    every = Measures(rounds=(1, 2), images=6, robustness=Robustness(iterations=4))
    found, rows = measured(make, data, federation, "repa", every, {"transforms": 1})
    relatedness.save(found, folder)
    pd.DataFrame(rows).to_parquet(folder / relatedness.COMPARISONS)
    about = {"groups": found.groups.tolist(), "true_groups": [0, 0, 1, 1, 1]}
    write_json(folder / "record.json", about | {"agreement": {"ari": 0.25}})
    write_json(folder / "cost.json", {})
    return folder, found


def test_the_table_says_what_clients_hold(written):
    folder, _ = written
    assert profiles.label_counts(folder).tolist() == COUNTS.tolist()
    assert profiles.validation_sizes(folder).tolist() == [EACH] * CLIENTS


def test_cosines_are_of_the_vectors_of_training_clients_after_every_round(
    written, make, data, federation
):
    folder, found = written
    assert len(profiles.measurements(folder, "cosine")) == 2 * NUMBER * (NUMBER - 1) / 2
    cosines = profiles.pairwise(folder, "cosine")
    assert sorted(cosines) == [1, 2]
    vectors = found.signatures[:NUMBER, 0].astype(np.float64)
    early = repa.Settings(clusters=2, round=1)
    before = repa.relate(clients_of(data, federation), make(), early, 0)[0].signatures[:, 0]
    for now, own in [(2, vectors), (1, before.astype(np.float64))]:
        for i in range(NUMBER):
            for j in range(NUMBER):
                expected = literal.cosine(own[i], own[j])
                assert cosines[now][i, j] == pytest.approx(expected, abs=1e-6)


def test_wd_can_be_measured_alike(make, data, federation):
    every = Measures(rounds=(1,), robustness=Robustness(iterations=2))
    found, rows = measured(make, data, federation, "wd", every)
    table = pd.DataFrame(rows)
    assert set(table["measure"]) == {"labels", "tests", "cosine", "robustness"}
    assert (table["measure"] == "robustness").sum() == 2 * len(set(found.groups.tolist()))
    assert set(table.loc[table["measure"] == "cosine", "round"]) == {1, 2}


def test_what_was_not_measured_is_told(written, make, data, federation, tmp_path):
    line = told(measured, make, data, federation, "repa", Measures(images=5))
    assert line == "measure: images compare pipelines, and this federation has no drift"
    pd.DataFrame([]).to_parquet(tmp_path / relatedness.COMPARISONS)
    write_json(tmp_path / "record.json", {})
    line = told(profiles.measurements, tmp_path, "cosine")
    assert line == f"{tmp_path} has no measurements of cosine; ask for them in the ledger"
    assert "of magic;" in told(profiles.measurements, written[0], "magic")


def test_a_vector_without_length_has_cosine_zero():
    found = measurements.cosines(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
    assert found[0].tolist() == [0, 0, 0]
    assert found[1, 2] == pytest.approx(np.sqrt(0.5))


# ---- Metrics ------------------------------------------------------------------------------------


def symmetric(n, seed):
    found = np.random.default_rng(seed).normal(size=(n, n))
    return found + found.T


def test_label_similarity_is_the_cosine_of_counts():
    found = correlation.label_similarity(COUNTS)
    for i in range(CLIENTS):
        for j in range(CLIENTS):
            expected = literal.cosine(COUNTS[i].astype(float), COUNTS[j].astype(float))
            assert found[i, j] == pytest.approx(expected)


def test_correlation_is_over_pairs():
    first, second = symmetric(9, 0), symmetric(9, 1)
    expected = literal.pearson(first, second, list(range(9)))
    assert correlation.correlation(first, second) == pytest.approx(expected)
    assert correlation.correlation(first, 3 * first + 1) == pytest.approx(1)
    assert np.isnan(correlation.correlation(first, np.ones((9, 9))))


def test_the_error_is_over_draws_of_clients():
    first, second = symmetric(12, 0), symmetric(12, 1) + symmetric(12, 0)
    rng = generator(4, "bootstrap of clients")
    draws = [rng.integers(12, size=12).tolist() for _ in range(30)]
    found = [literal.pearson(first, second, own) for own in draws]
    error = correlation.correlation_error(first, second, draws=30, seed=4)
    assert error == pytest.approx(np.std(found, ddof=1))


def test_drawing_pairs_would_promise_too_much():
    """Pairs share clients: the error over clients is larger than over pairs."""
    place = np.random.default_rng(0).normal(size=20)
    first = np.add.outer(place, place)
    second = first + 0.5 * symmetric(20, 1)
    upper, rng = np.triu_indices(20, 1), np.random.default_rng(2)
    x, y = first[upper], second[upper]
    draws = [rng.integers(len(x), size=len(x)) for _ in range(200)]
    pairs = np.std([np.corrcoef(x[d], y[d])[0, 1] for d in draws])
    assert correlation.correlation_error(first, second) > 1.5 * pairs


@pytest.mark.parametrize("groups", [[0, 0, 1, 1, 1, 2], [0] * 6, [0, 1, 0, 1, 2, 3]])
def test_uniformity_is_a_mean_of_means_over_pairs(groups):
    expected = literal.uniformity(groups, COUNTS.astype(float))
    assert uniformity.uniformity(np.array(groups), COUNTS) == pytest.approx(expected)


def test_uniformity_of_equal_clients_is_one_and_of_single_ones_unknown():
    equal = np.repeat([[3, 1, 0], [0, 0, 5]], 2, axis=0)
    assert uniformity.uniformity(np.array([0, 0, 1, 1]), equal) == pytest.approx(1)
    assert np.isnan(uniformity.uniformity(np.arange(6), COUNTS))


def test_curves_rise_to_the_best_that_labels_allow():
    rng = np.random.default_rng(0)
    counts = np.repeat(np.eye(4) * 20, 6, axis=0) + rng.integers(0, 2, (24, 4))
    noise = rng.normal(size=(24, 3))
    table = uniformity.curves({"blind": noise}, counts, (2, 4), seed=0)
    by = table.set_index(["method", "clusters"])["uniformity"]
    assert by["distribution given", 4] > 0.95
    assert by["distribution given", 4] > by["blind", 4]
    population = correlation.label_similarity(counts)[np.triu_indices(24, 1)].mean()
    assert by["random", 2] == pytest.approx(population, abs=0.05)
    assert set(table["method"]) == {"blind", "distribution given", "random"}


def test_robustness_is_a_mean_over_clusters_beside_sizes_and_agreement(written):
    folder, found = written
    table = robustness.by_cluster(folder)
    hits = profiles.measurements(folder, "robustness")
    for row in table.itertuples():
        own = hits[hits["first"] == row.cluster]["value"]
        assert row.robustness == pytest.approx(sum(own) / 4)
        assert (row.new_clients, row.size) == (4, found.groups.tolist().count(row.cluster))
    (seed,) = robustness.by_seed(index.build([("grouping", "g", "g", 0, str(folder))])).to_dict(
        "records"
    )
    assert seed["robustness"] == pytest.approx(table["robustness"].mean())
    spread = table["robustness"].std(ddof=1) / np.sqrt(len(table))
    assert seed["error"] == pytest.approx(spread)
    assert (seed["chance"], seed["clusters"], seed["ari"]) == (0.5, 2, 0.25)
    assert seed["largest"] == max(found.groups.tolist().count(g) for g in (0, 1))


def test_errors_over_seeds_are_beside_those_over_clusters():
    common = {"grouping": "g", "error": 0.1}
    rows = [common | {"seed": seed, "robustness": r} for seed, r in enumerate((0.8, 0.9))]
    (found,) = robustness.across_seeds(pd.DataFrame(rows)).to_dict("records")
    assert found["robustness"] == pytest.approx(0.85)
    assert found["error"] == pytest.approx(0.1)
    assert found["error_over_seeds"] == pytest.approx(np.std([0.8, 0.9], ddof=1) / np.sqrt(2))
    assert found["seeds"] == 2
    (single,) = robustness.across_seeds(pd.DataFrame(rows[:1])).to_dict("records")
    assert np.isnan(single["error_over_seeds"])


def test_accuracy_is_of_training_and_of_holdout_clients_by_images_and_by_clients():
    rows = []
    for now, scores in [(0, [0.1, 0.2, 0.3, 0.4, 0.5]), (5, [0.5, 0.6, 0.7, 0.8, 0.9])]:
        for client, value in enumerate(scores):
            scope = "client" if client < 3 else "newcomer"
            rows.append((now, scope, client, "accuracy", value))
        rows.append((now, "client", 0, "loss", 9.0))
        rows.append((now, "group", 0, "accuracy", 9.0))
    frame = pd.DataFrame(rows, columns=["round", "scope", "member", "metric", "value"])
    sizes = np.array([10, 20, 70, 1, 3])
    table = validation.over_rounds(frame, sizes).set_index(["set", "round"])
    assert table.loc[("VAL", 5), "weighted"] == pytest.approx(50 * 0.1 + 60 * 0.2 + 70 * 0.7)
    assert table.loc[("VAL", 5), "unweighted"] == pytest.approx(60)
    assert table.loc[("HO", 0), "weighted"] == pytest.approx((40 * 1 + 50 * 3) / 4)
    assert table.loc[("HO", 0), "unweighted"] == pytest.approx(45)
    assert table["clients"].xs("VAL").tolist() == [3, 3]
    assert table["clients"].xs("HO").tolist() == [2, 2]
    assert table["images"].tolist() == [4, 4, 100, 100]
    ends = validation.last(table.reset_index(), tests=2)
    assert ends.loc["VAL", "unweighted"] == pytest.approx(40)
    early = validation.last(table.reset_index(), tests=2, until=4)
    assert early.loc["VAL", "unweighted"] == pytest.approx(20)


def test_labels_are_of_training_images_and_sizes_of_tests(make, federation):
    parts = {"train": slice(8), "test_sets": slice(8, None)}
    own = {name: tuple(rows[part] for rows in federation.train) for name, part in parts.items()}
    profiler = replace(make(), federation=replace(federation, **own))
    about = (None, np.eye(CLIENTS), None, None, 0, None)
    table = pd.DataFrame(measurements.measured(profiler, Measures(), *about))
    assert table.loc[table["measure"] == "tests", "value"].tolist() == [EACH - 8] * CLIENTS
    labels = table.loc[table["measure"] == "labels", "value"].to_numpy().reshape(CLIENTS, 3)
    expected = [[8, 0, 0], [8, 0, 0], [0, 0, 8], [0, 3, 5], [4, 4, 0], [0, 8, 0]]
    assert labels.tolist() == expected


def test_similarities_are_in_the_table_too(written, make):
    (found,) = profiles.pairwise(written[0], "similarity").values()
    drift = {"transforms": 1}
    expected = similarity.pipeline_similarity(make(drift), Drift(**drift), 6, seed=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_random_clusters_are_means_of_twenty_draws():
    counts = np.random.default_rng(0).integers(1, 9, (24, 4))
    table = uniformity.curves({}, counts, (3,), seed=7)
    draws = [generator(7, "random clusters", 3, n).integers(3, size=24) for n in range(20)]
    expected = np.mean([literal.uniformity(own.tolist(), counts.astype(float)) for own in draws])
    found = table.set_index("method")["uniformity"]
    assert found["random"] == pytest.approx(expected)
