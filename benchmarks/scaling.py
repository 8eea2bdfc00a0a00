"""How does our engine scale? Clients, workers, jobs side by side, checkpoints, start, memory.

    python benchmarks/scaling.py --parts clients jobs --out benchmarks/scaling.json

Without arguments it measures every part. It can be stopped and continued: a part that is measured
again replaces its old rows, others stay. See benchmarks/README.md.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from clustered_fl.engine.training import PATHS
from clustered_fl.files import read_json, write_json
from environment import THREADS, environment
from measured import OURS, Failed, Measured
from scaling_report import write_figure, write_table
from tables import Row
from timing import Numbers, Repetitions, Turns, interleaved, origin

SAMPLES = 100
"""Per client: ten steps of ten, with LeNet on 28 x 28 pixels, in all parts but the last."""
CLIENTS, WORKERS, JOBS = (10, 30, 100, 300, 1000), (1, 2), (1, 2, 4)
# What decides on an operation's threads -> engine, its options, clients of each job: few
# where four jobs take tens of times as long as one.
POLICIES = {
    "ours, 1 worker": (OURS, {}, 100),
    "plain loop, 1 thread": ("plain-loop", {}, 30),
    "plain loop, default threads": ("plain-loop", {"default_threads": True}, 10),
}
CHECKPOINT_ROUNDS, EARLY, LATE = 10, 100, 2000
COHORTS, COHORT_ROUNDS, COHORT_SAMPLES = (1000, 3000, 10000), 3, 10
console = Console()


def cell(clients: int) -> str:
    """Name of the problem with so many clients."""
    return f"lenet28-M{clients}-B10"


@dataclass(frozen=True)
class Scope:
    """What all parts are told.

    Attributes:
        folder: for files that are not kept.
        largest: number of clients.
        path: how our engine trains, see `peers.ours`.
    """

    folder: Path
    largest: int
    path: str

    def ours(self, M: int) -> tuple[str, str, Path]:
        """Arguments of `Measured` for our engine with M clients."""
        return OURS, cell(M), self.folder

    def options(self, engine: str = OURS) -> dict[str, Any]:
        """Options of an engine's process; only ours has paths."""
        path = {"path": self.path} if engine == OURS else {}
        return {"samples": SAMPLES} | path


def clients(scope: Scope) -> list[Row]:
    """Seconds of a round and memory by number of clients and of workers."""
    with Turns() as turns:
        for key in product([M for M in CLIENTS if scope.largest >= M], WORKERS):
            M, workers = key
            console.print(f"clients: starting {M} clients, {workers} workers")
            turns.start(key, *scope.ours(M), workers=workers, **scope.options())
        turns.repeat()
        return [_clients_row(turns, *key) for key in [*turns.engines, *turns.failed]]


def _clients_row(turns: Turns, M: int, workers: int) -> Row:
    """What is known of one number of clients and workers."""
    row = {"clients": M, "workers": workers, "matmul_gflops": turns.found.matmul_gflops}
    try:
        measured = turns.ended((M, workers))
        times = turns.found.medians((M, workers))
        rate = {"clients_per_s": M / times["wall_s"]}
        return row | times | rate | measured.first | measured.ask("memory")
    except Failed as reason:
        return row | {"note": str(reason)}


def jobs(scope: Scope) -> list[Row]:
    """Clients per second of one, two and four jobs, by what decides on threads."""
    started: list[Measured] = []
    try:
        functions = {}
        for policy, (engine, options, most) in POLICIES.items():
            M = min(scope.largest, most)
            console.print(f"jobs: starting {max(JOBS)} x {policy}")
            given = scope.options(engine) | options
            # One by one into `started`, which is closed even if a later one fails.
            started.extend(
                Measured(engine, cell(M), scope.folder, **given) for _ in range(max(JOBS))
            )
            own = started[-max(JOBS) :]
            functions |= {(policy, k): partial(together, own[:k], M) for k in JOBS}
        return _ratios(interleaved(functions))
    finally:
        for measured in started:
            measured.close()


def together(processes: list[Measured], clients_each: int) -> Numbers:
    """Release processes that wait, and take the time until the last has done its round.

    Raises:
        Failed: if one is too slow; then all are ended, because their answers would be late.
    """
    began = time.perf_counter()
    for measured in processes:
        measured.send("once")
    try:
        answers = [measured.answer() for measured in processes]
    except Failed:
        for measured in processes:
            measured.kill()
        raise
    wall = time.perf_counter() - began
    cpu = sum(answer["cpu_s"] for answer in answers)
    return {"wall_s": wall, "cpu_s": cpu, "clients_per_s": len(processes) * clients_each / wall}


def _ratios(found: Repetitions) -> list[Row]:
    """Rows of jobs, with the rate in units of one job's."""
    rows = []
    for policy, k in found.values:
        row = {"policy": policy, "jobs": k, "matmul_gflops": found.matmul_gflops}
        row |= found.medians((policy, k))
        one = found.medians((policy, JOBS[0]))
        if "note" not in row.keys() | one.keys():
            row["relative"] = row["clients_per_s"] / one["clients_per_s"]
        rows.append(row)
    return rows


