"""Continuous integration elsewhere runs what a reader runs, with no more rights than it needs."""

import re
from itertools import chain
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"^actions/[a-z-]+@[0-9a-f]{40}$")
RIGHTS = {"tests": {"contents": "read"}, "pages": {"contents": "read"}}
RIGHTS["pages"] |= {"pages": "write", "id-token": "write"}


def jobs(workflow: dict) -> list[dict]:
    return list(workflow["jobs"].values())


def steps(workflow: dict) -> list[dict]:
    return list(chain.from_iterable(job["steps"] for job in jobs(workflow)))


def commands(workflow: dict) -> list[str]:
    """Every line that a shell runs, with all values of a matrix."""
    lines = chain.from_iterable(step.get("run", "").splitlines() for step in steps(workflow))
    targets = [
        job.get("strategy", {}).get("matrix", {}).get("target", []) for job in jobs(workflow)
    ]
    named = "${{ matrix.target }}"
    return [
        line.replace(named, target)
        for line in lines
        for target in (chain.from_iterable(targets) if named in line else [""])
    ]


def complaints(name: str, text: str) -> list[str]:
    """What is wrong with a workflow of GitHub, in words."""
    workflow = yaml.safe_load(text)
    told = " ".join(
        (ROOT / path).read_text() for path in ("README.md", "CONTRIBUTING.md", ".ci/run")
    )
    found = [f"not told to readers: {each}" for each in commands(workflow) if each not in told]
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    found += [f"not pinned: {each}" for each in used if not PINNED.match(each)]
    for job in jobs(workflow):
        if job.get("permissions", workflow.get("permissions")) != RIGHTS[name]:
            found.append("other permissions than it needs")
        if "timeout-minutes" not in job:
            found.append("no time limit")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_runs_what_readers_run(path):
    assert complaints(path.stem, path.read_text()) == []


def test_all_of_it_is_known():
    assert {path.stem for path in FILES} == RIGHTS.keys()


def test_the_site_is_there():
    (path,) = (
        step["with"]["path"] for step in steps(read("pages")) if "path" in step.get("with", {})
    )
    assert (ROOT / path / "index.html").exists()


def read(name: str) -> dict:
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("cores all cfl_fig9", "cores all cfl_fig99", "not told to readers: snakemake"),
        ("[test, lint]", "[test, paint]", "not told to readers: make paint"),
        ("@11bd71901bbe5b1630ceea73d27597364c9af683", "@v4", "not pinned: actions/checkout@v4"),
        ("contents: read", "contents: write", "other permissions than it needs"),
        ("    timeout-minutes: 60\n", "", "no time limit"),
    ],
)
def test_a_slip_is_noticed(old, new, expected):
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert old in text
    assert any(expected in each for each in complaints("tests", text.replace(old, new)))
