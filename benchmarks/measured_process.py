"""The process in which one engine lives while it is measured; `timing` starts it and asks.

    python benchmarks/measured_process.py ENGINE CELL [step]

With `step` the problem is cut to one batch per client. Answers one JSON object per line. The first
comes unasked after the first round. Then

    round        trains once and answers CPU and wall seconds
    save PATH    stores the updates of the last round
    quit         ends the engine and the process
"""

import json
import os
import sys
from typing import TextIO

import numpy as np

from cpu import spent
from peers import Unavailable, build_engine
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

    def __init__(self, name: str, problem: Problem) -> None:
        self.engine = build_engine(name, problem)
        one_thread()
        self.result = self.engine.train()

    def round(self) -> dict[str, float]:
        """Train once."""
        self.result = None  # as a user would drop it; two of them need not fit into memory
        self.result, cpu, wall = spent(self.engine.train)
        return {"cpu_s": cpu, "wall_s": wall}

    def save(self, path: str) -> dict:
        """Store the last round's updates."""
        np.save(path, self.engine.updates(self.result))
        return {}


def main() -> None:
    """Answer until told to quit."""
    questions, answers = private_streams()
    name, cell, *step = sys.argv[1:]
    problem = build_problem(cell)
    if step:
        problem = build_problem(cell, problem.batch_size)
    try:
        session = Session(name, problem)
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
