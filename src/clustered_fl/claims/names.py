"""How a measure says that an argument names something of the ledger, and what arguments mean.

A ledger writes `column.row` for a cell of its tables, where `*` matches anything: `*.oracle` is
the row `oracle` in all columns that have it. A measure is given names of runs or of groupings.
"""

from typing import Annotated, NamedTuple


class Refers(NamedTuple):
    """Marks an argument: its texts are names of this section of the ledger."""

    section: str


Run = Annotated[str, Refers("runs")]
Grouping = Annotated[str, Refers("groupings")]
Study = Annotated[str, Refers("studies")]

ARGUMENTS = {
    "of": "what is measured; ours, if it is compared with others",
    "over": "what ours is compared with",
    "to": "what ours is compared with",
    "pairs": "name of a comparison -> our run and the other one",
    "take": 'which of several values is given for all of them, such as "agreement"',
    "shots": "groupings found before training",
    "study": "the study whose tables are read",
    "cfl": "a run of CFL",
    "fedavg": "a run of federated averaging with the same clients",
    "samples": "numbers of samples per client",
    "along": "what the gap should grow with",
    "clusters": "numbers of clusters",
    "problem": "one of the study's toy problems",
    "judge": "grouping that has compared the clients' pipelines",
    "sizes": "grouping that knows how many images each client is tested on",
    "tests": "number of tests at the end that are read",
}
"""What an argument means in every measure whose docstring has no entry for it."""
