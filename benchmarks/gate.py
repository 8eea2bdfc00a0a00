"""Do the engines compute the same thing? No time is worth reading unless they do.

One step is compared, client by client, with a computation in double precision. After many steps
single clients may differ between two correct programs: where two entries of a pooling window or a
unit's input are equal to rounding, the gradient takes another way, and SGD amplifies it. Therefore
clients with such a tie are not judged by their step, and whole rounds are judged by the median
client, and by the mean test accuracy where there is one.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from problem import Problem

TOLERANCE = 1e-5
ACCURACY_TOLERANCE = 1e-3
"""Of the mean accuracy: four of the 4,000 answers in a round may flip."""
TIE = 1e-6
"""A decision is a tie if it depends on less than this, relative to the layer's scale."""


@dataclass(frozen=True)
class Verdict:
    """What the gate found.

    Attributes:
        equal: whether the engine may be compared.
        error: the larger of the two relative errors.
    """

    equal: bool
    error: float


@dataclass(frozen=True)
class Outcome:
    """What a round of an engine came to.

    Attributes:
        updates: float32 [M, P].
        accuracy: mean over the clients, NaN if nothing was tested.
    """

    updates: np.ndarray
    accuracy: float


@dataclass(frozen=True)
class Literal:
    """The step as the formula says it.

    Attributes:
        updates: float64 [M, P].
        decided: bool [M], whether the client has no tie.
    """

    updates: np.ndarray
    decided: np.ndarray


def verdict(step: np.ndarray, literal: Literal, whole: Outcome, plain: Outcome) -> Verdict:
    """Judge an engine.

    Args:
        step: its updates [M, P] after one step.
        literal: what they should be.
        whole: its round.
        plain: that of the plain loop.
    """
    one = relative(step, literal.updates)[literal.decided].max()
    error = max(float(one), float(np.median(relative(whole.updates, plain.updates))))
    answers = np.array([whole.accuracy, plain.accuracy])
    alike = np.isclose(*answers, rtol=0, atol=ACCURACY_TOLERANCE, equal_nan=True)
    return Verdict(bool(error <= TOLERANCE and alike), error)  # False for an error that is NaN


def relative(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """L2 norm of each client's difference in units of that of `wanted` [M]."""
    # Row by row: 20 clients of the largest network in double precision are a gigabyte.
    rows = ((a, b.astype(np.float64)) for a, b in zip(found, wanted, strict=True))
    return np.array([np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in rows])


def literal_step(problem: Problem) -> Literal:
    """One step of every client in double precision; the problem has one batch per client.

    Raises:
        RuntimeError: if nearly every client has a tie, because then nothing would be judged.
    """
    found = [_client(problem, client) for client in range(problem.clients)]
    updates, margins = zip(*found, strict=True)
    decided = np.array(margins) > TIE
    if not decided.any():
        raise RuntimeError(f"{problem.cell}: every client has a tie, choose another seed")
    return Literal(np.stack(updates), decided)


def _client(problem: Problem, client: int) -> tuple[np.ndarray, float]:
    """Update [P] of one client after one step, and its smallest margin."""
    parameters = torch.from_numpy(problem.start).double().requires_grad_()
    rows = problem.order(client)[: problem.batch_size]
    images = torch.from_numpy(problem.inputs[client, rows]).double()
    scores, margin = _forward(problem, parameters, images)
    log_likelihood = torch.log_softmax(scores, 1)
    labels = torch.from_numpy(problem.labels[client, rows])
    loss = -log_likelihood[torch.arange(len(labels)), labels].mean()
    (gradient,) = torch.autograd.grad(loss, parameters)
    return (-problem.lr * gradient).numpy(), margin


def _forward(problem: Problem, parameters: Tensor, images: Tensor) -> tuple[Tensor, float]:
    """Scores of the network, and the smallest margin of a maximum or of a unit's sign."""
    architecture, start = problem.architecture, 0
    convolutions, margins = len(architecture.filters), []
    layers = list(architecture.shapes())
    features = images
    for layer, (weight, bias) in enumerate(layers):
        size = int(np.prod(weight))
        w = parameters[start : start + size].view(weight)
        b = parameters[start + size : start + size + bias[0]]
        start += size + bias[0]
        if layer < convolutions:
            z = functional.conv2d(features, w, b, padding=architecture.padding)
            features = functional.max_pool2d(torch.relu(z), 2)
            margins.append(_pool_margin(z.detach()))
        else:
            z = features.flatten(1) @ w.t() + b
            features = torch.relu(z)
            margins.append(float(z.detach().abs().min() / z.detach().std()))
    return z, min(margins[:-1])  # the scores themselves decide nothing


def _pool_margin(z: Tensor) -> float:
    """Smallest distance between the two largest of 0 and a window's four entries, relative."""
    windows = z.unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
    best = torch.cat([windows, torch.zeros_like(windows[..., :1])], -1).topk(2).values
    return float((best[..., 0] - best[..., 1]).min() / z.std())
