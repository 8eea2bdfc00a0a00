"""The report: a static site that a browser opens from a folder, without a server or a network.

    index.html            scale, data, scorecard
    <paper>.html          every artefact with its claims
    runs.html             what was trained, on what, how long
    words.html            what the verdicts mean
    add_your_own.html     how to add a method or clients, where there is a ground to try them on
    verdicts.csv  scorecard.md  provenance.json      the same for machines
    artefacts/  runs/  studies/                      copies of the files that the pages link

The same inputs give the same bytes: no page holds a time of day or a path of this machine.
"""

import json
import shutil
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from nbconvert.filters import markdown2html

from clustered_fl import records
from clustered_fl.errors import InputError
from clustered_fl.figures import DEMO
from clustered_fl.files import write_json
from clustered_fl.report.entries import PaperEntry, Scope, datasets
from clustered_fl.report.evidence import VERDICTS, gather
from clustered_fl.report.folder import MARK, replacing_folder
from clustered_fl.report.provenance import machines, provenance
from clustered_fl.report.verdicts import MEANING, counts, scorecard, write_verdicts
from clustered_fl.strict import merged

# Suffix of an artefact's file -> what a link to it says.
LINKS = {
    "html": "executed notebook",
    "csv": "CSV",
    "png": "PNG",
    "svg": "SVG",
    "pdf": "PDF",
    "md": "Markdown",
    "tex": "LaTeX",
}

SCALES = {
    "demo": "small sizes, minutes on two cores",
    "desktop": "reduced sizes, hours on two cores",
    "paper": "the papers' own sizes",
}
SOURCES = {
    "builtin": DEMO,
    "mirror": "real data, read from a local copy",
    "download": "real data, downloaded at pinned revisions",
}

# Figures are saved at 160 dots per inch; a page shows a little more than their printed size.
_SHOWN = 0.75


def build(scope: Scope, out: Path) -> None:
    """Write the report to the folder `out`, in the place of a former one.

    Args:
        scope: what the report is about.
        out: folder, usually `<results>/report`.
    Raises:
        InputError: if an input cannot be read or used, or `out` cannot be written.
    """
    with replacing_folder(out) as beside:
        write(scope, beside, tuple(LINKS))


def write(scope: Scope, out: Path, suffixes: tuple[str, ...]) -> None:
    """Write pages, tables and copies into the empty folder `out`.

    Args:
        scope: what the report is about.
        out: folder.
        suffixes: of the artefacts' files to take along.
    """
    papers = gather(scope, suffixes)
    for name, page in _pages(papers, scope).items():
        (out / name).write_text(page, encoding="utf-8")
    style = files("clustered_fl.report").joinpath("templates/style.css")
    (out / "style.css").write_text(style.read_text(encoding="utf-8"), encoding="utf-8")
    write_json(out / MARK, provenance(papers, scope))
    verdicts = [verdict for paper in papers for verdict in paper.verdicts]
    if any(paper.claims is not None for paper in papers):
        write_verdicts(out / VERDICTS, verdicts)
    text = scorecard(verdicts, scope.scale, scope.source)
    (out / "scorecard.md").write_text(text, encoding="utf-8")
    for paper in papers:
        for path in _copied(paper):
            target = out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(scope.folder(paper.ledger.paper) / path, target)


def _copied(paper: PaperEntry) -> list[str]:
    """Paths, relative to the results, of all files that the pages link."""
    paths = [path for artefact in paper.artefacts for path in artefact.files.values()]
    for run in paper.computed.values():
        for name in (records.RECORD, records.COST):
            paths += [f"{seed.folder}/{name}" for seed in run.done]
    done = [study.folder for study in paper.studies.values() if study.record is not None]
    return paths + [f"{folder}/{records.RECORD}" for folder in done]


def _pages(papers: list[PaperEntry], scope: Scope) -> dict[str, str]:
    environment = _environment()
    about: dict[str, Any] = {"scope": scope, "papers": papers, "machines": machines(papers)}
    about["data"] = datasets(seed for paper in papers for seed in paper.seeds)
    about["guide"] = _guide(papers, scope)
    names = ("index", "runs", "words", *(["add_your_own"] if about["guide"] else []))
    pages = {
        f"{name}.html": environment.get_template(f"{name}.html.j2").render(about, page=name)
        for name in names
    }
    template = environment.get_template("paper.html.j2")
    for paper in papers:
        name = paper.ledger.paper
        pages[f"{name}.html"] = template.render(about, page=name, paper=paper)
    return pages


def _guide(papers: list[PaperEntry], scope: Scope) -> str | None:
    """The guide as HTML; None where there is none, or nothing that it is about."""
    if scope.guide is None or not any(paper.ledger.grounds for paper in papers):
        return None
    try:
        text = scope.guide.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {scope.guide}: {error.strerror}") from error
    return markdown2html(text)


def _environment() -> Environment:
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
        "at": lambda entry, scale: merged(entry, entry["scales"].get(scale, {})),
        "slug": slug,
    }
    environment.globals |= {
        "LINKS": LINKS,
        "MEANING": MEANING,
        "SCALES": SCALES,
        "SOURCES": SOURCES,
        "DEMO": DEMO,
        "counts": counts,
    }
    return environment


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
