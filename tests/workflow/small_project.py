"""A copy of the project with a ledger so small that the whole workflow takes a minute."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
COPIED = ("workflow", "config", "profiles", "src", "notebooks", "docs")

# Names that the notebooks expect, on a tenth of a thousandth of the data.
RUN = {
    "purpose": "to test the workflow",
    "minutes": {"demo": 0.1},
    "dataset": "mnist",
    "federation": {
        "kind": "label_permutation",
        "clients": 4,
        "groups": 2,
        "samples": 20,
        "newcomers": 10,
    },
    "model": {"name": "small_conv_net"},
    "training": {"epochs": 1, "batch_size": 10, "lr": 0.1},
    "method": {"name": "cfl", "schedule": [1], "min_size": 2},
    "rounds": 3,
    "evaluate_every": 1,
    "seeds": {"demo": [0]},
}
FEDAVG = RUN | {"method": {"name": "fedavg"}}
ITEM = {"title": "An item", "caption": "What it shows.", "published": "A number", "where": "Here"}
CLAIM = {"kind": "paper", "published": "A number", "where": "Here"}
LEDGER = {
    "paper": "cfl",
    "title": "A small paper",
    "authors": "A. Author",
    "year": 2021,
    "versions": ["first"],
    "runs": {"cfl_fig9": RUN, "cfl_fig9_fedavg": FEDAVG},
    "studies": {
        "cfl_violations": {
            "purpose": "to test the workflow",
            "function": "cfl.violations.assumption_violations",
            "settings": {"clients_per_group": 2, "points_per_client": 20},
        }
    },
    "artefacts": {
        "cfl_fig1": ITEM
        | {"kind": "figure", "notebook": "cfl/violations.ipynb", "studies": ["cfl_violations"]},
        "cfl_fig4": ITEM
        | {"kind": "figure", "notebook": "cfl/recursion.ipynb", "runs": ["cfl_fig9"]},
        "cfl_table1": ITEM
        | {"kind": "table", "notebook": "cfl/symbols.ipynb", "runs": ["cfl_fig9"]},
    },
    "claims": {
        "CFL-W-a": CLAIM
        | {
            "artefact": "cfl_fig4",
            "statement": "CFL beats FedAvg",
            "measure": {"name": "lead", "of": ["cfl_fig9"], "over": ["cfl_fig9_fedavg"]},
            "holds_if": {"least lead": "> 0"},
        },
        "CFL-W-b": CLAIM
        | {
            "artefact": "cfl_fig1",
            "kind": "theory",
            "statement": "XOR is hard",
            "measure": {
                "name": "values",
                "study": "cfl_violations",
                "numbers": {
                    "joint": {
                        "table": "accuracies",
                        "column": "accuracy",
                        "where": {"panel": "xor", "model": "best joint", "group": "all"},
                    }
                },
            },
            "holds_if": {"joint": "< 0.9"},
        },
    },
}


class Job(NamedTuple):
    """One job of a plan; `subject` is the record, artefact, dataset or federation it makes."""

    rule: str
    subject: str
    reason: str


class Project:
    """A copy of the project, or of a copy of it, without data and results."""

    def __init__(self, root: Path, of: Path = ROOT, copied: tuple[str, ...] = COPIED) -> None:
        self.root = root
        root.mkdir()
        for name in copied:
            copy = shutil.copytree if (of / name).is_dir() else shutil.copy2
            copy(of / name, root / name)
        self.ledger = self.root / "config" / "papers" / "cfl.yaml"
        self.package = self.root / "src" / "clustered_fl"

    def use_small_ledger(self) -> None:
        """One paper in place of all."""
        self.write_ledger(LEDGER)
        for other in self.ledger.parent.glob("*.yaml"):
            if other != self.ledger:
                other.unlink()

    def write_ledger(self, ledger: dict) -> None:
        """Replace the ledger."""
        self.ledger.write_text(json.dumps(ledger, indent=1))

    @contextmanager
    def changed_ledger(self, place: str, value: object) -> Iterator[None]:
        """The small ledger with one value at a place like runs/cfl_fig9/rounds."""
        changed = deepcopy(LEDGER)
        *parents, key = place.split("/")
        inner = changed
        for parent in parents:
            inner = inner[parent]
        inner[key] = value
        self.write_ledger(changed)
        try:
            yield
        finally:
            self.write_ledger(LEDGER)

    def start(self, *arguments: str) -> subprocess.Popen:
        """Start Snakemake in the copy, whose package it uses."""
        return subprocess.Popen(
            ["snakemake", *arguments],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(self.root / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def snakemake(self, *arguments: str) -> tuple[int, str]:
        """Run Snakemake to its end; exit code and everything that it printed."""
        process = self.start(*arguments)
        text, _ = process.communicate(timeout=3600)
        return process.returncode, text

    def make(self, *arguments: str) -> str:
        """Make targets on one core."""
        code, text = self.snakemake("--cores", "1", *arguments)
        assert code == 0, text
        return text

    def plan(self, *arguments: str) -> set[Job]:
        """The jobs that would run."""
        code, text = self.snakemake("--dry-run", *arguments)
        assert code == 0, text
        return set(jobs(text))

    @contextmanager
    def edited(self, name: str, old: str, new: str) -> Iterator[None]:
        """A file of the copy with one change."""
        path = self.root / name
        before = path.read_text()
        assert before.count(old) == 1, f"{old!r} is {before.count(old)} times in {name}"
        path.write_text(before.replace(old, new))
        try:
            yield
        finally:
            path.write_text(before)

    def files(self) -> set[str]:
        """What was made, as paths below results/demo."""
        folder = self.root / "results" / "demo"
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def jobs(text: str) -> Iterator[Job]:
    """The jobs in the output of a dry run."""
    for block in re.split(r"\n\s*\n|\n(?=\[)", text):
        rule = re.search(r"^(?:local)?rule (\w+):$", block, re.MULTILINE)
        if rule:
            details = dict(re.findall(r"^ {4}(\w+): (.*)$", block, re.MULTILINE))
            wildcards = dict(re.findall(r"(\w+)=([^,\s]+)", details.get("wildcards", "")))
            named = ("name", "record", "clients", "seed", "artefact", "dataset")
            subject = " ".join(wildcards[name] for name in named if name in wildcards)
            yield Job(rule[1], subject, details.get("reason", ""))


def rules(plan: set[Job]) -> set[str]:
    return {job.rule for job in plan}


def subjects(plan: set[Job], rule: str) -> set[str]:
    return {job.subject for job in plan if job.rule == rule}
