"""How much more accuracies differ between seeds than the errors of their tests suggest.

Every pair of runs in one column of a ledger's table that has three seeds or more gives a ratio: the
standard deviation over seeds of the difference between their final accuracies, relative to its
binomial error. `claims.judging.BETWEEN_SEEDS` rests on these ratios. Reads the published records:

    python benchmarks/between_seeds.py
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from clustered_fl.claims.judging import Estimate
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.metrics.accuracy import at_last
from clustered_fl.records.archive import FILE, read
from clustered_fl.report.comparison import accuracy_in

ROOT = Path(__file__).resolve().parents[1]
PAPERS = "flt", "repa", "ground"
"""Those whose tables compare accuracies."""
SEEDS = 3


def ratio(first: dict[int, Estimate], second: dict[int, Estimate]) -> float | None:
    """The ratio of two runs, seed -> accuracy; None with fewer than `SEEDS` seeds in common."""
    leads = [first[seed] - second[seed] for seed in first.keys() & second.keys()]
    if len(leads) < SEEDS:
        return None
    error = float(np.mean([lead.error for lead in leads]))
    return float(np.std(leads, ddof=1)) / error if error else None


def ratios(paper: str) -> Iterator[float]:
    """The ratios of all pairs of a paper's runs."""
    columns = defaultdict(set)
    for cell in load_ledger(ROOT / "config" / "papers" / f"{paper}.yaml").cells:
        if cell.run:
            columns[cell.table, cell.column].add(cell.run)
    accuracies: dict[str, dict[int, Estimate]] = {run: {} for run in set().union(*columns.values())}
    for key, packed in read(ROOT / "figures" / "desktop" / paper / FILE).items():
        if key.kind == "run" and key.name in accuracies:
            accuracies[key.name][key.seed] = accuracy_in(packed, at_last)
    for runs in columns.values():
        for pair in combinations(sorted(runs), 2):
            value = ratio(*(accuracies[run] for run in pair))
            if value is not None:
                yield value


def summary_line(name: str, found: list[float]) -> str:
    """One line about the ratios of a paper."""
    square, middle = np.sqrt(np.mean(np.square(found))), np.median(found)
    return f"{name}: {len(found):,} pairs, root mean square {square:.1f}, median {middle:.1f}"


if __name__ == "__main__":
    every = {paper: list(ratios(paper)) for paper in PAPERS}
    every["all"] = [each for found in every.values() for each in found]
    print(*(summary_line(*each) for each in every.items()), sep="\n")
