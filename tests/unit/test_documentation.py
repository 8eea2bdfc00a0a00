"""Links between pages of the documentation resolve, and the README stays short."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (".", "docs", "config", "benchmarks")
PAGES = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
WORDS = 600


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(text: str) -> set[str]:
    """Anchors that a hosting site gives the headings of a page."""
    titles = HEADING.findall(FENCED.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(path: Path, text: str) -> list[str]:
    """Links of a page at `path` to files or headings that do not exist."""
    found = []
    for link in LINK.findall(FENCED.sub("", text)):
        parts = urlsplit(link)
        target = path.parent / parts.path if parts.path else path
        if parts.scheme:
            continue
        if not target.exists():
            found.append(link)
        elif parts.fragment:
            page = text if target == path else target.read_text()
            found += [] if parts.fragment in anchors(page) else [link]
    return found


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_resolve(path):
    assert broken(path, path.read_text()) == []


def test_every_page_is_reached_from_the_readme():
    linked = {(ROOT / link).resolve() for link in LINK.findall((ROOT / "README.md").read_text())}
    assert {path for path in PAGES if path.parent.name == "docs"} <= linked


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= WORDS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/nowhere.md)", ["docs/nowhere.md"]),
        ("![a\nb](nothing.png)", ["nothing.png"]),
        ("[a](docs/speed.md#four-paths)", ["docs/speed.md#four-paths"]),
        ("# One\n\n[a](#two)", ["#two"]),
        ("# One `of` (them)!\n\n[a](#one-of-them)", []),
        ("[a](docs/speed.md#three-paths) [b](docs) [c](https://example.org/x#y)", []),
        ("```\n[a](nowhere.md)\n```\n", []),
    ],
)
def test_broken_links_are_noticed(text, expected):
    assert broken(ROOT / "README.md", text) == expected
