"""Flower: its simulation runtime with Ray, two actors of one CPU each.

One simulation lasts as long as the experiment, as Flower's own do: the server application waits for
the next round in a thread. Every actor makes the whole problem once and keeps it.
"""

import threading
from collections.abc import Iterable
from functools import cache
from queue import SimpleQueue

import flwr
import numpy as np
import ray
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from networks import loader, network, stacked, started, train, update
from peers import Engine
from problem import Problem, build_problem

ACTORS = 2
client_app = ClientApp()
_problem = cache(build_problem)
_loader = cache(lambda name, client: loader(_problem(*name), client))
_model = cache(lambda name: network(_problem(*name).architecture))


@client_app.train()
def _train_client(message: Message, context: Context) -> Message:
    """Train one client in an actor."""
    torch.set_num_threads(1)
    settings = message.content["config"]
    name = settings["cell"], settings["samples"] or None, settings["lr"]
    problem, client = _problem(*name), context.node_config["partition-id"]
    model = _model(name)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    train(model, _loader(name, client), problem.lr)
    metrics = MetricRecord({"num-examples": problem.labels.shape[1], "client": client})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)


class Collect(FedAvg):
    """Keeps the clients' models instead of averaging them.

    The server application starts while nodes still register, and a fraction is taken of those that
    have: without a smallest number the first round would leave the others out.
    """

    def __init__(self, clients: int) -> None:
        super().__init__(
            fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients
        )
        self.models: dict[int, ArrayRecord] = {}

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> tuple[None, None]:
        """Sort the replies, which come in any order."""
        valid, failed = self._check_and_log_replies(replies, is_train=True)
        if failed:
            raise RuntimeError(failed[0].error.reason)
        self.models = {
            reply.content["metrics"]["client"]: reply.content["arrays"] for reply in valid
        }
        return None, None


class Flower(Engine):
    """Flower's message API, a strategy of its own and the Ray backend."""

    name, version = "flower", f"{flwr.__version__}, ray {ray.__version__}"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.start = ArrayRecord(started(problem).state_dict())
        self.rounds: SimpleQueue = SimpleQueue()
        self.results: SimpleQueue = SimpleQueue()
        self.thread = threading.Thread(target=self._simulate, daemon=True)
        self.thread.start()

    def train(self) -> dict[int, ArrayRecord]:
        """Train every client from the start parameters."""
        self.rounds.put(self.start)
        models = self.results.get()
        if isinstance(models, BaseException):
            raise models
        return models

    def updates(self, result: dict[int, ArrayRecord]) -> np.ndarray:
        """How far the models have moved [M, P]."""
        model, moved = network(self.problem.architecture), []
        for client in range(self.problem.clients):
            model.load_state_dict(result[client].to_torch_state_dict())
            moved.append(update(model, self.problem))
        return stacked(moved)

    def close(self) -> None:
        """End the simulation and Ray with it."""
        self.rounds.put(None)
        self.thread.join()

    def _simulate(self) -> None:
        server_app = ServerApp()
        server_app.main()(self._serve)
        backend = {
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            # A Ray of its own, even if another one is running on this machine.
            "init_args": {"address": "local", "num_cpus": ACTORS, "num_gpus": 0},
        }
        try:
            run_simulation(server_app, client_app, self.problem.clients, backend_config=backend)
        except BaseException as error:  # the main thread waits and must hear of anything
            self.results.put(error)
        self.results.put(RuntimeError("Flower's simulation ended before its round did"))

    def _serve(self, grid: Grid, context: Context) -> None:
        """One round of the strategy per request, until there is none."""
        problem = self.problem
        settings = {"cell": problem.cell, "samples": problem.samples or 0, "lr": problem.lr}
        strategy = Collect(problem.clients)
        while (arrays := self.rounds.get()) is not None:
            strategy.start(grid, arrays, num_rounds=1, train_config=ConfigRecord(dict(settings)))
            self.results.put(strategy.models)
            strategy.models = {}
