"""What a browser would find on the pages of a site: links, loads, anchors, headings, text."""

import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

VOID = {"meta", "link", "img", "br", "wbr"}
ELSEWHERE = ("https://doi.org/10.", "https://arxiv.org/abs/", "https://github.com/")
"""Beginnings of links that may lead out of the folder: to a paper and to its code."""


class Page(HTMLParser):
    """One page, parsed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.text = path, ""
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.headings: list[int] = []
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.feed(path.read_text())
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append((tag, found))
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.loads += [found[key] for key in ("src", "href") if tag != "a" and key in found]
        if tag[0] == "h" and tag[1:].isdigit():
            self.headings.append(int(tag[1:]))
        if tag in {"td", "th", "dd"}:
            self.text += " "
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{self.path}: </{tag}> closes another element"

    def handle_data(self, data):
        self.text += data

    def words(self) -> str:
        return " ".join(self.text.split())


def pages(folder: Path) -> dict[str, Page]:
    """Every page of a site by its path within the folder; executed notebooks are none."""
    paths = [path for path in sorted(folder.rglob("*.html")) if "<nav" in path.read_text()]
    return {str(path.relative_to(folder)): Page(path) for path in paths}


def dangling(folder: Path) -> list[str]:
    """Links and loads that lead nowhere inside the folder."""
    found = pages(folder)
    wrong = []
    for name, page in found.items():
        inside = [link for link in page.links if not link.startswith(ELSEWHERE)]
        for link in inside + [load for load in page.loads if load != "data:,"]:
            parts = urlsplit(link)
            target = os.path.normpath(Path(name).parent / parts.path) if parts.path else name
            outside = parts.scheme or parts.netloc or target.startswith(("..", "/"))
            if outside or not (folder / target).is_file():
                wrong.append(f"{name}: {link}")
            elif parts.fragment and parts.fragment not in found[target].ids:
                wrong.append(f"{name}: {link} has no such anchor")
    return wrong
