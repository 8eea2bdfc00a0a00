"""From the `measure` of a claim to a call: function, arguments and records."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from inspect import signature
from typing import Any, get_args, get_origin

from clustered_fl.claims.names import Refers
from clustered_fl.errors import InputError
from clustered_fl.ledger.schema import Claim
from clustered_fl.ledger.written import Ledger

GENERAL = "measures"
SECTIONS = ("runs", "groupings", "studies")
ROWS = "rows"
"""Key of an unstated value that replaces rows in place of whole arguments."""
SHOWN = ("shown", "beside")
"""Arguments of measures that add numbers for the reader and change none that is judged."""
OF_A_CELL = {"runs": "run", "groupings": "grouping"}


@dataclass(frozen=True)
class Bound:
    """A measure ready to be called with evidence.

    Attributes:
        function: dotted name below `clustered_fl.claims`.
        arguments: with cells replaced by names of runs or groupings.
        needs: section of the ledger -> names that the arguments refer to.
    """

    function: str
    arguments: dict[str, Any]
    needs: dict[str, list[str]] = field(default_factory=dict)

    @property
    def measured(self) -> list[str]:
        """Names of runs and groupings in the arguments."""
        return [*self.needs["runs"], *self.needs["groupings"]]


def function_of(measure: Mapping[str, Any]) -> tuple[str, str]:
    """Module below `clustered_fl.claims` and function of a measure.

    Raises: InputError if it names none.
    """
    name = measure.get("name")
    if not isinstance(name, str) or not name:
        raise InputError("a measure needs a name")
    module, _, function = name.rpartition(".")
    return module or GENERAL, function


def variants(claim: Claim) -> dict[str, Claim]:
    """A claim as in the ledger, and with every other value of unstated settings.

    Returns:
        Setting and value, "" for the ledger's own -> the claim on the runs with it.
    Raises: InputError if a value changes nothing that is judged.
    """
    found = {"": claim}
    for setting, values in claim.unstated.items():
        for value, changes in values.items():
            measure = _varied(claim.measure, changes)
            if _judged(measure) == _judged(claim.measure):
                raise InputError(f"unstated {setting} = {value} changes nothing in the measure")
            found[f"{setting} = {value}"] = claim.model_copy(update={"measure": measure})
    return found


def _judged(measure: Mapping[str, Any]) -> dict[str, Any]:
    """A measure without the arguments that only add numbers for the reader."""
    return {key: value for key, value in measure.items() if key not in SHOWN}


def _varied(measure: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A measure with other arguments; `rows` replaces rows of tables in all others."""
    own = dict(changes)
    rows = own.pop(ROWS, {})
    if not isinstance(rows, dict):
        raise InputError(f"{ROWS} must give a row for every row that it replaces, not {rows!r}")
    kept = {key: each if key == "name" else _other(each, rows) for key, each in measure.items()}
    return kept | own


def _other(value: Any, rows: Mapping[str, str]) -> Any:
    """An argument with other rows of its cells."""
    if isinstance(value, dict):
        return {key: _other(each, rows) for key, each in value.items()}
    if isinstance(value, list):
        return [_other(each, rows) for each in value]
    column, dot, row = value.partition(".") if isinstance(value, str) else ("", "", "")
    return f"{column}.{rows[row]}" if dot and row in rows else value


def bind(measure: Mapping[str, Any], target: Callable[..., Any], ledger: Ledger) -> Bound:
    """Resolve the names in the arguments of a claim's measure.

    Args:
        target: the function it names, or one with the same signature.
    Raises: InputError if a name is not in the ledger.
    """
    arguments = {key: value for key, value in measure.items() if key != "name"}
    needs: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for key, parameter in signature(target).parameters.items():
        section = section_of(parameter.annotation)
        if section and key in arguments:
            arguments[key] = _resolved(arguments[key], section, ledger)
            needs[section] += _texts(arguments[key])
    unique = {section: list(dict.fromkeys(names)) for section, names in needs.items()}
    return Bound(".".join(function_of(measure)), arguments, unique)


def section_of(annotation: Any) -> str | None:
    """The section of a ledger whose names an argument takes, at any depth of its type."""
    for mark in getattr(annotation, "__metadata__", ()):
        if isinstance(mark, Refers):
            return mark.section
    parts = get_args(annotation) if get_origin(annotation) is not None else ()
    return next((found for part in parts if (found := section_of(part))), None)


def _resolved(value: Any, section: str, ledger: Ledger) -> Any:
    """A value with cells replaced by names; in a list, a pattern becomes all its matches."""
    if isinstance(value, dict):
        return {key: _resolved(each, section, ledger) for key, each in value.items()}
    if isinstance(value, list):
        if not value or any(isinstance(each, list) for each in value):
            raise InputError(f"{value} must be a list of {section}, at least one")
        found = (_resolved(each, section, ledger) for each in value)
        return [name for each in found for name in (each if isinstance(each, list) else [each])]
    if not isinstance(value, str):
        return value
    if "." in value and section in OF_A_CELL:
        names = list(dict.fromkeys(_matching(value, section, ledger)))
        if not names:
            raise InputError(f"no cell {value!r} has one of {section}")
        return names if "*" in value else names[0]
    if value not in getattr(ledger, section):
        raise InputError(f"{value!r} is none of the {section} of the ledger")
    return value


def _matching(pattern: str, section: str, ledger: Ledger) -> Iterator[str]:
    column, _, row = pattern.partition(".")
    for cell in ledger.cells:
        shown = row == cell.row or not ledger.tables[cell.table].rows[cell.row].hidden
        if shown and fnmatchcase(cell.column, column) and fnmatchcase(cell.row, row):
            yield from filter(None, [getattr(cell, OF_A_CELL[section])])


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return [name for part in parts for name in _texts(part)]
    return [value] if isinstance(value, str) else []
