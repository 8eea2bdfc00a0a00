"""CFL at work: permuted labels (Figs 4, 5, 9), topics (Fig. 10), Algorithms 4 and 5."""

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from clustered_fl.claims.cfl.registry import claim
from clustered_fl.claims.evidence import Evidence, RunEvidence
from clustered_fl.claims.predicates import Measured
from clustered_fl.data.label_maps import single_model_ceiling
from clustered_fl.metrics import curves

# Rounds after a split within which the paper's gain is called immediate.
SOON = 5

# The grouping is exactly the four true groups.
RECOVERED = {"agreement": "= 1", "groups": "= 4"}


def agreement(run: RunEvidence) -> Measured:
    """Adjusted Rand index of the final grouping with the truth, and the number of groups."""
    index = float(adjusted_rand_score(run.true_groups, run.groups))
    return {"agreement": index, "groups": float(len(set(run.groups)))}


def score_near(scores: pd.DataFrame, round_: float) -> pd.Series:
    """Scores of all clients at the last evaluation not after `round_`; NaN if there is none."""
    before = scores.loc[scores.index <= round_]
    return before.iloc[-1] if len(before) else scores.iloc[0] * float("nan")


def first_split(run: RunEvidence) -> float:
    """Round of the first split; NaN if there was none, so that what depends on it is NaN too."""
    splits = run.splits()
    return float(splits[0]["split_round"]) if splits else float("nan")


def ceiling(run: RunEvidence) -> float:
    """Best accuracy that any single model could have on this federation."""
    maps = np.array(run.record["label_maps"])
    return single_model_ceiling(maps[: len(run.true_groups)])


@claim("CFL-F5-a", {"impure leaves": "= 0", "broken nodes": "= 0"})
def tree_is_a_hierarchy(evidence: Evidence) -> Measured:
    """Leaves that are not one true cluster, nodes that are not the disjoint union of children."""
    run = evidence.run("cfl_fig9")
    tree = run.record["tree"]
    leaves = [node["id"] for node in tree if not node["children"]]
    broken = [node for node in tree if node["children"] and not _is_union(node, tree)]
    impure = [leaf for leaf in leaves if not run.is_pure(leaf)]
    return {"impure leaves": float(len(impure)), "broken nodes": float(len(broken))}


def _is_union(node: dict, tree: list[dict]) -> bool:
    below = [client for child in node["children"] for client in tree[child]["clients"]]
    return sorted(below) == sorted(node["clients"])


@claim("CFL-F9-a", {"accuracy": ">= 0.15 and <= 0.30", "room below ceiling": ">= 0"})
def federated_learning_stagnates(evidence: Evidence) -> Measured:
    """Mean accuracy at the first split, and how far the best single model could be above it."""
    run = evidence.run("cfl_fig9")
    accuracy = float(score_near(run.scores(), first_split(run)).mean())
    return {"accuracy": accuracy, "room below ceiling": ceiling(run) - accuracy}


@claim("CFL-F9-b", {"gap": "> 0", "correct": "= 1"})
def gap_before_the_first_split(evidence: Evidence) -> Measured:
    """Gap of the whole population at the first split, and whether that split is correct."""
    run = evidence.run("cfl_fig9")
    names = {"gap": "gap_update", "correct": "correct_update"}
    values = {
        key: curves.at_round(run.frame, name, first_split(run)) for key, name in names.items()
    }
    return {key: float(value.mean()) for key, value in values.items()}


@claim("CFL-F9-c", {"gain": ">= 0.15"})
def pure_cluster_gains_at_once(evidence: Evidence) -> Measured:
    """Largest mean gain within five rounds of the first split that sets a pure cluster free."""
    run, scores = evidence.run("cfl_fig9"), evidence.run("cfl_fig9").scores()
    for node in run.splits():
        pure = [child for child in node["children"] if run.is_pure(child)]
        if pure:
            gains = [_gain(run, scores, child, node["split_round"]) for child in pure]
            return {"gain": max(gains), "after round": float(node["split_round"])}
    return {"gain": float("nan"), "after round": float("nan")}


def _gain(run: RunEvidence, scores: pd.DataFrame, node: int, round_: int) -> float:
    clients = run.record["tree"][node]["clients"]
    soon = scores.index[(scores.index > round_) & (scores.index <= round_ + SOON)]
    if not len(soon):
        return float("nan")
    after, before = scores.loc[soon, clients].mean(axis=1).max(), score_near(scores, round_)
    return float(after - before[clients].mean())


@claim("CFL-F9-d", RECOVERED)
def permutations_are_found(evidence: Evidence) -> Measured:
    """Agreement of the final grouping with the true permutations."""
    return agreement(evidence.run("cfl_fig9"))


