"""Clustering repeated when clients join or change, against the same written out per client."""

from dataclasses import replace

import literal_flt as literal
import numpy as np
import pytest
import torch
from literal_cfl import NINE, local_update, make_engine

from clustered_fl.engine import checkpoint
from clustered_fl.errors import InputError
from clustered_fl.groupings.distances import same_group
from clustered_fl.methods import fedavg, flt_dynamic, one_shot
from clustered_fl.methods.state import State, participants

ROUNDS = 6
# Two new clients of known groups, one of a group of its own, and one that client 4 turns into.
GROUPS = (*NINE, 1, 2, 4, 3)
BEFORE = same_group(np.array(NINE))
LATER = same_group(np.array(GROUPS))
LATER[4], LATER[:, 4] = 0, 0
LATER[4, 4] = 1
UNEVEN = LATER.copy()
UNEVEN[[0, 1, 9, 10], [1, 0, 10, 9]] = 1


def engine_with_newcomers(seed=0):
    centres = 4 * np.random.default_rng(7).normal(size=(5, 5)) + [0, 0, 0, 0, 30]
    engine = make_engine(centres, GROUPS, newcomers=4, seed=seed)
    engine.federation = replace(engine.federation, replaces=np.array([-1, -1, -1, 4]))
    return engine


class Literal(literal.Literal):
    """Algorithm 3 with lines 21 to 28, where every client has a model of its own."""

    def drawn(self, number, joined):
        present = [client for client in range(13) if client != 4]
        return participants(
            self.engine, self.settings.fraction, number, present if joined else None
        )

    def regroup(self, later):
        """All begin with the mean of the models of those that average the same clients."""
        before, everyone = self.models, range(13)
        self.models = {}
        for client in everyone:
            alike = [c for c in everyone if later[c].tolist() == later[client].tolist()]
            old = [c for c in alike if c in before] or list(before)
            had = {c: before[c] for c in old}
            self.models[client] = literal.mean(self.engine, had, self.settings.weighting)
        self.clients = everyone

    def round(self, number):
        if number == self.settings.again:
            self.regroup(self.settings.later)
        joined = number >= self.settings.again
        uploads = {
            c: self.models[c] + local_update(self.engine, self.models[c], c, number)
            for c in self.drawn(number, joined)
        }
        related = self.settings.later if joined else self.settings.relatedness
        for client in self.clients:
            mine = {c: uploads[c] for c in uploads if related[client][c]}
            if mine:
                self.models[client] = literal.mean(self.engine, mine, self.settings.weighting)
        return set(uploads)


@pytest.mark.parametrize("weighting", ["samples", "uniform"])
@pytest.mark.parametrize("fraction", [1.0, 0.4])
@pytest.mark.parametrize(("later", "again"), [(LATER, 3), (UNEVEN, 3), (LATER, 0)])
def test_models_are_those_of_the_literal_algorithm(later, again, fraction, weighting):
    engine = engine_with_newcomers()
    settings = flt_dynamic.Settings(
        relatedness=BEFORE, later=later, again=again, fraction=fraction, weighting=weighting
    )
    twin, state = Literal(engine, settings), flt_dynamic.init(engine, settings)
    for number in range(ROUNDS):
        drawn = twin.round(number)
        state, rows = flt_dynamic.round_(state, engine, settings, number)
        assert {who for _, _, who, metric, _ in rows if metric == "update_norm"} == drawn
        found = torch.stack(state.models_of(list(twin.clients)))
        np.testing.assert_allclose(found, np.stack([*twin.models.values()]), atol=2e-5)
        groups = {who: value for _, _, who, metric, value in rows if metric == "group"}
        assert groups == {who: state.leaves[state.grouping[who]] for who in drawn}
    assert len(state.models) == len({row.tobytes() for row in later})
    for leaf, model in zip(state.leaves, state.models, strict=True):
        assert state.tree[leaf].round == again
        members = state.tree[leaf].clients
        assert all(torch.equal(state.models_of([client])[0], model) for client in members)


def test_the_tree_keeps_the_groups_that_were():
    engine = engine_with_newcomers()
    settings = flt_dynamic.Settings(relatedness=BEFORE, later=LATER, again=2)
    state = flt_dynamic.init(engine, settings)
    first = [node.clients for node in state.tree]
    for number in range(3):
        state, _ = flt_dynamic.round_(state, engine, settings, number)
    assert [node.clients for node in state.tree[:4]] == first
    expected = {frozenset(np.flatnonzero(row).tolist()) for row in LATER}
    assert {frozenset(node.clients) for node in state.tree[4:]} == expected
    assert frozenset({4}) in expected


