"""Made-up records of runs, small enough to know every number."""

from pathlib import Path

import pandas as pd

from clustered_fl.files import write_json
from clustered_fl.records import index
from clustered_fl.records import reading as records

TRUTH = [0, 0, 1, 1, 2, 2]
TREE = [
    {"id": 0, "parent": None, "clients": [0, 1, 2, 3, 4, 5], "round": 0, "children": [1, 2]},
    {"id": 1, "parent": 0, "clients": [0, 1, 4, 5], "round": 4, "children": [3, 4]},
    {"id": 2, "parent": 0, "clients": [2, 3], "round": 4, "children": []},
    {"id": 3, "parent": 1, "clients": [0, 1], "round": 6, "children": []},
    {"id": 4, "parent": 1, "clients": [4, 5], "round": 6, "children": []},
]
for _node, _split, _cut in zip(
    TREE, (4, 6, None, None, None), (0.5, -0.28, *[None] * 3), strict=True
):
    _node.update(split_round=_split, cut_similarity=_cut)
    _node["updates"] = len(_node["clients"]) if _node["id"] else 0
    _node["similarity"] = [-0.5, 0.25] if _node["children"] else None


def record(**changes) -> dict:
    """The record of a run of CFL over 10 rounds that found its three true clusters."""
    newcomer = {"client": 6, "true_group": 1, "leaf": 2, "clients": [2, 3], "accuracy": 0.6}
    lost = {"client": 7, "true_group": 0, "leaf": 4, "clients": [4, 5], "accuracy": 0.1}
    content = {
        "config": {
            "seed": 0,
            "dataset": "cifar10",
            "federation": {"clients": 6},
            "model": {"name": "le_net"},
            "training": {"epochs": 3, "batch_size": 100, "lr": 0.1},
            "method": {"name": "cfl", "schedule": [4, 6]},
        },
        "data": {"name": "cifar10", "source": "builtin", "complete": False, "train_rows": 60},
        "label_maps": [[0, 1, 2], [0, 1, 2], [0, 2, 1], [0, 2, 1], [1, 0, 2], [1, 0, 2]] * 2,
        "metric": "accuracy",
        "parameters": 3,
        "test_rows": 600,
        "rounds": 10,
        "groups": [3, 3, 2, 2, 4, 4],
        "true_groups": TRUTH,
        "tree": TREE,
        "newcomers": [newcomer, lost],
    }
    content["data"]["note"] = "drawings"
    return content | changes


def rows(**curves: dict[int, float]) -> list[tuple]:
    """Measurements of the only group: metric -> round -> value."""
    return [
        (round_, "group", 0, metric, value)
        for metric, curve in curves.items()
        for round_, value in curve.items()
    ]


def scores(by_round: dict[int, list[float]], metric: str = "accuracy") -> list[tuple]:
    """Measurements of all clients: round -> value of each client."""
    return [
        (round_, "client", client, metric, value)
        for round_, values in by_round.items()
        for client, value in enumerate(values)
    ]


def write(folder: Path, content: dict, measurements: list[tuple], seconds: float = 1.0) -> str:
    """Write a record as a run does, and return its folder as a notebook receives it."""
    folder.mkdir(parents=True)
    write_json(folder / records.RECORD, content)
    write_json(folder / records.COST, {"seconds": seconds})
    records.write_rounds(folder / records.ROUNDS, measurements)
    return str(folder)


def runs(folders: dict[str, dict[int, str]]) -> pd.DataFrame:
    """The index of runs without a sweep, from their folders by name and seed."""
    return index.build(
        ("run", name, name, seed, folder)
        for name, seeds in folders.items()
        for seed, folder in seeds.items()
    )
