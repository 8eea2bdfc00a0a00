"""The process in which one engine lives while it is measured; `timing` starts it and asks.

    python benchmarks/measured_process.py ENGINE CELL

Answers one JSON object per line. The first comes unasked after the first round. Then

    round        trains once and answers CPU and wall seconds
    save PATH    stores the updates of the last round
    step PATH    stores the updates of one step of every client, in a smaller problem
    quit         ends the engine and the process
"""

import json
import os
import sys
from typing import Any, TextIO

import numpy as np

from cpu import spent
from peers import Engine, Unavailable, build_engine
from problem import Problem, build_problem


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


class Session:
    """One engine, and the answers it can give."""

    def __init__(self, name: str, cell: str) -> None:
        self.name, self.cell = name, cell
        self.engine, self.result = self._first(build_problem(cell))

    def _first(self, problem: Problem) -> tuple[Engine, Any]:
        engine = build_engine(self.name, problem)
        one_thread()
        return engine, engine.train()

    def round(self) -> dict[str, float]:
        """Train once."""
        self.result = None  # as a user would drop it; two of them need not fit into memory
        self.result, cpu, wall = spent(self.engine.train)
        return {"cpu_s": cpu, "wall_s": wall}

    def save(self, path: str) -> dict:
        """Store the last round's updates."""
        np.save(path, self.engine.updates(self.result))
        return {}

    def step(self, path: str) -> dict:
        """Replace the problem by one of a single batch per client, and store its updates."""
        batch_size = self.engine.problem.batch_size
        self.engine.close()
        self.engine, self.result = self._first(build_problem(self.cell, batch_size))
        return self.save(path)


def main() -> None:
    """Answer until told to quit."""
    questions, answers = private_streams()
    try:
        session = Session(*sys.argv[1:])
    except Unavailable as reason:
        print(json.dumps({"unavailable": str(reason)}), file=answers)
        return
    print(json.dumps({"version": session.engine.version}), file=answers)
    for line in questions:
        command, *arguments = line.split()
        if command == "quit":
            break
        print(json.dumps(getattr(session, command)(*arguments)), file=answers)
    session.engine.close()


if __name__ == "__main__":
    main()
