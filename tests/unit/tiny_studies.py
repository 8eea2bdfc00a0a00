"""Studies as small as what reads them allows."""

from pathlib import Path

from clustered_fl.jobs import study as studies
from clustered_fl.ledger.schema import Study
from clustered_fl.records.reading import Origin

# A new study needs an entry here.
SETTINGS = {
    "cfl.violations.assumption_violations": {"clients_per_group": 2, "points_per_client": 20},
    "cfl.paths.optimisation_paths": {"grid_points": 31},
    "cfl.separation.separation_quality": {"groups_max": 4, "gamma_step": 0.1, "trials": 4},
    "cfl.checks.theorem_checks": {"starts": 2, "steps": 2, "trials": 4, "orthonormal_dimension": 9},
    "cfl.demo_index_bug.index_bug": {"trials": 2},
    "cfl.geometry.proof_illustrations": {"arrangements": 9},
    "flt.clustering_error.clustering_error": {"trials": 200, "federations": 5},
    "flt.descent.descent": {"federations": 5},
    "flt.communication.communication": {},
    "flt.code_differences.code_differences": {"trials": 2},
}


def execute(study: Study, out: Path) -> None:
    """Compute a study of a ledger."""
    settings = study.settings | SETTINGS[study.function]
    config = {"function": study.function, "settings": settings, "seed": 0}
    studies.execute(config, Origin("code", "identity"), out)
