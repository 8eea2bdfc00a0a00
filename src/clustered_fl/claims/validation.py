"""Measures of REPA's accuracies (Figs 3 to 5), weighted by the clients' images.

Accuracies are in %, differences in points. VAL is of training clients, HO of holdout clients.
"""

from typing import Literal

import numpy as np
import pandas as pd

from clustered_fl.claims.bounds import Measured
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.judging import Estimate, since_last_test
from clustered_fl.claims.names import Grouping, Run
from clustered_fl.metrics.accuracy import binomial_error, first_round
from clustered_fl.metrics.repa import exposure, validation
from clustered_fl.metrics.repa.profiles import label_counts

Pairs = dict[str, tuple[Run, Run]]


def _accuracy(evidence: Evidence, run: str, sizes: str) -> pd.DataFrame:
    return validation.of_runs(evidence.runs(run), evidence.groupings(sizes))


def _end(
    evidence: Evidence, run: str, sizes: str, tests: int, until: int | None = None
) -> dict[str, Estimate]:
    """VAL and HO in %, means of the last tests, which use the same images."""
    ends = validation.last(_accuracy(evidence, run, sizes), tests, until)
    return {
        name: Estimate(end["weighted"], binomial_error(end["weighted"], end["images"]))
        for name, end in ends.iterrows()
    }


def differences(
    evidence: Evidence,
    pairs: Pairs,
    sizes: Grouping,
    tests: int,
    sets: tuple[Literal["VAL", "HO"], ...] = ("VAL", "HO"),
    until: int | None = None,
    shown: dict[str, Run] | None = None,
) -> Measured:
    """Final lead of the first run of each pair in points, weighted by images.

    Args:
        sets: training clients (VAL), holdout clients (HO).
        until: last round whose tests are used; None for all.
        shown: runs whose accuracies in %, on the first of the sets, are also returned, as
            "accuracy, <name>".
    """
    found = {}
    for name, pair in pairs.items():
        ours, theirs = (_end(evidence, run, sizes, tests, until) for run in pair)
        for each in sets:
            found[f"{name}, {each}" if len(sets) > 1 else name] = ours[each] - theirs[each]
    ends = {name: _end(evidence, run, sizes, tests, until) for name, run in (shown or {}).items()}
    return found | {f"accuracy, {name}": end[sets[0]] for name, end in ends.items()}


def rounds_ahead(
    evidence: Evidence, of: Run, over: Run, sizes: Grouping, points: float
) -> Measured:
    """Rounds by which a run comes within `points` of another's final VAL before that run does.

    Args:
        over: the other, whose mean of the last three tests is its end.
        points: distance below that final accuracy.
    """
    tables = [_accuracy(evidence, run, sizes).query("set == 'VAL'") for run in (of, over)]
    goal = float(tables[1]["weighted"].tail(3).mean()) - points
    tested = (each.set_index("round")[["weighted"]] for each in tables)
    ours, theirs = (since_last_test(first_round(each, goal), each.index) for each in tested)
    rows = (evidence.label(run).row for run in (of, over))
    return {"rounds ahead": theirs - ours} | dict(zip(rows, (ours, theirs), strict=True))


def unrest(evidence: Evidence, pairs: Pairs, sizes: Grouping, tests: int) -> Measured:
    """Difference between two runs in how much training clients' accuracy varies between tests.

    The variation is the standard deviation s of n changes; its error is that of a normal sample,
    s / sqrt(2 (n - 1)).
    """
    found = {}
    for name, pair in pairs.items():
        tables = (_accuracy(evidence, run, sizes).query("set == 'VAL'") for run in pair)
        changes = [float(each["weighted"].tail(tests).diff().std()) for each in tables]
        ours, theirs = (Estimate(s, s / np.sqrt(2 * max(1, tests - 2))) for s in changes)
        found[name] = ours - theirs
    return found


def _exposures(
    evidence: Evidence, of: str, clients: str
) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Groups of a run, label counts of its clients, and `exposure.exposures` of both."""
    run, counts = evidence.run(of), label_counts(evidence.grouping(clients).folder)
    return run.groups, counts, exposure.exposures(run.frame, run.groups, counts)


def untrained_labels(evidence: Evidence, of: Run, clients: Grouping) -> Measured:
    """Share of rounds in which a cluster with more than two labels did not train all of them.

    Args:
        clients: grouping with the clients' label counts.
    """
    groups, counts, table = _exposures(evidence, of, clients)
    return {"share of rounds": exposure.incomplete(table, groups, counts)}


def forgotten(evidence: Evidence, of: Run, clients: Grouping, tests: int) -> Measured:
    """Clients' loss of accuracy after rounds in which one of their labels was not trained.

    Args:
        clients: grouping with the clients' label counts.
    """
    *_, table = _exposures(evidence, of, clients)
    lost = exposure.loss(table[table["round"] > table["round"].max() - tests])
    seen, unseen = float(lost["seen"]), float(lost["unseen"])
    found = {"after rounds with all labels": seen, "after other rounds": unseen}
    return {"points lost": Estimate(seen - unseen, lost["error"])} | found
