"""The methods on your own arrays, without Snakemake or a ledger.

    clients = federation(x, y, owners)                       what each client holds
    found = cluster(clients, "pacfl")                        a one-shot method: related clients
    ended = train(clients, "one_shot", grouping=found)       federated training

Models, methods, partitions and groupings have the names and settings that they have in a ledger
(`config/README.md`): a name, or a dictionary of a name and settings. The same seed gives the same
result. As in the workflow, PyTorch is set to be deterministic, with one thread per operation.
"""

from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.utils import vector_to_parameters

from clustered_fl.data import dataset as datasets
from clustered_fl.data.federation import Federation
from clustered_fl.data.held_out import hold_out, with_tests
from clustered_fl.data.own_images import has_own_images, own_images
from clustered_fl.data.partitions import build_federation
from clustered_fl.data.shares import by_first_appearance
from clustered_fl.errors import InputError
from clustered_fl.groupings import grouping_module
from clustered_fl.groupings.clients import clients_of
from clustered_fl.groupings.profiles.network import Profiler, require_one_encoder
from clustered_fl.jobs import encode
from clustered_fl.jobs import train as runs
from clustered_fl.jobs.device import prepared
from clustered_fl.jobs.record import Run
from clustered_fl.methods import require_placed
from clustered_fl.models.autoencoder import Autoencoder
from clustered_fl.models.fit import require_fit
from clustered_fl.models.inputs import separated
from clustered_fl.options import call, require_whole
from clustered_fl.randomness import generator
from clustered_fl.records.relatedness import Relatedness, require_clients

Named = str | Mapping[str, Any]
"""A name, or a dictionary of a name and settings."""
TRAINING = {"epochs": 1, "batch_size": 20, "lr": 0.1}


@dataclass(frozen=True)
class Clients:
    """Data and the clients that hold them; `names` are the sorted owners, or numbers."""

    dataset: datasets.Dataset
    federation: Federation
    names: tuple[Hashable, ...]


@dataclass(frozen=True)
class Trained:
    """A finished training of `clients`; `run` has models, grouping and measurements."""

    run: Run
    clients: Clients

    @property
    def measurements(self) -> pd.DataFrame:
        """All measurements: round, scope, member, metric, value."""
        return self.run.rows.table().to_pandas().astype({"round": "int64", "member": "int64"})

    @property
    def scores(self) -> pd.DataFrame:
        """Accuracy (fraction) after each round in which it was tested, one column per client."""
        every = self.measurements
        own = every[(every["scope"] == "client") & (every["metric"] == self.run.engine.task.metric)]
        found = own.pivot_table(index="round", columns="member", values="value")
        return found.set_axis(self.clients.names[: found.shape[1]], axis=1)

    @property
    def groups(self) -> pd.Series:
        """Group of each client at the end."""
        found = [self.run.state.leaves[group] for group in self.run.state.grouping]
        return pd.Series(found, index=list(self.clients.names[: len(found)]), name="group")

    def network(self, client: Hashable) -> nn.Module:
        """The network with the model of a client's group, in evaluation mode.

        Raises: InputError if there is no such client.
        """
        if client not in self.groups.index:
            allowed = ", ".join(map(str, self.groups.index))
            raise InputError(f"there is no client {client!r}; allowed are {allowed}")
        (model,) = self.run.state.models_of([self.clients.names.index(client)])
        built = deepcopy(self.run.engine.workload.network)
        vector_to_parameters(model.clone(), built.parameters())
        return built.eval()

    def profiler(self, clients: Clients, device: torch.device | str = "cpu") -> Profiler:
        """The network of a run with one model for all, by which REPA and WD compare `clients`.

        Raises: InputError if it has no encoder, or there are several models.
        """
        config, rounds, models = self.run.config, self.run.completed, self.run.state.models
        require_one_encoder(config, len(models))
        about = (config["run"], config, rounds, {rounds: models[0].cpu()})
        return Profiler(*about, clients.dataset, clients.federation, device)


