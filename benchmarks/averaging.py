"""FedAvg over our engine, from round to round as `clustered_fl.jobs.train` carries a run."""

from pathlib import Path

import torch

from clustered_fl.engine import checkpoint
from clustered_fl.engine.training import Engine
from clustered_fl.methods import fedavg
from clustered_fl.records.measurements import Measurements


class Averaging:
    """A run without evaluation.

    Args:
        engine: that trains.
        keep: what is measured in each round, as a run keeps it.
    """

    def __init__(self, engine: Engine, keep: bool = True) -> None:
        self.engine, self.settings, self.keep = engine, fedavg.Settings(), keep
        self.state = fedavg.init(engine, self.settings)
        self.rows = Measurements()
        self.completed = 0

    def carry(self, rounds: int, saved: Path | None = None) -> None:
        """Compute some rounds, with a checkpoint after each if there is a place for it."""
        for _ in range(rounds):
            self.state, rows = fedavg.round_(self.state, self.engine, self.settings, self.completed)
            self.rows += rows if self.keep else ()
            self.completed += 1
            if saved is not None:
                self._save(saved)

    def _save(self, path: Path) -> None:
        tensors, state = self.state.pack()
        tensors |= {"rows": torch.from_numpy(self.rows.packed())}
        content = {"state": state, "completed": self.completed}
        checkpoint.save(path, "benchmark", tensors, content)
