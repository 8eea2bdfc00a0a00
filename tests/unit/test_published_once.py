"""A number that a paper prints in a table is written once: in the ledger, under `published`."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from clustered_fl.ledger.reading import load_ledger

ROOT = Path(__file__).parents[2]
LEDGERS = sorted((ROOT / "config" / "papers").glob("*.yaml"))
NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w]|\.\d)")


def telling(numbers: Iterable[float]) -> Counter[float]:
    """Numbers of four digits or more; with fewer, two things are alike by chance."""
    return Counter(n for n in numbers if len(f"{n:g}".replace(".", "").lstrip("0")) > 3)


def printed(text: str) -> Counter[float]:
    return telling(float(found) for found in NUMBER.findall(text))


PUBLISHED = telling(
    number
    for path in LEDGERS
    for table in load_ledger(path).tables.values()
    for rows in table.published.values()
    for numbers in rows.values()
    for number in numbers
)


def texts() -> dict[str, str]:
    """Ledgers, modules, and what is written in the cells of notebooks."""
    files = [*LEDGERS, *(ROOT / "src").rglob("*.py")]
    found = {str(path.relative_to(ROOT)): path.read_text() for path in files}
    for path in (ROOT / "notebooks").rglob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        found[str(path.relative_to(ROOT))] = "\n".join("".join(cell["source"]) for cell in cells)
    return found


def repeated(published: Counter[float], files: dict[str, str]) -> dict[float, list[str]]:
    """Published numbers that stand in more places than the tables have cells, with their files."""
    counts = {name: printed(text) for name, text in files.items()}
    total = sum(counts.values(), Counter())
    return {
        number: [name for name in counts if number in counts[name]]
        for number, cells in published.items()
        if total[number] > cells
    }


def test_every_published_number_is_written_once():
    assert len(PUBLISHED) > 100
    assert repeated(PUBLISHED, texts()) == {}


@pytest.mark.parametrize("text", ["82.73", "was 82.730%", "[82.73, 0.38]"])
def test_a_second_place_is_found(text):
    files = {"ledger": "fedavg: [82.73, 0.38]", "elsewhere": text}
    assert repeated(Counter([82.73]), files) == {82.73: ["ledger", "elsewhere"]}


@pytest.mark.parametrize("text", ["182.73", "82.731", "v82.73", "82.73.1"])
def test_another_number_is_none(text):
    assert repeated(Counter([82.73]), {"ledger": "82.73", "elsewhere": text}) == {}
