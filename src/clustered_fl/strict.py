"""What all parts of a ledger share: no unknown key passes, and a few words have one spelling."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Scale = Literal["demo", "desktop", "paper"]
Word = Literal["sgd", "adam", "all", "last"]
"""What local training may be told in words."""


class Strict(BaseModel):
    """A part of a ledger: it takes the keys that it names and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes` put in, nested dictionaries merged key by key."""
    found = dict(base)
    for key, value in changes.items():
        old = found.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        found[key] = merged(old, value) if both else value
    return found
