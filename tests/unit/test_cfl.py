"""CFL against Algorithms 3, 4 and 5 written out literally, where the groups are known.

Every client pulls one vector of parameters towards the mean of its own points, so that a group's
best model is the mean of its clients' points, and different groups pull to different places.
"""

import copy
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn

from clustered_fl.data.federation import Federation
from clustered_fl.engine import checkpoint
from clustered_fl.engine.training import Engine, LocalSettings
from clustered_fl.errors import InputError
from clustered_fl.methods import cfl
from clustered_fl.methods.state import State
from clustered_fl.options import call
from clustered_fl.randomness import generator

DIMENSION, LR, BATCH, ROUNDS = 5, 0.3, 5, 20


class Attraction:
    """Half the squared distance of the network's only answer to the points of the rows."""

    metric = "distance"

    def __init__(self, points):
        self.points = torch.from_numpy(points).float()

    def inputs(self, rows):
        return torch.ones(len(rows), 1)

    def targets(self, rows, label_map):
        return self.points[rows]

    def loss(self, scores, targets):
        return (scores - targets).square().sum() / 2

    def terms(self, targets):
        return len(targets)

    def score(self, scores, targets):
        return (scores - targets).norm(dim=1).sum()


# Two pairs of groups: the first cut is wide, the second and third are narrower and come together.
# All lie far from the start, so that no group moves as fast again as all clients did at first.
CENTRES = 4 * np.array(
    [[3, 0, 1, 0, 10], [3, 0, -1, 0, 10], [-3, 0, 0, 1.1, 10], [-3, 0, 0, -1.1, 10]]
)
NINE = (0, 1, 2, 3, 0, 1, 2, 3, 0)


def make_engine(centres=CENTRES, groups=NINE, newcomers=0, seed=0, noise=0.5):
    """One client per entry of `groups`, of unequal sizes; each is tested on its own points."""
    rng = np.random.default_rng(seed)
    sizes = [8 + client % 3 for client in range(len(groups))]
    points = np.repeat(np.asarray(centres, dtype=float)[list(groups)], sizes, axis=0)
    points += noise * rng.standard_normal(points.shape)
    rows = tuple(np.split(np.arange(len(points)), np.cumsum(sizes)[:-1]))
    own, maps = np.arange(len(groups)), np.zeros((len(groups), 1), dtype=int)
    federation = Federation(rows, rows, own, maps, np.array(groups), newcomers)
    local = LocalSettings(epochs=1, batch_size=BATCH, lr=LR)
    build, task = lambda: nn.Linear(1, DIMENSION, bias=False), Attraction(points)
    return Engine(build, task, federation, local, seed, torch.device("cpu"))


def local_update(engine, theta, client, number):
    """SGD on half the squared distance: each batch pulls towards the mean of its points."""
    rng = generator(engine.seed, "batches", client, number, 0)
    order = rng.permutation(engine.federation.train[client])
    own, points = theta.copy(), engine.task.points.double().numpy()
    for first in range(0, len(order), BATCH):
        own -= LR * (own - points[order[first : first + BATCH]].mean(0))
    return own - theta


def cosine(a, b):
    return a @ b / np.sqrt((a @ a) * (b @ b))


@dataclass
class Vertex:
    """A node of the literal tree."""

    clients: list
    theta: np.ndarray
    born: int = 0
    peak: float = 0.0
    cut: float | None = None
    split: int | None = None
    updates: dict | None = None
    children: list = field(default_factory=list)

    def leaves(self):
        return [leaf for child in self.children for leaf in child.leaves()] or [self]


