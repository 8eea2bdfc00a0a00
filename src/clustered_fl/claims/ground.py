"""What the benchmark's claims measure besides scores and groups: bytes, rounds, both mixed."""

from clustered_fl.claims.bounds import Measured
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.measures import TAKE, Take, grouped, groups
from clustered_fl.claims.names import Grouping, Run
from clustered_fl.metrics.ground import matrix, traffic


def agreement(
    evidence: Evidence, of: list[Run], shots: list[Grouping], take: Take = "least"
) -> Measured:
    """Agreement with the true groups: "agreement", and that of each."""
    found = {evidence.label(run).row: groups(evidence, [run])["agreement"] for run in of}
    found |= {evidence.label(name).row: grouped(evidence, [name])["agreement"] for name in shots}
    return {"agreement": TAKE[take](found.values())} | found


def surplus_of_the_worst(evidence: Evidence, of: list[Run], over: list[Run]) -> Measured:
    """Lead for the worst tenth of clients minus that for the mean, in each column of the table.

    Args:
        over: the others, one in each column.
    """
    rivals = {evidence.label(run).column: run for run in over}
    found = {}
    for run in of:
        column = evidence.label(run).column
        ours, theirs = (evidence.run(each).clients() for each in (run, rivals[column]))
        worst = matrix.worst_tenth(ours.to_numpy()) - matrix.worst_tenth(theirs.to_numpy())
        found[column] = float(worst - (ours.mean() - theirs.mean()))
    return {"least surplus": min(found.values())} | found


def bytes_over(
    evidence: Evidence,
    of: list[Run],
    over: list[Run],
    profilers: list[Run],
    groupings: list[Grouping],
) -> Measured:
    """Bytes of runs, those sent before the first round included, over those of another run.

    Args:
        over: the others, one in each column.
        profilers, groupings: that the runs rest on.
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
    """Rounds to within a point of the end over those of another run, for pairs in their order."""
    found = {}
    for pair in zip(of, over, strict=True):
        ours, theirs = (matrix.converged(evidence.run(run).accuracies) for run in pair)
        label = evidence.label(pair[0])
        found[f"{label.row}, {label.column}"] = ours / theirs
    return {"largest share": max(found.values())} | found
