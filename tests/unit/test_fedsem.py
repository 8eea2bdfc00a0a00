"""FedSEM against scikit-learn's k-means on the flattened models of all clients, slot by slot."""

import literal_flt as literal
import numpy as np
import pytest
import torch
from literal_cfl import NINE, make_engine
from sklearn.cluster import KMeans

from clustered_fl.engine import checkpoint, inner_products
from clustered_fl.errors import InputError
from clustered_fl.methods import fedavg, fedsem
from clustered_fl.methods.fedsem import coordinates
from clustered_fl.methods.state import State, participants
from clustered_fl.options import call

ROUNDS = 6
CLIENTS = list(range(9))


def models_of(state):
    return torch.stack(state.models_of(list(range(len(state.grouping)))))


def run(engine, settings, rounds=ROUNDS):
    state = fedsem.init(engine, settings)
    for number in range(rounds):
        state, _ = fedsem.round_(state, engine, settings, number)
    return state


# ---- Coordinates --------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "size"), [(7, 300), (12, 5), (2, 3), (1, 4)])
@pytest.mark.parametrize("columns", [2**17, 16])
def test_coordinates_keep_all_distances(monkeypatch, number, size, columns):
    monkeypatch.setattr(inner_products, "COLUMNS", columns)
    rng = np.random.default_rng(0)
    vectors = torch.from_numpy((50 + rng.normal(size=(number, size))).astype(np.float32))
    points = coordinates(list(vectors))
    assert points.shape == (number, number)
    for i, one in enumerate(vectors.double().numpy()):
        for j, other in enumerate(vectors.double().numpy()):
            expected = literal.distance(one, other)
            assert literal.distance(points[i], points[j]) == pytest.approx(expected, abs=1e-6)


# ---- Rounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("fraction", [1.0, 0.6])
@pytest.mark.parametrize("weighting", ["samples", "uniform"])
def test_clusters_and_models_are_those_of_k_means_on_all_slots(weighting, fraction, stale, seed):
    engine = make_engine(seed=seed)
    settings = fedsem.Settings(clusters=4, fraction=fraction, stale=stale, weighting=weighting)
    twin, state = literal.Literal(engine, settings), fedsem.init(engine, settings)
    for number in range(ROUNDS):
        clusters = twin.fedsem(number)
        state, _ = fedsem.round_(state, engine, settings, number)
        assert literal.sets(state.grouping) == clusters
        np.testing.assert_allclose(models_of(state), [*twin.models.values()], atol=1e-4)
    if fraction == 1.0:
        assert clusters == literal.sets(NINE)


def test_one_cluster_of_all_is_fedavg():
    engine = make_engine()
    state, expected = (
        fedavg.init(engine, fedavg.Settings()),
        run(engine, fedsem.Settings(clusters=1)),
    )
    for number in range(ROUNDS):
        state, _ = fedavg.round_(state, engine, fedavg.Settings(), number)
    torch.testing.assert_close(expected.models, state.models, atol=1e-5, rtol=0)


@pytest.mark.parametrize("stale", [False, True])
def test_in_the_first_round_all_that_were_not_asked_are_one_cluster(stale):
    engine = make_engine()
    settings = fedsem.Settings(clusters=3, fraction=0.2, stale=stale)
    state = run(engine, settings, 1)
    one, other = participants(engine, 0.2, 0)
    untouched = frozenset(CLIENTS) - {one, other}
    assert literal.sets(state.grouping) == {frozenset({one}), frozenset({other}), untouched}
    model = state.models_of([min(untouched)])[0]
    torch.testing.assert_close(model, engine.initial_model())


RECTANGLE = 20 * np.array([[0, 0, 0, 0, 0], [10, 0, 0, 0, 0], [0, 3, 0, 0, 0], [10, 3, 0, 0, 0]])


def moved(engine, place):
    """Where a client with all its points at `place` stands after a round of two batches."""
    start = engine.initial_model()
    return start + (1 - 0.7**2) * (torch.as_tensor(place, dtype=torch.float32) - start)


@pytest.mark.parametrize("warm", [False, True])
def test_k_means_goes_on_from_the_centres_before(warm):
    """A long rectangle is cut across; started from the middles of its long sides, along."""
    engine = make_engine(RECTANGLE, groups=(0, 1, 2, 3), noise=0.0)
    settings = fedsem.Settings(clusters=2)
    state = fedsem.init(engine, settings)
    if warm:
        middles = [(RECTANGLE[0] + RECTANGLE[1]) / 2, (RECTANGLE[2] + RECTANGLE[3]) / 2]
        state.memory["centres"] = torch.stack([moved(engine, middle) for middle in middles])
    state, _ = fedsem.round_(state, engine, settings, 0)
    if warm:
        assert state.grouping == [0, 0, 1, 1]
    else:
        assert literal.sets(state.grouping) == literal.sets([0, 1, 0, 1])
    flat = np.stack([moved(engine, place) for place in RECTANGLE])
    for cluster in range(2):
        members = [client for client in range(4) if state.grouping[client] == cluster]
        np.testing.assert_allclose(
            state.memory["centres"][cluster], flat[members].mean(0), rtol=1e-4
        )


