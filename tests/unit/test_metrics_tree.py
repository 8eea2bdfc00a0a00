"""The parameter tree: what nodes hold and where they are drawn."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_records import TREE, TRUTH, record, scores

from clustered_fl.metrics.cfl import tree

END = 100


@st.composite
def trees(draw) -> tuple[list[dict], list[int]]:
    """A tree as CFL grows it by splitting any group at rising rounds, and any true groups."""
    clients = draw(st.integers(2, 12))
    nodes = [_node(0, None, list(range(clients)), 0)]
    for step in range(draw(st.integers(0, clients - 1))):
        leaf = draw(
            st.sampled_from([n for n in nodes if not n["children"] and len(n["clients"]) > 1])
        )
        shuffled = draw(st.permutations(leaf["clients"]))
        cut, round_ = draw(st.integers(1, len(shuffled) - 1)), 5 * (step + 1)
        leaf.update(split_round=round_, cut_similarity=0.0, children=[len(nodes), len(nodes) + 1])
        for part in (shuffled[:cut], shuffled[cut:]):
            nodes.append(_node(len(nodes), leaf["id"], sorted(part), round_))
    return nodes, draw(st.lists(st.integers(0, 2), min_size=clients, max_size=clients))


def _node(number: int, parent: int | None, clients: list[int], round_: int) -> dict:
    rest = {"split_round": None, "cut_similarity": None, "children": []}
    return {"id": number, "parent": parent, "clients": clients, "round": round_, **rest}


@given(trees())
def test_clients_of_every_node_stand_together(grown):
    nodes, truth = grown
    order = tree.client_order(nodes, truth)
    assert sorted(order) == nodes[0]["clients"]
    for node in nodes:
        places = sorted(order.index(client) for client in node["clients"])
        assert places == list(range(places[0], places[0] + len(places)))


@given(trees())
def test_nodes_have_places_of_their_own(grown):
    nodes, _ = grown
    places = tree.positions(nodes)
    assert not places.duplicated().any()
    assert sorted(places.loc[tree.leaves(nodes), "across"]) == list(range(len(tree.leaves(nodes))))
    for node in nodes:
        if node["children"]:
            below = places.loc[node["children"]]
            assert (below["depth"] == places.loc[node["id"], "depth"] + 1).all()
            assert places.loc[node["id"], "across"] == below["across"].mean()


@given(trees(), st.sampled_from([0.0, 3.0]))
def test_lanes_part_groups_and_keep_clients_together(grown, space):
    nodes, truth = grown
    drawn = tree.lanes(nodes, truth, END, space)
    splits = sum(bool(node["children"]) for node in nodes)
    assert len(drawn) == len(truth) * (splits + 1)
    for start, period in drawn.groupby("start"):
        period = period.sort_values("height", ascending=False)
        steps, same = -np.diff(period["height"]), np.diff(period["node"]) == 0
        assert steps == pytest.approx(np.where(same, 1, 1 + space))
        assert period["height"].mean() == pytest.approx(0)
        assert period["node"].nunique() == 1 + sum(0 < at <= start for at in _splits(nodes))


def _splits(nodes: list[dict]) -> list[int]:
    return [node["split_round"] for node in nodes if node["children"]]


def test_paths_are_bent_after_a_split_and_straight_before_the_next():
    drawn = tree.lanes(TREE, TRUTH, 10, space=2.0)
    x = np.array([0.0, 3.9, 4.0, 4.5, 5.0, 5.9, 10.0])
    paths = tree.bent(drawn, x, bend=1.0)
    height = drawn.set_index(["client", "start"])["height"]
    for client in range(6):
        before, after = height[client, 0], height[client, 4]
        expected = [before] * 3 + [(before + after) / 2, after, after, height[client, 6]]
        assert paths.loc[client].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("clients", "words"),
    [
        ([0, 1], "a"),
        ([0, 1, 4, 5], "a + c"),
        ([0, 2, 3], "a (1 of 2) + b"),
    ],
)
def test_groups_are_described_by_true_clusters(clients, words):
    assert tree.describe(clients, TRUTH, ["a", "b", "c"]) == words


def test_composition_counts_clients_of_each_cluster():
    assert tree.composition([5, 0, 4], TRUTH) == {0: 1, 2: 2}


def test_summary_scores_the_model_of_the_node_itself():
    measured = {0: [0.0] * 6, 4: [0.2] * 6, 5: [0.4] * 6, 10: [0.6, 0.8, 0.5, 0.7, 0.9, 0.9]}
    columns = ["round", "scope", "member", "metric", "value"]
    table = tree.summary(record(), pd.DataFrame(scores(measured), columns=columns))
    # Node 1 lived from round 4 to 6: the evaluation at round 4 still tested its parent.
    assert table["score"].tolist() == pytest.approx([0.2, 0.4, 0.6, 0.7, 0.9])
    assert table["until"].tolist() == [4, 6, 10, 10, 10]
    assert table["updates"].tolist() == [0, 4, 2, 2, 2]
    assert table["newcomers"].tolist() == [0, 0, 1, 0, 1]
    assert table["across"].tolist() == [1.25, 0.5, 2.0, 0.0, 1.0]


def test_a_node_that_was_never_evaluated_has_no_score():
    columns = ["round", "scope", "member", "metric", "value"]
    measured = pd.DataFrame(scores({0: [0.5] * 6, 4: [0.5] * 6}), columns=columns)
    table = tree.summary(record(), measured)
    assert table["score"].isna().tolist() == [False, True, True, True, True]
