"""How near is a training step to what the processor can do?

    python benchmarks/roofline.py --models mlp lenet28 --batches 10 100

Everything happens in this process, on one thread, in turns: our engine's step, the matrix products
and convolutions of that very step alone with PyTorch, and a large matrix product. See
benchmarks/README.md.
"""

import argparse
import os

from environment import ENVIRONMENT, THREADS

# Before anything imports PyTorch.
os.environ.update(THREADS | ENVIRONMENT)

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from clustered_fl.engine.training import PATHS
from clustered_fl.errors import InputError
from clustered_fl.files import read_json, write_json
from cpu import spent
from layer_products import Product, products
from measured import OURS
from peers import Engine, Unavailable, build_engine
from problem import ARCHITECTURES, build_problem
from tables import Columns, Row, markdown, measured_on, write_lines
from timing import Numbers, interleaved, origin

BATCHES = (10, 100)
STEPS = 10
"""Of a client, over which what it costs to begin and end it is spread."""
CLIENTS = {"mlp": 20, "lenet28": 10, "lenet32": 10, "leaf": 2}
LEAST_S = 0.02
"""A product is repeated until it has taken so long."""
COLUMNS: Columns = {
    "model": ("model", "{}"),
    "batch": ("batch", "{}"),
    "path": ("path", "{}"),
    "mflop": ("MFLOP / step", "{:.2f}"),
    "step_us": ("step us", "{:.0f}"),
    "gflops": ("GFLOP/s", "{:.1f}"),
    "products_gflops": ("products alone, GFLOP/s", "{:.1f}"),
    "products_us": ("products alone, us", "{:.0f}"),
    "matmul_gflops": ("matmul GFLOP/s", "{:.0f}"),
    "of_products": ("products / step", "{:.2f}"),
    "of_matmul": ("step / matmul", "{:.2f}"),
    "load": ("load", "{:.1f}"),
    "note": ("note", "{}"),
}
console = Console()


def measure(model: str, batch: int, path: str) -> Row:
    """One row: our step, its products alone, and a large product, in turns."""
    console.print(f"{model}, batches of {batch}")
    row = {"model": model, "batch": batch, **origin()}
    layers = products(ARCHITECTURES[model], batch)
    problem = build_problem(f"{model}-M{CLIENTS[model]}-B{batch}", STEPS * batch, lr=0.01)
    try:
        engine = build_engine(OURS, problem, path=path)
    except (Unavailable, InputError) as reason:
        return row | {"mflop": sum(each.flop for each in layers) / 1e6, "note": str(reason)}
    torch.set_num_threads(1)
    alone = {str(each): partial(_microseconds, each.compute, _repeats(each)) for each in layers}
    found = interleaved({"step": partial(_step, engine, CLIENTS[model] * STEPS)} | alone)
    step = found.medians("step")
    times = {str(each): found.medians(str(each))["us"] for each in layers}
    row |= {"path": engine.engine.path, "load": step["load"], "matmul_gflops": found.matmul_gflops}
    return row | _rates(layers, times, step["us"], found.matmul_gflops)


def _rates(layers: list[Product], times: dict[str, float], step_us: float, peak: float) -> Row:
    """What follows from the microseconds of the step and of each product."""
    flop, products_us = sum(each.flop for each in layers), sum(times.values())
    alone = [
        {"product": str(each), "us": times[str(each)], "gflops": each.flop / times[str(each)] / 1e3}
        for each in layers
    ]
    return {
        "mflop": flop / 1e6,
        "step_us": step_us,
        "gflops": flop / step_us / 1e3,
        "products_gflops": flop / products_us / 1e3,
        "products_us": products_us,
        "of_products": products_us / step_us,
        "of_matmul": flop / step_us / 1e3 / peak,
        "products": alone,
    }


def _step(engine: Engine, steps: int) -> Numbers:
    """CPU microseconds of one of our steps, in the second of two rounds (see `Session.round`)."""
    engine.train()
    _, cpu, _ = spent(engine.train)
    return {"us": cpu / steps * 1e6}


def _microseconds(compute: Callable[[], object], repeats: int) -> Numbers:
    """CPU microseconds of one product; the first after other work may take ten times as long."""
    compute()
    _, cpu, _ = spent(lambda: [compute() for _ in range(repeats)] and None)
    return {"us": cpu / repeats * 1e6}


def _repeats(product: Product) -> int:
    """How often a product must be repeated to be measured."""
    repeats = 1
    while _microseconds(product.compute, repeats)["us"] * repeats < LEAST_S * 1e6:
        repeats *= 2
    return repeats


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = list(ARCHITECTURES)
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--batches", nargs="+", type=int, choices=BATCHES, default=BATCHES)
    parser.add_argument("--path", choices=["auto", *PATHS], default="auto", help="how ours trains")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("roofline.json"))
    return parser.parse_args()


def _write_table(rows: list[Row], path: Path) -> None:
    lines = [
        "# A step of our engine, and what its products take alone",
        "",
        f"CPU time on one thread. {measured_on(rows)}",
        "README.md beside this file explains each column.",
        "",
    ]
    write_lines(lines + markdown(rows, COLUMNS), path)


def main() -> None:
    """Measure row after row, and write what is known after each."""
    arguments = _arguments()
    rows = read_json(arguments.out) if arguments.out.exists() else []
    order = [(model, batch) for model in ARCHITECTURES for batch in BATCHES]
    for model in arguments.models:
        for batch in arguments.batches:
            old = [row for row in rows if (row["model"], row["batch"]) != (model, batch)]
            rows = [*old, measure(model, batch, arguments.path)]
            rows.sort(key=lambda row: order.index((row["model"], row["batch"])))
            write_json(arguments.out, rows)
    _write_table(rows, arguments.out.with_suffix(".md"))
    console.print(arguments.out.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