def test_models_are_weighted_by_samples_and_centres_are_not():
    engine = make_engine(np.eye(3, 5) * 100, groups=(0, 1, 2), noise=0.0)  # 8, 9 and 10 samples
    state, _ = fedsem.round_(
        fedsem.init(engine, fedsem.Settings(clusters=1)), engine, fedsem.Settings(clusters=1), 0
    )
    flat = torch.stack([moved(engine, place) for place in np.eye(3, 5) * 100])
    torch.testing.assert_close(state.memory["centres"][0], flat.mean(0))
    torch.testing.assert_close(state.models[0], torch.tensor([8.0, 9.0, 10.0]) @ flat / 27)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")  # of the twin
@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_with_fewer_models_than_clusters_equal_models_stay_together(stale, seed):
    """Two of nine take part, and there are to be six clusters."""
    engine = make_engine(seed=seed)
    settings = fedsem.Settings(clusters=6, fraction=0.2, stale=stale)
    twin, state = literal.Literal(engine, settings), fedsem.init(engine, settings)
    asked = set()
    for number in range(ROUNDS):
        drawn = participants(engine, 0.2, number)
        before = models_of(state)
        state, _ = fedsem.round_(state, engine, settings, number)
        asked |= set(drawn)
        never = [client for client in CLIENTS if client not in asked]
        assert len({state.grouping[client] for client in never}) <= 1
        assert len(set(state.grouping)) <= len(asked) + bool(never)
        assert torch.isfinite(state.models).all()
        if not stale:
            for one in set(CLIENTS) - set(drawn):
                for other in set(CLIENTS) - set(drawn):
                    if torch.equal(before[one], before[other]):
                        assert state.grouping[one] == state.grouping[other]
        if number == 0:
            assert literal.sets(state.grouping) == twin.fedsem(0)
            np.testing.assert_allclose(models_of(state), [*twin.models.values()], atol=1e-4)


def test_fewer_models_than_clusters_later_are_no_error():
    """All but the participants share one model, and k-means wants as many points as clusters."""
    engine = make_engine()
    settings = fedsem.Settings(clusters=5, fraction=0.2)
    state, _ = fedsem.round_(fedsem.init(engine, settings), engine, settings, 0)
    state.grouping = [0] * 9
    state, _ = fedsem.round_(state, engine, settings, 1)
    one, other = participants(engine, 0.2, 1)
    groups = literal.sets(state.grouping)
    assert groups == {frozenset({one}), frozenset({other}), frozenset(CLIENTS) - {one, other}}


def test_weights_are_the_numbers_of_clients_at_a_place():
    """Seven clients at one end and one at the other: the middle one goes with the one."""
    places = [torch.tensor([x, 0.0, 0.0, 0.0, 0.0]) for x in (0.0, 9.0, 20.0)]
    settings, holders = fedsem.Settings(clusters=2), np.array([7, 1, 1])
    labels = fedsem._cluster(places, holders, None, settings, 0)
    flat = np.stack(
        [place.numpy() for place, n in zip(places, holders, strict=True) for _ in range(n)]
    )
    expected = KMeans(2, n_init=20, random_state=0).fit(flat.astype(np.float64)).labels_[[0, 7, 8]]
    assert literal.sets(labels) == literal.sets(expected) == {frozenset({0}), frozenset({1, 2})}
    centres = fedsem._means(places, labels, holders, torch.full((3, 5), -1.0))
    assert sorted(centres[:, 0].tolist()) == pytest.approx([-1, 0, 14.5])


# ---- What goes wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize("stale", [False, True])
def test_interrupted_rounds_continue_with_the_same_bits(stale, tmp_path):
    engine, settings = make_engine(), fedsem.Settings(clusters=3, fraction=0.4, stale=stale)
    expected, state = run(engine, settings), fedsem.init(engine, settings)
    for number in range(ROUNDS):
        state, _ = fedsem.round_(state, engine, settings, number)
        checkpoint.save(tmp_path / "saved", "this run", *state.pack())
        state = State.unpack(*checkpoint.load(tmp_path / "saved", "this run"))
    tensors, content = state.pack()
    assert content == expected.pack()[1]
    assert tensors.keys() == expected.pack()[0].keys()
    assert "memory.centres" in tensors
    assert all(torch.equal(tensors[name], each) for name, each in expected.pack()[0].items())


def test_more_clusters_than_clients_are_refused():
    with pytest.raises(InputError) as caught:
        fedsem.init(make_engine(), fedsem.Settings(clusters=10))
    assert str(caught.value) == "FedSEM with 10 clusters of 9 clients; too many"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "method fedsem needs the setting 'clusters', which is missing"),
        ({"clusters": 0}, "method fedsem: clusters = 0 is not allowed: input should be greater"),
        ({"clusters": 2, "restarts": 0}, "method fedsem: restarts = 0 is not allowed: input"),
    ],
)
def test_settings_that_cannot_be_are_told(options, told):
    with pytest.raises(InputError) as caught:
        call(fedsem.Settings, "method fedsem", options)
    assert str(caught.value).startswith(told)
