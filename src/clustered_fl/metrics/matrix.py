"""The matrix of contenders and grounds: how well each does, whom it leaves behind, what it costs.

agreement    adjusted Rand index with the true groups: of the grouping where one was found before
             training, of the run's last groups otherwise. It is 0 for one group of all and for
             groups of one; where there are no true groups it says nothing and is NaN
groups       number of groups found, in the same place
accuracy     %, mean over clients at the end
gain         accuracy minus that of the baseline on the same ground, in points
variance     over clients, squared points (population)
worst        %, mean over the worst tenth of clients, one at least
converged    first tested round at which the mean is within a point of its end
megabytes    sent per client, both ways, everything before the first round included
seconds      of one core per client: training, tests, grouping and warm-up (not the encoder, which
             the server has before)
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clustered_fl.metrics import accuracy, agreement
from clustered_fl.metrics.curves import Folders, measurements
from clustered_fl.metrics.traffic import sent
from clustered_fl.records import load_record

Row = Mapping[str, Any]
Runs = Mapping[str, Folders]

MARGIN, TENTH = 1.0, 0.1
OF_RUNS = ("accuracy", "variance", "worst", "converged", "megabytes", "seconds")
GROUPED = ["agreement", "groups"]
MEASURES = (*GROUPED, "accuracy", "gain", *OF_RUNS[1:])


def matrix(
    rows: Sequence[Row],
    grounds: Mapping[str, Mapping[str, Any]],
    runs: Runs,
    groupings: Folders,
    encoders: Mapping[str, str],
    baseline: str,
) -> pd.DataFrame:
    """All measures of all contenders on all grounds that were computed, means over seeds.

    Args:
        rows, grounds: as the notebook is told (`clustered_fl.same_ground`).
        runs, groupings, encoders: folders of records.
        baseline: contender that `gain` is measured against.
    Returns:
        Columns ground, contender, seeds (of the run), trials (seeds of the agreement), `MEASURES`.
    """
    lines = [
        {"ground": row["ground"], "contender": row["contender"]}
        | _of_runs(row, runs, groupings, encoders)
        | _grouped(row, runs, groupings, grounds[row["ground"]]["truth"])
        for row in rows
        if runs.get(row["run"], {}).get(row["run"])
    ]
    columns = ["ground", "contender", "seeds", "trials", *MEASURES]
    table = pd.DataFrame(lines, columns=[name for name in columns if name != "gain"])
    base = table[table["contender"] == baseline].set_index("ground")["accuracy"]
    return table.assign(gain=table["accuracy"] - table["ground"].map(base))[columns]


def _of_runs(
    row: Row, runs: Runs, groupings: Folders, encoders: Mapping[str, str]
) -> dict[str, float]:
    """Means over the seeds of what a run has cost and brought."""
    seeds = runs[row["run"]][row["run"]]
    found = []
    for seed, folder in seeds.items():
        clients = len(load_record(Path(folder))["groups"])
        spent = sent(row, seed, runs, groupings, encoders) / clients / 1e6
        lasted = seconds(row, seed, runs, groupings) / clients
        found.append(_scores(Path(folder)) | {"megabytes": spent, "seconds": lasted})
    means = pd.DataFrame(found, columns=list(OF_RUNS)).mean()
    return {"seeds": len(seeds)} | {name: float(value) for name, value in means.items()}


def _scores(folder: Path) -> dict[str, float]:
    scores = accuracy.client_scores(folder)
    last = accuracy.at_last(scores)
    return {
        "accuracy": float(last.mean()),
        "variance": float(last.var(ddof=0)),
        "worst": worst_tenth(last.to_numpy()),
        "converged": converged(scores),
    }


def worst_tenth(values: np.ndarray) -> float:
    """Mean of the smallest tenth of the values [clients], rounded up."""
    count = int(np.ceil(TENTH * len(values)))
    return float(np.sort(values)[:count].mean())


def converged(scores: pd.DataFrame) -> float:
    """First tested round at which the mean over clients is within a point of its end.

    Args:
        scores: accuracy in % by round (rows) and client (columns).
    """
    end = float(scores.iloc[-1].mean())
    return accuracy.first_round(scores, end - MARGIN)


def seconds(row: Row, seed: int | str, runs: Runs, groupings: Folders) -> float:
    """Seconds of one seed: its run and the grouping and warm-up that it rests on."""
    parts = [runs[name][name][seed] for name in (row["run"], row["warm_up"]) if name]
    parts += [groupings[name][seed] for name in [row["grouping"]] if name]
    return sum(float(load_record(Path(part))["cost"]["seconds"]) for part in parts)


def _grouped(row: Row, runs: Runs, groupings: Folders, truth: bool) -> dict[str, float]:
    """Agreement and number of groups, means over the seeds of what has found the groups."""
    found = list(_groups(row, runs, groupings))
    index = float(np.mean([ari for ari, _ in found])) if truth else float("nan")
    return {
        "trials": len(found),
        "agreement": index,
        "groups": float(np.mean([number for _, number in found])),
    }


def _groups(row: Row, runs: Runs, groupings: Folders) -> Iterator[tuple[float, float]]:
    """Agreement and number of groups of each seed."""
    if row["grouping"]:
        yield from (_found(Path(folder)) for folder in groupings[row["grouping"]].values())
        return
    for folder in runs[row["run"]][row["run"]].values():
        record = load_record(Path(folder))
        found = agreement.index(record["true_groups"], record["groups"])
        yield found, float(len(set(record["groups"])))


def _found(folder: Path) -> tuple[float, float]:
    """Agreement and number of groups of one seed of a grouping."""
    measured = load_record(folder)["agreement"]
    return float(measured["ari"]), float(measured["components"])


def grid(table: pd.DataFrame, measure: str, grounds: Sequence[str]) -> pd.DataFrame:
    """One measure, contenders (rows) by grounds (columns) in their order; NaN for nothing."""
    order = list(dict.fromkeys(table["contender"]))
    wide = table.pivot_table(index="contender", columns="ground", values=measure, dropna=False)
    return wide.reindex(index=order, columns=list(grounds))


def over_rounds(row: Row, runs: Runs, groupings: Folders) -> pd.DataFrame:
    """Mean accuracy over clients, agreement and number of groups by round, means over seeds.

    Groups are those in which a round's participants have trained, so that they are known where all
    take part; the last round has none after it, and its groups are the record's. Those found
    before training do not change and are counted as in `matrix`: who is related, however
    remotely, is one group.

    Returns:
        Columns round, accuracy (%), agreement, groups; NaN where a round was not tested.
    """
    parts = [
        _history(Path(folder), groupings[row["grouping"]][seed] if row["grouping"] else None)
        for seed, folder in runs[row["run"]][row["run"]].items()
    ]
    means = pd.concat(parts).groupby("round").mean().reset_index()
    return means.assign(ground=row["ground"], contender=row["contender"])


def _history(folder: Path, grouping: str | None) -> pd.DataFrame:
    """One seed: by round, with the groups of the grouping or, without one, those of the run."""
    record = load_record(folder)
    if grouping:
        rounds = range(record["rounds"] + 1)
        found = pd.DataFrame([_found(Path(grouping))] * len(rounds), rounds, GROUPED)
    else:
        found = _groups_by_round(folder, record)
    scores = accuracy.client_scores(folder).mean(axis=1).rename("accuracy")
    return found.join(scores, how="outer").rename_axis("round").reset_index()


def _groups_by_round(folder: Path, record: Mapping[str, Any]) -> pd.DataFrame:
    """Agreement and number of groups in which the participants of each round trained."""
    frame = measurements({"": {0: str(folder)}})
    rows = frame[(frame["metric"] == "group") & (frame["scope"] == "client")]
    groups = rows.pivot_table(index="round", columns="member", values="value")
    groups.loc[record["rounds"]] = record["groups"]
    truth = np.array(record["true_groups"])
    found = groups.apply(lambda now: _compared(now, truth), axis=1, result_type="expand")
    found.columns = GROUPED
    return found


def _compared(now: pd.Series, truth: np.ndarray) -> tuple[float, float]:
    """Agreement and number of groups of a round's participants."""
    there = now.dropna()
    members = there.index.to_numpy().astype(int)
    return agreement.index(truth[members], there.tolist()), float(there.nunique())
