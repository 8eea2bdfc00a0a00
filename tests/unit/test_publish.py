"""Publishing: what is worth committing and nothing else, or one sentence and no change."""

import pytest
from site_pages import dangling, pages
from tiny_results import LEDGER, contents, read, write_results

from clustered_fl import publish as publishing
from clustered_fl.errors import InputError
from clustered_fl.publish import publish


@pytest.fixture
def scope(tmp_path):
    return write_results(tmp_path / "results" / "demo")


@pytest.fixture
def published(scope, tmp_path):
    """The folder that is committed."""
    publish(scope, tmp_path / "figures" / "demo")
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


def test_publishing_again_removes_what_is_stale_and_changes_nothing_else(published, scope):
    before = contents(published)
    stale = published / "artefacts" / "toy_fig9" / "toy_fig9.png"
    stale.parent.mkdir()
    stale.write_text("stale")
    publish(scope, published)
    assert contents(published) == before
    assert not stale.parent.exists()


def test_without_verdicts_nothing_is_published(scope, published):
    before = contents(published)
    (scope.results / "verdicts.csv").unlink()
    with pytest.raises(InputError, match="evaluate the claims before publishing"):
        publish(scope, published)
    assert contents(published) == before


def test_another_paper_that_is_published_is_not_removed(scope, published):
    table = published / "verdicts.csv"
    table.write_text(table.read_text().replace(",toy,", ",other,", 1))
    before = contents(published)
    with pytest.raises(InputError) as caught:
        publish(scope, published)
    assert str(caught.value) == (
        f"{published} holds results of other too, which would be removed; publish all of them "
        "with --config 'papers=[other,toy]', or remove that folder first"
    )
    assert contents(published) == before


def test_what_is_too_large_is_not_published(scope, published, monkeypatch):
    before = contents(published)
    (scope.results / "artefacts/toy_fig1/toy_fig1.svg").write_text("x" * 300_000)
    monkeypatch.setattr(publishing, "LIMIT_MB", 0.1)
    with pytest.raises(InputError, match="allowed are 0.1; the largest file is .*toy_fig1.svg"):
        publish(scope, published)
    assert contents(published) == before
    assert [path.name for path in published.parent.iterdir()] == ["demo"]


def test_folder_with_other_things_is_not_replaced(scope, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds something that is no report"):
        publish(scope, tmp_path)
    assert (tmp_path / "notes.txt").exists()
