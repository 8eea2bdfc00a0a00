"""pyproject.toml, the lock, conda's environments and the container describe one environment."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import pytest
import yaml

JOBS = "workflow/envs/clustered_fl.yml"
FILES = ("pyproject.toml", "requirements.txt", "environment.yml", JOBS, "Dockerfile", "Makefile")
INSTALL = re.compile(r"python -m (pip install .*)")
PIN = re.compile(r"^([\w.-]+)==([\w.+]+)(?=\s|$)")
ADDRESS = re.compile(r"://|--?(extra-)?index|--find-links|--trusted-host|^\s*-[if]\s", re.MULTILINE)


@pytest.fixture
def texts(repository):
    return {name: (repository / name).read_text() for name in FILES}


def pins(lines) -> dict[str, str]:
    """Name -> version of those lines that pin exactly, markers and hashes left aside."""
    matches = (PIN.match(line) for line in lines)
    return {match[1].lower(): match[2] for match in matches if match}


def asked(pyproject: str, *extras: str) -> list[str]:
    """The requirements that pyproject.toml states, with those of some extras."""
    table = tomllib.loads(pyproject)
    project = table["project"]
    chosen = chain.from_iterable(project["optional-dependencies"][extra] for extra in extras)
    return [*table["build-system"]["requires"], *project["dependencies"], *chosen]


def installed_by_pip(environment: str) -> list[str]:
    """What a conda environment leaves to pip."""
    parts = yaml.safe_load(environment)["dependencies"]
    return list(chain.from_iterable(part["pip"] for part in parts if isinstance(part, dict)))


def complaints(texts: dict[str, str]) -> list[str]:
    """What is wrong with the three files, in words."""
    everything = asked(texts["pyproject.toml"], "test", "authoring")
    loose = [line for line in everything if not PIN.fullmatch(line)]
    locked = pins(texts["requirements.txt"].splitlines())
    run = pins(asked(texts["pyproject.toml"], "test"))
    jobs = pins(installed_by_pip(texts[JOBS]))
    found = [f"not pinned exactly: {line}" for line in loose]
    found += [f"requirements.txt lacks {pin}" for pin in sorted(run.items() - locked.items())]
    needed = pins(tomllib.loads(texts["pyproject.toml"])["project"]["dependencies"])
    differing = sorted(needed.items() ^ jobs.items())
    found += [f"pyproject.toml and {JOBS} differ in {pin}" for pin in differing]
    if installed_by_pip(texts["environment.yml"]) != ["-e .[test,authoring]"]:
        found.append("environment.yml does not install the package with its extras")
    return found + without_hash(texts["requirements.txt"]) + addresses(texts) + images(texts)


def images(texts: dict[str, str]) -> list[str]:
    """What is wrong with the container: its Python, or what differs from `make`."""
    found = re.search(r"^FROM python:3\.(\d+)\.\d+-slim-\w+$", texts["Dockerfile"], re.MULTILINE)
    python = tomllib.loads(texts["pyproject.toml"])["project"]["requires-python"]
    least = int(python.removeprefix(">=3."))
    wrong = [] if found and int(found[1]) >= least else ["Dockerfile: the Python is not pinned"]
    here, make = (INSTALL.findall(texts[name]) for name in ("Dockerfile", "Makefile"))
    ours = [command for command in make if "benchmarks" not in command]
    return wrong + ([] if here == ours else ["Dockerfile and Makefile install differently"])


def without_hash(requirements: str) -> list[str]:
    logical = requirements.replace("\\\n", "").splitlines()
    bare = [line.split()[0] for line in logical if PIN.match(line) and "--hash=" not in line]
    return [f"no hash: {name}" for name in bare]


def addresses(texts: dict[str, str]) -> list[str]:
    """Addresses of package indexes: they name one machine's network, and hashes make them idle."""
    named = [(name, ADDRESS.search(text)) for name, text in texts.items() if name != "Makefile"]
    return [f"{name} holds an address: {match[0].strip()}" for name, match in named if match]


