"""What a one-shot method may look at: the images of each client, without labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clustered_fl.data.dataset import Dataset
from clustered_fl.data.federation import Federation
from clustered_fl.engine.resumable import Resumable
from clustered_fl.errors import InputError
from clustered_fl.records.relatedness import Relatedness

Found = tuple[Relatedness, list[dict[str, Any]]]
"""What a one-shot method returns: the relatedness, and rows of the table of comparisons."""


@dataclass(frozen=True)
class Clients:
    """The clients' images, and the true groups for scoring only.

    Attributes:
        x: uint8 [N, C, H, W], all images, on the device of the network, if there is one.
        rows: of each client, newcomers last.
        number: M, clients that are there from the start.
        groups: [M] true groups.
        replaced: clients that some newcomer was before its data changed.
        done: what was finished before an interruption, in a job that keeps it.
    """

    x: Tensor
    rows: tuple[np.ndarray, ...]
    number: int
    groups: np.ndarray
    replaced: np.ndarray
    done: Resumable | None = None

    def images(self, rows: np.ndarray) -> Tensor:
        """Images float32 [n, C, H, W] in 0..1."""
        return self.x[torch.from_numpy(rows)].float() / 255


def clients_of(
    dataset: Dataset,
    federation: Federation,
    device: torch.device | str = "cpu",
    done: Resumable | None = None,
) -> Clients:
    """The clients of a federation; an InputError if the data are no images."""
    if dataset.x.ndim != 4:
        raise InputError(f"{dataset.name} has no images; this grouping needs images")
    x, number = torch.from_numpy(dataset.x).to(device), federation.clients
    replaced = federation.replaces[federation.replaces >= 0]
    return Clients(x, federation.train, number, federation.groups[:number], replaced, done)
