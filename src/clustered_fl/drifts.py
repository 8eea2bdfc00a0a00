"""Federations with concept drift: which datasets their clients' transformed images make.

Such a dataset has the rows and labels of the one it is made from (`clustered_fl.data.own_images`).
It is kept by what it is made from, so that all runs with the same clients share one.
"""

import json
from typing import Any

from clustered_fl.data.own_images import has_own_images
from clustered_fl.data.partitions import partition_module
from clustered_fl.files import digest
from clustered_fl.fingerprint import fingerprint


class Drifts:
    """The datasets of transformed images that a workflow needs.

    Args:
        clients: resolved runs and groupings, each with a "config".
        data: folder of the datasets.
    """

    def __init__(self, clients: dict[str, dict[str, Any]], data: str) -> None:
        self._data = data
        configs = (entry["config"] for entry in clients.values())
        own = (config for config in configs if has_own_images(config["federation"]))
        self._known = {_key(config): config for config in own}

    def dataset_of(self, config: dict[str, Any], wildcards: Any) -> str:
        """Canonical arrays that a run or a grouping is computed from, its drift applied."""
        if not has_own_images(config["federation"]):
            return f"{self._data}/{config['dataset']}.safetensors"
        return f"{self._data}/drift/{_key(config)}/seed{wildcards.seed}.safetensors"

    def source(self, wildcards: Any) -> str:
        """The dataset whose images are transformed."""
        return f"{self._data}/{self._known[wildcards.drift]['dataset']}.safetensors"

    def settings(self, wildcards: Any) -> str:
        """The federation whose clients transform their images, as JSON."""
        return json.dumps(self._known[wildcards.drift]["federation"], sort_keys=True)

    def code(self, wildcards: Any) -> str:
        """Fingerprint of the partition and of the transforms."""
        kind = partition_module(self._known[wildcards.drift]["federation"]["kind"])
        own = ("clustered_fl.data.transforms", "clustered_fl.data.partitions")
        return fingerprint(*own, kind)


def _key(config: dict[str, Any]) -> str:
    return digest([config["dataset"], config["federation"]])
