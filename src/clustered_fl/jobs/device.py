"""The device of a job, and PyTorch's global settings."""

import os
from collections.abc import Callable
from typing import get_args

import torch

from clustered_fl.errors import InputError
from clustered_fl.ledger.settings import Device
from clustered_fl.models.numerics import NUMERICS
from clustered_fl.records.machine import device_name

__numerics__ = NUMERICS


def prepared(name: str, tell: Callable[[str], None] = lambda line: None) -> torch.device:
    """Choose and report the device (`choose_device`), and make PyTorch deterministic."""
    device = choose_device(name)
    make_deterministic(device)
    tell(f"on {device_name(device)}")
    return device


def choose_device(name: str) -> torch.device:
    """The device "cpu", "cuda" (InputError if absent) or "auto" (CUDA if there is a GPU)."""
    if name not in (allowed := get_args(Device)):
        raise InputError(f"device = {name!r} is not allowed; allowed are {', '.join(allowed)}")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda asked for but no CUDA GPU is visible; use device=cpu or auto")
    cuda = name == "cuda" or (name == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if cuda else "cpu")


def make_deterministic(device: torch.device) -> None:
    """Make PyTorch give the same bits in every run, with one thread per operation."""
    torch.set_num_threads(1)  # clients run in parallel; threads within operations slow each other
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # saves a pass over every buffer
    if device.type == "cuda":  # required for deterministic products, before the first one
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        # TF32 keeps ten bits of a factor, so a GPU would not agree with a CPU to rounding. It is
        # PyTorch's default in convolutions and recurrent layers.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
