"""All clients of a cohort at once: what a GPU needs to be busy with small networks.

The models are the rows of one matrix [K, P], and each step is a step of every client, each on its
own batch: PyTorch's "model ensembling", vmap of the gradient. On a CUDA device a block of steps is
captured once as a CUDA graph and replayed, because with ten samples per client it takes longer to
launch the operations than to compute them; within a block and between blocks nothing waits for the
GPU. **Not yet seen on a GPU**: the tests run the same steps on a CPU, where nothing is captured.

Batches have one size for the whole federation; places without a sample have weight 0, and a client
without samples left stays as it is. An update therefore depends on the number of clients beside it
alone, and on that only to rounding: the libraries choose kernels by the size of the stack. On the
CPU that we tried, it is the same bits in every stack of three clients or more (`FEWEST`).
"""

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from clustered_fl.engine.schedule import Schedule, build_schedule
from clustered_fl.engine.sequential import Sequential, Update
from clustered_fl.engine.workers import Workers
from clustered_fl.engine.workload import Trained, Workload
from clustered_fl.models.dropout import buffers
from clustered_fl.models.numerics import NUMERICS

__numerics__ = NUMERICS

UNSUPPORTED = (nn.RNNBase, _BatchNorm, _DropoutNd)
"""Layers that cannot be stacked: recurrent ones have no batching rule, so that vmap would loop over
the clients; batch normalisation writes to buffers that the clients would share; PyTorch's dropout
draws from one stream for all of them."""
BLOCK = {"cpu": 1, "cuda": 8}
"""Steps of a block: a replay costs as much as a few of the hundred launches of a step, so that
longer blocks would save little, but add idle steps to the end of a round."""
FEWEST = {"cpu": 3, "cuda": 1}
"""Smallest K. oneDNN takes other kernels for the convolutions of one client, and of two."""
BYTES = 2 * 2**30
"""Memory of one stack. A step that reads and writes that much takes longer than its launches on any
GPU, so that more clients at once would gain nothing; two of them fit into 8 GB beside the data."""
KEPT = 2
"""Stacks that are kept, with their graphs: enough for a method whose cohorts have two sizes."""
COPIES = 10
"""Vectors [P] per client: model, start, two moments, gradient whole and in parts, temporaries."""
WARM_UP = 3
"""Blocks before the capture, in which libraries set themselves up (PyTorch's CUDA semantics)."""


