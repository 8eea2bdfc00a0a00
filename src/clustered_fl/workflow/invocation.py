"""What the plan asks of Snakemake: the options it was started with, and what it remembers."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Invocation:
    """Functions, because Snakemake knows the answers only when it plans jobs.

    Attributes:
        everything: whether all jobs are to run again even if they are finished.
        forced: rules of which all jobs, and files of which the job, are to run again.
        remembered: parameters with which a file was made, None if Snakemake knows of no such job.
        cluster: whether jobs go to a cluster, where short ones are grouped.
    """

    everything: Callable[[], bool] = lambda: False
    forced: Callable[[], Collection[str]] = tuple
    remembered: Callable[[str], Collection[str] | None] = lambda file: ()
    cluster: Callable[[], bool] = lambda: False


UNASKED = Invocation()
"""Without Snakemake, in a job or a notebook."""


def invocation(workflow: Any) -> Invocation:
    """The functions for Snakemake's object `workflow`."""
    from snakemake.io import IOFile

    return Invocation(
        everything=lambda: workflow.dag_settings.forceall,
        forced=lambda: _forced(workflow.dag_settings),
        remembered=lambda file: workflow.persistence.params(IOFile(file)),
        cluster=lambda: workflow.non_local_exec,
    )


def _forced(settings: Any) -> set[str]:
    """What `-f` and `-R` ask for: names of rules and files.

    With `-f`, the name of an artefact forces a rule without a job, and none of what it reads.
    """
    return {*settings.forcerun, *(settings.targets if settings.forcetargets else ())}