def federation(
    x: np.ndarray,
    y: np.ndarray,
    owners: np.ndarray | None = None,
    partition: Mapping[str, Any] | None = None,
    groups: Mapping[Hashable, Hashable] | None = None,
    held_out: float = 0.2,
    seed: int = 0,
) -> Clients:
    """Clients made from your own images.

    Args:
        x: square images, uint8 [N, C, H, W] or [N, H, W].
        y: class of each image, numbers or names, [N].
        owners: client that holds each image, numbers or names, [N].
        partition: kind and settings of a partition, as in a ledger; in place of owners.
        groups: true group (number or name) of each owner, for scoring; a partition has its own.
        held_out: fraction of each client's images (with a partition, of all) used for tests.
        seed: of all random draws.
    Raises: InputError if images are not square, lengths differ, or there are too few images.
    """
    require_whole(0, seed=seed)
    if (owners is None) == (partition is None):
        raise InputError("a federation needs owners or a partition, and not both")
    if owners is None and groups is not None:
        raise InputError("groups are those of owners; a partition has its own")
    if not 0 < held_out < 1:
        raise InputError(f"held_out = {held_out} is not allowed; it must be between 0 and 1")
    x, y = np.atleast_1d(x), np.asarray(y)
    for name, array in (("y", y), ("owners", y if owners is None else np.asarray(owners))):
        if array.shape != (len(x),):
            found = f"shape {array.shape}"
            raise InputError(f"{name} must have one entry per image ({len(x)}), not {found}")
        if {*map(type, array.tolist())} not in ({int}, {bool}, {str}):
            raise InputError(f"{name} must hold whole numbers or names, not {array.dtype}")
    if owners is None:
        return _dealt(x, y, dict(partition), held_out, seed)
    return _owned(x, y, owners, groups, held_out, seed)


def _dealt(
    x: np.ndarray, y: np.ndarray, partition: dict[str, Any], held_out: float, seed: int
) -> Clients:
    """Clients of a partition, with transformed images where the partition changes them."""
    order = generator(seed, "tests").permutation(len(y))
    dataset = _dataset(x, y, order, len(y) - max(1, round(held_out * len(y))))
    made = build_federation(dataset, seed, **partition)
    if has_own_images(partition):
        dataset = own_images(dataset, made, partition, seed)
    return Clients(dataset, made, tuple(range(len(made.train))))


def _owned(
    x: np.ndarray,
    y: np.ndarray,
    owners: np.ndarray,
    groups: Mapping[Hashable, Hashable] | None,
    held_out: float,
    seed: int,
) -> Clients:
    """One client per owner, tested on a part of its images."""
    found, owner = np.unique(owners, return_inverse=True)
    names = tuple(found.tolist())
    if absent := [name for name in names if groups and name not in groups]:
        raise InputError(f"groups must have every owner; {absent[0]!r} is missing")
    train, tests = hold_out([np.flatnonzero(owner == i) for i in range(len(names))], held_out, seed)
    if alone := [name for name, rows in zip(names, train, strict=True) if not len(rows)]:
        raise InputError(f"owner {alone[0]!r} has no image left to train on; its tests take one")
    order = np.concatenate([*train, *tests])
    dataset, position = _dataset(x, y, order, sum(map(len, train))), np.argsort(order)
    own = ([position[rows] for rows in part] for part in (train, tests))
    true = by_first_appearance(groups[name] if groups else 0 for name in names)
    return Clients(dataset, with_tests(dataset, *own, true), names)


def _dataset(x: np.ndarray, y: np.ndarray, order: np.ndarray, train_rows: int) -> datasets.Dataset:
    """Images with a channel axis, in `order`; classes are numbered by their sorted names."""
    if x.dtype != np.uint8 or x.ndim not in (3, 4) or x.shape[-1] != x.shape[-2]:
        allowed = "square images, uint8 [N, C, H, W] or [N, H, W]"
        raise InputError(f"x must be {allowed}, not {x.dtype} of shape {x.shape}")
    names, numbers = np.unique(y, return_inverse=True)
    classes, numbers = tuple(map(str, names.tolist())), numbers.astype(np.int64)[order]
    x = (x[:, None] if x.ndim == 3 else x)[order].copy()  # the memory layout affects bits
    return datasets.build("your data", "arrays", x, numbers, train_rows, classes)


