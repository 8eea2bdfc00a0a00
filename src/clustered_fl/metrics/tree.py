"""The parameter tree of a record (CFL Fig. 5): what every node holds, and where to draw it.

A tree is the list of nodes under "tree" in a record: id, parent, clients, round (when created),
split_round, cut_similarity, children. Nodes are numbered in order of creation.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

Node = Mapping[str, Any]


def leaves(tree: Sequence[Node], root: int = 0) -> list[int]:
    """Ids of the leaves below `root`, depth first."""
    children = tree[root]["children"]
    return [leaf for child in children for leaf in leaves(tree, child)] or [root]


def positions(tree: Sequence[Node]) -> pd.DataFrame:
    """Where to draw each node: leaves at 0, 1, 2, ..., a parent midway between its children.

    Returns:
        Indexed by node id; columns across (in units of leaves) and depth (0 for the root).
    """
    across = {leaf: float(place) for place, leaf in enumerate(leaves(tree))}
    # Children have larger ids than their parent, so this meets them first.
    for node in reversed(tree):
        if node["children"]:
            across[node["id"]] = float(np.mean([across[child] for child in node["children"]]))
    depth: dict[int, int] = {}
    for node in tree:
        depth[node["id"]] = 0 if node["parent"] is None else depth[node["parent"]] + 1
    return pd.DataFrame({"across": across, "depth": depth}).sort_index()


def client_order(tree: Sequence[Node], true_groups: Sequence[int]) -> list[int]:
    """All clients so that those of every node stand together, and within a leaf by true group."""
    ordered = [
        sorted(tree[leaf]["clients"], key=lambda c: (true_groups[c], c)) for leaf in leaves(tree)
    ]
    return [client for members in ordered for client in members]


def composition(clients: Sequence[int], true_groups: Sequence[int]) -> dict[int, int]:
    """Number of these clients in each true group that is present, ascending."""
    return dict(sorted(Counter(true_groups[client] for client in clients).items()))


def describe(clients: Sequence[int], true_groups: Sequence[int], names: Sequence[str]) -> str:
    """A set of clients in words: "1 + 2" if it is whole true groups, "1 (3 of 5) + 2" if not."""
    whole = Counter(true_groups)
    parts = [
        names[group] if count == whole[group] else f"{names[group]} ({count} of {whole[group]})"
        for group, count in composition(clients, true_groups).items()
    ]
    return " + ".join(parts)


def lanes(tree: Sequence[Node], true_groups: Sequence[int], end: int, space: float) -> pd.DataFrame:
    """The path of every client over the rounds, for drawing groups as bundles of clients.

    Clients of one group lie one unit apart, groups `space` units more, and the whole is centred, so
    that a bundle opens where its group is split.

    Args:
        tree: nodes.
        true_groups: of every client.
        end: last round.
        space: between two groups.

    Returns:
        One row per client and period between splits: client, true_group, node, start, stop,
        height.
    """
    order = client_order(tree, true_groups)
    times = sorted({0, end, *(node["split_round"] for node in tree if node["children"])})
    rows = []
    for start, stop in pairwise(times):
        alive = [node for node in tree if _lives(node, start, end)]
        home = {client: node["id"] for node in alive for client in node["clients"]}
        heights = _heights([home[client] for client in order], space)
        rows += [
            (client, true_groups[client], home[client], start, stop, height)
            for client, height in zip(order, heights, strict=True)
        ]
    return pd.DataFrame(rows, columns=["client", "true_group", "node", "start", "stop", "height"])


def _lives(node: Node, round_: int, end: int) -> bool:
    """Whether the node's group trains after `round_` completed rounds."""
    until = end if node["split_round"] is None else node["split_round"]
    return node["round"] <= round_ < until


def _heights(homes: list[int], space: float) -> np.ndarray:
    """Height of every client, from their groups in the order of drawing; the first is highest."""
    opened = np.cumsum([0, *(space * (a != b) for a, b in pairwise(homes))])
    raw = np.arange(len(homes)) + opened
    return raw.mean() - raw


def bent(lanes: pd.DataFrame, x: np.ndarray, bend: float) -> pd.DataFrame:
    """Smooth paths: heights change over `bend` rounds after each split.

    Args:
        lanes: as `lanes` makes them.
        x: rounds to evaluate at, ascending.
        bend: rounds that a change takes.

    Returns:
        Height of every client (rows) at every position of `x` (columns).
    """
    table = lanes.pivot_table(index="client", columns="start", values="height")
    starts, heights = table.columns.to_numpy(), table.to_numpy()
    period = np.searchsorted(starts, x, side="right") - 1
    passed = np.clip((x - starts[period]) / bend, 0, 1)
    share = passed**2 * (3 - 2 * passed)
    before, after = heights[:, np.maximum(period - 1, 0)], heights[:, period]
    return pd.DataFrame(before + share * (after - before), index=table.index)


def summary(
    record: Mapping[str, Any], rounds: pd.DataFrame, cached: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """What every node holds, one row each.

    Args:
        record: of the run.
        rounds: measurements of the run: round, scope, member, metric, value.
        cached: tensors of the run, for the updates on the edges.

    Returns:
        Columns node, parent, across, depth, clients, born, until (round of the split or the end),
        cut (largest similarity across the split), updates (cached on the edge from the parent),
        score (mean over the clients, last measured while the group existed), newcomers (number of
        clients led here).
    """
    tree, end = record["tree"], record["rounds"]
    landed = Counter(new["leaf"] for new in record["newcomers"])
    rows = [
        {
            "node": node["id"],
            "parent": node["parent"],
            "clients": len(node["clients"]),
            "born": node["round"],
            "until": end if node["split_round"] is None else node["split_round"],
            "cut": node["cut_similarity"],
            "updates": len(cached.get(f"node{node['id']}.updates", ())),
            "score": _score(node, rounds, record["metric"], end),
            "newcomers": landed[node["id"]],
        }
        for node in tree
    ]
    return positions(tree).join(pd.DataFrame(rows).set_index("node", drop=False))


def _score(node: Node, rounds: pd.DataFrame, metric: str, end: int) -> float:
    """Mean score of a node's clients at the last evaluation of its own model; NaN if there is none.

    The evaluation at the round of a split still tests the model before it.
    """
    until = end if node["split_round"] is None else node["split_round"]
    own = rounds[(rounds["metric"] == metric) & rounds["member"].isin(node["clients"])]
    own = own[(own["round"] <= until) & ((own["round"] > node["round"]) | (node["parent"] is None))]
    return float(own.loc[own["round"] == own["round"].max(), "value"].mean())
