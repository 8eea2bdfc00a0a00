"""Tables of runs: keys of columns, rows and cells, and the expansion into runs and groupings.

A cell is a run, a grouping or both. It is merged from four layers: all cells, the column, the row,
the cell. Later layers win. A part with a name (a federation with a `kind`, a model or a method with
a `name`) replaces that of the earlier layer; one without updates its settings, and null removes a
setting. `{column}`, `{row}` and `{paper}` become names, `{value}` the column's value of that name.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field, create_model, field_validator

from clustered_fl.errors import InputError
from clustered_fl.ledger.schema import Grouping, Name, Run
from clustered_fl.options import Strict


def _optional(model: type[BaseModel], name: str, doc: str) -> type[BaseModel]:
    """A model with the keys of another, all optional."""
    fields = {
        key: (field.annotation | None, Field(default=None, description=field.description))
        for key, field in model.model_fields.items()
    }
    return create_model(name, __base__=Strict, __doc__=doc, **fields)


class GroupingLayer(_optional(Grouping, "_AnyGrouping", "")):
    """The key `grouping` of a layer, by which a cell averages. A text names a grouping.

    If a layer gives it a method, a grouping of the cell's clients is made.
    """

    name: str | None = Field(default=None, description="pattern; as the table's, if not given")


class Layer(_optional(Run, "_AnyRun", "")):
    """The key `all` of a table, and its `cells`: any keys of a run."""

    grouping: GroupingLayer | None = Field(default=None, description="name of a grouping, or one")

    @field_validator("grouping", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class Column(Layer):
    """An entry of `columns`: any keys of a run, and titles of the column."""

    title: str = Field(description="head of the column, or name of the panel")
    values: dict[str, Any] = Field(
        default={}, description="what `{name}` stands for in this column"
    )
    differs: str = Field(default="", description="what differs between clients, as a sentence")
    truth: bool = Field(
        default=True, description="whether true groups are known; false: no agreement is reported"
    )
    lesson: str = Field(default="", description="main result at `desktop`, in a sentence or two")


class Needs(Strict):
    """The key `needs` of a row: requirements of a method beyond those of FedAvg."""

    training: bool = Field(default=False, description="that clients train before they are grouped")
    labels: bool = Field(default=False, description="labels, so that clients can be grouped")
    all_clients: bool = Field(default=False, description="all clients in every round")
    clusters: bool = Field(default=False, description="the number of clusters")
    public_data: bool = Field(default=False, description="data at the server, for an encoder")
    truth: bool = Field(default=False, description="the true groups, which no method can know")
    note: str = Field(default="", description="a further requirement")


Part = Literal["encoder", "network", "signature"]


class Traffic(Strict):
    """The key `traffic` of a row: what clients and server exchange."""

    down: int | str = Field(default=1, description="models that a participant receives in a round")
    up: int = Field(default=1, ge=0, description="models that it returns")
    before_down: list[Part] = Field(
        default=[],
        description="what a client receives before the first round: `encoder`, "
        "`network` (of the profiler, whose training counts too)",
    )
    before_up: list[Part] = Field(
        default=[], description="what it returns then: `network`, `signature`"
    )


class Row(Layer):
    """An entry of `rows`: any keys of a run, and titles of the row."""

    title: str = Field(description="name of the method")
    columns: list[str] = Field(default=[], description="columns that have the row; none: all")
    of: str = Field(default="", description="row whose published numbers it is compared with")
    hidden: bool = Field(default=False, description="computed for other rows and shown nowhere")
    citation: str = Field(default="", description="authors, and where it was published")
    needs: Needs = Field(default=Needs(), description="what it needs from clients and server")
    finds: bool = Field(default=True, description="whether it looks for groups of clients")
    traffic: Traffic = Field(default=Traffic(), description="what is sent")
    lesson: str = Field(default="", description="main result at `desktop`, in a sentence or two")


class Table(Strict):
    """An entry of `tables`: every row is trained on every column."""

    run: str = Field(default="{paper}_{column}_{row}", description="names of the runs")
    grouping: str = Field(default="{paper}_groups_{column}_{row}", description="of the groupings")
    all: Layer = Field(default=Layer(), description="what all cells share")
    columns: dict[Name, Column] = Field(description="by name")
    rows: dict[Name, Row] = Field(description="by name")
    cells: dict[str, dict[str, Layer | None]] = Field(
        default={}, description="exceptions: column -> row -> keys of a run; null: no such cell"
    )
    numbers: list[str] = Field(default=[], description="names of the published numbers of a cell")
    published: dict[str, dict[str, list[float]]] = Field(
        default={}, description="column -> row -> published numbers"
    )


class Cell(NamedTuple):
    """One cell and the names of its run and grouping; "" for one that it does not have.

    Attributes:
        of: row whose published numbers it is compared with, by default its own.
        published: name -> published number.
        traffic: see `Traffic`.
    """

    table: str
    column: str
    row: str
    run: str
    grouping: str
    encoder: str
    profiler: str
    of: str
    published: dict[str, float]
    traffic: dict[str, Any]


OF_CLIENTS = ("dataset", "federation")
_NAMED = ("kind", "name")


class Expansion(NamedTuple):
    """An expanded table: its cells, and its runs and groupings by name, unchecked."""

    cells: list[Cell]
    runs: dict[str, dict[str, Any]]
    groupings: dict[str, dict[str, Any]]


def expand(paper: str, name: str, table: Table) -> Expansion:
    """Expand a table into cells, runs and groupings.

    Raises:
        InputError: if it names an unknown column, row or value, has undeclared published numbers,
            or gives two cells the same name and different content.
    """
    _check(name, table)
    found = Expansion([], {}, {})
    for column, row in _places(table):
        where = f"table {name}, column {column}, row {row}"
        values = {"paper": paper, "column": column, "row": row} | table.columns[column].values
        merged = filled(_merged(table, column, row), values, where)
        published = _published(table, column, row)
        grouping, grouping_name = _grouping(table, merged, values, where)
        run = _text(table.run, values, where) if "method" in merged else ""
        about = _about(table, column, row, published)
        if run:
            _add(found.runs, run, about | merged | {"grouping": grouping_name or None}, where)
        if grouping:
            _add(found.groupings, grouping_name, about | grouping, where)
        networks = [grouping.get(key) or "" for key in ("encoder", "profiler")]
        traffic = filled(table.rows[row].traffic.model_dump(), values, where)
        of = table.rows[row].of or row
        place = (name, column, row, run, grouping_name, *networks, of)
        found.cells.append(Cell(*place, published, traffic))
    return found


def _check(name: str, table: Table) -> None:
    known = {"column": table.columns, "row": table.rows}
    named = [
        (f"row {row}", "column", each) for row, of in table.rows.items() for each in of.columns
    ]
    named += [(f"row {row}", "row", of.of) for row, of in table.rows.items() if of.of]
    for key in ("cells", "published"):
        for column, rows in getattr(table, key).items():
            named += [(key, "column", column), *((key, "row", row) for row in rows)]
    for user, kind, each in named:
        if each not in known[kind]:
            allowed = ", ".join(known[kind])
            raise InputError(f"table {name}: {user} names {kind} {each!r}; allowed are {allowed}")
    for column, rows in table.published.items():
        for row, numbers in rows.items():
            if len(numbers) > len(table.numbers):
                raise InputError(
                    f"table {name}: {column}.{row} has {len(numbers)} published numbers, named are "
                    f"{len(table.numbers)}"
                )


def _places(table: Table) -> Iterator[tuple[str, str]]:
    """Column and row of every existing cell, column by column."""
    for column in table.columns:
        gaps = [row for row, cell in table.cells.get(column, {}).items() if cell is None]
        for row, about in table.rows.items():
            if row not in gaps and (not about.columns or column in about.columns):
                yield column, row


def _merged(table: Table, column: str, row: str) -> dict[str, Any]:
    """The run of a cell, merged from the four layers."""
    cell = table.cells.get(column, {}).get(row) or Layer()
    keys = set(Layer.model_fields)
    found: dict[str, Any] = {}
    for layer in (table.all, table.columns[column], table.rows[row], cell):
        found = layered(found, layer.model_dump(include=keys, exclude_unset=True))
    return found


def layered(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with the changes of a later layer, by the rules in the module's docstring."""
    found = dict(base)
    for key, value in changes.items():
        old = found.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        if value is None:
            found.pop(key, None)
        elif both and not any(name in value for name in _NAMED):
            found[key] = layered(old, value)
        else:
            found[key] = value
    return found