@claim("CFL-F9-e", {"over FedAvg": ">= 2", "accuracy": ">= 0.5 and <= 0.65"})
def accuracy_more_than_doubles(evidence: Evidence) -> Measured:
    """Final mean accuracy, and its ratio to federated averaging at the same round."""
    found, base = (final_mean(evidence.run(name)) for name in ("cfl_fig9", "cfl_fig9_fedavg"))
    return {"accuracy": found, "FedAvg": base, "over FedAvg": found / base}


def final_mean(run: RunEvidence) -> float:
    """Mean score over clients at the end."""
    return float(run.scores().iloc[-1].mean())


@claim("CFL-F9-f", {"largest gap": "< 0"})
def gaps_close_after_the_last_split(evidence: Evidence) -> Measured:
    """Largest gap of any group in the rounds after the last split."""
    run = evidence.run("cfl_fig9")
    gaps = curves.metric(run.frame, "gap_update")
    last = max((node["split_round"] for node in run.splits()), default=float("nan"))
    return {"largest gap": float(gaps.loc[gaps["round"] > last, "value"].max())}


@claim("CFL-F9-g", RECOVERED)
def criteria_find_the_clusters(evidence: Evidence) -> Measured:
    """Agreement with the truth when the criteria decide, not a schedule."""
    return agreement(evidence.run("cfl_fig9_auto"))


@claim("CFL-A3-a", RECOVERED)
def criteria_find_the_clusters_on_mnist(evidence: Evidence) -> Measured:
    """The same on permuted labels of MNIST."""
    return agreement(evidence.run("cfl_permuted_auto"))


@claim("CFL-F10-a", {"improvement": "< 0.05"})
def language_model_stagnates(evidence: Evidence) -> Measured:
    """Relative improvement of FedAvg's perplexity from the first split to the end."""
    scores = evidence.run("cfl_fig10_fedavg").scores()
    early = float(score_near(scores, first_split(evidence.run("cfl_fig10"))).mean())
    end = float(scores.iloc[-1].mean())
    return {"at first split": early, "at end": end, "improvement": 1 - end / early}


@claim("CFL-F10-b", RECOVERED)
def topics_are_found(evidence: Evidence) -> Measured:
    """Agreement of the final grouping with the topics."""
    return agreement(evidence.run("cfl_fig10"))


def perplexities(evidence: Evidence) -> pd.DataFrame:
    """Final perplexity of every client (rows): columns cfl and fedavg."""
    names = {"cfl": "cfl_fig10", "fedavg": "cfl_fig10_fedavg"}
    return pd.DataFrame({key: evidence.run(name).scores().iloc[-1] for key, name in names.items()})


@claim("CFL-F10-c", {"ratio": "<= 0.88"})
def perplexity_falls(evidence: Evidence) -> Measured:
    """Final mean perplexity of CFL over that of FedAvg (the paper: 36 / 42 = 0.857)."""
    means = perplexities(evidence).mean()
    return {"CFL": means["cfl"], "FedAvg": means["fedavg"], "ratio": means["cfl"] / means["fedavg"]}


@claim("CFL-F10-d", {"share of clients better": "= 1"})
def every_client_gains(evidence: Evidence) -> Measured:
    """Share of clients with a lower final perplexity than under FedAvg."""
    found = perplexities(evidence)
    return {"share of clients better": float((found["cfl"] < found["fedavg"]).mean())}


@claim("CFL-A4-a", {"in the right leaf": "= 1", "accuracy behind": "<= 0.02"})
def newcomers_find_their_leaf(evidence: Evidence) -> Measured:
    """Share of newcomers led to the leaf of their true group, and their accuracy's lag."""
    runs = [evidence.run(name) for name in ("cfl_fig9", "cfl_permuted")]
    right = [_is_home(run, new) for run in runs for new in run.record["newcomers"]]
    served = [np.mean([new["accuracy"] for new in run.record["newcomers"]]) for run in runs]
    behind = [final_mean(run) - mean for run, mean in zip(runs, served, strict=True)]
    return {"in the right leaf": float(np.mean(right)), "accuracy behind": float(max(behind))}


def _is_home(run: RunEvidence, newcomer: dict) -> bool:
    return set(run.true_groups[newcomer["clients"]]) == {newcomer["true_group"]}


@claim("CFL-A5-a", {"agreement": "= 1", "accuracy difference": "<= 0.01"})
def hidden_updates_change_nothing(evidence: Evidence) -> Measured:
    """Agreement of the groupings with and without the common permutation, and of the accuracies."""
    plain, hidden = (evidence.run(name) for name in ("cfl_permuted", "cfl_permuted_hidden"))
    difference = (plain.scores().iloc[-1] - hidden.scores().iloc[-1]).abs().max()
    return {
        "agreement": float(adjusted_rand_score(plain.groups, hidden.groups)),
        "accuracy difference": float(difference),
    }


@claim("CFL-CL-b", RECOVERED)
def complete_linkage_finds_the_clusters(evidence: Evidence) -> Measured:
    """Agreement with the truth under complete linkage, as the authors' public code clusters."""
    return agreement(evidence.run("cfl_permuted_code"))
