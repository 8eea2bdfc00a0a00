"""The report: a static site that a browser opens from a folder, without a server or a network.

    index.html            scale, data, scorecard of all papers
    words.html            what the verdicts mean
    add_your_own.html     how to add a method or clients, where there is a benchmark to try them on
    verdicts.csv  scorecard.md  summary.json      the same for machines
    <paper>/index.html    every artefact with its claims
    <paper>/runs.html     what was trained, on what, how long
    <paper>/records.parquet    every record (`clustered_fl.records.archive`)
    <paper>/<artefact>.png and so on; verdicts.csv, scorecard.md, summary.json of the paper

A paper's folder is made from its own results alone; the front pages are made from these folders, so
that papers can be published one after another. The same inputs give the same bytes: no page holds a
time of day or a path of this machine.
"""

import json
import shutil
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from nbconvert.filters import markdown2html

from clustered_fl.errors import InputError
from clustered_fl.figures import DEMO, SOURCES
from clustered_fl.files import read_json, replacing, replacing_folder, write_json
from clustered_fl.ledger.resolution import merged
from clustered_fl.ledger.written import Ledger
from clustered_fl.records import archive
from clustered_fl.report.entries import PaperEntry, datasets, machines, unique
from clustered_fl.report.evidence import Records, gather
from clustered_fl.report.folder import MARK, require_report
from clustered_fl.report.scope import Scope
from clustered_fl.report.verdicts import (
    MEANING,
    counts,
    read_verdicts,
    scorecard,
    summary_table,
    write_verdicts,
)

VERDICTS = "verdicts.csv"

# Suffix of an artefact's file -> what a link to it says.
LINKS = {"html": "executed notebook", "csv": "CSV", "png": "PNG", "svg": "SVG", "pdf": "PDF"}
LINKS |= {"md": "Markdown", "tex": "LaTeX"}

SCALES = {
    "demo": "small sizes, minutes on two cores",
    "desktop": "reduced sizes, hours on two cores",
    "paper": "the papers' own sizes",
}

# Figures are saved at 160 dots per inch; a page shows a little more than their printed size.
_SHOWN = 0.75


def build(scope: Scope, out: Path) -> None:
    """Write the report to the folder `out`, in the place of a former one.

    Raises: InputError if an input cannot be read or used, or `out` cannot be written.
    """
    require_report(out)
    with replacing_folder(out) as beside:
        for ledger in scope.ledgers:
            write_paper(ledger, scope, scope.packed(ledger), beside / ledger.paper, tuple(LINKS))
        write_front(beside, scope.guide)


def write_paper(
    ledger: Ledger, scope: Scope, records: Records, out: Path, suffixes: tuple[str, ...]
) -> None:
    """Write pages, tables and copies of one paper into the empty folder `out`.

    Of its artefacts the files with these suffixes are taken along.

    Raises: InputError if an input cannot be read, or verdicts and ledger differ.
    """
    path = scope.results / VERDICTS
    verdicts = read_verdicts(path, scope.scale) if path.exists() else None
    own = None if verdicts is None else [v for v in verdicts if v.paper == ledger.paper]
    paper = gather(ledger, records, own, scope.results / "artefacts", scope.scale)
    out.mkdir(parents=True, exist_ok=True)
    for artefact in paper.artefacts:
        for suffix in [suffix for suffix in artefact.files if suffix not in suffixes]:
            del artefact.files[suffix]
        for name in artefact.files.values():
            shutil.copyfile(scope.results / "artefacts" / artefact.name / name, out / name)
    archive.write(out / archive.FILE, records.values())
    if own is not None:
        write_verdicts(out / VERDICTS, own)
    text = scorecard(paper.verdicts, scope.scale, scope.source)
    (out / "scorecard.md").write_text(text, encoding="utf-8")
    summary = _summary(paper, scope)
    write_json(out / MARK, summary)
    about = {"paper": paper, "summary": summary, "root": "../"}
    about |= {"data": datasets(paper.seeds), "machines": machines(paper.seeds)}
    for name, page in (("index", "paper"), ("runs", "runs")):
        (out / f"{name}.html").write_text(_rendered(page, about), encoding="utf-8")


