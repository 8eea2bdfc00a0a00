"""`python -m clustered_fl <step>`: arguments to library calls, progress lines, exit codes.

Exit code 0: done. 2: the input cannot be used, and one sentence says why. Heavy packages are
imported by the step that needs them, so that each step starts fast.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clustered_fl.errors import InputError

if TYPE_CHECKING:
    from clustered_fl.plan import Plan
    from clustered_fl.report.entries import Scope


def tell(line: str) -> None:
    """Print a line of progress at once."""
    print(line, file=sys.stderr, flush=True)


def dataset(arguments: argparse.Namespace) -> None:
    """Verify a dataset and write its canonical arrays."""
    from clustered_fl.data import dataset as datasets
    from clustered_fl.data.sources import prepare

    found = prepare(
        arguments.name,
        arguments.source,
        mirror=arguments.mirror,
        cache=arguments.cache,
        require_complete=arguments.complete,
        registry=arguments.registry,
    )
    datasets.save(found, arguments.out)
    tell(f"{found.name} from {found.source}: {len(found.y)} rows, {found.digest}. {found.note}")


def partition(arguments: argparse.Namespace) -> None:
    """Create a federation from a dataset, or the dataset that its clients' drift makes of it."""
    from clustered_fl.data import dataset as datasets
    from clustered_fl.data import federation
    from clustered_fl.data.partitions import build_federation

    settings, data = arguments.settings, datasets.load(arguments.data)
    built = build_federation(data, arguments.seed, **settings)
    if arguments.images:
        from clustered_fl.data.own_images import own_images

        datasets.save(own_images(data, built, settings, arguments.seed), arguments.out)
    else:
        federation.save(built, arguments.out)


def train(arguments: argparse.Namespace) -> None:
    """Compute one run and write its record."""
    from clustered_fl.runs import execute

    execute(
        arguments.config,
        data=arguments.data,
        federation=arguments.federation,
        out=arguments.out,
        saved=arguments.checkpoint,
        paths=arguments.paths,
        grouping=arguments.grouping,
        code=arguments.code,
        device=arguments.device,
        path=arguments.path,
        workers=arguments.workers,
        tell=tell,
    )


def encoder(arguments: argparse.Namespace) -> None:
    """Train an encoder."""
    from clustered_fl.pretraining import execute

    execute(arguments.config, arguments.data, arguments.out, arguments.code, tell)


def grouping(arguments: argparse.Namespace) -> None:
    """Find who is related to whom."""
    from clustered_fl.clustering import execute

    execute(
        arguments.config,
        data=arguments.data,
        federation=arguments.federation,
        encoder=arguments.encoder,
        out=arguments.out,
        code=arguments.code,
        tell=tell,
    )


def study(arguments: argparse.Namespace) -> None:
    """Compute one study and write its tables and its record."""
    from clustered_fl.studies import execute

    settings = arguments.settings
    execute(arguments.function, settings, arguments.seed, arguments.code, arguments.out)


def notebook(arguments: argparse.Namespace) -> None:
    """Execute the notebook of one artefact and render its page."""
    from clustered_fl.notebook import execute

    parameters = arguments.parameters | {"out": str(arguments.page.parent)}
    execute(arguments.notebook, parameters, arguments.executed, arguments.page)


def verdicts(arguments: argparse.Namespace) -> None:
    """Judge every claim and write the table of verdicts."""
    import pandas as pd

    from clustered_fl.claims.papers import predicates_of
    from clustered_fl.claims.verdicts import evaluate
    from clustered_fl.files import replacing

    plan = _plan(arguments)
    tables = [
        evaluate(
            ledger,
            predicates_of(paper),
            plan.evidence(ledger),
            {name: f"{plan.results}/studies/{name}" for name in ledger.studies},
            plan.settings.scale,
            plan.settings.data_source,
        )
        for paper, ledger in plan.ledgers.items()
    ]
    with replacing(arguments.out) as beside:
        pd.concat(tables).to_csv(beside, index=False)


def check(arguments: argparse.Namespace) -> None:
    """Test that the results are whole and honest."""
    from clustered_fl.claims.consistency import check_results

    plan = _plan(arguments)
    claims = [claim for ledger in plan.ledgers.values() for claim in ledger.claims]
    folder = Path(plan.results) / "artefacts"
    artefacts = {name: folder / name / f"{name}.csv" for name in plan.artefacts}
    check_results(Path(plan.results) / "verdicts.csv", claims, artefacts)
    tell(f"{len(claims)} claims and {len(artefacts)} artefacts are whole and honest")


def report(arguments: argparse.Namespace) -> None:
    """Write the report, a static site."""
    from clustered_fl.report.site import build

    build(_scope(arguments), arguments.out)


def publish(arguments: argparse.Namespace) -> None:
    """Copy what is worth committing of the results."""
    from clustered_fl.publish import publish as copy

    copy(_scope(arguments), arguments.out, arguments.ledgers)


