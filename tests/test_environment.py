"""pyproject.toml, requirements.txt and environment.yml describe one environment."""

import re
import tomllib
from importlib.metadata import version
from itertools import chain

import pytest
import yaml

FILES = ("pyproject.toml", "requirements.txt", "environment.yml")
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


def in_environment(environment: str) -> dict[str, str]:
    parts = yaml.safe_load(environment)["dependencies"]
    return pins(chain.from_iterable(part["pip"] for part in parts if isinstance(part, dict)))


def complaints(texts: dict[str, str]) -> list[str]:
    """What is wrong with the three files, in words."""
    everything = asked(texts["pyproject.toml"], "test", "authoring")
    loose = [line for line in everything if not PIN.fullmatch(line)]
    locked = pins(texts["requirements.txt"].splitlines())
    run = pins(asked(texts["pyproject.toml"], "test"))
    conda = in_environment(texts["environment.yml"])
    found = [f"not pinned exactly: {line}" for line in loose]
    found += [f"requirements.txt lacks {pin}" for pin in sorted(run.items() - locked.items())]
    differing = sorted(pins(everything).items() ^ conda.items())
    found += [f"pyproject.toml and environment.yml differ in {pin}" for pin in differing]
    return found + without_hash(texts["requirements.txt"]) + addresses(texts)


def without_hash(requirements: str) -> list[str]:
    logical = requirements.replace("\\\n", "").splitlines()
    bare = [line.split()[0] for line in logical if PIN.match(line) and "--hash=" not in line]
    return [f"no hash: {name}" for name in bare]


def addresses(texts: dict[str, str]) -> list[str]:
    """Addresses of package indexes: they name one machine's network, and hashes make them idle."""
    named = [(name, ADDRESS.search(text)) for name, text in texts.items()]
    return [f"{name} holds an address: {match[0].strip()}" for name, match in named if match]


def test_the_three_files_agree(texts):
    assert complaints(texts) == []


@pytest.mark.parametrize(
    ("name", "pattern", "replacement", "expected"),
    [
        ("environment.yml", r"- torch==[\d.]+", "- torch==1.0", "differ in ('torch', '1.0')"),
        ("environment.yml", r" +- jupyter==[\d.]+\n", "", "differ in ('jupyter'"),
        ("environment.yml", r"conda-forge", "https://conda.example/forge", "holds an address"),
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


def test_this_environment_is_the_pinned_one(texts):
    """A result from other versions would be a result of something else."""
    run = pins(asked(texts["pyproject.toml"], "test"))
    # A local build tag (torch 2.13.0+cu130) is the same release.
    assert {name: version(name).split("+")[0] for name in run} == run