class Objective:
    """Loss and gradient of every client, each with its own model of `size` P and batch."""

    def __init__(self, workload: Workload) -> None:
        self._task = workload.task
        # Its own parameters are not used.
        self.network = copy.deepcopy(workload.network).to(workload.device).train()
        self._shapes = {name: p.shape for name, p in self.network.named_parameters()}
        self.size = sum(shape.numel() for shape in self._shapes.values())
        self._all = vmap(grad_and_value(self._loss, has_aux=True))

    def views(self, models: Tensor) -> dict[str, Tensor]:
        """The parameters by name, [K, ...], as parts of `models` [K, P]."""
        parts = models.split([shape.numel() for shape in self._shapes.values()], dim=1)
        named = zip(self._shapes.items(), parts, strict=True)
        return {name: part.unflatten(1, shape) for (name, shape), part in named}

    def gradients(
        self, views: dict[str, Tensor], label_maps: Tensor, step: Schedule, out: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Write a step's gradients of summed losses to `out` [K, P]; returns losses and terms."""
        gradients, found = self._all(views, label_maps, step.rows, step.keys, step.numbers)
        torch.cat([part.flatten(1) for part in gradients.values()], 1, out=out)
        return found

    def _loss(
        self, parameters: dict[str, Tensor], label_map: Tensor, rows: Tensor, *stream: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One client's summed loss over the rows that are there, and its terms."""
        task, absent = self._task, rows < 0
        rows = rows.clamp(min=0)
        targets = task.targets(rows, label_map)
        held = parameters | buffers(self.network, *stream)
        scores = functional_call(self.network, held, (task.inputs(rows),))
        # Filled, not multiplied: a row of no client may have any loss.
        losses = task.losses(scores, targets).masked_fill(absent, 0)
        return losses.sum(), task.counts(targets).masked_fill(absent, 0).sum()

    def saved_bytes(self, batch: int) -> int:
        """What the backward pass of one client keeps of the forward pass."""
        sizes, device = [], next(self.network.parameters()).device
        images = self._task.inputs(torch.zeros(batch, dtype=torch.int64, device=device))
        with saved_tensors_hooks(lambda kept: sizes.append(kept.nbytes), lambda kept: kept):
            self.network(images)
        return sum(sizes)


Block = Callable[[], None]


def captured(block: Block) -> Block:
    """Record the operations of `block` and return what replays them, on the same memory.

    The warm-up (PyTorch's CUDA semantics) runs the block, which must do nothing that lasts.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            block()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        block()
    return graph.replay


class Stack:
    """The memory in which K clients train, and the block of steps that works on it.

    Every tensor here keeps its place for good: a captured block knows nothing but addresses.
    `shape` is the steps of a block, K and B; `record` turns the block into what is run instead.
    """

    def __init__(
        self,
        workload: Workload,
        objective: Objective,
        shape: tuple[int, int, int],
        record: Callable[[Block], Block],
    ) -> None:
        device, (_, clients, _) = workload.device, shape
        self._workload, self._objective, self._shape = workload, objective, shape
        size = (clients, objective.size)
        self._models, self._start = torch.zeros(size).to(device), torch.zeros(size).to(device)
        self._gradient = torch.zeros_like(self._models)
        self._views = objective.views(self._models)
        self._update = Update(workload.settings, self._start)
        self._label_maps = workload.label_maps[:1].repeat(clients, 1)
        self._losses, self._terms = torch.zeros(2, clients).to(device)
        self._schedule = Schedule.idle(*shape).to(device)
        self._run = record(self._block)

    def train(self, start: Sequence[Tensor], clients: Sequence[int], round_: int) -> Trained:
        """Updates and losses of n <= K clients; what trained here before is forgotten."""
        n, block = len(clients), self._shape[0]
        for place in (self._models, self._start):
            torch.stack(list(start), out=place[:n])
            place[n:] = 0
        self._label_maps[:n] = self._workload.label_maps[list(clients)]
        self._update.reset()
        self._losses.zero_()
        self._terms.zero_()
        schedule = build_schedule(self._workload, clients, round_, self._shape)
        schedule = schedule.to(self._models.device)
        for first in range(0, len(schedule.rows), block):
            for place, part in zip(self._schedule, schedule, strict=True):
                place.copy_(part[first : first + block])
            self._run()
        return self._models[:n] - self._start[:n], self._losses[:n] / self._terms[:n]

    def _block(self) -> None:
        """In each step one step of every client that has a batch."""
        gradient, maps = self._gradient, self._label_maps
        for step in map(Schedule, *self._schedule):
            losses, terms = self._objective.gradients(self._views, maps, step, gradient)
            gradient.div_(terms.clamp(min=1)[:, None])
            self._update.step(self._models, gradient, (step.rows >= 0).any(1, keepdim=True))
            passed_over = ~step.last
            self._losses += losses.masked_fill(passed_over, 0)
            self._terms += terms.masked_fill(passed_over, 0)


class Stacked(Sequential):
    """A step of every client at once, in stacks that fit into memory; a GPU needs no threads."""

    def __init__(self, workload: Workload, workers: Workers) -> None:
        super().__init__(workload, workers)
        self._objective = Objective(workload)
        longest = max(len(rows) for rows in workload.federation.train)
        self._batch = min(workload.settings.batch_size, longest)
        passing = COPIES * 4 * self._objective.size + 2 * self._objective.saved_bytes(self._batch)
        self._most = max(1, BYTES // passing)
        self._stacks: dict[int, Stack] = {}

    @staticmethod
    def supports(workload: Workload) -> bool:
        """All layers of any network without those of `UNSUPPORTED`."""
        stackable = not any(isinstance(m, UNSUPPORTED) for m in workload.network.modules())
        return stackable and workload.settings.layers == "all"

    def train(self, start: Sequence[Tensor], clients: Sequence[int], round_: int) -> Trained:
        """Updates and losses of n clients, each from its own start model [P]."""
        updates = start[0].new_empty(len(clients), len(start[0]))
        losses = updates.new_empty(len(clients))
        size, parts = self._parts(clients)
        stack = self._stack(size)
        for part in parts:
            found = stack.train([start[i] for i in part], [clients[i] for i in part], round_)
            updates[part], losses[part] = found
        return updates, losses

    def _parts(self, clients: Sequence[int]) -> tuple[int, list[list[int]]]:
        """Size of a stack, and which places in `clients` train together.

        All parts but the last are of one size, so that one stack serves them, and clients with
        similarly many samples train together, so that few are idle.
        """
        train, n = self.workload.federation.train, len(clients)
        order = sorted(range(n), key=lambda i: len(train[clients[i]]))
        size = max(-(-n // -(-n // self._most)), FEWEST[self.workload.device.type])
        return size, [order[first : first + size] for first in range(0, n, size)]

    def _stack(self, clients: int) -> Stack:
        """The stack of so many clients, made on first use; the oldest makes room."""
        if clients not in self._stacks:
            while len(self._stacks) >= KEPT:
                del self._stacks[next(iter(self._stacks))]
            device = self.workload.device.type
            record = captured if device == "cuda" else _at_once
            shape = (BLOCK[device], clients, self._batch)
            self._stacks[clients] = Stack(self.workload, self._objective, shape, record)
        return self._stacks[clients]


def _at_once(block: Block) -> Block:
    """Nothing is recorded on a CPU."""
    return block
