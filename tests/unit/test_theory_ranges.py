"""Settings of studies: the plan refuses what the job would, and what it allows can be computed."""

from importlib import import_module
from typing import Any

import pytest
from refusals import told
from tiny_ledger import STUDY, changed, write
from tiny_studies import SETTINGS

from clustered_fl.data.registry import read_registry
from clustered_fl.jobs.study import execute
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.options import call
from clustered_fl.records.reading import Origin
from clustered_fl.workflow.checks import check
from clustered_fl.workflow.fingerprint import ROOT

DATASETS = read_registry(ROOT.parent / "config" / "datasets.yaml")
LEAST: dict[str, dict[str, Any]] = {
    "cfl.violations.assumption_violations": {"clients_per_group": 2, "points_per_client": 2},
    "cfl.paths.optimisation_paths": {"rounds": 0, "client_noise": 0.0, "grid_points": 2},
    "cfl.separation.separation_quality": {"groups_max": 2, "gamma_max": 0, "trials": 1}
    | {"dimension": 2, "clients_per_group": 2, "noises": ["fixed"], "level": 0},
    "cfl.checks.theorem_checks": {"starts": 2, "steps": 0, "trials": 2, "dimension": 2}
    | {"orthonormal_dimension": 2, "groups": [2], "gammas": [0.0], "linkage_gammas": [0, 1e-9]},
    "cfl.demo_index_bug.index_bug": {"trials": 1, "groups": 2, "clients_per_group": 1}
    | {"dimension": 1, "noise": 0.0},
    "cfl.geometry.proof_illustrations": {"vectors": 3, "arrangements": 1, "sweep_points": 3},
    "flt.clustering_error.clustering_error": {"trials": 1, "samples_max": 1, "clients": 1}
    | {"federations": 1, "error_rates": [0.49], "mixtures": [[2, 2]]}
    | {"mixture_error_rates": [0.49], "mixture_samples": [1]},
    "flt.communication.communication": {"centres": 1, "embedding": 1, "bytes_per_number": 1},
    "flt.code_differences.code_differences": {"clusters": 2, "clients_per_cluster": 2}
    | {"trials": 1, "images": [0], "images_per_label": 1}
    | {"cluster_samples": 8, "cluster_clients": 2},
    "flt.descent.descent": {"federations": 1, "shapes": [[1, 1]], "groups": 1, "rounds": 1}
    | {"star_clients": 3, "star_rounds": 1},
}
REFUSED = [
    ("cfl.violations.assumption_violations", {"clients_per_group": 1}, "clients_per_group = 1"),
    ("cfl.violations.assumption_violations", {"spread": 0}, "spread = 0 is not allowed"),
    ("cfl.paths.optimisation_paths", {"learning_rate": 0.0}, "learning_rate = 0.0 is not allowed"),
    ("cfl.paths.optimisation_paths", {"client_noise": -0.1}, "client_noise = -0.1 is not allowed"),
    ("cfl.paths.optimisation_paths", {"grid_points": 1}, "grid_points = 1 is not allowed"),
    ("cfl.separation.separation_quality", {"groups_max": 1}, "groups_max = 1 is not allowed"),
    ("cfl.separation.separation_quality", {"dimension": 1}, "dimension = 1 is not allowed"),
    ("cfl.separation.separation_quality", {"gamma_step": 0}, "gamma_step = 0 is not allowed"),
    ("cfl.separation.separation_quality", {"gamma_max": -1.0}, "gamma_max = -1.0 is not allowed"),
    ("cfl.separation.separation_quality", {"noises": ["x"]}, "noises.0 = 'x' is not allowed"),
    ("cfl.separation.separation_quality", {"noises": "gauss"}, "noises = 'gauss' is not allowed"),
    ("cfl.separation.separation_quality", {"level": 1.5}, "level = 1.5 is not allowed"),
    ("cfl.checks.theorem_checks", {"steps": -1}, "steps = -1 is not allowed"),
    ("cfl.checks.theorem_checks", {"groups": [2, 1]}, "groups.1 = 1 is not allowed"),
    ("cfl.checks.theorem_checks", {"gammas": []}, "gammas = [] is not allowed"),
    ("cfl.demo_index_bug.index_bug", {"groups": 1}, "groups = 1 is not allowed"),
    ("cfl.geometry.proof_illustrations", {"noise": 1.0}, "noise = 1.0 is not allowed"),
    ("cfl.geometry.proof_illustrations", {"vectors": 2}, "vectors = 2 is not allowed"),
    ("flt.clustering_error.clustering_error", {"error_rates": [0.5]}, "error_rates.0 = 0.5 is not"),
    ("flt.clustering_error.clustering_error", {"mixtures": [[1, 4]]}, "mixtures.0.0 = 1 is not"),
    (
        "flt.clustering_error.clustering_error",
        {"mixtures": [[5, 4]]},
        "mixtures.0 = [5, 4] is not allowed: the second number must be at least the first",
    ),
    ("flt.clustering_error.clustering_error", {"mixture_samples": [0]}, "mixture_samples.0 = 0 is"),
    ("flt.descent.descent", {"federations": 0}, "federations = 0 is not allowed"),
    ("flt.descent.descent", {"shapes": [[4, 0]]}, "shapes.0.1 = 0 is not allowed"),
    ("flt.descent.descent", {"star_clients": 2}, "star_clients = 2 is not allowed"),
    ("flt.descent.descent", {"star_step": 2.0}, "star_step = 2.0 is not allowed"),
    ("flt.communication.communication", {"centres": 0}, "centres = 0 is not allowed"),
    ("flt.communication.communication", {"scenarios": []}, "scenarios = [] is not allowed"),
    ("flt.code_differences.code_differences", {"clusters": 1}, "clusters = 1 is not allowed"),
    ("flt.code_differences.code_differences", {"images": [-1]}, "images.0 = -1 is not allowed"),
    ("flt.code_differences.code_differences", {"flipped": 0.5}, "flipped = 0.5 is not allowed"),
]


