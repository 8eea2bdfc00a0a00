"""CFL against Algorithms 3, 4 and 5 written out literally, where the groups are known."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from literal_cfl import DIMENSION, NINE, ROUNDS, Literal, cosine, local_update, make_engine

from clustered_fl.engine import checkpoint
from clustered_fl.errors import InputError
from clustered_fl.methods import cfl
from clustered_fl.methods.state import State
from clustered_fl.options import call
from clustered_fl.randomness import generator


def run(engine, settings, rounds, first=0, state=None):
    """State and all measurements after the rounds first ... rounds - 1."""
    state, rows = state or cfl.init(engine, settings), []
    for number in range(first, rounds):
        state, more = cfl.round_(state, engine, settings, number)
        rows += more
    return state, rows


def assert_same_tree(state, node, vertex):
    """The node and everything below it, models, updates and similarities included."""
    found = (node.clients, node.round, node.split_round, len(node.children))
    assert found == (vertex.clients, vertex.born, vertex.split, len(vertex.children))
    if not node.children:
        group = state.leaves.index(node.id)
        assert state.positions(list(range(len(state.grouping))))[group] == node.clients
        np.testing.assert_allclose(state.models[group], vertex.theta, atol=1e-4)
        assert node.similarity is None
        return
    assert node.cut_similarity == pytest.approx(vertex.cut, abs=1e-4)
    np.testing.assert_allclose(state.cached[f"node{node.id}.model"], vertex.theta, atol=1e-4)
    own = np.stack([vertex.updates[client] for client in node.clients])
    alpha = [[cosine(a, b) for b in own] for a in own]
    np.testing.assert_allclose(state.cached[f"node{node.id}.similarity"], alpha, atol=1e-4)
    pairs = [a for i, row in enumerate(alpha) for a in row[:i]]
    assert node.similarity == pytest.approx((min(pairs), max(pairs)), abs=1e-4)
    children = [state.tree[number] for number in node.children]
    assert sorted(children[0].clients + children[1].clients) == node.clients
    for child, below in zip(children, vertex.children, strict=True):
        assert child.parent == node.id
        expected = np.stack([vertex.updates[client] for client in child.clients])
        np.testing.assert_allclose(state.cached[f"node{child.id}.updates"], expected, atol=1e-4)
        assert child.updates == len(expected)
        assert_same_tree(state, child, below)


AUTO = cfl.Settings(auto=True, eps_1=0.02, eps_2=1.5, min_rounds=6, min_size=2)
SCHEDULE = cfl.Settings(schedule=(3, 7, 12, 16), min_size=2)
NEVER = cfl.Settings(schedule=(1000,), similarities=True)


@pytest.mark.parametrize(
    ("settings", "leaves", "seed"),
    [
        (AUTO, 4, 0),
        (AUTO, 4, 1),
        (replace(AUTO, weighting="uniform"), 4, 0),
        (replace(AUTO, gamma_max=0.98), 1, 0),
        (replace(AUTO, min_size=5), 3, 0),
        (replace(AUTO, min_rounds=11), 2, 0),
        (replace(AUTO, min_rounds=0), 4, 0),
        (SCHEDULE, 4, 0),
        (SCHEDULE, 4, 1),
        (replace(SCHEDULE, weighting="uniform"), 4, 0),
        (replace(SCHEDULE, min_size=5), 3, 0),
    ],
)
def test_tree_and_models_are_those_of_the_literal_algorithm(settings, leaves, seed):
    engine = make_engine(seed=seed)
    literal, (state, rows) = Literal(engine, settings), run(engine, settings, ROUNDS)
    for number in range(ROUNDS):
        literal.round(number)
    assert_same_tree(state, state.tree[0], literal.root)
    assert len(state.models) == leaves
    assert [node.id for node in state.tree] == list(range(2 * leaves - 1))
    assert len(state.cached) == 4 * (leaves - 1)
    if leaves == 4:
        assert len(set(zip(NINE, state.grouping, strict=True))) == 4
    named = {who: value for t, _, who, name, value in rows if (t, name) == (ROUNDS - 1, "group")}
    assert named == {client: state.leaves[group] for client, group in enumerate(state.grouping)}


def edges(rows, number):
    """For each setting, a value that just splits the root and one that just does not."""
    found = {(t, name): value for t, scope, _, name, value in rows if scope == "group"}
    peak = max(value for (_, name), value in found.items() if name == "mean_update_norm")
    quiet = found[number, "mean_update_norm"] / peak
    loud = found[number, "max_update_norm"] / peak / AUTO.eps_1
    apart = np.sqrt((1 - found[number, "cut_update"]) / 2)
    return {
        "eps_1": (quiet * 1.001, quiet * 0.999),
        "eps_2": (loud * 0.999, loud * 1.001),
        "gamma_max": (apart - 1e-4, apart + 1e-4),
        "min_rounds": (number, number + 1),
        "min_size": (len(NINE), len(NINE) + 1),
    }


def test_each_criterion_is_necessary():
    engine, number = make_engine(), 8
    before, rows = run(engine, NEVER, number)
    _, more = run(engine, NEVER, number + 1, number, copy.deepcopy(before))
    for name, values in edges(rows + more, number).items():
        for value, nodes in zip(values, (3, 1), strict=True):
            settings = replace(AUTO, **{name: value})
            state, _ = cfl.round_(copy.deepcopy(before), engine, settings, number)
            assert len(state.tree) == nodes, (name, value)


@pytest.mark.parametrize(("factor", "nodes"), [(1.001, 3), (0.999, 1)])
def test_eps_1_can_be_a_norm(factor, nodes):
    engine, number = make_engine(), 8
    before, rows = run(engine, NEVER, number)
    _, more = run(engine, NEVER, number + 1, number, copy.deepcopy(before))
    norms = {t: value for t, _, _, name, value in rows + more if name == "mean_update_norm"}
    settings = replace(AUTO, absolute=True, eps_1=factor * norms[number], eps_2=0.0)
    state, _ = cfl.round_(copy.deepcopy(before), engine, settings, number)
    assert len(state.tree) == nodes
    assert max(norms.values()) != pytest.approx(1)  # or it would be the same as a fraction


@pytest.mark.parametrize("settings", [AUTO, SCHEDULE])
def test_a_common_permutation_changes_nothing_but_what_the_server_sees(settings):
    engine = make_engine()
    plain, rows = run(engine, settings, ROUNDS)
    hidden, more = run(engine, replace(settings, permute=True), ROUNDS)
    assert hidden.grouping == plain.grouping
    torch.testing.assert_close(hidden.models, plain.models, atol=1e-6, rtol=0)
    assert [row[:4] for row in more] == [row[:4] for row in rows]
    np.testing.assert_allclose([row[4] for row in more], [row[4] for row in rows], atol=1e-5)
    order = generator(engine.seed, "parameter permutation").permutation(DIMENSION)
    assert order.tolist() != sorted(order)
    for name, tensor in plain.cached.items():
        expected = tensor[:, order] if name.endswith("updates") else tensor
        torch.testing.assert_close(hidden.cached[name], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("linkage", "halves", "link"),
    [("single", [[0, 1, 2], [3]], 60), ("complete", [[0, 1], [2, 3]], 55)],
)
def test_complete_linkage_divides_a_chain_in_the_middle(linkage, halves, link):
    # Directions 50, 55 and 60 degrees apart: the weakest link is the last one.
    angles = np.radians([0, 50, 105, 165])  # far away, so that the start does not matter
    centres = 1e4 * np.stack([np.cos(angles), np.sin(angles), *np.zeros((3, 4))], axis=1)
    engine = make_engine(centres, groups=(0, 1, 2, 3), noise=0.0)
    at_once = {"auto": True, "eps_1": 2.0, "eps_2": 0.0, "min_rounds": 0}
    state, _ = run(engine, cfl.Settings(**at_once, linkage=linkage), 1)
    assert [node.clients for node in state.tree[1:]] == halves
    assert state.tree[0].cut_similarity == pytest.approx(np.cos(np.radians(link)), abs=1e-3)


def test_schedule_judges_the_halves_that_it_would_make():
    # Single linkage would divide these true pairs correctly, complete linkage tears one of them.
    places = [
        [-70, 79],
        [31, 88],
        [5, 39],
        [-104, 63],
        [-151, 6],
        [-94, -48],
        [232, -95],
        [61, -79],
    ]
    engine = make_engine(100 * np.pad(places, ((0, 0), (0, 3))), groups=range(8), noise=0.0)
    engine.federation = replace(engine.federation, groups=np.repeat(np.arange(4), 2))
    for linkage, nodes in (("single", 3), ("complete", 1)):
        state, _ = run(engine, cfl.Settings(schedule=(1,), linkage=linkage), 2)
        assert len(state.tree) == nodes, linkage


def literal_descent(engine, state, client, order):
    """Algorithm 4, lines 6 and 7 read as the edges to the two children."""
    cached = {name: tensor.double().numpy() for name, tensor in state.cached.items()}
    node = state.tree[0]
    while node.children:
        update = local_update(engine, cached[f"node{node.id}.model"], client, ROUNDS)[order]
        edges = [cached[f"node{child}.updates"] for child in node.children]
        alpha_0, alpha_1 = (max(cosine(update, other) for other in edge) for edge in edges)
        node = state.tree[node.children[0 if alpha_0 > alpha_1 else 1]]
    return node


@pytest.mark.parametrize("permute", [False, True])
@pytest.mark.parametrize("noise", [0.5, 15.0])
def test_newcomers_descend_to_the_leaf_of_their_like(noise, permute):
    engine = make_engine(groups=(*NINE, 0, 1, 2, 3), newcomers=4, noise=noise)
    # Splits whatever can be split, so that the tree of noisy clients has wrong branches.
    settings = replace(AUTO, eps_1=2.0, eps_2=0.0, min_rounds=4, min_size=3, permute=permute)
    state, _ = run(engine, settings, ROUNDS)
    assert len(state.models) > 3
    found = cfl.assign_newcomers(state, engine, settings, ROUNDS)
    order = generator(engine.seed, "parameter permutation").permutation(DIMENSION)
    for client, entry in zip(range(9, 13), found, strict=True):
        leaf = literal_descent(engine, state, client, order if permute else slice(None))
        model = state.models[state.leaves.index(leaf.id)]
        away = (model - engine.task.points[engine.federation.train[client]]).norm(dim=1).mean()
        expected = {"client": client, "true_group": client - 9, "leaf": leaf.id}
        assert entry == expected | {"clients": leaf.clients, "distance": pytest.approx(float(away))}
    right = [{NINE[i] for i in entry["clients"]} == {entry["true_group"]} for entry in found]
    assert all(right) == (noise < 1)


@pytest.mark.parametrize(("newcomers", "kept"), [(0, False), (1, True)])
def test_many_updates_are_kept_for_newcomers_only(monkeypatch, newcomers, kept):
    monkeypatch.setattr(cfl, "KEPT_BYTES", 0)
    engine = make_engine()
    engine.federation = replace(engine.federation, newcomers=newcomers)
    state, _ = run(engine, SCHEDULE, ROUNDS)
    assert any(name.endswith(".updates") for name in state.cached) is kept
    assert [node.updates > 0 for node in state.tree[1:]] == [kept] * (len(state.tree) - 1)


def test_newcomers_stay_at_the_root_of_an_undivided_tree():
    engine = make_engine(groups=(*NINE, 0), newcomers=1)
    state, _ = run(engine, NEVER, 2)
    (entry,) = cfl.assign_newcomers(state, engine, NEVER, 2)
    assert (entry["leaf"], entry["clients"]) == (0, list(range(9)))


@pytest.mark.parametrize("settings", [AUTO, replace(SCHEDULE, permute=True)])
def test_interrupted_run_continues_with_the_same_bits(settings, tmp_path):
    engine, state, rows = make_engine(groups=(*NINE, 0, 3), newcomers=2), None, []
    expected, measured = run(engine, settings, 14)
    for number in range(14):
        state, more = run(engine, settings, number + 1, number, state)
        rows += more
        checkpoint.save(tmp_path / "saved", "this run", *state.pack())
        state = State.unpack(*checkpoint.load(tmp_path / "saved", "this run"))
    assert rows == measured
    assert state.pack()[1] == expected.pack()[1]
    assert state.pack()[0].keys() == expected.pack()[0].keys()
    assert all(torch.equal(state.pack()[0][name], x) for name, x in expected.pack()[0].items())
    newcomers = cfl.assign_newcomers(state, engine, settings, 14)
    assert newcomers == cfl.assign_newcomers(expected, engine, settings, 14)


def test_clients_that_are_left_out_are_refused():
    with pytest.raises(InputError) as caught:
        call(cfl.Settings, "method cfl", {"fraction": 0.5})
    sentence = "CFL compares the updates of all clients: fraction must be 1, not 0.5"
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"linkage": "average"}, "linkage = 'average' is not allowed: input should be 'single' or"),
        ({"schedule": (3,), "auto": True}, "CFL splits by schedule or by auto, not by both"),
        ({}, "CFL splits by schedule or by auto, not by both or neither; give one of them"),
        ({"min_size": 1}, "min_size = 1 is not allowed: input should be greater than or equal"),
        ({"scedule": (3,)}, "method cfl has no setting 'scedule'; allowed are fraction, weight"),
    ],
)
def test_settings_that_cannot_be_are_told(options, sentence):
    with pytest.raises(InputError) as caught:
        call(cfl.Settings, "method cfl", options)
    assert sentence in str(caught.value)