def filled(part: Any, values: dict[str, Any], where: str) -> Any:
    """`part` with every `{name}` replaced by its value, at any depth; values keep their types."""
    if isinstance(part, dict):
        return {key: filled(each, values, where) for key, each in part.items()}
    if isinstance(part, list):
        return [filled(each, values, where) for each in part]
    if not isinstance(part, str) or "{" not in part:
        return part
    whole = part[1:-1]
    return values[whole] if whole in values else _text(part, values, where)


def _text(pattern: str, values: dict[str, Any], where: str) -> str:
    try:
        return pattern.format(**values)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        allowed = ", ".join(f"{{{name}}}" for name in values)
        raise InputError(f"{where}: {pattern!r} has no value; allowed are {allowed}") from error


def _published(table: Table, column: str, row: str) -> dict[str, float]:
    numbers = table.published.get(column, {}).get(row, [])
    return dict(zip(table.numbers, numbers, strict=False))


def _grouping(
    table: Table, merged: dict[str, Any], values: dict[str, Any], where: str
) -> tuple[dict[str, Any], str]:
    """The grouping that a cell makes, or {}, and the name of the grouping by which it averages."""
    layer = merged.pop("grouping", {})
    name = layer.pop("name", "")
    if "method" not in layer:
        return {}, name
    clients = {key: merged[key] for key in OF_CLIENTS if key in merged}
    scales = {
        scale: kept
        for scale, changes in merged.get("scales", {}).items()
        if (kept := {key: changes[key] for key in OF_CLIENTS if key in changes})
    }
    variant = {"variant": merged["variant"]} if "variant" in merged else {}
    own = layered(clients | variant | {"scales": scales}, layer)
    return own, name or _text(table.grouping, values, where)


def _about(table: Table, column: str, row: str, published: dict[str, float]) -> dict[str, str]:
    """Default texts for an entry's purpose and expected outcome."""
    title, of = table.rows[row].title, table.rows[row].of
    known = published or _published(table, column, of)
    numbers = ", ".join(f"{name} {value:g}" for name, value in known.items())
    said = f"published of {table.rows[of].title}: {numbers}" if of and not published else numbers
    return {"purpose": f"{title}, {table.columns[column].title}", "expected": said if known else ""}


def _add(entries: dict[str, Any], name: str, entry: dict[str, Any], where: str) -> None:
    """Add an entry; cells may share one, such as a grouping, if it is the same."""
    about = ("purpose", "expected")
    old = entries.setdefault(name, entry)
    if any(old.get(key) != entry.get(key) for key in {*old, *entry}.difference(about)):
        raise InputError(f"{where}: {name} is something else in another cell")
