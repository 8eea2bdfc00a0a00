"""Training a cohort at once does what training its clients one by one does."""

import dataclasses

import pytest
import torch
from test_engine import SIZES, make_engine
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from clustered_fl.engine import stacked
from clustered_fl.engine.schedule import build_schedule
from clustered_fl.engine.stacked import Objective, Stack, Stacked
from clustered_fl.engine.training import Engine
from clustered_fl.engine.workload import LocalSettings
from clustered_fl.errors import InputError
from clustered_fl.models import IMAGE_MODELS

PLAIN = LocalSettings(epochs=2, batch_size=10, lr=0.05)
PULLED = LocalSettings(epochs=2, batch_size=10, lr=0.05, momentum=0.5, proximal=0.1, clip=1.0)
ADAM = LocalSettings(epochs=2, batch_size=40, lr=0.001, optimiser="adam")
SETTINGS = {"plain": PLAIN, "pulled": PULLED, "adam": ADAM}
# LEAF's network has 6.6 million parameters; one step of it is enough here.
SMALL = sorted(set(IMAGE_MODELS) - {"leaf_cnn"})
EVERYONE = [0, 1, 2]


def both(name: str, settings: LocalSettings, **options: float) -> tuple[Engine, Engine]:
    """The same run, one by one and stacked."""
    one_by_one = make_engine(name, settings, **options)
    return one_by_one, make_engine(name, settings, path="stacked", **options)


def starts(engine: Engine, number: int = 3) -> Tensor:
    """Different start models, as clients of different groups have them."""
    scales = 1 + 0.1 * torch.arange(number)[:, None]
    return engine.initial_model() * scales


def errors(found: Tensor, expected: Tensor) -> Tensor:
    return (found - expected).norm(dim=1) / expected.norm(dim=1)


def agree(one_by_one: Engine, at_once: Engine, clients: list[int], bound: float = 1e-5) -> None:
    start = starts(at_once, len(clients))
    expected, expected_losses = one_by_one.train(start, clients, 3)
    found, losses = at_once.train(start, clients, 3)
    assert errors(found, expected).max() < bound
    assert torch.allclose(losses, expected_losses, rtol=1e-5)


@pytest.mark.parametrize("settings", sorted(SETTINGS))
@pytest.mark.parametrize("name", SMALL)
def test_updates_and_losses_are_those_of_one_by_one(name: str, settings: str) -> None:
    # Adam divides by the root of the squared gradient, which makes rounding of tiny ones visible,
    # and a tie of two convolutions may still be broken by rounding.
    agree(*both(name, SETTINGS[settings]), EVERYONE, bound=5e-4)


@pytest.mark.parametrize("settings", [PLAIN, PULLED], ids=["plain", "pulled"])
def test_a_network_without_ties_agrees_to_rounding(settings: LocalSettings) -> None:
    agree(*both("mlp", settings), EVERYONE, bound=1e-6)


def test_the_largest_network_agrees() -> None:
    agree(*both("leaf_cnn", LocalSettings(epochs=1, batch_size=50, lr=0.05)), EVERYONE)


@pytest.mark.parametrize("batch", [1, 7, 50, 1000])
def test_batches_that_clients_cannot_fill_change_nothing(batch: int) -> None:
    settings = LocalSettings(epochs=1, batch_size=batch, lr=0.05, momentum=0.5)
    agree(*both("mlp", settings), EVERYONE)


@pytest.mark.parametrize("clients", [[2], [1, 0], [2, 1, 0], [1, 1, 1, 2]])
def test_any_cohort_in_any_order(clients: list[int]) -> None:
    agree(*both("mlp", PULLED), clients)


def test_dropout_masks_are_those_of_one_by_one() -> None:
    one_by_one, at_once = both("mlp", PLAIN, dropout=0.5)
    agree(one_by_one, at_once, EVERYONE, bound=1e-6)
    undropped = make_engine("mlp", PLAIN, path="stacked")
    start = starts(at_once)
    found, _ = at_once.train(start, EVERYONE, 3)
    assert errors(found, undropped.train(start, EVERYONE, 3)[0]).min() > 0.1


