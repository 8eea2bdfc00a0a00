"""Measures engines side by side, each in a process of its own that lives through all repetitions.

Engines take turns, so that whatever else the machine does disturbs all of them alike, and the
median over the repetitions counts.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

REPETITIONS = 5
# A round takes seconds; an engine that says nothing for so long hangs.
LIMIT_S, SHUTDOWN_S = 300, 20
HERE = Path(__file__).parent
SIDE, PRODUCTS = 1024, 5

# One thread inside every operation, for every library that has threads of its own, no GPU, and no
# reports to the makers of the frameworks.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "NPROC": "1",  # the size of XLA's thread pool
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


class Failed(Exception):  # noqa: N818 - one engine failed, the others go on
    """An engine ended or cannot do the cell; the message says why."""


class Measured:
    """One engine in its process.

    Args:
        engine: key of `peers.ENGINES`.
        cell: see `problem.CELLS`.
        folder: where its output and its updates are put.
        options: "step" cuts the problem to one batch per client.
    Raises:
        Failed: if it does not come to the end of its first round.
    """

    def __init__(self, engine: str, cell: str, folder: Path, *options: str) -> None:
        self.engine, self.folder = engine, folder
        self.log = folder / f"{engine}.log"
        paths = [str(HERE), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | ENVIRONMENT
        started = time.perf_counter()
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "measured_process.py"), engine, cell, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | environment,
                start_new_session=True,  # so that it can be ended with everything it started
            )
        self.version = self._answer().get("version", "")
        self.first_round_s = time.perf_counter() - started

    def ask(self, *command: str) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        try:
            self.process.stdin.write(" ".join(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; what it last said is reported below
        return self._answer()

    def updates(self) -> np.ndarray:
        """The updates [M, P] of its last round."""
        path = self.folder / f"{self.engine}.npy"
        self.ask("save", str(path))
        return np.load(path)

    def close(self) -> None:
        """Let it end what it started; a simulator that hangs in its own shutdown is killed."""
        with suppress(BrokenPipeError, ValueError, subprocess.TimeoutExpired):
            self.process.communicate("quit\n", timeout=SHUTDOWN_S)
        self.kill()

    def kill(self) -> None:
        """End the process and its children at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _answer(self) -> dict[str, Any]:
        limit = threading.Timer(LIMIT_S, self.kill)
        limit.start()
        line = self.process.stdout.readline()
        limit.cancel()
        answer = json.loads(line) if line else {"unavailable": self._last_words()}
        if "unavailable" in answer:
            self.process.wait()
            raise Failed(answer["unavailable"])
        return answer

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


@dataclass
class Times:
    """What was measured of one engine, one entry per repetition."""

    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)

    def medians(self) -> dict[str, float]:
        """The median of each."""
        return {name: statistics.median(values) for name, values in vars(self).items()}


@dataclass
class Turns:
    """Engines of one cell taking turns.

    Attributes:
        engines: those that are still running.
        failed: why each of the others is not.
        matmul_gflops: the best rate of a matrix product between the repetitions.
    """

    engines: dict[str, Measured] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    times: dict[str, Times] = field(default_factory=dict)
    matmul_gflops: float = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for measured in self.engines.values():
            measured.close()

    def start(self, engine: str, cell: str, folder: Path) -> None:
        """Start one engine and wait for its first round."""
        try:
            self.engines[engine] = Measured(engine, cell, folder)
            self.times[engine] = Times()
        except Failed as reason:
            self.failed[engine] = str(reason)

    def repeat(self) -> None:
        """One warm-up, then the repetitions."""
        for repetition in range(1 + REPETITIONS):
            self.matmul_gflops = max(self.matmul_gflops, matmul_gflops())
            for engine in list(self.engines):
                self._turn(engine, counts=repetition > 0)

    def _turn(self, engine: str, counts: bool) -> None:
        try:
            answer = self.engines[engine].ask("round")
        except Failed as reason:
            self.failed[engine] = str(reason)
            del self.engines[engine]
            return
        if counts:
            times = self.times[engine]
            times.cpu_s.append(answer["cpu_s"])
            times.wall_s.append(answer["wall_s"])
            times.load.append(os.getloadavg()[0])


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
