"""Measures of FLT's claims besides accuracies: relatedness, Table V, the public code."""

from dataclasses import replace

import numpy as np

from clustered_fl.claims import measures
from clustered_fl.claims.bounds import Measured
from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.judging import Estimate, average
from clustered_fl.claims.measures import accuracy_of, differences, rounds_of
from clustered_fl.claims.names import Grouping, Run, Study
from clustered_fl.groupings.distances import ward
from clustered_fl.metrics import agreement as partitions
from clustered_fl.metrics.accuracy import binomial_error
from clustered_fl.metrics.flt import newcomers, recovery

# ---- Figs 1 to 3, clients that join later --------------------------------------------------------


def umap_over_axes(evidence: Evidence, of: Grouping, groups: int) -> Measured:
    """Silhouettes of groups of signatures, embedded by UMAP and on three principal components.

    Args:
        groups: number of groups.
    """
    found = recovery.silhouettes(evidence.grouping(of).sent, groups)
    umap, axes = found["UMAP"], found["three axes"]
    return {"UMAP over principal components": umap - axes, "UMAP": umap, "three axes": axes}


def inside(evidence: Evidence, of: Grouping) -> Measured:
    """Fraction of links between clients within the clusters found, and within the true ones."""
    grouping = evidence.grouping(of)
    related = grouping.found.related
    return {
        "links within found clusters": recovery.inside(related, grouping.found.groups),
        "links within true clusters": recovery.inside(related, grouping.true_groups),
        "agreement": float(grouping.record["agreement"]["ari"]),
    }


def two_blocks(evidence: Evidence, of: Grouping) -> Measured:
    """Fraction of related pairs cut by two clusters, and fraction of all pairs that are related."""
    related = evidence.grouping(of).found.related
    clusters = ward(related, 2)
    same = clusters[:, None] == clusters[None, :]
    return {
        "related pairs across clusters": 1 - recovery.inside(related, clusters),
        "density": recovery.density(related),
        "density within clusters": float(related[same].mean()),
        "share of the larger cluster": float(max((clusters == 0).mean(), (clusters == 1).mean())),
    }


def leaves(evidence: Evidence, right: Grouping, leaf: Grouping, of: Run, over: Run) -> Measured:
    """Agreement of the code's clusters with the correct ones, and their cost in accuracy.

    Args:
        right: grouping with correct clusters.
        leaf: the same with the code's bug, which takes leaves of the dendrogram for clients.
        of, over: runs with the correct and the other clusters.
    """
    first, second = (evidence.grouping(name).found.groups for name in (right, leaf))
    lost = accuracy_of(evidence, of) - accuracy_of(evidence, over)
    return {"agreement": partitions.index(first, second), "points lost": lost}


def placed(evidence: Evidence, of: Run) -> Measured:
    """Fraction of newcomers in their true cluster, and points by which they trail its members."""
    table = newcomers.placements(evidence.runs(of))
    kinds = table.groupby("kind")["right"].mean()
    shares = {f"{kind} clients placed correctly": float(share) for kind, share in kinds.items()}
    behind = float((table["members"] - table["accuracy"]).mean())
    return {"placed correctly": float(table["right"].mean()), "points behind": behind} | shares


# ---- Accuracies ----------------------------------------------------------------------------------


def columns(evidence: Evidence, first: Run, second: Run) -> Measured:
    """Accuracies of one method in two columns, and by how many points the first is higher.

    Args:
        first, second: runs of one row.
    """
    values = [accuracy_of(evidence, run) for run in (first, second)]
    names = [evidence.label(run).column for run in (first, second)]
    return {"first minus second": values[0] - values[1]} | dict(zip(names, values, strict=True))


def near_published(
    evidence: Evidence, of: list[Run], swaps: dict[str, tuple[Run, Run]] | None = None
) -> Measured:
    """As `measures.near_published`, with some runs in place of others.

    Args:
        swaps: each a run of `of`, and the run that is compared with its published number instead.
    """
    instead = dict((swaps or {}).values())
    labels = {second: evidence.label(first) for first, second in instead.items()}
    evidence = replace(evidence, labels={**evidence.labels, **labels})
    return measures.near_published(evidence, [instead.get(run, run) for run in of])


def label_0(evidence: Evidence, coded: Run, fixed: Run) -> Measured:
    """Accuracy of the last cluster when also tested on an unseen label, and variances.

    Args:
        coded: run whose last cluster is also tested on label 0, as in the code.
        fixed: the same without label 0.
    """
    run = evidence.run(coded)
    last = float(run.clients()[run.true_groups == run.true_groups.max()].mean())
    # Clusters have about the same number of test images.
    images = run.record["test_rows"] // len(set(run.true_groups))
    return {
        "last cluster": Estimate(last, binomial_error(last, images)),
        "variance": measures.variance_of(evidence, coded),
        "accuracy": accuracy_of(evidence, coded),
        "variance without label 0": measures.variance_of(evidence, fixed),
        "accuracy without label 0": accuracy_of(evidence, fixed),
    }


def margins(evidence: Evidence, of: list[Run], over: list[Run]) -> Measured:
    """Least and largest lead of pairs of runs, after half and after all of their rounds."""
    pairs = {ours: (ours, theirs) for ours, theirs in zip(of, over, strict=True)}
    found = differences(evidence, pairs, shares=(0.5, 1.0)).values()
    return {"least lead": min(found), "largest lead": max(found), "comparisons": float(len(found))}


def second_half(evidence: Evidence, of: list[Run]) -> Measured:
    """Points gained in the second half of the rounds: mean and extremes over runs."""
    halves = {run: rounds_of(evidence, run) / 2 for run in of}
    found = [accuracy_of(evidence, run) - accuracy_of(evidence, run, halves[run]) for run in of]
    return {"mean gain": average(found), "least gain": min(found), "largest gain": max(found)}


# ---- Table VI and the public code ----------------------------------------------------------------


def ifca_factor(evidence: Evidence, study: Study) -> Measured:
    """Traffic of IFCA over that of FedSEM (`communication`), compared with (C + 1) / 2."""
    tables = evidence.study(study)
    sent = tables["communication"]
    factor = sent.loc[sent["method"] == "IFCA", "relative"].to_numpy()
    expected = (tables["one_off"]["clusters"].to_numpy() + 1) / 2
    return {
        "least factor": float(factor.min()),
        "largest factor": float(factor.max()),
        "difference from (C + 1) / 2": float(np.abs(factor - expected).max()),
    }


def in_place(evidence: Evidence, study: Study) -> Measured:
    """Largest difference of two clients' weights after one average of all (`code_differences`)."""
    table = evidence.study(study)["in_place"].query("matrix == 'all ones'")
    weights = {rule: part.groupby("cluster")["weight"] for rule, part in table.groupby("rule")}
    spread = {rule: float((each.max() - each.min()).max()) for rule, each in weights.items()}
    return {
        "difference of weights": spread["in place"],
        "difference if not in place": spread["plain"],
    }


def power_law(evidence: Evidence, study: Study) -> Measured:
    """Exponents of sizes in the larger and the smaller half of the clients (`code_differences`).

    A power law has one exponent.
    """
    table = evidence.study(study)["client_sizes"]
    coded = table[table["rule"] == "code"]
    half = coded["rank"] <= len(coded) // 2
    larger, smaller = (
        -float(np.polyfit(np.log(part["rank"]), np.log(part["samples"]), 1)[0])
        for part in (coded[half], coded[~half])
    )
    return {
        "ratio": smaller / larger,
        "exponent of the larger half": larger,
        "exponent of the smaller half": smaller,
        "smallest client": float(coded["samples"].min()),
    }
