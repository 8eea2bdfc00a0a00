"""IFCA with restarts against whole trials of IFCA, one after the other."""

import numpy as np
import pytest
import torch
from literal_cfl import make_engine
from test_ifca import Literal, literal_losses

from clustered_fl.engine import checkpoint
from clustered_fl.errors import InputError
from clustered_fl.methods import ifca, ifca_restarts
from clustered_fl.methods.state import State
from clustered_fl.options import call

CLIENTS = list(range(9))
ROUNDS = 6
SETTINGS = [
    ifca_restarts.Settings(clusters=4, restarts=3, trial=2),
    ifca_restarts.Settings(clusters=3, restarts=5, trial=4, weighting="uniform"),
    ifca_restarts.Settings(clusters=4, restarts=4, trial=1),
    ifca_restarts.Settings(clusters=2, restarts=2, trial=9),
]


def literal_loss(engine, models):
    """Mean loss over all points, every client's under its best model."""
    sizes = engine.federation.sizes[CLIENTS]
    least = [min(literal_losses(engine, models, client)) for client in CLIENTS]
    return sum(size * loss for size, loss in zip(sizes, least, strict=True)) / sum(sizes)


def literal_run(engine, settings, rounds):
    """Models after so many rounds: of the trial that is best when they end, or are over."""
    trials = []
    for restart in range(settings.restarts):
        twin = Literal(engine, ifca.Settings(clusters=settings.clusters))
        twin.settings = settings  # its weighting
        first = restart * settings.clusters
        numbers = range(first, first + settings.clusters)
        twin.models = [engine.initial_model(n).double().numpy() for n in numbers]
        for number in range(min(rounds, settings.trial)):
            twin.round(number)
        trials.append((literal_loss(engine, twin.models), restart, twin))
    _, restart, best = min(trials, key=lambda trial: trial[:2])
    for number in range(settings.trial, rounds):
        best.round(number)
    return restart, best


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("settings", SETTINGS)
def test_models_are_those_of_the_best_trial(settings, seed):
    engine = make_engine(seed=seed)
    state = ifca_restarts.init(engine, settings)
    for number in range(ROUNDS):
        state, _ = ifca_restarts.round_(state, engine, settings, number)
        _, twin = literal_run(engine, settings, number + 1)
        np.testing.assert_allclose(state.models, np.stack(twin.models), atol=1e-4)
        assert state.grouping == [twin.cluster[client] for client in CLIENTS]
        assert ("tried" in state.memory) == (number + 1 < settings.trial)


def test_the_best_trial_need_not_be_the_first():
    settings = ifca_restarts.Settings(clusters=4, restarts=8, trial=3)
    chosen = {literal_run(make_engine(seed=seed), settings, 3)[0] for seed in range(4)}
    assert chosen != {0}


def test_one_restart_is_ifca_to_the_bit():
    engine, settings = make_engine(), ifca_restarts.Settings(clusters=4, restarts=1, trial=3)
    plain = ifca.Settings(clusters=4)
    state, expected = ifca_restarts.init(engine, settings), ifca.init(engine, plain)
    for number in range(5):
        state, rows = ifca_restarts.round_(state, engine, settings, number)
        expected, others = ifca.round_(expected, engine, plain, number)
        assert torch.equal(state.models, expected.models)
        assert rows == others


def test_every_training_of_a_trial_counts_and_its_groups_once():
    engine, settings = make_engine(), SETTINGS[0]
    state = ifca_restarts.init(engine, settings)
    for number, trained in enumerate((3, 3, 1, 1)):
        state, rows = ifca_restarts.round_(state, engine, settings, number)
        found = [metric for _, scope, _, metric, _ in rows if scope == "client"]
        assert (found.count("loss"), found.count("group")) == (9 * trained, 9)


def test_interrupted_trials_continue_with_the_same_bits(tmp_path):
    engine, settings = make_engine(), SETTINGS[1]
    straight, broken = (ifca_restarts.init(engine, settings) for _ in range(2))
    for number in range(ROUNDS):
        straight, expected = ifca_restarts.round_(straight, engine, settings, number)
        broken, rows = ifca_restarts.round_(broken, engine, settings, number)
        assert rows == expected
        checkpoint.save(tmp_path / "saved", "this run", *broken.pack())
        broken = State.unpack(*checkpoint.load(tmp_path / "saved", "this run"))
        engine = make_engine()
    assert torch.equal(broken.models, straight.models)


@pytest.mark.parametrize("given", [{"pretrain": 1, "random_rounds": 1}, {"random_rounds": 2}])
def test_other_beginnings_are_refused(given):
    with pytest.raises(InputError) as caught:
        call(ifca_restarts.Settings, "method", {"clusters": 2} | given)
    assert str(caught.value).startswith("IFCA's restarts are of random models")
