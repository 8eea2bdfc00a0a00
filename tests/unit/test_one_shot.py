"""One-shot averaging by a relatedness, against Algorithm 3 written out client by client."""

import literal_flt as literal
import numpy as np
import pytest
import torch
from literal_cfl import NINE, make_engine

from clustered_fl.engine import averaging, checkpoint
from clustered_fl.errors import InputError
from clustered_fl.groupings.distances import components, same_group
from clustered_fl.methods import (
    fedavg,
    flt_code,
    load_method,
    local,
    one_shot,
    one_shot_within,
    oracle,
)
from clustered_fl.methods.one_shot import alike
from clustered_fl.methods.state import State, participants
from clustered_fl.options import call

ROUNDS = 5
BLOCKS = same_group(np.array(NINE))
ALL, SELF = np.ones((9, 9), np.uint8), np.eye(9, dtype=np.uint8)


def uneven(seed=0, symmetric=True):
    """A relatedness that is no set of blocks."""
    upper = np.triu(np.random.default_rng(seed).random((9, 9)) < 0.3, 1)
    whole = upper | upper.T if symmetric else np.random.default_rng(seed).random((9, 9)) < 0.3
    return (whole | np.eye(9, dtype=bool)).astype(np.uint8)


def run(method, engine, settings, rounds=ROUNDS):
    state, rows = method.init(engine, settings), []
    for number in range(rounds):
        state, more = method.round_(state, engine, settings, number)
        rows += more
    return state, rows


def assert_same_run(found, expected, exactly=False):
    """The same models for the same clients and the same rows, to rounding."""
    (state, rows), (other, more) = found, expected
    assert state.grouping == other.grouping
    assert state.tree == other.tree
    atol = 0 if exactly else 1e-5
    torch.testing.assert_close(state.models, other.models, atol=atol, rtol=0)
    assert [row[:4] for row in rows] == [row[:4] for row in more]
    values = ([row[4] for row in both] for both in (rows, more))
    np.testing.assert_allclose(*values, atol=10 * atol, rtol=0)


@pytest.mark.parametrize("weighting", ["samples", "uniform"])
@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.1])
@pytest.mark.parametrize(
    ("related", "other"),
    [(BLOCKS, oracle), (ALL, fedavg), (SELF, local)],
    ids=["blocks are the oracle", "all are FedAvg", "none are Local"],
)
def test_a_relatedness_of_blocks_is_fedavg_within_them(related, other, fraction, weighting):
    engine, shared = make_engine(), {"fraction": fraction, "weighting": weighting}
    found = run(one_shot, engine, one_shot.Settings(**shared, relatedness=related))
    expected = run(other, engine, other.Settings(**shared))
    assert_same_run(found, expected, exactly=other is local)


@pytest.mark.parametrize("weighting", ["samples", "uniform"])
@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.2])
@pytest.mark.parametrize(
    "related", [uneven(0), uneven(1), uneven(2, symmetric=False)], ids=["one", "two", "one-sided"]
)
def test_models_are_those_of_the_literal_algorithm(related, fraction, weighting):
    engine = make_engine()
    settings = one_shot.Settings(fraction=fraction, weighting=weighting, relatedness=related)
    twin, state = literal.Literal(engine, settings), one_shot.init(engine, settings)
    for number in range(ROUNDS):
        twin.one_shot(number, related)
        state, _ = one_shot.round_(state, engine, settings, number)
        found = torch.stack(state.models_of(list(range(9))))
        np.testing.assert_allclose(found, np.stack([*twin.models.values()]), atol=1e-5)
    assert len(state.models) == len({row.tobytes() for row in related})
    assert len(state.models) > len(set(components(related).tolist()))


def test_a_mean_is_the_same_however_many_parameters_are_averaged_at_a_time(monkeypatch):
    engine, settings = make_engine(), one_shot.Settings(fraction=0.5, relatedness=uneven())
    expected = run(one_shot, engine, settings)
    monkeypatch.setattr(averaging, "COLUMNS", 2)
    assert_same_run(run(one_shot, engine, settings), expected)


def test_groups_without_a_related_participant_stay_as_they_are():
    engine = make_engine()
    settings = one_shot.Settings(fraction=0.2, relatedness=BLOCKS)
    state, untouched = one_shot.init(engine, settings), 0
    for number in range(ROUNDS):
        before = state.models.clone()
        state, _ = one_shot.round_(state, engine, settings, number)
        taking_part = {NINE[client] for client in participants(engine, 0.2, number)}
        for group in range(4):
            same = torch.equal(state.models[group], before[group])
            assert same is (group not in taking_part)
            untouched += same
    assert untouched >= 2 * ROUNDS


def test_clients_with_equal_rows_share_a_model():
    related = np.array([[1, 1, 0], [1, 1, 1], [1, 1, 0]], np.uint8)
    assert alike(related) == [0, 1, 0]
    assert alike(np.eye(3)) == [0, 1, 2]
    engine = make_engine(groups=(0, 1, 2))
    state = one_shot.init(engine, one_shot.Settings(relatedness=related))
    assert (state.grouping, len(state.models)) == ([0, 1, 0], 2)
    assert [node.clients for node in state.tree] == [[0, 2], [1]]