def encoder(
    clients: Clients,
    model: Named = "conv_autoencoder",
    epochs: int = 10,
    device: str = "auto",
    tell: Callable[[str], None] = lambda line: None,
    **training: Any,
) -> Autoencoder:
    """An autoencoder of all training images, by which FLT compares clients.

    Args:
        clients: their images are used in place of the server's data that FLT assumes.
        model: name and settings of an autoencoder.
        epochs: passes over all training images.
        device: "cpu", "cuda" or "auto".
        tell: receives a line after every epoch.
        training: see `clustered_fl.encoders.training.TrainingSettings`.
    Raises: InputError if the images do not fit the network.
    """
    place, settings = prepared(device), {"epochs": epochs, **training}
    network, _ = encode.trained(clients.dataset, _named(model), settings, place, tell)
    return network.cpu().eval()


def cluster(
    clients: Clients,
    method: Named,
    network: Autoencoder | Trained | None = None,
    seed: int = 0,
    device: str = "auto",
) -> Relatedness:
    """Find related clients once, before training, with FLT, REPA, PACFL, WD or others.

    Args:
        clients: from `federation`.
        method: name and settings of a grouping.
        network: embeds images: an autoencoder, or for REPA and WD a finished training of one.
        seed: of the clustering.
        device: of the network: "cpu", "cuda" or "auto".
    Raises: InputError if the method has no such settings, or needs another network.
    """
    require_whole(0, seed=seed)
    place, options = prepared(device if network else "cpu"), _named(method)
    found = import_module(grouping_module(name := options.pop("name")))
    settings = call(found.Settings, f"grouping {name}", options)
    if isinstance(network, Trained):
        if not hasattr(found, "profile"):
            raise InputError(f"grouping {name} uses no training; an encoder is what it may need")
        network = network.profiler(clients, place)
    elif network:
        network = deepcopy(network).to(place)
    own = clients_of(clients.dataset, clients.federation, place)
    return found.relate(own, network, settings, seed)[0]


def train(
    clients: Clients,
    method: Named = "fedavg",
    model: Named = "mlp",
    rounds: int = 20,
    training: Mapping[str, Any] = TRAINING,
    grouping: Relatedness | None = None,
    seed: int = 0,
    device: str = "auto",
    workers: int = 1,
    evaluate_every: int = 1,
    tell: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train the clients together.

    Args:
        clients: from `federation`.
        method: which clients average with each other, and when that is decided.
        model: the network of every client.
        rounds: number of communication rounds.
        training: local training, see `clustered_fl.engine.workload.LocalSettings`.
        grouping: the result of `cluster`, for methods that average by it, such as `one_shot`.
        seed: of the initial model, the batches and the participants.
        device: "cpu", "cuda" or "auto".
        workers: threads; the result does not depend on them.
        evaluate_every: rounds between two tests.
        tell: receives a line after every round.
    Raises: InputError if a setting is not allowed, or it or the grouping does not fit the clients.
    """
    require_whole(1, rounds=rounds, evaluate_every=evaluate_every, workers=workers)
    require_whole(0, seed=seed)
    config = {"run": "your training", "model": _named(model), "method": _named(method)}
    config |= {"training": dict(training), "rounds": rounds, "seed": seed}
    config |= {"evaluate_every": evaluate_every, "keep_every": 0, "federation": {}}
    data, own = clients.dataset, clients.federation
    engine = runs.build_engine(config, data, own, prepared(device), workers)
    network = separated(config["model"])[1]
    require_fit(image_shape=data.x.shape[1:], classes=len(data.classes), **network)
    if grouping:
        asked = own.newcomers if config["method"].get("newcomers") else 0
        require_clients(grouping, own.clients, asked)
    run = runs.begin(config, engine, grouping)
    require_placed(config["method"]["name"], run.settings.newcomers, vars(run.method))
    for completed in runs.rounds(run):
        tell(f"round {completed}/{rounds}, {len(run.state.models)} group(s)")
    return Trained(run, clients)


def _named(choice: Named) -> dict[str, Any]:
    return {"name": choice} if isinstance(choice, str) else {"name": "", **choice}
