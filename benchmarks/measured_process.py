"""The process in which one engine lives while it is measured; `timing` starts it and asks.

    python benchmarks/measured_process.py ENGINE CELL '{"step": true}'

Answers one JSON object per line. The first comes unasked after the first round. Then

    round             trains once, with few clients twice; CPU and wall seconds of the last
    once              trains once, with any number of clients; CPU and wall seconds
    save PATH         trains once more and stores the updates; mean test accuracy
    begin [bare]      a run of FedAvg from a random model (our engine only); bare: it keeps nothing
    carry N [PATH]    N rounds of that run, with a checkpoint after each if there is a path
    memory            resident memory now and at its highest, in MB
    quit              ends the engine and the process
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from cpu import spent
from peers import Unavailable, build_engine
from problem import Problem, build_problem, single_step

FEW = 20
"""Up to so many clients a round is short."""


def private_streams() -> tuple[TextIO, TextIO]:
    """Questions and answers, out of reach of what the frameworks read and print."""
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return questions, answers


def one_thread() -> None:
    """PyTorch's own thread setting, where PyTorch was imported; the rest is set by `timing`."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def resident(field: str) -> float:
    """A line of /proc/self/status in MB; getrusage's maximum would begin with the parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return kib * 1024 / 1e6


class Session:
    """One engine, and the answers it can give.

    Args:
        name: key of `peers.ENGINES`.
        problem: what it shall do.
        default_threads: leave the number of threads to the libraries.
        idle: leave out the first round, which holds the updates of all clients at once.
        options: of the engine's adapter.
    """

    def __init__(
        self,
        name: str,
        problem: Problem,
        default_threads: bool = False,
        idle: bool = False,
        **options: Any,
    ) -> None:
        self.clients = problem.clients
        self.engine = build_engine(name, problem, **options)
        if not default_threads:
            one_thread()
        self.first = {"version": self.engine.version, "loaded_mb": resident("VmRSS")}
        if not idle:
            self.engine.train()

    def round(self) -> dict[str, float]:
        """Train once and drop the updates: engines that wait for their turn hold none.

        After a wait the first round is slower, because caches are cold and the system may have
        taken idle memory away; in use, round follows round. Long rounds do not notice.
        """
        if self.clients <= FEW:
            self.engine.train()
        return self.once()

    def once(self) -> dict[str, float]:
        """Train once and drop the updates, so that jobs are timed over this round alone."""
        _, cpu, wall = spent(self.engine.train)
        return {"cpu_s": cpu, "wall_s": wall}

    def save(self, path: str) -> dict[str, float]:
        """Train once more and store the updates."""
        np.save(path, self.engine.updates(self.engine.train()))
        accuracies = self.engine.accuracies
        return {"accuracy": float(np.mean(accuracies)) if len(accuracies) else float("nan")}

    def begin(self, keeping: str = "") -> dict:
        """Begin a run of FedAvg."""
        from averaging import Averaging  # the other engines have no use for these imports

        self.run = Averaging(self.engine.engine, keep=keeping != "bare")
        return {}

    def carry(self, rounds: str, saved: str = "") -> dict[str, float]:
        """Carry that run on."""
        path = Path(saved) if saved else None
        _, cpu, wall = spent(lambda: self.run.carry(int(rounds), path))
        return {"cpu_s": cpu, "wall_s": wall}

    def memory(self) -> dict[str, float]:
        """Resident memory."""
        return {"resident_mb": resident("VmRSS"), "peak_mb": resident("VmHWM")}


def _problem(cell: str, step: bool = False, **changes: Any) -> Problem:
    return single_step(cell) if step else build_problem(cell, **changes)


def main() -> None:
    """Answer until told to quit."""
    questions, answers = private_streams()
    name, cell, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    given = {key: options.pop(key) for key in ("step", "samples", "lr") if key in options}
    try:
        session = Session(name, _problem(cell, **given), **options)
    except Unavailable as reason:
        print(json.dumps({"unavailable": str(reason)}), file=answers)
        return
    print(json.dumps(session.first), file=answers)
    for line in questions:
        command, *arguments = line.split()
        if command == "quit":
            break
        print(json.dumps(getattr(session, command)(*arguments)), file=answers)
    session.engine.close()


if __name__ == "__main__":
    main()
