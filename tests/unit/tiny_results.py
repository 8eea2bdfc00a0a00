"""Results as the workflow leaves them, small enough to build in every test; and their ledger."""

import csv
import json
from pathlib import Path

from PIL import Image

from clustered_fl import records
from clustered_fl.claims.verdicts import COLUMNS
from clustered_fl.files import write_json
from clustered_fl.report.entries import Scope
from clustered_fl.schema import Ledger

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
ITEM = {"caption": "What it shows", "published": "A number", "notebook": "toy/x.ipynb"}
CLAIM = {"published": "0.5", "where": "page 1"}

LEDGER = Ledger.model_validate(
    {
        "paper": "toy",
        "title": "A toy paper",
        "authors": "A. Author",
        "versions": ["2020"],
        "runs": {
            "toy_run": RUN,
            "toy_sweep": RUN
            | {"sweep": {"setting": "federation.samples", "values": {"demo": [10, 30]}}},
        },
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
            "T-1": CLAIM | {"artefact": "toy_fig1", "statement": "It works", "runs": ["toy_run"]},
            "T-2": CLAIM | {"artefact": "toy_table1", "statement": NASTY, "studies": ["toy_study"]},
            "T-3": CLAIM | {"artefact": "toy_fig2", "statement": "Not yet", "runs": ["toy_sweep"]},
        },
    }
)

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
    "data": DATA,
    "federation_digest": "e" * 16,
    "versions": {"python": "3.11", "torch": "2.13.0"},
    "device": f"CPU {NASTY}",
    "metric": "accuracy",
    "rounds": 2,
}
STUDY = {
    "function": "toys.all",
    "settings": {},
    "seed": 0,
    "config_digest": "a" * 16,
    "code": "b" * 16,
    "versions": {"python": "3.11"},
    "seconds": 1.5,
}


def write_verdicts(path: Path, verdicts: dict[str, str], scale: str = "demo") -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for name, verdict in verdicts.items():
            claim = LEDGER.claims[name]
            table.writerow(
                {
                    "claim": name,
                    "paper": "toy",
                    "artefact": claim.artefact,
                    "statement": claim.statement,
                    "published": claim.published,
                    "holds_if": "score > 0.5",
                    "measured": "" if verdict == "NOT RUN" else f"0.512 {NASTY}",
                    "seeds": 2,
                    "scale": scale,
                    "source": "builtin" if claim.runs else "none",
                    "verdict": verdict,
                    "note": NASTY,
                }
            )


def write_run(folder: Path, source: str = "builtin", **data) -> None:
    write_json(folder / "record.json", RECORD | {"data": DATA | {"source": source} | data})
    write_json(folder / "cost.json", {"seconds": 90.0, "peak_memory_mb": 500, "threads": 1})
    early = [(0, "client", client, "accuracy", 0.1) for client in range(4)]
    last = [(2, "client", client, "accuracy", 0.2 * client) for client in range(4)]
    records.write_rounds(folder / "rounds.parquet", [*early, *last, (2, "run", 0, "loss", 9.0)])


def write_results(results: Path) -> Scope:
    """One of two seeds of one of two runs, a study, a figure, a table and verdicts on 3 claims."""
    write_run(results / "runs/toy_run/seed0")
    (results / "runs/toy_run/seed0/models.safetensors").write_bytes(b"large")
    write_json(results / "studies/toy_study/record.json", STUDY)
    figure, table = results / "artefacts/toy_fig1", results / "artefacts/toy_table1"
    figure.mkdir(parents=True)
    table.mkdir()
    Image.new("RGB", (200, 100), "white").save(figure / "toy_fig1.png")
    for suffix in ("svg", "pdf", "csv", "html"):
        (figure / f"toy_fig1.{suffix}").write_text(f"a figure as {suffix}")
    (table / "toy_table1.csv").write_text(f"name,value\n{NASTY},1.5\n")
    for suffix in ("md", "tex", "html"):
        (table / f"toy_table1.{suffix}").write_text(f"a table as {suffix}")
    write_verdicts(
        results / "verdicts.csv", {"T-1": "DEMO ONLY", "T-2": "CONFIRMED", "T-3": "NOT RUN"}
    )
    return Scope((LEDGER,), results, "demo", "builtin")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


def read(folder: Path, name: str) -> dict:
    return json.loads((folder / name).read_text())
