"""Markers of arguments that name entries of a ledger, and the meanings of common arguments.

A ledger writes `column.row` for a cell of its tables, where `*` matches anything: `*.oracle` is
the row `oracle` in all columns that have it. A measure receives names of runs or groupings.
"""

from typing import Annotated, NamedTuple


class Refers(NamedTuple):
    """Marks an argument whose texts are names in this section of the ledger."""

    section: str


Run = Annotated[str, Refers("runs")]
Grouping = Annotated[str, Refers("groupings")]
Study = Annotated[str, Refers("studies")]

ARGUMENTS = {
    "of": "entries to measure; in a comparison, the entries of interest",
    "over": "entries to compare with",
    "to": "entry to compare with",
    "pairs": "name of a comparison -> run of interest and run to compare with",
    "take": 'which statistic summarises several values, such as "agreement"',
    "shots": "groupings found before training",
    "study": "study whose tables are read",
    "cfl": "a run of CFL",
    "fedavg": "a run of federated averaging with the same clients",
    "samples": "numbers of samples per client",
    "along": "quantity against which the gap is measured",
    "clusters": "numbers of clusters",
    "problem": "one of the study's toy problems",
    "judge": "grouping with similarities of the clients' pipelines",
    "sizes": "grouping with each client's number of test images",
    "tests": "number of final tests that are used",
}
"""Meaning of an argument in measures whose docstrings do not describe it."""
