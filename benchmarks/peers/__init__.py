"""Engines that are compared, by name; each is imported only by the process that measures it."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from problem import Problem

# Name -> module and class. Text, because importing all of them takes longer than many cells.
ENGINES = {
    "ours": ("peers.ours", "Ours"),
    "plain-loop": ("peers.plain_loop", "PlainLoop"),
    "pil-loop": ("peers.pil_loop", "PilLoop"),
    "flower": ("peers.flower", "Flower"),
    "pfl-research": ("peers.pfl_research", "PflResearch"),
    "fedlab": ("peers.fedlab_peer", "FedLab"),
    "fedjax": ("peers.fedjax_peer", "FedJax"),
}


# The others are compared in training only, so no adapter of theirs tests anything.
EVALUATING = ("ours", "plain-loop", "pil-loop")


class Unavailable(Exception):  # noqa: N818 - no error: the engine does not claim to do this
    """The engine cannot do this problem; the message says what is missing."""


class Engine:
    """One engine with one problem.

    The constructor loads data and model: what happens once per experiment and is not timed.

    Attributes:
        name: key of `ENGINES`.
        version: of the package that is measured.
        accuracies: of every client's updated model on the test images, if the problem has any;
            `train` fills it.
    """

    name: str
    version: str
    accuracies: Sequence[float] = ()

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def train(self) -> Any:
        """Train every client from the start parameters, and test: what is timed."""
        raise NotImplementedError

    def updates(self, result: Any) -> np.ndarray:
        """What `train` returned, as float32 [M, P] in PyTorch's order of parameters; not timed."""
        return result

    def close(self) -> None:
        """End what the engine started; most start nothing."""


def build_engine(name: str, problem: Problem, **options: Any) -> Engine:
    """The engine `name` with `problem` loaded.

    Args:
        options: what this engine's constructor takes besides.
    Raises:
        Unavailable: if the engine has no such model, or does not test.
    """
    if len(problem.test_labels) and name not in EVALUATING:
        raise Unavailable("does not evaluate here")
    module, attribute = ENGINES[name]
    return getattr(import_module(module), attribute)(problem, **options)
