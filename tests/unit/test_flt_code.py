"""Averaging as FLT's public code does it, against its two loops written out."""

import literal_flt as literal
import numpy as np
import pytest
import torch
from literal_cfl import NINE, make_engine

from clustered_fl.engine import checkpoint
from clustered_fl.groupings.distances import same_group
from clustered_fl.methods import fedavg, flt_code, local
from clustered_fl.methods.flt_code import sweep
from clustered_fl.methods.state import State

ROUNDS = 5
CLIENTS = list(range(9))
BLOCKS = same_group(np.array(NINE))
UNEVEN = np.eye(9, dtype=np.uint8)
UNEVEN[[0, 1, 1, 4, 7, 3, 8], [1, 2, 5, 0, 3, 7, 0]] = 1
RELATED = {"all": np.ones((9, 9)), "self": np.eye(9)}


def models_of(state):
    return torch.stack(state.models_of(CLIENTS))


def run(method, engine, settings, rounds=ROUNDS):
    state = method.init(engine, settings)
    for number in range(rounds):
        state, _ = method.round_(state, engine, settings, number)
    return state


@pytest.mark.parametrize("weighting", ["samples", "uniform"])
@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("related", [BLOCKS, UNEVEN, "all", "self"])
@pytest.mark.parametrize("slots", ["stale", "in_place"])
def test_models_are_those_of_the_loop(slots, related, fraction, weighting):
    named = isinstance(related, str)
    options = {"related": related} if named else {"relatedness": related}
    engine = make_engine()
    settings = flt_code.Settings(slots=slots, fraction=fraction, weighting=weighting, **options)
    twin, state = literal.Literal(engine, settings), flt_code.init(engine, settings)
    for number in range(ROUNDS):
        getattr(twin, slots)(number, RELATED[related] if named else related)
        state, rows = flt_code.round_(state, engine, settings, number)
        np.testing.assert_allclose(models_of(state), [*twin.models.values()], atol=1e-5)
        taking_part = {member for _, _, member, metric, _ in rows if metric == "update_norm"}
        assert len(taking_part) == max(1, round(9 * fraction))


def test_one_sweep_of_ordered_clusters():
    """100 clients in five ordered clusters, all related: whose models are in whose."""
    models = torch.eye(100)
    sweep(models, torch.full((100, 100), 0.01))
    weights = models[::20].view(5, 5, 20).sum(2)  # of clients 0, 20, 40, 60 and 80, per cluster
    expected = [
        [0.20, 0.20, 0.20, 0.20, 0.20],
        [0.02, 0.24, 0.24, 0.24, 0.24],
        [0.03, 0.08, 0.30, 0.30, 0.30],
        [0.04, 0.10, 0.14, 0.36, 0.36],
        [0.04, 0.12, 0.18, 0.22, 0.44],
    ]
    np.testing.assert_allclose(weights, expected, atol=0.0065)
    np.testing.assert_allclose(models.sum(1), 1, rtol=1e-5)


def test_in_place_there_is_no_single_model_even_if_all_are_related():
    state = run(flt_code, make_engine(), flt_code.Settings(slots="in_place", related="all"), 1)
    assert len(state.models) == 9
    assert (state.models[0] - state.models[8]).norm() > 0.1


def test_stale_slots_of_all_are_fedavg_when_all_take_part():
    engine = make_engine()
    found = run(flt_code, engine, flt_code.Settings(related="all"))
    expected = run(fedavg, engine, fedavg.Settings())
    torch.testing.assert_close(models_of(found), models_of(expected), atol=1e-5, rtol=0)
    assert len(found.models) == 1


def test_stale_slots_hold_the_model_back_when_few_take_part():
    """Four of five slots hold the first model: fewer than ten rounds do not move it as far."""
    engine = make_engine()
    found = run(flt_code, engine, flt_code.Settings(related="all", fraction=0.2), 3)
    expected = run(fedavg, engine, fedavg.Settings(fraction=0.2), 3)
    start = engine.initial_model()
    moved, usual = ((state.models[0] - start).norm() for state in (found, expected))
    assert moved < 0.6 * usual


@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("slots", ["stale", "in_place"])
def test_related_to_no_other_is_local(slots, fraction):
    engine, options = make_engine(), {"fraction": fraction}
    found = run(flt_code, engine, flt_code.Settings(slots=slots, related="self", **options))
    expected = run(local, engine, local.Settings(**options))
    torch.testing.assert_close(models_of(found), models_of(expected), atol=1e-6, rtol=0)


@pytest.mark.parametrize("slots", ["stale", "in_place"])
def test_interrupted_rounds_continue_with_the_same_bits(slots, tmp_path):
    engine = make_engine()
    settings = flt_code.Settings(slots=slots, relatedness=UNEVEN, fraction=0.5)
    expected, state = run(flt_code, engine, settings), flt_code.init(engine, settings)
    for number in range(ROUNDS):
        state, _ = flt_code.round_(state, engine, settings, number)
        checkpoint.save(tmp_path / "saved", "this run", *state.pack())
        state = State.unpack(*checkpoint.load(tmp_path / "saved", "this run"))
    tensors, content = state.pack()
    assert content == expected.pack()[1]
    assert tensors.keys() == expected.pack()[0].keys()
    assert ("memory.slots" in tensors) is (slots == "stale")
    assert all(torch.equal(tensors[name], each) for name, each in expected.pack()[0].items())


def test_what_a_method_remembers_is_no_part_of_the_record():
    state = run(flt_code, make_engine(), flt_code.Settings(related="all"), 1)
    assert (state.memory.keys(), state.cached) == ({"slots"}, {})
    again = State.unpack(*state.pack())
    assert (again.memory.keys(), again.cached) == ({"slots"}, {})
