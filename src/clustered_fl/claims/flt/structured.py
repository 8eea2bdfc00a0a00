"""Scenario 4: ten clusters with clients of very different sizes (FLT Table IV, Fig. 5)."""

from collections.abc import Callable, Mapping

import numpy as np

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.flt.registry import claim
from clustered_fl.claims.flt.scores import accuracy_of, clients_of, lead, leads, variance_of
from clustered_fl.claims.predicates import Measured

# Of the paper's 100 rounds.
EARLY = 20
LAST_CLUSTER = 9


def _late_gain(column: str) -> Callable[[Evidence], Measured]:
    """Points that FLT gains after its first 20 rounds."""

    def measure(evidence: Evidence) -> Measured:
        end, early = (accuracy_of(evidence, f"{column}_flt", u) for u in (np.inf, EARLY))
        return {"gained later": end - early, "after 20 rounds": early}

    return measure


claim("FLT-T4-b-mlp", {"over FedSEM": ">= 25"})(leads("s4_mlp", "flt", ("fedsem",)))
claim("FLT-T4-b-cnn", {"over FedSEM": ">= 10"})(leads("s4_cnn", "flt", ("fedsem",)))
claim("FLT-T4-c-mlp", {"gained later": "<= 5"})(_late_gain("s4_mlp"))
claim("FLT-T4-c-cnn", {"gained later": "<= 5"})(_late_gain("s4_cnn"))


@claim("FLT-T4-d", {"FedSEM over FedAvg": ">= -5 and <= 5"})
def fedsem_falls_back(evidence: Evidence) -> Measured:
    """Lead of FedSEM over FedAvg with the MLP."""
    return {"FedSEM over FedAvg": lead(evidence, "s4_mlp", "fedsem", "fedavg")}


@claim(
    "FLT-T4-e",
    {
        "last cluster": "<= 66.7",
        "variance": ">= 60 and <= 130",
        "variance without label 0": "< 15",
        "accuracy without label 0": "> 96",
    },
)
def label_0_explains_the_variance(evidence: Evidence) -> Measured:
    """FLT with the CNN, clients of the last cluster tested on a label that they never saw."""
    scores = clients_of(evidence, "s4_cnn_code_flt")
    last = evidence.run("flt_s4_cnn_code_flt").true_groups == LAST_CLUSTER
    return {
        "last cluster": float(scores[last].mean()),
        "variance": variance_of(evidence, "s4_cnn_code_flt"),
        "accuracy": float(scores.mean()),
        "variance without label 0": variance_of(evidence, "s4_cnn_flt"),
        "accuracy without label 0": accuracy_of(evidence, "s4_cnn_flt"),
    }


def _fedavg(column: str, others: Mapping[str, str]) -> Callable[[Evidence], Measured]:
    """FedAvg that averages participants, beside other ways to average."""

    def measure(evidence: Evidence) -> Measured:
        runs = {"FedAvg": "fedavg"} | others
        return {name: accuracy_of(evidence, f"{column}_{run}") for name, run in runs.items()}

    return measure


# 15 points more than the paper has.
claim("FLT-T4-g-mlp", {"FedAvg": ">= 61.5"})(_fedavg("s4_mlp", {"as coded": "code_fedavg"}))
claim("FLT-T4-g-cnn", {"FedAvg": ">= 68.58"})(_fedavg("s4_cnn", {}))