def plan(folder: Any, function: str, settings: dict[str, Any]) -> None:
    """Check a study as the plan does."""
    content = changed("studies/toy", STUDY | {"function": function, "settings": settings})
    check({"small": load_ledger(write(folder, content))}, DATASETS)


def compute(folder: Any, function: str, settings: dict[str, Any]) -> None:
    """Make a study as the job does."""
    config = {"function": function, "settings": settings, "seed": 0}
    execute(config, Origin("code", "identity"), folder)


@pytest.mark.parametrize(("function", "settings", "sentence"), REFUSED)
def test_what_the_job_refuses_is_refused_by_the_plan(tmp_path, function, settings, sentence):
    line = told(plan, tmp_path, function, settings)
    assert line.startswith(f"study toy at scale demo: study {function}: {sentence}")
    assert told(compute, tmp_path, function, settings) in line


@pytest.mark.parametrize("function", SETTINGS)
def test_the_least_that_the_plan_allows_can_be_computed(tmp_path, function):
    plan(tmp_path, function, LEAST[function])
    compute(tmp_path, function, LEAST[function])


@pytest.mark.parametrize(
    ("function", "settings", "sentence"),
    [
        ("flt.descent.descent", {"groups": 5}, "setting clients is 4, but at least 5 is needed"),
        (
            "flt.code_differences.code_differences",
            {"cluster_samples": 959},
            "setting cluster_samples is 959, but at least 960 is needed",
        ),
    ],
)
def test_what_is_too_little_for_another_setting_is_refused(function, settings, sentence):
    module, _, name = function.rpartition(".")
    study = getattr(import_module(f"clustered_fl.theory.{module}"), name)
    assert told(call, study, "study", settings, seed=0) == sentence