def _summary(paper: PaperEntry, scope: Scope) -> dict[str, Any]:
    """What the front pages need of a paper."""
    ledger = paper.ledger
    about = ("paper", "title", "short", "authors", "year", "versions", "is_benchmark")
    return {name: getattr(ledger, name) for name in about} | {
        "scale": scope.scale,
        "source": scope.source,
        "judged": paper.claims is not None,
        "data": datasets(paper.seeds),
        "records": sum(seed.record is not None for seed in paper.seeds),
        "artefacts": [
            {"name": each.name, "title": each.about.title, "where": each.about.where}
            for each in paper.artefacts
        ],
    }


def write_front(out: Path, guide: Path | None) -> None:
    """Write the pages about all papers that have a folder in `out`, from these folders."""
    summaries = sorted(map(_read_summary, papers(out)), key=lambda each: each["year"])
    verdicts = [verdict for each in summaries for verdict in each["verdicts"]]
    data = unique(data for each in summaries for data in each["data"])
    scale, source = summaries[0]["scale"], summaries[0]["source"]
    about = {"papers": summaries, "root": "", "data": data, "guide": _guide(summaries, guide)}
    about["summary"] = {"scale": scale, "source": source}
    names = ("index", "words", *(["add_your_own"] if about["guide"] else []))
    contents = {f"{name}.html": _rendered(name, about) for name in names}
    style = files("clustered_fl.report").joinpath("templates/style.css")
    contents["style.css"] = style.read_text(encoding="utf-8")
    contents["scorecard.md"] = summary_table(summaries, scale, source)
    for name, text in contents.items():
        with replacing(out / name) as beside:
            beside.write_text(text, encoding="utf-8")
    with replacing(out / VERDICTS) as beside:
        write_verdicts(beside, verdicts)
    write_json(out / MARK, {"papers": [each["paper"] for each in summaries], "scale": scale})


def papers(out: Path) -> list[Path]:
    """Folders of the papers in `out`, without what an interruption has left beside them."""
    return [path.parent for path in sorted(out.glob(f"[!.]*/{MARK}"))]


def _read_summary(folder: Path) -> dict[str, Any]:
    summary, path = read_json(folder / MARK), folder / VERDICTS
    verdicts = read_verdicts(path, summary["scale"]) if path.exists() else []
    return summary | {"verdicts": verdicts}


def _guide(summaries: Sequence[dict[str, Any]], guide: Path | None) -> str | None:
    """The guide as HTML; None where there is none, or nothing that it is about."""
    if guide is None or not any(each["is_benchmark"] for each in summaries):
        return None
    try:
        return markdown2html(guide.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {guide}: {error.strerror}") from error


def _rendered(page: str, about: dict[str, Any]) -> str:
    environment = Environment(
        loader=PackageLoader("clustered_fl.report"),
        autoescape=True,  # captions, notes and records are text, whatever they hold
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "settings": settings_text,
        "number_columns": number_columns,
        "shown": lambda pixels: round(pixels * _SHOWN),
        "at": lambda entry, scale: merged(entry, (entry["scales"] or {}).get(scale, {})),
        "slug": slug,
    }
    words = {"LINKS": LINKS, "MEANING": MEANING, "SCALES": SCALES, "SOURCES": SOURCES}
    environment.globals |= words | {"DEMO": DEMO, "counts": counts, "ARCHIVE": archive.FILE}
    return environment.get_template(f"{page}.html.j2").render(about, page=page)


def settings_text(value: Any) -> str:
    """A setting as a reader writes it: `label_swap, clients 20`; lists and the like as JSON."""
    if isinstance(value, dict):
        parts = (settings_text(each) for each in value.values())
        names = ("" if key in ("name", "kind") else f"{key} " for key in value)
        return ", ".join(f"{name}{part}" for name, part in zip(names, parts, strict=True))
    return value if isinstance(value, str) else json.dumps(value)


def slug(word: str) -> str:
    """What a verdict is called in the style sheet and in links."""
    return word.lower().replace(" ", "-")


def number_columns(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Which columns of a table, its heading first, are set flush right: those of numbers only."""
    body = rows[1:] or rows
    return [all(map(_is_number, column)) for column in zip(*body, strict=True)]


def _is_number(text: str) -> bool:
    """Whether a table's cell is a number, or the dash for one."""
    try:
        float(text)
    except ValueError:
        return text == "–"
    return True