class Literal:
    """Algorithm 5 with the split before the averaging, one client and one pair at a time."""

    def __init__(self, engine, settings):
        self.engine, self.settings = engine, settings
        theta = engine.initial_model().double().numpy()
        self.root = Vertex(list(range(engine.federation.clients)), theta)

    def mean(self, updates):
        sizes = self.engine.federation.sizes
        share = {i: sizes[i] if self.settings.weighting == "samples" else 1 for i in updates}
        return sum(share[i] * updates[i] for i in updates) / sum(share.values())

    def halves(self, updates):
        """Cut and halves of the best of all bipartitions, eq. (33)."""
        clients, best = sorted(updates), (np.inf,)
        alpha = {(i, j): cosine(updates[i], updates[j]) for i in clients for j in clients}
        for count in range(1, len(clients)):
            for away in combinations(clients[1:], count):
                home = [i for i in clients if i not in away]
                cut = max(alpha[i, j] for i in home for j in away)
                best = min(best, (cut, home, list(away)))
        return best

    def criteria(self, leaf, cut, number):
        """Lines 14 and 18 of Algorithm 5, with eps_1 as a fraction of the largest norm so far."""
        settings, eps_1 = self.settings, self.settings.eps_1 * leaf.peak
        return (
            number - leaf.born >= settings.min_rounds
            and np.linalg.norm(self.mean(leaf.updates)) < eps_1
            and max(map(np.linalg.norm, leaf.updates.values())) > settings.eps_2 * eps_1
            and settings.gamma_max < np.sqrt((1 - cut) / 2)
        )

    def gap(self, leaf, cut):
        """Definition 2, with the true groups."""
        truth, updates = self.engine.federation.groups, leaf.updates
        pairs = combinations(leaf.clients, 2)
        within = [cosine(updates[i], updates[j]) for i, j in pairs if truth[i] == truth[j]]
        return min(within, default=np.nan) - cut

    def round(self, number):
        leaves, best = self.root.leaves(), {}
        for place, leaf in enumerate(leaves):
            leaf.updates = {
                i: local_update(self.engine, leaf.theta, i, number) for i in leaf.clients
            }
            leaf.peak = max(leaf.peak, np.linalg.norm(self.mean(leaf.updates)))
            if len(leaf.clients) >= max(2, self.settings.min_size):
                best[place] = self.halves(leaf.updates)
        if self.settings.auto:
            ready = [p for p in best if self.criteria(leaves[p], best[p][0], number)]
        else:
            due = number in self.settings.schedule
            ready = [p for p in best if due and self.gap(leaves[p], best[p][0]) > 0]
        for place, leaf in enumerate(leaves):
            if place in ready:
                self.divide(leaf, best[place], number)
            else:
                leaf.theta = leaf.theta + self.mean(leaf.updates)

    def divide(self, leaf, best, number):
        leaf.cut, leaf.split = best[0], number
        for part in best[1:]:
            theta = leaf.theta + self.mean({i: leaf.updates[i] for i in part})
            leaf.children.append(Vertex(part, theta, number, leaf.peak))


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
        assert state.members(group) == node.clients
        np.testing.assert_allclose(state.models[group], vertex.theta, atol=1e-4)
        return
    assert node.cut_similarity == pytest.approx(vertex.cut, abs=1e-4)
    np.testing.assert_allclose(state.cached[f"node{node.id}.model"], vertex.theta, atol=1e-4)
    own = np.stack([vertex.updates[client] for client in node.clients])
    alpha = [[cosine(a, b) for b in own] for a in own]
    np.testing.assert_allclose(state.cached[f"node{node.id}.similarity"], alpha, atol=1e-4)
    children = [state.tree[number] for number in node.children]
    assert sorted(children[0].clients + children[1].clients) == node.clients
    for child, below in zip(children, vertex.children, strict=True):
        assert child.parent == node.id
        expected = np.stack([vertex.updates[client] for client in child.clients])
        np.testing.assert_allclose(state.cached[f"node{child.id}.updates"], expected, atol=1e-4)
        assert_same_tree(state, child, below)


AUTO = cfl.Settings(auto=True, eps_1=0.02, eps_2=1.5, min_rounds=6, min_size=2)
SCHEDULE = cfl.Settings(schedule=(3, 7, 12, 16), min_size=2)


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
    before, rows = run(engine, cfl.Settings(), number)
    _, more = run(engine, cfl.Settings(), number + 1, number, copy.deepcopy(before))
    for name, values in edges(rows + more, number).items():
        for value, nodes in zip(values, (3, 1), strict=True):
            settings = replace(AUTO, **{name: value})
            state, _ = cfl.round_(copy.deepcopy(before), engine, settings, number)
            assert len(state.tree) == nodes, (name, value)


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
        state, _ = run(engine, cfl.Settings(schedule=(0,), linkage=linkage), 1)
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


def test_newcomers_stay_at_the_root_of_an_undivided_tree():
    engine = make_engine(groups=(*NINE, 0), newcomers=1)
    state, _ = run(engine, cfl.Settings(), 2)
    (entry,) = cfl.assign_newcomers(state, engine, cfl.Settings(), 2)
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
        ({"min_size": 1}, "min_size = 1 is not allowed: input should be greater than or equal"),
        ({"scedule": (3,)}, "method cfl has no setting 'scedule'; allowed are fraction, weight"),
    ],
)
def test_settings_that_cannot_be_are_told(options, sentence):
    with pytest.raises(InputError) as caught:
        call(cfl.Settings, "method cfl", options)
    assert sentence in str(caught.value)