@pytest.mark.parametrize("flags", [3, 4])
def test_with_too_few_flags_nothing_is_found_again(flags):
    engine = engine_with_newcomers()
    settings = {"relatedness": BEFORE, "placed": np.array([1, 2, 0, 3])}
    dynamic = flt_dynamic.Settings(**settings, later=LATER, again=2, flags=flags)
    state = flt_dynamic.init(engine, dynamic)
    plain = one_shot.Settings(**settings)
    expected = one_shot.init(engine, plain)
    for number in range(4):
        state, _ = flt_dynamic.round_(state, engine, dynamic, number)
        expected, _ = one_shot.round_(expected, engine, plain, number)
    assert (len(state.grouping) == 13) is (flags == 3)
    if flags == 4:
        assert torch.equal(state.models, expected.models)
        found = flt_dynamic.assign_newcomers(state, engine, dynamic, 4)
        assert found == one_shot.assign_newcomers(expected, engine, plain, 4)


@pytest.mark.parametrize(("again", "every", "due"), [(3, 2, 4), (4, 2, 4), (3, 20, 20), (0, 5, 0)])
def test_every_tau_rounds_it_is_found_again_whatever_the_flags(again, every, due):
    """In the first multiple of tau from which on newcomers are there."""
    how = {"relatedness": BEFORE, "later": LATER, "again": again, "flags": 99}
    settings = flt_dynamic.Settings(**how, every=every)
    assert [number for number in range(50) if settings.is_due(number, 4)] == [due]
    engine = engine_with_newcomers()
    state = flt_dynamic.init(engine, settings)
    for number in range(6):
        assert len(state.grouping) == (9 if number <= due else 13)
        state, _ = flt_dynamic.round_(state, engine, settings, number)


def test_newcomers_are_scored_under_the_models_they_have_trained():
    engine = engine_with_newcomers()
    settings = flt_dynamic.Settings(relatedness=BEFORE, later=LATER, again=2)
    state = flt_dynamic.init(engine, settings)
    for number in range(ROUNDS):
        state, _ = flt_dynamic.round_(state, engine, settings, number)
    found = flt_dynamic.assign_newcomers(state, engine, settings, ROUNDS)
    for client, entry in enumerate(found, 9):
        points = engine.task.points[engine.federation.train[client]]
        away = (state.models_of([client])[0] - points).norm(dim=1).mean()
        members = np.flatnonzero(LATER[client]).tolist()
        expected = {"client": client, "true_group": GROUPS[client], "clients": members}
        expected |= {"leaf": state.leaves[state.grouping[client]]}
        assert entry == expected | {"distance": pytest.approx(float(away), rel=1e-5)}


def test_interrupted_rounds_continue_with_the_same_bits(tmp_path):
    engine = engine_with_newcomers()
    settings = flt_dynamic.Settings(relatedness=BEFORE, later=UNEVEN, again=2, fraction=0.5)
    straight, broken = (flt_dynamic.init(engine, settings) for _ in range(2))
    for number in range(4):
        straight, rows = flt_dynamic.round_(straight, engine, settings, number)
        broken, more = flt_dynamic.round_(broken, engine, settings, number)
        assert rows == more
        checkpoint.save(tmp_path / "saved", "this run", *broken.pack())
        broken = State.unpack(*checkpoint.load(tmp_path / "saved", "this run"))
    assert torch.equal(broken.models, straight.models)
    assert broken.pack()[1] == straight.pack()[1]


@pytest.mark.parametrize("later", [None, np.zeros((0, 0), np.uint8)])
def test_a_grouping_that_was_not_found_again_is_refused(later):
    settings = flt_dynamic.Settings(relatedness=BEFORE, later=later)
    with pytest.raises(InputError) as caught:
        flt_dynamic.init(engine_with_newcomers(), settings)
    told = "method flt_dynamic needs a grouping that was found with `again: true`"
    assert str(caught.value) == told


def test_newcomers_have_the_group_of_their_host_or_the_only_one():
    engine = engine_with_newcomers()
    settings = one_shot.Settings(relatedness=BEFORE, placed=np.array([1, 2, 0, 3]))
    state = one_shot.init(engine, settings)
    assert one_shot.newcomer_groups(state, engine, settings) == [1, 2, 0, 3]
    plain = fedavg.Settings()
    assert fedavg.newcomer_groups(fedavg.init(engine, plain), engine, plain) == [0] * 4
