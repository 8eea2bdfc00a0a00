"""The matrix of methods and kinds of clients: how well each does, for which clients, at what cost.

agreement    adjusted Rand index with the true groups: of the grouping where one was found before
             training, of the run's last groups otherwise; 0 for one group of all and for groups of
             one, NaN where there are no true groups
groups       number of groups found, in the same place
accuracy     %, mean over clients and over the last tests (`metrics.ground.budgets`)
gain         accuracy minus that of the baseline in the same column, in points, over the seeds that
             both have
spread       standard deviation over seeds of this gain, NaN for a single seed
variance     over clients, each with its mean over these tests, squared points (population)
worst        %, mean over the worst tenth of clients, one at least
converged    first tested round at which the mean is within a point of its end
megabytes    sent per client, both ways, everything before the first round included
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clustered_fl.metrics import accuracy, agreement
from clustered_fl.metrics.curves import measured
from clustered_fl.metrics.ground.budgets import at_budget
from clustered_fl.metrics.ground.traffic import Cell, sent
from clustered_fl.records import index
from clustered_fl.records.reading import load_record

MARGIN, TENTH = 1.0, 0.1
OF_RUNS = ("accuracy", "variance", "worst", "converged", "megabytes")
GROUPED = ["agreement", "groups"]
OF_BOTH = ("gain", "spread")  # of a run and the baseline
MEASURES = (*GROUPED, "accuracy", "gain", "spread", *OF_RUNS[1:])


def computed(cells: Sequence[Cell], records: pd.DataFrame) -> list[Cell]:
    """The cells whose runs were computed."""
    there = set(index.chosen(records, "run")["name"])
    return [cell for cell in cells if cell["run"] in there]


def matrix(
    cells: Sequence[Cell],
    columns: Mapping[str, Mapping[str, Any]],
    records: pd.DataFrame,
    baseline: str,
) -> pd.DataFrame:
    """All measurements of all cells that were computed, means over seeds.

    Columns: setting (the table's column), method (its row), seeds (of the run), trials (seeds of
    the agreement), `MEASURES`; gain is measured against the row `baseline`.
    """
    done = computed(cells, records)
    runs = [_by_seed(cell, records) for cell in done]
    lines = [
        {"setting": cell["column"], "method": cell["row"], "seeds": len(own)}
        | own.mean().to_dict()
        | _grouped(cell, records, columns[cell["column"]]["truth"])
        for cell, own in zip(done, runs, strict=True)
    ]
    names = ["setting", "method", "seeds", "trials", *MEASURES]
    table = pd.DataFrame(lines, columns=[name for name in names if name not in OF_BOTH])
    found = _gains(done, [own["accuracy"] for own in runs], baseline)
    spread = [float(gain.std()) for gain in found]
    return table.assign(gain=[float(gain.mean()) for gain in found], spread=spread)[names]


def _gains(cells: Sequence[Cell], scores: Sequence[pd.Series], baseline: str) -> list[pd.Series]:
    """Gain of each cell over the row `baseline` of its column, in points, by their common seeds.

    Runs of one seed share their clients and their initial model, so a gain is that of a seed.
    """
    pairs = list(zip(cells, scores, strict=True))
    base = {cell["column"]: own for cell, own in pairs if cell["row"] == baseline}
    none = pd.Series(dtype=float)
    return [(own - base.get(cell["column"], none)).dropna() for cell, own in pairs]


def _by_seed(cell: Cell, records: pd.DataFrame) -> pd.DataFrame:
    """Results and costs of a run, by seed: columns `OF_RUNS`."""
    found = {}
    for _, seed, folder in index.each(index.chosen(records, "run", cell["run"])):
        scores = accuracy.client_scores(folder)
        last, clients = at_budget(scores), len(load_record(folder)["groups"])
        brought = (last.mean(), last.var(ddof=0), worst_tenth(last.to_numpy()), converged(scores))
        found[seed] = (*brought, sent(cell, records, seed) / clients / 1e6)
    return pd.DataFrame.from_dict(found, orient="index", columns=list(OF_RUNS))


def worst_tenth(values: np.ndarray) -> float:
    """Mean of the smallest tenth of the values [clients], rounded up."""
    count = int(np.ceil(TENTH * len(values)))
    return float(np.sort(values)[:count].mean())


def converged(scores: pd.DataFrame) -> float:
    """First tested round at which the mean over clients, in %, is within a point of its end.

    The end is the mean over the last tests; infinity if no single test is as good as that.
    """
    end = float(at_budget(scores).mean())
    return accuracy.first_round(scores, end - MARGIN)


def _grouped(cell: Cell, records: pd.DataFrame, truth: bool) -> dict[str, float]:
    """Agreement and number of groups, means over the seeds of what has found the groups."""
    kind = "grouping" if cell["grouping"] else "run"
    found = list(map(groups_of, index.loaded(index.chosen(records, kind, cell[kind]))))
    return {
        "trials": len(found),
        "agreement": float(np.mean([rand for rand, _ in found])) if truth else float("nan"),
        "groups": float(np.mean([number for _, number in found])),
    }


def groups_of(record: Mapping[str, Any]) -> tuple[float, float]:
    """Agreement with the true groups, and number, of the groups in a grouping's or run's record.

    Clients that a grouping relates, however remotely, are one group.
    """
    if "agreement" in record:
        return float(record["agreement"]["ari"]), float(record["agreement"]["components"])
    found = agreement.index(record["true_groups"], record["groups"])
    return found, float(len(set(record["groups"])))


def grid(table: pd.DataFrame, measure: str, columns: Sequence[str]) -> pd.DataFrame:
    """One measurement, methods (rows) by kinds of clients (columns); NaN for nothing."""
    order = list(dict.fromkeys(table["method"]))
    wide = table.pivot_table(index="method", columns="setting", values=measure, dropna=False)
    return wide.reindex(index=order, columns=list(columns))


def over_rounds(cell: Cell, records: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%, mean over clients), agreement and number of groups by round, means over seeds.

    Columns least and most: the accuracies of the worst and of the best seed.

    Groups are those in which a round's participants have trained, so that they are known where all
    take part; the last round's are the record's, or those of the round before where every client
    ends with a personal model. Groups found before training are constant and counted as in
    `matrix`: clients that are related, however remotely, are one group.
    """
    parts = []
    for _, seed, folder in index.each(index.chosen(records, "run", cell["run"])):
        record = load_record(folder)
        if cell["grouping"]:
            grouping = load_record(index.folder(records, "grouping", cell["grouping"], seed))
            rounds = range(record["rounds"] + 1)
            found = pd.DataFrame([groups_of(grouping)] * len(rounds), rounds, GROUPED)
        else:
            found = _groups_by_round(folder, record)
        scores = accuracy.client_scores(folder).mean(axis=1).rename("accuracy")
        parts.append(found.join(scores, how="outer").rename_axis("round").reset_index())
    by_round = pd.concat(parts).groupby("round")
    spread = by_round["accuracy"].agg(least="min", most="max")
    means = by_round.mean().join(spread).reset_index()
    return means.assign(setting=cell["column"], method=cell["row"])


def _groups_by_round(folder: Path, record: Mapping[str, Any]) -> pd.DataFrame:
    """Agreement and number of groups in which the participants of each round trained."""
    frame = measured(folder)
    rows = frame[(frame["metric"] == "group") & (frame["scope"] == "client")]
    groups = rows.pivot_table(index="round", columns="member", values="value")
    groups = groups.reindex(columns=range(len(record["groups"])))  # some may never take part
    personal = len(set(record["groups"])) == len(record["groups"])
    groups.loc[record["rounds"]] = groups.iloc[-1] if personal else record["groups"]
    truth = np.array(record["true_groups"])
    found = {}
    for now, row in groups.iterrows():
        there = row.dropna()
        own = truth[there.index.to_numpy().astype(int)]
        found[now] = agreement.index(own, there.tolist()), float(there.nunique())
    return pd.DataFrame.from_dict(found, orient="index", columns=GROUPED)