def test_the_files_agree(texts):
    assert complaints(texts) == []


@pytest.mark.parametrize(
    ("name", "pattern", "replacement", "expected"),
    [
        (JOBS, r"- torch==[\d.]+", "- torch==1.0", "differ in ('torch', '1.0')"),
        (JOBS, r" +- ipykernel==[\d.]+\n", "", "differ in ('ipykernel'"),
        ("environment.yml", r"conda-forge", "https://conda.example/forge", "holds an address"),
        ("environment.yml", r",authoring", "", "does not install the package with its extras"),
        ("Dockerfile", r"FROM .*", "FROM python:3.11-slim-bookworm", "the Python is not pinned"),
        ("Dockerfile", r"FROM .*", "FROM python:3.10.1-slim-bookworm", "the Python is not pinned"),
        ("Dockerfile", r" --require-hashes", "", "Dockerfile and Makefile install differently"),
        ("requirements.txt", r"(?m)^numpy==\S+", "numpy==1.0", "lacks ('numpy'"),
        ("requirements.txt", r"(?m)^setuptools==\S+", "", "lacks ('setuptools'"),
        ("requirements.txt", r"(?m)^torch==[\s\S]*?(?=^\S)", "torch==2.13.0\n", "no hash: torch"),
        ("requirements.txt", r"\A", "--index-url somewhere\n", "holds an address"),
        ("requirements.txt", r"\A", "-i somewhere\n", "holds an address"),
        ("pyproject.toml", r"scipy==[\d.]+", "scipy>=1", "not pinned exactly: scipy>=1"),
    ],
)
def test_a_slip_is_noticed(texts, name, pattern, replacement, expected):
    changed, count = re.subn(pattern, replacement, texts[name], count=1)
    assert count == 1
    assert any(expected in complaint for complaint in complaints({**texts, name: changed}))


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """The lines of a Dockerfile: instruction and arguments."""
    lines = (line.partition(" ") for line in dockerfile.splitlines() if line[:1].isupper())
    return [(name, rest) for name, _, rest in lines]


@pytest.mark.skipif(
    "BUILD_CONTAINER" not in os.environ,
    reason="downloads gigabytes; by hand: BUILD_CONTAINER=1 pytest tests/test_environment.py",
)
def test_the_container_can_be_built_and_runs(texts, repository, tmp_path):
    """What its Dockerfile says, in a folder and an environment of its own in place of an image."""
    place = tmp_path / "image"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "python"], check=True)
    paths = os.pathsep.join((str(tmp_path / "python" / "bin"), os.environ["PATH"]))
    about = {"cwd": place, "env": os.environ | {"PATH": paths}, "check": True}
    about["env"].pop("PYTHONPATH", None)
    place.mkdir()
    for name, rest in instructions(texts["Dockerfile"]):
        if name == "COPY" and rest == "requirements.txt ./":
            shutil.copy(repository / "requirements.txt", place)
        elif name == "COPY":
            copy_context(repository, place)
        elif name == "RUN":
            subprocess.run(rest, shell=True, **about)
    subprocess.run(["snakemake", "--cores", "1", "cfl_fig1"], **about)
    assert (place / "results/demo/artefacts/cfl_fig1/cfl_fig1.png").exists()


def copy_context(repository: Path, place: Path) -> None:
    """What .dockerignore lets into the image."""
    kept = (repository / ".dockerignore").read_text().splitlines()
    for name in (line[1:] for line in kept if line.startswith("!")):
        copy = shutil.copytree if name.endswith("/") else shutil.copy
        copy(repository / name, place / name)


def test_this_environment_is_the_pinned_one(texts):
    """A result from other versions would be a result of something else."""
    run = pins(asked(texts["pyproject.toml"], "test"))
    # A local build tag (torch 2.13.0+cu130) is the same release.
    assert {name: version(name).split("+")[0] for name in run} == run