def _scope(arguments: argparse.Namespace) -> "Scope":
    from clustered_fl.report.entries import Scope

    plan = _plan(arguments)
    about = (plan.settings.scale, plan.settings.data_source, plan.settings.seeds, arguments.guide)
    return Scope(tuple(plan.ledgers.values()), Path(plan.results), *about)


def _plan(arguments: argparse.Namespace) -> "Plan":
    from clustered_fl.plan import Plan
    from clustered_fl.settings import read_settings

    return Plan(read_settings(arguments.settings), arguments.ledgers)


_JSON = {"required": True, "type": json.loads, "metavar": "JSON"}
_PLAN = {
    "settings": {**_JSON, "help": "the configuration of the workflow"},
    "ledgers": {"type": Path, "required": True, "help": "folder with one YAML per paper"},
}
_OUT = {"type": Path, "required": True}
_SITE = {**_PLAN, "guide": {"type": Path, "help": "Markdown for who adds a method"}, "out": _OUT}

# Step -> function and its options; an option is a name and what argparse needs to know of it.
STEPS: dict[str, tuple[Callable[[argparse.Namespace], None], dict[str, dict]]] = {
    "dataset": (
        dataset,
        {
            "name": {"required": True},
            "source": {"required": True},
            "registry": {"type": Path, "required": True},
            # Snakemake quotes an empty parameter as nothing at all.
            "mirror": {"type": Path, "nargs": "?"},
            "cache": {"type": Path, "required": True},
            "complete": {"action": "store_true"},
            "out": {"type": Path, "required": True},
        },
    ),
    "partition": (
        partition,
        {
            "data": {"type": Path, "required": True},
            "seed": {"type": int, "required": True},
            "settings": {**_JSON, "help": "kind and its settings"},
            "images": {"action": "store_true", "help": "write the clients' transformed images"},
            "out": {"type": Path, "required": True},
        },
    ),
    "encoder": (
        encoder,
        {
            "config": {**_JSON, "help": "the resolved encoder"},
            "data": {"type": Path, "required": True},
            "code": {"required": True, "help": "fingerprint of the code of the encoder"},
            "out": {"type": Path, "required": True},
        },
    ),
    "grouping": (
        grouping,
        {
            "config": {**_JSON, "help": "the resolved grouping"},
            "data": {"type": Path, "required": True},
            "federation": {"type": Path, "required": True},
            "encoder": {"type": Path, "nargs": "?", "help": "folder of the encoder"},
            "code": {"required": True, "help": "fingerprint of the code of the grouping"},
            "out": {"type": Path, "required": True},
        },
    ),
    "train": (
        train,
        {
            "config": {**_JSON, "help": "the resolved run"},
            "data": {"type": Path, "required": True},
            "federation": {"type": Path, "required": True},
            "checkpoint": {"type": Path, "required": True},
            "paths": {"type": Path, "required": True, "help": "folder of calibrations"},
            "grouping": {"type": Path, "nargs": "?", "help": "folder of the run's grouping"},
            "code": {"required": True, "help": "fingerprint of the code of the run"},
            "device": {"default": "auto"},
            "path": {"default": "auto", "help": "how clients are trained"},
            "workers": {"type": int, "default": 1},
            "out": {"type": Path, "required": True},
        },
    ),
    "study": (
        study,
        {
            "function": {"required": True, "help": "module.function below clustered_fl.theory"},
            "settings": {**_JSON, "help": "its arguments"},
            "seed": {"type": int, "default": 0},
            "code": {"required": True, "help": "fingerprint of the code of the study"},
            "out": {"type": Path, "required": True},
        },
    ),
    "notebook": (
        notebook,
        {
            "notebook": {"type": Path, "required": True},
            "parameters": {**_JSON, "help": "values of its parameters cell"},
            "executed": {"type": Path, "required": True},
            "page": {"type": Path, "required": True},
        },
    ),
    "verdicts": (verdicts, {**_PLAN, "out": _OUT}),
    "check": (check, _PLAN),
    "report": (report, _SITE),
    "publish": (publish, _SITE),
}


def parser() -> argparse.ArgumentParser:
    """The command line of every step."""
    root = argparse.ArgumentParser(
        prog="python -m clustered_fl", description=__doc__.split("\n")[0]
    )
    steps = root.add_subparsers(required=True, metavar="step")
    for name, (function, options) in STEPS.items():
        step = steps.add_parser(name, help=function.__doc__)
        for option, details in options.items():
            step.add_argument(f"--{option}", **details)
        step.set_defaults(step=function)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step and return its exit code."""
    chosen = parser().parse_args(arguments)
    try:
        chosen.step(chosen)
    except InputError as error:
        tell(f"error: {error}")
        return 2
    return 0