def test_each_client_has_its_own_label_map() -> None:
    _, at_once = both("mlp", PLAIN)
    start = at_once.initial_model().repeat(3, 1)
    before, _ = at_once.train(start, EVERYONE, 0)
    at_once.workload.label_maps[1] = at_once.workload.label_maps[1].roll(1)
    after, _ = at_once.train(start, EVERYONE, 0)
    assert torch.equal(before[[0, 2]], after[[0, 2]])
    assert not torch.allclose(before[1], after[1])


@pytest.mark.parametrize("name", ["mlp", "small_conv_net", "three_conv_net"])
def test_an_update_is_the_same_bits_in_any_company(name: str) -> None:
    engine = make_engine(name, PULLED, path="stacked")
    start = starts(engine)
    together, losses = engine.train(start, EVERYONE, 0)
    reordered, relosses = engine.train(start[[2, 0, 1]], [2, 0, 1], 0)
    assert torch.equal(reordered, together[[2, 0, 1]])
    assert torch.equal(relosses, losses[[2, 0, 1]])
    for client in EVERYONE:
        alone, _ = engine.train(start[client : client + 1], [client], 0)
        assert torch.equal(alone[0], together[client])
    many, _ = engine.train(start[[1, 0, 2, 0, 1]], [1, 0, 2, 0, 1], 0)
    assert torch.equal(many, together[[1, 0, 2, 0, 1]])


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_a_cohort_in_parts_is_the_cohort(most: int) -> None:
    engine = make_engine("mlp", PULLED, path="stacked")
    clients = [2, 0, 1, 1, 0, 2, 1]
    start = starts(engine, 7)
    whole, losses = engine.train(start, clients, 0)
    parted = make_engine("mlp", PULLED, path="stacked")
    parted._path._most = most
    found, found_losses = parted.train(start, clients, 0)
    assert torch.equal(found, whole)
    assert torch.equal(found_losses, losses)


def test_parts_are_as_large_as_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = make_engine("mlp", PLAIN).workload
    assert Stacked(workload, None)._most > 100
    vectors = stacked.COPIES * 4 * 159_010  # less with five classes, but activations come on top
    monkeypatch.setattr(stacked, "BYTES", 5 * vectors)
    found = Stacked(workload, None)
    assert found._most in {3, 4, 5}
    monkeypatch.setattr(stacked, "BYTES", 1)
    size, parts = Stacked(workload, None)._parts([1, 0, 2, 1])
    assert (size, parts) == (3, [[2, 1, 0], [3]])


def test_stacks_are_kept_but_not_all() -> None:
    engine = make_engine("mlp", PLAIN, path="stacked")
    path = engine._path
    first = path._stack(3)
    assert path._stack(3) is first
    assert path._stack(4) is not first
    path._stack(5)
    assert sorted(path._stacks) == [4, 5]


def test_the_schedule_has_every_sample_once_per_epoch() -> None:
    workload = make_engine("mlp", LocalSettings(epochs=2, batch_size=7, lr=0.1)).workload
    schedule = build_schedule(workload, EVERYONE, 0, (4, 5, 7))
    assert schedule.rows.shape == (16, 5, 7)  # 2 epochs x 8 batches, and two idle clients
    for client, size in enumerate(SIZES):
        rows, last = schedule.rows[:, client], schedule.last[:, client]
        for epoch in (rows[last], rows[~last]):
            held = epoch[epoch >= 0]
            assert sorted(held.tolist()) == sorted(workload.federation.train[client].tolist())
            assert len(held) == size
    assert (schedule.rows[:, 3:] == -1).all()
    assert (build_schedule(workload, EVERYONE, 0, (5, 3, 7)).rows[16:] == -1).all()


