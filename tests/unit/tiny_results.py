"""Results as the workflow leaves them, small enough to build in every test; and their ledger."""

import csv
import json
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pandas import DataFrame
from PIL import Image

from clustered_fl.claims.verdicts import COLUMNS
from clustered_fl.files import write_json
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.ledger.resolution import resolved_groupings, resolved_runs
from clustered_fl.ledger.written import Ledger
from clustered_fl.records import index
from clustered_fl.records import reading as records
from clustered_fl.report.scope import Scope

NASTY = "<script>alert('x')</script> & | done"

RUN = {
    "purpose": "Something to look at",
    "expected": "accuracy above 0.5",
    "minutes": {"demo": 0.5},
    "dataset": "mnist",
    "federation": {"kind": "label_swap", "clients": 4, "samples": 10},
    "model": {"name": "small_conv_net"},
    "training": {"epochs": 3},
    "method": {"name": "fedavg"},
    "rounds": 2,
    "seeds": {"demo": [0, 1], "desktop": [0]},
}
SWEEP = {"setting": "federation.samples", "values": {"demo": [10, 30]}}
ITEM = {"caption": "What it shows", "published": "A number", "notebook": "toy/x.ipynb"}
CLAIM = {"published": "0.5", "where": "page 1", "holds_if": {"score": "> 0.5"}}

MEASURED = "score 0.512 (0.4 to 0.624); trials 1.05e+04"

CONTENT = {
    "paper": "toy",
    "title": "A toy paper",
    "authors": "A. Author",
    "year": 2020,
    "versions": ["2020"],
    "runs": {"toy_run": RUN, "toy_sweep": RUN | {"sweep": SWEEP}},
    "studies": {"toy_study": {"purpose": "Toys", "function": "toys.all"}},
    "artefacts": {
        "toy_fig1": ITEM
        | {"kind": "figure", "title": "A figure", "where": "Fig. 1", "runs": ["toy_run"]},
        "toy_table1": ITEM
        | {"kind": "table", "title": NASTY, "where": "Table I", "studies": ["toy_study"]},
        "toy_fig2": ITEM
        | {"kind": "figure", "title": "Missing", "where": "Fig. 2", "runs": ["toy_sweep"]},
    },
    "claims": {
        "T-1": CLAIM
        | {"artefact": "toy_fig1", "kind": "paper", "statement": "It works"}
        | {"measure": {"name": "accuracy", "of": {"score": "toy_run"}}},
        "T-2": CLAIM
        | {"artefact": "toy_table1", "kind": "theory", "statement": NASTY}
        | {"measure": {"name": "violations", "study": "toy_study", "checks": []}},
        "T-3": CLAIM
        | {"artefact": "toy_fig2", "kind": "ours", "statement": "Not yet"}
        | {"measure": {"name": "accuracy", "of": {"score": "toy_sweep"}}},
    },
}


