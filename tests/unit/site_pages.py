"""What a browser would find on a folder's pages: links, loads, anchors, headings, text."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

VOID = {"meta", "link", "img", "br"}


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
    return {path.name: Page(path) for path in sorted(folder.glob("*.html"))}


def dangling(folder: Path) -> list[str]:
    """Links and loads that lead nowhere inside the folder."""
    found = pages(folder)
    wrong = []
    for page in found.values():
        for link in page.links + [load for load in page.loads if load != "data:,"]:
            parts = urlsplit(link)
            target = parts.path or page.path.name
            inside = (folder / target).resolve().is_relative_to(folder.resolve())
            if parts.scheme or parts.netloc or not inside or not (folder / target).is_file():
                wrong.append(f"{page.path.name}: {link}")
            elif parts.fragment and parts.fragment not in found[target].ids:
                wrong.append(f"{page.path.name}: {link} has no such anchor")
    return wrong
