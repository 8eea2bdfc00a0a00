"""Publishing: what is worth committing and nothing else, or one sentence and no change."""

import json
from dataclasses import replace

import pytest
from site_pages import dangling, pages
from tiny_results import LEDGER, contents, read, write_results, write_run

from clustered_fl import publish as publishing
from clustered_fl.errors import InputError
from clustered_fl.files import write_json
from clustered_fl.ledger import load_ledger
from clustered_fl.publish import publish


@pytest.fixture
def scope(tmp_path):
    return write_results(tmp_path / "results" / "demo")


@pytest.fixture
def ledgers(tmp_path):
    """The folder of all papers' ledgers."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "toy.yaml").write_text(LEDGER.model_dump_json(exclude_defaults=True))
    return tmp_path / "papers"


@pytest.fixture
def published(scope, tmp_path, ledgers):
    """The folder that is committed."""
    publish(scope, tmp_path / "figures" / "demo", ledgers)
    return tmp_path / "figures" / "demo"


def test_pictures_tables_verdicts_and_pages_are_published(published):
    files = {name for name in contents(published) if not name.startswith("runs/")}
    assert files == {
        "index.html",
        "toy.html",
        "runs.html",
        "words.html",
        "style.css",
        "verdicts.csv",
        "scorecard.md",
        "provenance.json",
        "artefacts/toy_fig1/toy_fig1.png",
        "artefacts/toy_fig1/toy_fig1.svg",
        "artefacts/toy_fig1/toy_fig1.csv",
        "artefacts/toy_table1/toy_table1.csv",
        "artefacts/toy_table1/toy_table1.md",
        "studies/toy_study/record.json",
    }


def test_neither_models_nor_curves_are_published(published):
    runs = {name for name in contents(published) if name.startswith("runs/")}
    assert runs == {"runs/toy_run/seed0/record.json", "runs/toy_run/seed0/cost.json"}


def test_pages_link_only_what_is_published(published):
    assert dangling(published) == []
    assert "executed notebook" not in pages(published)["toy.html"].text


def test_provenance_says_where_numbers_come_from(published):
    found = read(published, "provenance.json")
    seed = found["runs"]["toy_run"]["0"]
    assert seed["config_digest"] == "c" * 16
    assert seed["code"] == "f" * 16
    assert seed["seconds"] == 90.0
    assert seed["device"].startswith("CPU")
    assert seed["versions"]["torch"] == "2.13.0"
    assert {"name", "source", "digest", "rows", "note"} <= seed["data"].keys()
    assert found["runs"]["toy_run"]["1"] is None
    assert found["studies"]["toy_study"]["seed"] == 0
    assert (found["scale"], found["source"]) == ("demo", "builtin")


def test_scorecard_has_every_claim(published):
    text = (published / "scorecard.md").read_text()
    assert all(f"| {claim} |" in text for claim in LEDGER.claims)


def test_publishing_again_removes_what_is_stale_and_changes_nothing_else(published, scope, ledgers):
    before = contents(published)
    stale = published / "artefacts" / "toy_fig9" / "toy_fig9.png"
    stale.parent.mkdir()
    stale.write_text("stale")
    publish(scope, published, ledgers)
    assert contents(published) == before
    assert not stale.parent.exists()


def test_without_verdicts_nothing_is_published(scope, published, ledgers):
    before = contents(published)
    (scope.results / "verdicts.csv").unlink()
    with pytest.raises(InputError, match="evaluate the claims before publishing"):
        publish(scope, published, ledgers)
    assert contents(published) == before


@pytest.fixture
def other(tmp_path, ledgers):
    """Results of another paper, computed where those of the first are not."""
    text = LEDGER.model_dump_json(exclude_defaults=True).replace("toy_", "other_")
    text = text.replace('"toy"', '"other"').replace('"T-', '"O-')
    (ledgers / "other.yaml").write_text(text.replace("toys.all", "toys.other"))
    scope = write_results(tmp_path / "elsewhere" / "demo")
    table = scope.results / "verdicts.csv"
    table.write_text(table.read_text().replace("T-", "O-").replace("toy", "other"))
    for path in sorted(scope.results.glob("*/toy_*")):
        path.rename(path.with_name(path.name.replace("toy_", "other_")))
    return replace(scope, ledgers=(load_ledger(ledgers / "other.yaml"),))


def test_a_paper_that_is_published_stays_beside_another(published, scope, other, ledgers):
    before = contents(published)
    publish(other, published, ledgers)
    after = contents(published)
    assert dangling(published) == []
    assert {name for name in before if before[name] != after[name]} == {
        *(f"{page}.html" for page in ("index", "toy", "runs", "words")),  # their navigation
        *("verdicts.csv", "scorecard.md", "provenance.json"),
    }
    rows = after["verdicts.csv"].decode().splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [
        *([f"T-{number}", "toy"] for number in (1, 2, 3)),
        *([f"O-{number}", "other"] for number in (1, 2, 3)),
    ]
    runs = read(published, "provenance.json")["runs"]
    assert runs["toy_run"]["0"] == json.loads(before["provenance.json"])["runs"]["toy_run"]["0"]
    publish(scope, published, ledgers)
    assert contents(published) == after


def test_what_stays_keeps_its_seeds_whatever_is_asked_for_now(published, scope, other, ledgers):
    write_run(scope.results / "runs/toy_run/seed1")
    publish(scope, published, ledgers)
    before = contents(published)
    publish(replace(other, seeds=1), published, ledgers)
    assert {name for name in before if "toy_run/seed1" in name} <= contents(published).keys()
    assert read(published, "provenance.json")["runs"]["toy_run"].keys() == {"0", "1"}


def test_what_stays_must_be_what_its_ledger_says(published, other, ledgers):
    record = published / "runs/toy_run/seed0/record.json"
    write_json(
        record, read(published, "runs/toy_run/seed0/record.json") | {"config": {"rounds": 9}}
    )
    before = contents(published)
    with pytest.raises(InputError) as caught:
        publish(other, published, ledgers)
    assert str(caught.value) == (
        f"{record} has another rounds than the ledger of toy; "
        "compute it anew and publish it with --config 'papers=[toy,...]'"
    )
    assert contents(published) == before


def test_what_stays_must_have_the_same_source_of_data(published, other, ledgers):
    before = contents(published)
    with pytest.raises(InputError, match="holds toy with data from 'builtin', these results are"):
        publish(replace(other, source="mirror"), published, ledgers)
    assert contents(published) == before


def test_what_is_too_large_is_not_published(scope, published, monkeypatch, ledgers):
    before = contents(published)
    (scope.results / "artefacts/toy_fig1/toy_fig1.svg").write_text("x" * 300_000)
    monkeypatch.setattr(publishing, "LIMIT_MB", 0.1)
    with pytest.raises(InputError, match="allowed are 0.1; the largest file is .*toy_fig1.svg"):
        publish(scope, published, ledgers)
    assert contents(published) == before
    assert [path.name for path in published.parent.iterdir()] == ["demo"]


def test_folder_with_other_things_is_not_replaced(scope, tmp_path, ledgers):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds something that is no report"):
        publish(scope, tmp_path, ledgers)
    assert (tmp_path / "notes.txt").exists()
