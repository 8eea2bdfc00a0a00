"""Which modules hold the claims of which paper."""

from importlib import import_module

from clustered_fl.claims.predicates import Predicates
from clustered_fl.errors import InputError

# Text, so that the claims of one paper do not count as code of another.
_FLT = ("theorems", "recovery", "scenarios", "writers", "structured", "ablation", "columns")
_REPA = ("correlation", "uniformity", "robustness", "writers", "two_labels", "shift")
MODULES: dict[str, tuple[str, ...]] = {
    "cfl": ("toys", "gap", "norms", "splits", "theorems"),
    "flt": (*_FLT, "pictures"),
    "repa": _REPA,
    "ground": ("sight", "gains", "prices"),
}


def predicates_of(paper: str) -> Predicates:
    """All predicates of a paper, by claim id.

    Raises:
        InputError: if the paper has none.
    """
    if paper not in MODULES:
        raise InputError(
            f"there are no claims for paper {paper!r}; there are for {', '.join(MODULES)}"
        )
    for module in MODULES[paper]:
        import_module(f"clustered_fl.claims.{paper}.{module}")
    return import_module(f"clustered_fl.claims.{paper}.registry").claim
