"""The federations of a plan: which clients hold what, each made once for all that share it.

A federation is kept by what it is made of, as is the dataset of its clients' transformed images
(`clustered_fl.data.own_images`), so that all runs and groupings with the same clients share one
file, whichever papers are computed.
"""

import json
from collections.abc import Iterable
from typing import Any

from clustered_fl.data.own_images import has_own_images
from clustered_fl.data.partitions import partition_module
from clustered_fl.files import digest
from clustered_fl.workflow.fingerprint import of_code

Config = dict[str, Any]


class Clients:
    """The federations that runs and groupings need.

    Args:
        configs: of runs and groupings, resolved.
        data, results: folders.
    Raises: InputError if there is no such partition.
    """

    def __init__(self, configs: Iterable[Config], data: str, results: str) -> None:
        self._data, self._results = data, results
        self.known = {key_of(config): config for config in configs}
        for config in self.known.values():
            code_of(config)

    def federation(self, config: Config, seed: int | str) -> str:
        """File that says which client holds what."""
        return f"{self._results}/federations/{key_of(config)}/seed{seed}.safetensors"

    def dataset(self, config: Config, seed: int | str) -> str:
        """Canonical arrays that a run or a grouping is computed from, its drift applied."""
        if not has_own_images(config["federation"]):
            return f"{self._data}/{config['dataset']}.safetensors"
        return f"{self._data}/drift/{key_of(config)}/seed{seed}.safetensors"

    def source(self, wildcards: Any) -> str:
        """The dataset that a federation divides, or whose images its clients transform."""
        return f"{self._data}/{self.known[wildcards.clients]['dataset']}.safetensors"

    def divided(self, wildcards: Any) -> str:
        """The dataset that a federation's row numbers are of."""
        return self.dataset(self.known[wildcards.clients], wildcards.seed)

    def settings(self, wildcards: Any) -> str:
        """The settings of a federation, as JSON."""
        return json.dumps(self.known[wildcards.clients]["federation"], sort_keys=True)

    def code(self, wildcards: Any) -> str:
        """Fingerprint of what makes a federation."""
        return code_of(self.known[wildcards.clients])

    def images_code(self, wildcards: Any) -> str:
        """Fingerprint of what transforms its clients' images."""
        own = partition_module(self.known[wildcards.clients]["federation"].get("kind", ""))
        return of_code("clustered_fl.data.own_images", "clustered_fl.data.transforms", own)


def key_of(config: Config) -> str:
    """What equal clients have in common: their kind, and a digest of dataset and settings."""
    made_of = [config["dataset"], config["federation"]]
    return f"{config['federation'].get('kind', '')}_{digest(made_of)}"


def code_of(config: Config) -> str:
    """Fingerprint of the code that makes a federation."""
    kind = partition_module(config["federation"].get("kind", ""))
    return of_code(
        "clustered_fl.data.partitions:build_federation", "clustered_fl.data.federation", kind
    )
