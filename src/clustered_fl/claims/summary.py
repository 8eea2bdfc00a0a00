"""The verdicts on the claims of one paper in one line, for the terminal."""

import pandas as pd

from clustered_fl.claims.consistency import JUDGED

WITHHELD = {"DEMO ONLY": "need real data", "REDUCED": "reduced", "NOT RUN": "not run"}
"""Words in place of a verdict, as a line counts them."""


def summary(name: str, verdicts: pd.DataFrame) -> str:
    """How many claims were checked and hold, and why the others were not checked.

    On built-in data only claims that need no data are checked. Claims that hold by construction are
    counted apart, because they are no evidence.

    Args:
        name: what readers call the paper.
        verdicts: rows of `verdicts.csv` of this paper.
    """
    found = verdicts["verdict"].value_counts()
    checked, total = int(found.reindex(JUDGED, fill_value=0).sum()), len(verdicts)
    hold = f"{found.get('CONFIRMED', 0)} hold"
    if "BY CONSTRUCTION" in found:
        hold += f", {found['BY CONSTRUCTION']} by construction"
    without = " without data" if "DEMO ONLY" in found else ""
    reasons = [f"{found[word]} {text}" for word, text in WITHHELD.items() if word in found]
    others = f" ({', '.join(reasons)})" if reasons else ""
    return f"{name}: {checked} of {total} claims checked{without}, {hold}{others}"
