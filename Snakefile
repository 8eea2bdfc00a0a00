# Tables, figures and claims of papers on clustered federated learning, from data to verdicts.
#
#   snakemake --cores all                    every paper
#   snakemake --cores all cfl                the tables and figures of one
#   snakemake --cores all cfl_fig9           one artefact and just what it needs
#   snakemake --cores all --config scale=desktop mirror=<folder>

import os
import sys
from pathlib import Path

from clustered_fl.errors import one_sentence
from clustered_fl.ledger.settings import read_settings
from clustered_fl.ledger.written import SECTIONS
from clustered_fl.workflow.fingerprint import fingerprint
from clustered_fl.workflow.plan import Plan
from clustered_fl.yaml_files import read_yaml

with one_sentence():
    # Snakemake takes the second of two equal keys, and has a traceback for what is not UTF-8.
    read_yaml(Path("config/config.yaml"))


configfile: "config/config.yaml"


with one_sentence():
    PLAN = Plan(
        read_settings(config),
        Path("config/papers"),
        registry=Path("config/datasets.yaml"),
        # Known only when jobs are planned.
        forced=lambda: {"train", "grouping", "encoder"} & {*workflow.dag_settings.forcerun}
        or workflow.dag_settings.forceall,
        cluster=lambda: workflow.non_local_exec,
    )
    PLAN.artefacts.require_notebooks()
    PLAN.require_complete_data()
    PLAN.require_folders()


# Where data come from and how a number is computed change no number. Jobs get them from the
# environment and not as parameters, which would compute everything again.
os.environ |= PLAN.environment()


wildcard_constraints:
    scale=PLAN.settings.scale,
    seed=r"\d+",
    dataset="[a-z0-9_]+",
    clients="[a-z_]+_[0-9a-f]{16}",


rule all:
    """Every paper of the configuration: artefacts, verdicts, tested results and the report."""
    input:
        f"{PLAN.results}/verdicts.tested",
        f"{PLAN.results}/report/index.html",


include: "workflow/rules/data.smk"
include: "workflow/rules/encoder.smk"
include: "workflow/rules/grouping.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/study.smk"
include: "workflow/rules/restore.smk"
include: "workflow/rules/artefact.smk"
include: "workflow/rules/verdict.smk"
include: "workflow/rules/report.smk"


# One target per paper and one per artefact: `snakemake cfl_fig9`.
for paper in PLAN.ledgers:

    rule:
        name:
            paper
        input:
            PLAN.artefacts.files(PLAN.ledgers[paper].artefacts),


for artefact in PLAN.artefacts.entries:

    rule:
        name:
            artefact
        input:
            PLAN.artefacts.files([artefact]),


onstart:
    print(PLAN.archives.told())
    if workflow.local_exec and PLAN.lacks_gpu:
        print("error: device=cuda, and this machine has no CUDA GPU; use device=cpu or auto")
        sys.exit(2)


onerror:
    # Once more at the end what jobs said, which Snakemake's messages about them have buried.
    said = [line for path in log for line in Path(path).read_text().splitlines()]
    print(
        "A job failed. Rerun the same command to continue: finished jobs stay, trainings resume."
    )
    print(*dict.fromkeys(line for line in said if line.startswith("error: ")), sep="\n")
