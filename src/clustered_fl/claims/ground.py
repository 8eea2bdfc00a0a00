"""What the benchmark's claims measure: accuracy after a budget of rounds, groups, bytes, rounds.

The accuracy of a budget is a mean over clients and over the last tests until then
(`metrics.ground.budgets`).
"""

from functools import partial

import numpy as np

from clustered_fl.claims.bounds import Measured
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.judging import Estimate, jackknife, since_last_test
from clustered_fl.claims.leads import TAKE, Take, leads, of_one_column
from clustered_fl.claims.measures import grouped, groups
from clustered_fl.claims.names import Grouping, Run
from clustered_fl.metrics.ground import matrix, traffic
from clustered_fl.metrics.ground.budgets import at_budget


def accuracy_of(evidence: Evidence, run: str, rounds: float = np.inf) -> Estimate:
    """Accuracy of a run after a budget of rounds, with the binomial error of one test."""
    read = evidence.run(run)
    return read.tested(float(at_budget(read.accuracies, rounds).mean()))


def lead(
    evidence: Evidence,
    of: list[Run],
    over: list[Run],
    take: Take = "least",
    rounds: int | None = None,
) -> Measured:
    """By how many points runs are ahead of others: "<take> lead", and the lead of every pair.

    A pair is named by what tells the pairs apart: the column, else our run, else the other one.

    Args:
        over: runs to compare with; all pairs in the same column of a table are compared.
        take: of several pairs with one name, and of all together.
        rounds: budget in rounds; None for all.
    """
    pairs, until = of_one_column(evidence, of, over), np.inf if rounds is None else rounds
    return leads(evidence, pairs, lambda run: accuracy_of(evidence, run, until), take)


def later_lead(evidence: Evidence, of: list[Run], over: list[Run], early: int) -> Measured:
    """By how many points the lead grows after a budget: the mean of all columns, and each.

    Args:
        over: the others, one in each column.
        early: budget in rounds.
    """
    found = {}
    for ours, theirs in of_one_column(evidence, of, over):
        then, end = (
            accuracy_of(evidence, ours, rounds) - accuracy_of(evidence, theirs, rounds)
            for rounds in (early, np.inf)
        )
        found[evidence.label(ours).column] = end - then
    error = np.linalg.norm([change.error for change in found.values()]) / len(found)
    return {"mean change": Estimate(np.mean(list(found.values())), float(error))} | found


def regret(evidence: Evidence, of: list[Run], early: int) -> Measured:
    """Final accuracy of the best run minus that of the run that leads after a budget.

    In points, for each column, and the largest of them.

    Args:
        early: budget in rounds.
    """
    found = {}
    for column, runs in evidence.by_column(of).items():
        chosen = max(runs, key=lambda run: accuracy_of(evidence, run, early))
        ends = {run: accuracy_of(evidence, run) for run in runs}
        found[column] = max(ends.values()) - ends[chosen]
    return {"largest regret": max(found.values())} | found


def agreement(
    evidence: Evidence, of: list[Run], shots: list[Grouping], take: Take = "least"
) -> Measured:
    """Agreement with the true groups: "agreement", and that of each."""
    found = {evidence.label(run).row: groups(evidence, [run])["agreement"] for run in of}
    found |= {evidence.label(name).row: grouped(evidence, [name])["agreement"] for name in shots}
    return {"agreement": TAKE[take](found.values())} | found


def surplus_of_the_worst(
    evidence: Evidence, of: list[Run], over: list[Run], rounds: float = np.inf
) -> Measured:
    """Lead for the worst tenth of clients minus that for the mean, in each column of the table.

    Args:
        over: the others, one in each column.
        rounds: budget after which both are compared; all of a run with fewer.
    """
    rivals = {evidence.label(run).column: run for run in over}
    found = {}
    for run in of:
        column = evidence.label(run).column
        each = (evidence.run(name).accuracies for name in (run, rivals[column]))
        both = [at_budget(accuracies, rounds).to_numpy() for accuracies in each]
        found[column] = jackknife(partial(_surplus, *both), range(len(both[0])))
    return {"least surplus": min(found.values())} | found


def _surplus(ours: np.ndarray, theirs: np.ndarray, chosen: np.ndarray) -> float:
    """Lead for the worst tenth of the chosen clients, bool [clients], minus that for their mean."""
    own, other = ours[chosen], theirs[chosen]
    worst = matrix.worst_tenth(own) - matrix.worst_tenth(other)
    return float(worst - (own.mean() - other.mean()))


def bytes_over(
    evidence: Evidence,
    of: list[Run],
    over: list[Run],
    profilers: list[Run],
    groupings: list[Grouping],
) -> Measured:
    """Ratio of the bytes of runs, including those before the first round, to those of another run.

    Args:
        over: the others, one in each column.
        profilers, groupings: profilers and groupings that the runs use.
    """
    sent = {
        cell.run: traffic.sent(cell._asdict(), evidence.records, evidence.seed)
        for cell in evidence.cells
        if cell.run in (*of, *over)
    }
    bases = {evidence.label(run).column: sent[run] for run in over}
    labels = {run: evidence.label(run) for run in of}
    found = {f"{at.row}, {at.column}": sent[run] / bases[at.column] for run, at in labels.items()}
    return {"largest share": max(found.values())} | found


def rounds_over(evidence: Evidence, of: list[Run], over: list[Run]) -> Measured:
    """Ratio of the rounds until within a point of the final accuracy, for each pair of runs."""
    found = {}
    for pair in zip(of, over, strict=True):
        read = (evidence.run(run).accuracies for run in pair)
        ours, theirs = (since_last_test(matrix.converged(each), each.index) for each in read)
        label = evidence.label(pair[0])
        found[f"{label.row}, {label.column}"] = ours / theirs
    return {"largest share": max(found.values())} | found
