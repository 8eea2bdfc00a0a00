"""Scenarios 1 and 2: clusters of disjoint labels, and of labels in a ring (FLT Tables I and II)."""

from collections.abc import Callable

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.flt.registry import claim
from clustered_fl.claims.flt.scores import accuracy_of, lead, leads
from clustered_fl.claims.predicates import Measured


def _encoders(column: str) -> Callable[[Evidence], Measured]:
    def measure(evidence: Evidence) -> Measured:
        difference = lead(evidence, column, "enc1", "enc2")
        return {"difference": abs(difference), "Enc1 over Enc2": difference}

    return measure


for _data in ("mnist", "cifar"):
    claim(f"FLT-T1-b-{_data}", {"difference": "<= 0.5"})(_encoders(f"s1_{_data}"))

claim("FLT-T1-c", {"over FedSEM": ">= 4", "over Local": ">= 4", "over FedAvg": ">= 40"})(
    leads("s1_cifar", "enc1", ("fedsem", "local", "fedavg"))
)
claim("FLT-T1-d", {"over FedSEM": ">= -0.5 and <= 0.5", "over FedAvg": ">= 8"})(
    leads("s1_mnist", "enc1", ("fedsem", "fedavg"))
)
claim("FLT-T2-c-mnist", {"over FedSEM": ">= 1.5"})(leads("s2_mnist", "enc1", ("fedsem", "fedavg")))
claim("FLT-T2-c-cifar", {"over FedSEM": ">= 4"})(leads("s2_cifar", "enc1", ("fedsem", "fedavg")))


def _local(data: str) -> Callable[[Evidence], Measured]:
    """How much better clients do alone where clusters share no label."""

    def measure(evidence: Evidence) -> Measured:
        first, second = (accuracy_of(evidence, f"{s}_{data}_local") for s in ("s1", "s2"))
        return {"S1 over S2": first - second, "S1": first, "S2": second}

    return measure


for _data in ("mnist", "cifar"):
    claim(f"FLT-T2-d-{_data}", {"S1 over S2": "> 0"})(_local(_data))