@pytest.mark.parametrize("settings", sorted(SETTINGS))
def test_blocks_as_on_a_gpu_change_nothing(settings: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks longer than a step, and a recording that runs the block before anybody trains."""

    def recorded(block: stacked.Block) -> stacked.Block:
        for _ in range(stacked.WARM_UP + 1):
            block()
        return block

    expected = make_engine("mlp", SETTINGS[settings], path="stacked", dropout=0.5)
    start = starts(expected)
    monkeypatch.setitem(stacked.BLOCK, "cpu", stacked.BLOCK["cuda"])
    monkeypatch.setattr(stacked, "_at_once", recorded)
    found = make_engine("mlp", SETTINGS[settings], path="stacked", dropout=0.5)
    for round_ in (0, 1):  # the second round finds what the first one left behind
        for a, b in zip(
            found.train(start, EVERYONE, round_),
            expected.train(start, EVERYONE, round_),
            strict=True,
        ):
            assert torch.equal(a, b)


class Foreign(TorchDispatchMode):
    """Notes operations that use memory of another device than they should."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device, self.found = device, []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        tensors = [x for x in tree_leaves((args, kwargs, result)) if isinstance(x, Tensor)]
        if any(x.device.type != self.device for x in tensors):
            self.found.append(str(operation))
        return result


@pytest.mark.parametrize(("name", "settings"), [("mlp", "pulled"), ("wide_conv_net", "adam")])
def test_a_block_can_be_captured(name: str, settings: str) -> None:
    """It neither reads a value back, which "meta" tensors do not have, nor copies from the CPU."""
    options = {"dropout": 0.5} if name == "mlp" else {}
    there = make_engine(name, SETTINGS[settings], **options).workload
    task = dataclasses.replace(there.task, x=there.task.x.to("meta"), y=there.task.y.to("meta"))
    there = dataclasses.replace(there, task=task, device=torch.device("meta"))
    stack = Stack(there, Objective(there), (2, 3, 10), stacked._at_once)
    with Foreign("meta") as mode:
        stack._block()
    assert mode.found == []
    with Foreign("cpu") as mode:
        stack._block()
    assert mode.found != []  # the check itself can fail


@pytest.mark.parametrize("settings", sorted(SETTINGS))
def test_memory_that_a_captured_block_works_on_keeps_its_place(settings: str) -> None:
    engine = make_engine("mlp", SETTINGS[settings], path="stacked")
    stack = engine._path._stack(3)

    def places() -> list[int]:
        held = (vars(stack), vars(stack._update))
        tensors = [x for part in held for x in tree_leaves(part) if isinstance(x, Tensor)]
        return [each.data_ptr() for each in tensors]

    before = places()
    for round_ in (0, 1):
        engine.train(starts(engine), EVERYONE, round_)
    assert places() == before
    assert len(before) >= 16  # nine of the stack and its schedule, four views, the optimiser's


def test_a_finished_client_stays_even_if_its_gradient_is_not_a_number() -> None:
    engine = make_engine("mlp", PULLED, path="stacked")
    start = starts(engine)
    expected, _ = engine.train(start, EVERYONE, 0)
    gradients = Objective.gradients

    def broken(self, views, label_maps, step, out):
        found = gradients(self, views, label_maps, step, out)
        out[(step.rows < 0).all(1)] = torch.nan
        return found

    engine._path._objective.gradients = broken.__get__(engine._path._objective)
    found, _ = engine.train(start, EVERYONE, 0)
    assert torch.equal(found, expected)


def test_networks_that_cannot_be_stacked_are_refused() -> None:
    with pytest.raises(InputError, match="path 'stacked' cannot train this run"):
        make_engine("word_lstm", PLAIN, path="stacked")
    workload = make_engine("mlp", PLAIN).workload
    for layer in (nn.BatchNorm2d(1), nn.Dropout(0.5), nn.GRU(2, 2)):
        unstackable = dataclasses.replace(workload, build=lambda layer=layer: nn.Sequential(layer))
        assert not Stacked.supports(unstackable)


@pytest.mark.parametrize("name", ["mlp", "word_lstm"])
def test_losses_of_samples_add_up_to_the_loss_of_a_batch(name: str) -> None:
    engine = make_engine(name, PLAIN)
    rows = engine.federation.train[1]
    targets = engine.workload.targets(rows, 1)
    scores = engine.workload.network(engine.workload.inputs(rows)).detach()
    losses, counts = engine.task.losses(scores, targets), engine.task.counts(targets)
    assert losses.shape == counts.shape == (len(rows),)
    assert losses.sum() == pytest.approx(float(engine.task.loss(scores, targets)), rel=1e-6)
    assert counts.sum() == engine.task.terms(targets)
    alone = engine.task.loss(scores[4:5], targets[4:5])
    assert losses[4] == pytest.approx(float(alone), rel=1e-5)