def ledger_of(content: dict) -> Ledger:
    """A ledger, read from its file as the workflow reads it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{content['paper']}.yaml")
        path.write_text(json.dumps(content))
        return load_ledger(path)


LEDGER = ledger_of(CONTENT)

DATA = {
    "name": "mnist",
    "source": "builtin",
    "digest": "d" * 64,
    "train_rows": 1500,
    "rows": 1797,
    "complete": False,
    "note": NASTY,
}
RECORD = {
    "config": {},
    "config_digest": "c" * 16,
    "code": "f" * 16,
    "identity": "i" * 16,
    "data": DATA,
    "federation_digest": "e" * 16,
    "versions": {"python": "3.11", "torch": "2.13.0"},
    "device": f"CPU {NASTY}",
    "metric": "accuracy",
    "rounds": 2,
    "score": 0.3,
    "test_rows": 400,
    "groups": [0, 0, 0, 0],
    "true_groups": [0, 0, 1, 1],
}
COST = {"seconds": 90.0, "peak_memory_mb": 500, "threads": 1}
STUDY = {
    "config": {"function": "toys.all", "settings": {}, "seed": 0},
    "config_digest": "a" * 16,
    "code": "b" * 16,
    "identity": "s" * 16,
    "tables": [],
    "versions": {"python": "3.11"},
}


def write_verdicts(
    path: Path, verdicts: dict[str, str], scale: str = "demo", *ledgers: Ledger
) -> None:
    """Verdicts on claims, of the toy paper if no other ledgers are given."""
    known = {
        name: (each.paper, claim)
        for each in ledgers or (LEDGER,)
        for name, claim in each.claims.items()
    }
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for name, verdict in verdicts.items():
            paper, claim = known[name]
            table.writerow(
                {
                    "claim": name,
                    "paper": paper,
                    "artefact": claim.artefact,
                    "kind": claim.kind,
                    "statement": claim.statement,
                    "published": claim.published,
                    "holds_if": "score > 0.5",
                    "measured": "" if verdict == "NOT RUN" else MEASURED,
                    "seeds": 2,
                    "scale": scale,
                    "source": "none" if claim.kind == "theory" else "builtin",
                    "verdict": verdict,
                    "note": NASTY,
                }
            )


def write_run(folder: Path, data: dict | None = None, last: float = 0.6, **changes) -> None:
    """The record of a run whose best client ends at `last`."""
    record = RECORD | {"data": DATA | (data or {})} | changes
    write_json(folder / "record.json", record)
    write_json(folder / "cost.json", COST)
    early = [(0, "client", client, "accuracy", 0.1) for client in range(4)]
    late = [(2, "client", client, "accuracy", last * client / 3) for client in range(4)]
    records.write_rounds(folder / "rounds.parquet", [*early, *late, (2, "run", 0, "loss", 9.0)])


def write_notebook(path: Path, picture: bool = True, said: str = NASTY) -> None:
    """An executed notebook; the picture in it is not that which is saved."""
    with BytesIO() as buffer:
        Image.new("RGB", (20, 10), "black").save(buffer, format="png")
        png = b64encode(buffer.getvalue()).decode()
    outputs = [
        new_output("stream", name="stdout", text=f"{said}\n"),
        new_output("execute_result", {"text/html": "<table><tr><td>a cell</td></tr></table>"}),
        new_output("display_data", {"image/png": png, "text/plain": "<Figure>"}),
    ]
    outputs = outputs[: 3 if picture else 2]
    cells = [
        new_markdown_cell("# A title\n\nWhat is asked.", id="title"),
        new_code_cell("number = 1", id="parameters", metadata={"tags": ["parameters"]}),
        new_markdown_cell("## Draw", id="draw-said"),
        new_code_cell(f"draw({NASTY!r})", id="draw", outputs=outputs),
        new_markdown_cell("## How to read it\n\nUpwards is *better*.", id="reading"),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def write_results(results: Path, ledger: Ledger = LEDGER) -> Scope:
    """One of two seeds of one of two runs, a study, a figure, a table and verdicts on 3 claims.

    The ledger may be another paper's that has the same under other names.
    """
    (run, _), (study,), (figure, table, _) = ledger.runs, ledger.studies, ledger.artefacts
    write_run(results / f"runs/{run}/seed0")
    (results / f"runs/{run}/seed0/models.safetensors").write_bytes(b"large")
    write_json(results / f"studies/{study}/seed0/record.json", STUDY)
    write_json(results / f"studies/{study}/seed0/cost.json", {"seconds": 1.5})
    for name in (figure, table):
        (results / "artefacts" / name).mkdir(parents=True)
    place = results / "artefacts" / figure / figure
    Image.new("RGB", (200, 100), "white").save(f"{place}.png")
    for suffix in ("svg", "pdf", "csv", "html"):
        place.with_name(f"{figure}.{suffix}").write_text(f"a figure as {suffix}")
    write_notebook(place.with_suffix(".ipynb"))
    place = results / "artefacts" / table / table
    place.with_name(f"{table}.csv").write_text(f"name,value\n{NASTY},1.5\n")
    for suffix in ("md", "tex", "html"):
        place.with_name(f"{table}.{suffix}").write_text(f"a table as {suffix}")
    write_notebook(place.with_suffix(".ipynb"), picture=False)
    words = dict(zip(ledger.claims, ("DEMO ONLY", "CONFIRMED", "NOT RUN"), strict=True))
    write_verdicts(results / "verdicts.csv", words, "demo", ledger)
    return scope_of(results, ledger)


def scope_of(results: Path, ledger: Ledger, scale: str = "demo", source: str = "builtin") -> Scope:
    """What a report of these results is about."""
    return Scope((ledger,), results, index_of(ledger, results, scale), scale, source)


def index_of(ledger: Ledger, results: Path, scale: str) -> DataFrame:
    """All records that a ledger asks for, whether they are there or not."""
    rows = [
        ("run", found["family"], name, seed, f"{results}/runs/{name}/seed{seed}")
        for name, found in resolved_runs(ledger, scale).items()
        for seed in found["seeds"]
    ]
    rows += [
        ("grouping", name, name, seed, f"{results}/groupings/{name}/seed{seed}")
        for name, found in resolved_groupings(ledger, scale).items()
        for seed in found["seeds"]
    ]
    rows += [("study", name, name, 0, f"{results}/studies/{name}/seed0") for name in ledger.studies]
    return index.build(rows)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


def read(folder: Path, name: str) -> dict:
    return json.loads((folder / name).read_text())