def test_newcomers_are_scored_under_the_model_of_their_host():
    engine = make_engine(groups=(*NINE, 3, 0, 1), newcomers=3)
    placed = np.array([3, 8, 2])
    settings = one_shot.Settings(relatedness=BLOCKS, placed=placed)
    state, _ = run(one_shot, engine, settings)
    found = one_shot.assign_newcomers(state, engine, settings, ROUNDS)
    for entry, host, true in zip(found, placed, (3, 0, 1), strict=True):
        points = engine.task.points[engine.federation.train[entry["client"]]]
        away = (state.models[NINE[host]] - points).norm(dim=1).mean()
        assert entry == {
            "client": 9 + found.index(entry),
            "true_group": true,
            "leaf": NINE[host],
            "clients": [client for client in range(9) if NINE[client] == NINE[host]],
            "distance": pytest.approx(float(away), rel=1e-5),
        }
    # The third was placed with strangers.
    assert found[2]["distance"] > 2 * max(found[0]["distance"], found[1]["distance"])


def test_without_a_placement_no_newcomer_is_scored():
    engine = make_engine(groups=(*NINE, 3), newcomers=1)
    settings = one_shot.Settings(relatedness=BLOCKS)
    state = one_shot.init(engine, settings)
    assert one_shot.assign_newcomers(state, engine, settings, 0) == []


def test_interrupted_rounds_continue_with_the_same_bits(tmp_path):
    engine, settings = make_engine(), one_shot.Settings(fraction=0.5, relatedness=uneven())
    expected, rows = run(one_shot, engine, settings)
    state = one_shot.init(engine, settings)
    for number in range(ROUNDS):
        state, more = one_shot.round_(state, engine, settings, number)
        assert more == [row for row in rows if row[0] == number]
        checkpoint.save(tmp_path / "saved", "this run", *state.pack())
        state = State.unpack(*checkpoint.load(tmp_path / "saved", "this run"))
    assert torch.equal(state.models, expected.models)
    assert state.pack()[1] == expected.pack()[1]


@pytest.mark.parametrize("name", ["one_shot", "flt_code", "flt_dynamic"])
def test_without_a_relatedness_there_are_no_settings(name):
    with pytest.raises(InputError) as caught:
        call(load_method(name).Settings, f"method {name}", {})
    told = "the method needs a grouping: `grouping:` of the run, or `grouping=`"
    assert str(caught.value) == told


@pytest.mark.parametrize("related", ["all", "self"])
def test_the_public_code_needs_no_relatedness_for_its_fedavg_and_local(related):
    assert call(flt_code.Settings, "method flt_code", {"related": related}).relatedness is None


def test_a_relatedness_is_not_the_users_to_write():
    with pytest.raises(InputError, match="method one_shot: relatedness = .* is not allowed"):
        call(one_shot.Settings, "method one_shot", {"relatedness": [[1]]})


# ---- Participants within clusters ---------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.1, 0.34, 0.7])
def test_participants_within_clusters_are_a_share_of_each(fraction):
    engine, groups = make_engine(), np.array(NINE)
    settings = one_shot_within.Settings(fraction=fraction, relatedness=BLOCKS)
    state, seen, differ = one_shot_within.init(engine, settings), set(), set()
    for number in range(20):
        clients = one_shot_within.drawn(state, engine, fraction, number)
        assert clients == sorted(set(clients))
        positions = {}
        for group in set(NINE):
            own = np.flatnonzero(groups == group)
            drawn = tuple(np.flatnonzero(np.isin(own, clients)))
            assert len(drawn) == max(1, round(fraction * len(own)))
            positions.setdefault(len(own), set()).add(drawn)
        differ.add(max(map(len, positions.values())))
        seen.add(tuple(clients))
    assert len(seen) > 1
    assert max(differ) > 1, "clusters of equal size draw the same positions"


def test_only_the_draw_differs_from_one_shot():
    """Where all take part nothing does; else the models are those of the literal algorithm."""
    engine = make_engine()
    whole = {"fraction": 1.0, "relatedness": BLOCKS}
    found = run(one_shot_within, engine, one_shot_within.Settings(**whole))
    assert_same_run(found, run(one_shot, engine, one_shot.Settings(**whole)), exactly=True)
    settings = one_shot_within.Settings(fraction=0.5, relatedness=BLOCKS)
    state = one_shot_within.init(engine, settings)
    before, clients = state.models.clone(), one_shot_within.drawn(state, engine, 0.5, 0)
    updates, _ = engine.train(state.models_of(clients), clients, 0)
    state, rows = one_shot_within.round_(state, engine, settings, 0)
    assert sorted(row[2] for row in rows if row[3] == "loss") == clients
    for group in range(len(before)):
        own = [at for at, client in enumerate(clients) if state.grouping[client] == group]
        sizes = engine.federation.sizes[[clients[at] for at in own]]
        mean = sum(size * updates[at] for at, size in zip(own, sizes, strict=True)) / sizes.sum()
        torch.testing.assert_close(state.models[group], before[group] + mean)
