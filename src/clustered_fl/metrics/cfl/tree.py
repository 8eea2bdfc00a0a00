"""The parameter tree of a record (CFL Fig. 5): content and layout of its nodes.

A tree is the list of nodes of a record in order of creation: id, parent, clients, round (when
created), split_round, cut_similarity, children, updates (their number, cached on the node's edge),
similarity (least and largest at its split).
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


def _until(node: Node, end: int) -> int:
    """Round at which a node's group ends: that of its split, or the last."""
    return end if node["split_round"] is None else node["split_round"]


def positions(tree: Sequence[Node]) -> pd.DataFrame:
    """Where to draw each node: across (leaves at 0, 1, 2, ..., parents midway) and depth."""
    across = {leaf: float(place) for place, leaf in enumerate(leaves(tree))}
    # Children have larger ids than their parent, so they come first here.
    for node in reversed(tree):
        if node["children"]:
            across[node["id"]] = float(np.mean([across[child] for child in node["children"]]))
    depth: dict[int, int] = {}
    for node in tree:
        depth[node["id"]] = 0 if node["parent"] is None else depth[node["parent"]] + 1
    return pd.DataFrame({"across": across, "depth": depth}).sort_index()


def client_order(tree: Sequence[Node], true_groups: Sequence[int]) -> list[int]:
    """An order of clients in which each node is contiguous, sorted by true group in a leaf."""
    place = {c: n for n, leaf in enumerate(leaves(tree)) for c in tree[leaf]["clients"]}
    return sorted(place, key=lambda client: (place[client], true_groups[client], client))


def composition(clients: Sequence[int], true_groups: Sequence[int]) -> dict[int, int]:
    """Number of these clients in each of their true groups, ascending."""
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
    """The path of every client over the rounds to `end`, for drawing groups as bundles of clients.

    Clients of a group are one unit apart, groups `space` units more. The layout is centred, so a
    bundle opens where its group is split. Columns: client, true_group, node, start and stop
    (of a period between splits), height.
    """
    order = client_order(tree, true_groups)
    times = sorted({0, end, *(node["split_round"] for node in tree if node["children"])})
    rows = []
    for start, stop in pairwise(times):
        alive = [node for node in tree if node["round"] <= start < _until(node, end)]
        home = {client: node["id"] for node in alive for client in node["clients"]}
        opened = [space * (home[a] != home[b]) for a, b in pairwise(order)]
        raw = np.arange(len(order)) + np.cumsum([0, *opened])
        for client, height in zip(order, raw.mean() - raw, strict=True):
            rows.append((client, true_groups[client], home[client], start, stop, height))
    return pd.DataFrame(rows, columns=["client", "true_group", "node", "start", "stop", "height"])


def bent(lanes: pd.DataFrame, x: np.ndarray, bend: float) -> pd.DataFrame:
    """Smooth paths [clients, x] at rounds x: heights of `lanes`, changing over `bend` rounds."""
    table = lanes.pivot_table(index="client", columns="start", values="height")
    starts, heights = table.columns.to_numpy(), table.to_numpy()
    period = np.searchsorted(starts, x, side="right") - 1
    passed = np.clip((x - starts[period]) / bend, 0, 1)
    share = passed**2 * (3 - 2 * passed)
    before, after = heights[:, np.maximum(period - 1, 0)], heights[:, period]
    return pd.DataFrame(before + share * (after - before), index=table.index)


def summary(record: Mapping[str, Any], rounds: pd.DataFrame) -> pd.DataFrame:
    """One row per node, from the record and the measurements of a run.

    Columns: node, parent, across, depth, clients, born, until (round of the split or the end), cut
    (largest similarity across the split), updates (cached on the edge from the parent), score (mean
    over clients, last measured while the group existed), newcomers (placed here).
    """
    tree, end = record["tree"], record["rounds"]
    landed = Counter(new["leaf"] for new in record["newcomers"])
    rows = []
    for node in tree:
        score = _score(node, rounds, record["metric"], end)
        about = {"node": node["id"], "parent": node["parent"], "clients": len(node["clients"])}
        about |= {"born": node["round"], "until": _until(node, end), "cut": node["cut_similarity"]}
        about |= {"updates": node["updates"], "score": score, "newcomers": landed[node["id"]]}
        rows.append(about)
    return positions(tree).join(pd.DataFrame(rows).set_index("node", drop=False))


def _score(node: Node, rounds: pd.DataFrame, metric: str, end: int) -> float:
    """Mean score of a node's clients at the last test of its own model; NaN if there is none."""
    own = rounds[(rounds["metric"] == metric) & rounds["member"].isin(node["clients"])]
    since = -1 if node["parent"] is None else node["round"]
    # The test at the round of a split is of the model before the split.
    own = own[(own["round"] > since) & (own["round"] <= _until(node, end))]
    return float(own.loc[own["round"] == own["round"].max(), "value"].mean())
