"""Measures engines side by side, each in a process of its own that lives through all repetitions.

Engines take turns, so that whatever else the machine does disturbs all of them alike, and the
median over the repetitions counts.
"""

import os
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

import torch

from environment import HERE
from measured import Failed, Measured

REPETITIONS = 5
SIDE, PRODUCTS = 1024, 5

Key = Hashable
Numbers = dict[str, float]


@dataclass
class Repetitions:
    """What was measured.

    Attributes:
        values: answers of each function, one per repetition, with the load right after it.
        failed: why the others have none.
        matmul_gflops: the best rate of a matrix product between the repetitions.
    """

    values: dict[Key, list[Numbers]] = field(default_factory=dict)
    failed: dict[Key, str] = field(default_factory=dict)
    matmul_gflops: float = 0.0

    def medians(self, key: Key) -> Numbers:
        """The median of each number of one function; a reason under "note" if it failed."""
        if key in self.failed:
            return {"note": self.failed[key]}
        answers = self.values[key]
        return {name: statistics.median(a[name] for a in answers) for name in answers[0]}

    def each(self, key: Key, name: str) -> list[float]:
        """One number of one function in every repetition."""
        return [answer[name] for answer in self.values[key]]


def interleaved(functions: Mapping[Key, Callable[[], Numbers]]) -> Repetitions:
    """One warm-up, then the repetitions, in each of which all functions have their turn."""
    found = Repetitions({key: [] for key in functions})
    for repetition in range(1 + REPETITIONS):
        found.matmul_gflops = max(found.matmul_gflops, matmul_gflops())
        for key in [key for key in functions if key not in found.failed]:
            try:
                answer = functions[key]()
            except Failed as reason:
                found.failed[key] = str(reason)
                continue
            if repetition:
                found.values[key].append(answer | {"load": os.getloadavg()[0]})
    return found


@dataclass
class Turns:
    """Engines taking turns, each under a key of its own.

    Attributes:
        engines: those that came to the end of their first round.
        failed: why each of the others did not, or did not go on.
        found: after `repeat`, what was measured.
    """

    engines: dict[Key, Measured] = field(default_factory=dict)
    failed: dict[Key, str] = field(default_factory=dict)
    found: Repetitions = field(default_factory=Repetitions)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for measured in self.engines.values():
            measured.close()

    def start(self, key: Key, engine: str, cell: str, folder: Path, **options: Any) -> None:
        """Start one engine and wait for its first round; the arguments are those of `Measured`."""
        try:
            self.engines[key] = Measured(engine, cell, folder, **options)
        except Failed as reason:
            self.failed[key] = str(reason)

    def repeat(self) -> None:
        """Let each train, again and again."""
        self.found = interleaved({key: partial(m.ask, "round") for key, m in self.engines.items()})
        self.failed |= self.found.failed

    def ended(self, key: Key) -> Measured:
        """The engine that did all its turns.

        Raises:
            Failed: if there is none, saying why.
        """
        if key in self.failed:
            raise Failed(self.failed[key])
        return self.engines[key]


def matmul_gflops() -> float:
    """GFLOP per CPU second of a product of two 1024 x 1024 float32 matrices on one thread."""
    torch.set_num_threads(1)
    a, b = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    out, best = torch.mm(a, b), 0.0
    for _ in range(PRODUCTS):
        started = time.process_time()
        torch.mm(a, b, out=out)
        best = max(best, 2e-9 * SIDE**3 / (time.process_time() - started))
    return best


def machine() -> str:
    """Processor with its family and model, its widest vectors, and the number of cores."""
    found = dict(re.findall(r"^(.*?)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
    name, flags = found.get("model name", platform.machine()), found.get("flags", "").split()
    number = f"family {found['cpu family']} model {found['model']}" if "model" in found else ""
    widest = next((each for each in ("avx512f", "avx2") if each in flags), "")
    return ", ".join(filter(None, [name, number, widest, f"{os.cpu_count()} cores"]))


@cache
def origin() -> dict[str, str]:
    """What a row was measured with: machine, the last commit that changed the code, and date.

    Taken once, before results change files. A "+" after the commit marks changes since.
    """
    code = ("src", "benchmarks/*.py", "benchmarks/peers")
    commit = _git("log", "-1", "--format=%h", "--", *code)
    changed = _git("status", "--short", "--", *code)
    about = {"machine": machine(), "date": f"{date.today():%Y-%m-%d}"}
    return about | {"commit": f"{commit}{'+' if changed else ''}"}


def _git(*command: str) -> str:
    """What Git says, "" outside a repository."""
    ran = subprocess.run(
        ["git", "-C", HERE.parent, *command], capture_output=True, text=True, check=False
    )
    return ran.stdout.strip()