def checkpoints(scope: Scope) -> list[Row]:
    """Seconds of a run with a checkpoint after every round, and without."""
    M, saved = min(scope.largest, 20), scope.folder / "checkpoint.safetensors"
    measured = Measured(*scope.ours(M), **scope.options())

    def run(*path: str) -> Numbers:
        measured.ask("begin")
        return measured.ask("carry", str(CHECKPOINT_ROUNDS), *path)

    try:
        found = interleaved({"none": run, "every round": partial(run, str(saved))})
    finally:
        measured.close()
    without = found.medians("none").get("wall_s", float("nan"))
    rows = _named(found, "checkpoints")
    for row in rows:
        row |= {"clients": M, "rounds": CHECKPOINT_ROUNDS}
    if "wall_s" in rows[1]:
        rows[1]["per_checkpoint_ms"] = (rows[1]["wall_s"] - without) / CHECKPOINT_ROUNDS * 1e3
        rows[1]["file_kb"] = saved.stat().st_size / 1e3
    return rows


def start(scope: Scope) -> list[Row]:
    """Seconds from the start of a process to the end of its first round, and of an import alone."""
    M = min(scope.largest, 10)

    def first_round() -> Numbers:
        measured = Measured(*scope.ours(M), **scope.options())
        measured.close()
        return {"wall_s": measured.first_round_s}

    modules = ("torch", "clustered_fl.engine.training")
    functions = {f"import {module}": partial(_imported, module) for module in modules}
    return _named(interleaved(functions | {f"first round of {M} clients": first_round}), "until")


def _imported(module: str) -> Numbers:
    """Seconds until a Python process has imported a module; its end does not count."""
    began = time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-c", f"import {module}; print(flush=True)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(THREADS)) as process:
        said = process.stdout.readline()
        wall = time.perf_counter() - began
    if not said:
        raise Failed(f"import {module} failed with exit code {process.returncode}")
    return {"wall_s": wall}


def memory(scope: Scope) -> list[Row]:
    """Resident memory early and late in a run of a tiny federation, each time in a new process."""
    M = min(scope.largest, 4)

    def run() -> Numbers:
        measured = Measured(*scope.ours(M), **scope.options() | {"samples": 10, "lr": 0.01})
        try:
            measured.ask("begin", "bare")
            measured.ask("carry", str(EARLY))
            early = measured.ask("memory")["resident_mb"]
            measured.ask("carry", str(LATE - EARLY))
            late = measured.ask("memory")["resident_mb"]
        finally:
            measured.close()
        return {"early_mb": early, "late_mb": late, "growth_mb": late - early}

    return _named(interleaved({M: run}), "clients")


def cohorts(scope: Scope) -> list[Row]:
    """Memory of a run of FedAvg with many MLP clients, measured and saved after each round."""
    return [_cohort_row(scope, M) for M in COHORTS if scope.largest >= M]


def _cohort_row(scope: Scope, M: int) -> Row:
    console.print(f"cohorts: starting {M} clients")
    saved, row = scope.folder / "checkpoint.safetensors", {"clients": M, "rounds": COHORT_ROUNDS}
    options = scope.options() | {"samples": COHORT_SAMPLES, "idle": True}
    try:
        measured = Measured(OURS, f"mlp-M{M}-B{COHORT_SAMPLES}", scope.folder, **options)
    except Failed as reason:
        return row | {"note": str(reason)}
    try:
        measured.ask("begin")
        row |= measured.ask("carry", str(COHORT_ROUNDS), str(saved)) | measured.first
        row |= measured.ask("memory") | {"file_kb": saved.stat().st_size / 1e3}
    except Failed as reason:
        row["note"] = str(reason)
    finally:
        measured.close()
    return row


def _named(found: Repetitions, name: str) -> list[Row]:
    """A row for each function, its key under `name`."""
    gflops = {"matmul_gflops": found.matmul_gflops}
    return [{name: key} | found.medians(key) | gflops for key in found.values]


PARTS: dict[str, Callable[[Scope], list[Row]]] = {
    "clients": clients,
    "jobs": jobs,
    "checkpoints": checkpoints,
    "start": start,
    "memory": memory,
    "cohorts": cohorts,
}


def _measured(part: str, largest: int, path: str) -> list[Row]:
    """Rows of a part, or the reason why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return PARTS[part](Scope(Path(folder), largest, path))
        except Failed as reason:
            console.print(f"{part}: {reason}")
            return [{"note": str(reason)}]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--largest", type=int, default=max(COHORTS), help="clients at most")
    parser.add_argument("--path", choices=["auto", *PATHS], default="auto", help="how ours trains")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("scaling.json"))
    arguments = parser.parse_args()
    if arguments.largest < min(CLIENTS):
        parser.error(f"--largest is {arguments.largest}; it must be at least {min(CLIENTS)}")
    return arguments


def main() -> None:
    """Measure part after part, and write what is known after each."""
    arguments = _arguments()
    known: dict[str, Any] = read_json(arguments.out) if arguments.out.exists() else {}
    for part in arguments.parts:
        console.print(f"measuring {part}")
        rows = _measured(part, arguments.largest, arguments.path)
        known[part] = [row | origin() for row in rows]
        write_json(arguments.out, known)
    write_table(known, arguments.out.with_suffix(".md"))
    write_figure(known, arguments.out.with_suffix(".png"))
    console.print(arguments.out.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
