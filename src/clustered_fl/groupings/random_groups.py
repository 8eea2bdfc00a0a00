"""Random groups of equal size: a control that isolates the effect of splitting the clients.

This is a control, not a method. A gain of random groups over FedAvg is due to smaller groups alone,
and a clustering must gain more. Clients that come later join random groups too.
"""

from typing import Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.data.shares import by_first_appearance
from clustered_fl.errors import InputError
from clustered_fl.groupings.clients import Clients, Found
from clustered_fl.groupings.distances import same_group
from clustered_fl.options import STRICT
from clustered_fl.randomness import generator
from clustered_fl.records.relatedness import Relatedness


@dataclass(frozen=True, config=STRICT)
class Settings:
    """Settings of random groups.

    Attributes:
        clusters: their number.
    """

    clusters: int = Field(ge=1)


def relate(clients: Clients, encoder: Any, settings: Settings, seed: int) -> Found:
    """Draw groups that are equal in size to within one client; nothing is sent.

    Raises: InputError if there are more groups than clients.
    """
    number, total = clients.number, len(clients.rows)
    if settings.clusters > number:
        raise InputError(f"{settings.clusters} groups of {number} clients; too many")
    rng = generator(seed, "random groups")
    groups = by_first_appearance(rng.permutation(number) % settings.clusters)
    placed, never = rng.integers(number, size=total - number), np.zeros((0, 0), np.uint8)
    nothing = np.zeros((total, 1, 0), np.float32)
    sent = (np.zeros((number, number), np.float32), nothing, nothing[:number])
    return Relatedness(same_group(groups), groups, placed, never, *sent), []
