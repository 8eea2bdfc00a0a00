"""What REPA cannot see: clients that call the same things by different names (concept shift)."""

from clustered_fl.claims.evidence import Evidence
from clustered_fl.claims.predicates import Measured
from clustered_fl.claims.repa.registry import claim
from clustered_fl.metrics import agreement


@claim("REPA-X-a", {"REPA": "<= 0.1", "CFL": ">= 0.9"})
def repa_is_blind_and_cfl_is_not(evidence: Evidence) -> Measured:
    """Agreement (adjusted Rand index) of REPA's clusters and of CFL's leaves with the groups."""
    repa = evidence.grouping("repa_groups_shift_sae").record["agreement"]["ari"]
    run = evidence.run("repa_shift_cfl")
    return {"REPA": float(repa), "CFL": agreement.index(run.true_groups, run.groups)}


@claim("REPA-X-b", {"WD": ">= 0.9"})
def wd_sees_them(evidence: Evidence) -> Measured:
    """Agreement of WD's clusters with the groups."""
    found = evidence.grouping("wd_groups_shift_f1").record["agreement"]
    return {"WD": float(found["ari"])}
