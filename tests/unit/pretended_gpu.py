"""A GPU that computes nothing: its tensors have a device and a shape, but no numbers.

PyTorch's fake tensors refuse operations across devices, as a GPU does. Numbers that the CPU reads
come from here. Every read for which the CPU would wait is counted, and, from when a test asks for
it, every such copy to the GPU. What is tested is the route of tensors through a GPU: not their
values, the speed, or the capture of graphs.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from clustered_fl.engine import stacked, stacked_layers, workers

_setup_privateuseone_for_python_backend("gpu")
GPU = torch.device("gpu")
SCALARS = {"item": 1.0, "__bool__": False, "__int__": 1, "__float__": 1.0, "__index__": 1}
"""Reads of one number, and what they get."""
NUMPY = {torch.float32: "float32", torch.float64: "float64", torch.int64: "int64"}
NUMPY |= {torch.uint8: "uint8", torch.bool: "bool"}


@contextmanager
def pretended(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Tensors of the device `GPU`; yields the places where the CPU waits for it."""
    waits: list[str] = []
    monkeypatch.setattr(fake_tensor, "CONSTANT_NUMEL_LIMIT", 0)  # single numbers are fake too
    monkeypatch.setattr(nn.Module, "to", _to)
    monkeypatch.setattr(nn.Module, "cpu", lambda module: module.to("cpu"))
    monkeypatch.setattr(torch, "tensor", _tensor)
    for name, value in SCALARS.items():
        monkeypatch.setattr(FakeTensor, name, _read(name, value, waits), raising=False)
    monkeypatch.setattr(FakeTensor, "numpy", _numpy, raising=False)
    monkeypatch.setattr(FakeTensor, "tolist", lambda given: _numpy(given.cpu()).tolist())
    for name in ("__getitem__", "__setitem__"):
        monkeypatch.setattr(FakeTensor, name, _indexed(name), raising=False)
    _as_on_cuda(monkeypatch)
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield waits


def waiting_copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The places of copies to `GPU` for which the CPU waits, from now on; also those of indices."""
    places: list[str] = []
    move, read = Tensor.to, FakeTensor.__getitem__

    def copied(tensor: object) -> None:
        if isinstance(tensor, Tensor) and tensor.device.type == "cpu":
            places.append(_place(3))

    def to(tensor: Tensor, *given: object, **named: object) -> Tensor:
        device, _, at_once, _ = torch._C._nn._parse_to(*given, **named)
        if device and device.type == GPU.type and not at_once:
            copied(tensor)
        return move(tensor, *given, **named)

    def indexed(tensor: Tensor, index: object) -> Tensor:
        if tensor.device.type == GPU.type:
            copied(index)
        return read(tensor, index)

    monkeypatch.setattr(Tensor, "to", to)
    monkeypatch.setattr(FakeTensor, "__getitem__", indexed)
    return places


def _place(above: int) -> str:
    """File and line of a caller, so many calls up."""
    frame = traceback.extract_stack()[-1 - above]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _as_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the engine decides by the name of the device; threads would leave the fake mode."""
    monkeypatch.setattr(stacked_layers, "UNFOLDED", (GPU.type,))
    monkeypatch.setitem(stacked.FEWEST, GPU.type, stacked.FEWEST["cuda"])
    monkeypatch.setattr(stacked, "stack_bytes", lambda device: 2**30)
    monkeypatch.setattr(
        workers.Workers,
        "map",
        lambda self, function, *given: [function(*each) for each in zip(*given, strict=True)],
    )


def _to(module: nn.Module, *given: object, **named: object) -> nn.Module:
    """`Module.to` without exchanging a parameter's content, which fake tensors do not allow."""
    device = torch._C._nn._parse_to(*given, **named)[0]
    for each in module.modules() if device else ():
        for name, old in list(each.named_parameters(recurse=False)):
            setattr(each, name, nn.Parameter(old.detach().to(device), old.requires_grad))
        for name, old in list(each.named_buffers(recurse=False)):
            each.register_buffer(name, old.to(device))
    return module


def _tensor(
    data: object, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Tensor:
    made = torch.from_numpy(np.array(data))
    return made.to(device or "cpu", dtype or made.dtype)


def _read(name: str, value: object, waits: list[str]):
    real = getattr(Tensor, name)

    def read(tensor: Tensor):
        if tensor.device.type == GPU.type:
            waits.append(_place(2))
        return value if isinstance(tensor, FakeTensor) else real(tensor)

    return read


def _numpy(tensor: Tensor) -> np.ndarray:
    """Any numbers for a tensor on the CPU; TypeError for others, as of PyTorch's own."""
    if tensor.device.type != "cpu" or tensor.requires_grad:
        raise TypeError(f"{tensor} cannot be read as an array")
    kind, shape = np.dtype(NUMPY[tensor.dtype]), tuple(tensor.shape)
    drawn = np.random.default_rng(0).standard_normal(shape)
    return drawn.astype(kind) if kind.kind == "f" else np.zeros(shape, kind)


def _indexed(name: str):
    """Lists and arrays as indices become tensors on the CPU, which a GPU allows."""
    real = getattr(Tensor, name)

    def known(index: object) -> object:
        if isinstance(index, tuple):
            return tuple(map(known, index))
        listed = isinstance(index, list | np.ndarray)
        return torch.from_numpy(np.array(index)) if listed else index

    return lambda tensor, index, *value: real(tensor, known(index), *value)
