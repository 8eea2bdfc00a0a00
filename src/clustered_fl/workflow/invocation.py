"""What the plan asks of Snakemake: the options it was started with, and what it remembers."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

RULES = {"run": "train", "grouping": "grouping", "encoder": "encoder"}
"""Rules that compute records from data, by kind."""


@dataclass(frozen=True)
class Invocation:
    """Functions, because Snakemake knows the answers only when it plans jobs.

    Attributes:
        forced: rules whose jobs, and files that, are to be made again even if they are finished.
        remembered: parameters with which a file was made, None if Snakemake knows of no such job.
        cluster: whether jobs go to a cluster, where short ones are grouped.
    """

    forced: Callable[[], Collection[str]] = tuple
    remembered: Callable[[str], Collection[str] | None] = lambda file: ()
    cluster: Callable[[], bool] = lambda: False


UNASKED = Invocation()
"""Without Snakemake, in a job or a notebook."""


def invocation(workflow: Any) -> Invocation:
    """The functions for Snakemake's object `workflow`."""
    from snakemake.io import IOFile

    return Invocation(
        forced=lambda: _forced(workflow.dag_settings),
        remembered=lambda file: workflow.persistence.params(IOFile(file)),
        cluster=lambda: workflow.non_local_exec,
    )


def _forced(settings: Any) -> set[str]:
    """What `-F`, `-f` and `-R` ask for: names of rules and files."""
    targets = settings.targets if settings.forcetargets else ()
    every = RULES.values() if settings.forceall else ()
    return {*settings.forcerun, *targets, *every}
