"""The report: complete, escaped, offline, the same every time, and honest about what is missing."""

import csv
import shutil
from collections import Counter
from dataclasses import replace
from importlib.resources import files

import pytest
from site_pages import dangling, pages
from tiny_results import (
    LEDGER,
    NASTY,
    RECORD,
    contents,
    read,
    write_results,
    write_run,
    write_verdicts,
)

from clustered_fl.errors import InputError
from clustered_fl.figures import DEMO
from clustered_fl.files import write_json
from clustered_fl.report import site
from clustered_fl.report.entries import Scope
from clustered_fl.report.evidence import gather
from clustered_fl.report.verdicts import MEANING, read_verdicts, scorecard
from clustered_fl.same_ground import expanded


@pytest.fixture
def scope(tmp_path) -> Scope:
    return write_results(tmp_path / "demo")


@pytest.fixture
def report(scope):
    """The folder of a report."""
    site.build(scope, scope.results / "report")
    return scope.results / "report"


def test_every_link_leads_to_a_file_of_the_report(report):
    assert set(pages(report)) == {"index.html", "toy.html", "runs.html", "words.html"}
    assert dangling(report) == []


def test_dangling_links_are_noticed(report):
    (report / "artefacts/toy_fig1/toy_fig1.png").unlink()
    page = report / "index.html"
    page.write_text(page.read_text().replace("toy.html#T-1", "toy.html#T-9"))
    wrong = " ".join(dangling(report))
    assert "toy_fig1.png" in wrong
    assert "#T-9 has no such anchor" in wrong


def test_report_is_complete_without_its_surroundings(report, tmp_path):
    alone = tmp_path / "elsewhere"
    shutil.move(report, alone)
    shutil.rmtree(tmp_path / "demo")
    assert dangling(alone) == []


def test_nothing_is_loaded_from_elsewhere(report):
    for page in pages(report).values():
        assert {load for load in page.loads if load.endswith(".css")} == {"style.css"}
        assert not [load for load in page.loads if "//" in load]
        assert "script" not in {tag for tag, _ in page.tags}
    style = (report / "style.css").read_text()
    assert "url(" not in style
    assert "@import" not in style


def test_scorecard_counts_the_rows_of_the_table(report, scope):
    with (scope.results / "verdicts.csv").open() as file:
        counted = Counter(row["verdict"] for row in csv.DictReader(file))
    text = pages(report)["index.html"].words()
    table = text[text.index("Verdict TOY") : text.index("TOY: A toy paper")]
    for word in MEANING:
        assert f"{word} {counted[word]} " in table
    assert "all claims 3" in table


def test_claims_stand_beside_the_published_numbers(report):
    for name in ("index.html", "toy.html"):
        text = pages(report)[name].words()
        assert f"0.5 0.512 {NASTY} holds if score > 0.5 2 DEMO ONLY" in text
        assert "0.5 – holds if score > 0.5 2 NOT RUN" in text


def test_text_from_records_and_ledgers_is_escaped(report):
    for name, page in pages(report).items():
        assert "<script" not in page.path.read_text()
        assert (NASTY in page.words()) == (name != "words.html")


def test_pages_are_accessible(report):
    for page in pages(report).values():
        assert page.open == []
        assert len(page.ids) == len(set(page.ids))
        assert page.headings[0] == 1
        assert page.headings.count(1) == 1
        steps = zip(page.headings, page.headings[1:], strict=False)
        assert all(after - before <= 1 for before, after in steps)
        assert ("html", {"lang": "en"}) in page.tags
        assert all(found.get("alt") for tag, found in page.tags if tag == "img")
        scrolling = [found for _, found in page.tags if found.get("class") == "scroll"]
        assert all(found["aria-label"] and found["tabindex"] == "0" for found in scrolling)


def test_same_inputs_give_the_same_bytes(report, tmp_path):
    other = write_results(tmp_path / "another" / "demo")
    site.build(other, tmp_path / "there")
    assert contents(tmp_path / "there") == contents(report)
    assert not [name for name, text in contents(report).items() if str(tmp_path).encode() in text]


def test_missing_artefacts_and_records_are_shown_as_missing(report):
    found = pages(report)
    assert "Missing: this figure has not been made at this scale." in found["toy.html"].words()
    assert "toy_run 1 not run" in found["runs.html"].words()
    assert "1 of 2" in found["runs.html"].words()


def test_report_of_nothing(tmp_path):
    (tmp_path / "paper").mkdir()
    scope = Scope((LEDGER,), tmp_path / "paper", "paper", "download")
    site.build(scope, tmp_path / "paper" / "report")
    found = pages(tmp_path / "paper" / "report")
    assert dangling(tmp_path / "paper" / "report") == []
    assert "have not been evaluated" in found["index.html"].words()
    assert "Not part of this scale" in found["runs.html"].words()
    assert "verdicts.csv" not in found["words.html"].links


def test_runs_say_what_was_computed_and_what_it_cost(report):
    text = pages(report)["runs.html"].words()
    assert "label_swap, clients 4, samples 10, 30 (a run each)" in text
    assert "accuracy 0.3 after 2 rounds 90.0 500" in text
    assert "mnist (builtin), 1,797 rows" in text
    assert "0.5 1.5" in text  # expected and measured minutes


def test_stand_ins_are_named_wherever_they_were_used(report):
    found = pages(report)
    assert all(DEMO in page.words() for page in found.values())
    figure, table, _ = found["toy.html"].path.read_text().split("<section")[1:]
    assert 'class="stand-in"' in figure
    assert 'class="stand-in"' not in table


def test_real_data_carries_no_demo_words_but_says_what_is_incomplete(scope):
    write_run(scope.results / "runs/toy_run/seed0", source="mirror", note="1,500 of 60,000 images")
    write_verdicts(scope.results / "verdicts.csv", dict.fromkeys(LEDGER.claims, "REFUTED"))
    site.build(Scope((LEDGER,), scope.results, "demo", "mirror"), scope.results / "report")
    text = pages(scope.results / "report")["toy.html"].words()
    assert DEMO not in text
    assert "Incomplete: mnist, 1,500 of 60,000 images." in text


def test_an_artefact_names_datasets_once_that_differ_by_their_seed_only(scope):
    for seed, digest in enumerate("de"):
        run = scope.results / f"runs/toy_run/seed{seed}"
        write_run(run, source="mirror", note="turned", digest=digest * 64)
    site.build(replace(scope, source="mirror"), scope.results / "report")
    found = pages(scope.results / "report")
    assert found["toy.html"].words().count("1,797 rows (mirror): turned") == 1
    assert found["runs.html"].words().count("1,797 rows, digest") == 2


def test_fewer_seeds_than_the_ledger_has(scope):
    site.build(Scope((LEDGER,), scope.results, "demo", "builtin", seeds=1), scope.results / "one")
    runs = read(scope.results / "one", "provenance.json")["runs"]
    assert list(runs["toy_run"]) == ["0"]


def test_contradictions_of_a_paper_are_shown(scope):
    ledger = LEDGER.model_copy(update={"contradictions": ["Text says 2, table says 3"]})
    site.build(Scope((ledger,), scope.results, "demo", "builtin"), scope.results / "report")
    text = pages(scope.results / "report")["toy.html"].words()
    assert "Where the paper contradicts itself or its code Text says 2, table says 3" in text


def test_nothing_of_a_former_report_stays(report, scope):
    (report / "old.html").write_text("old")
    (report / "index.html").unlink()
    site.build(scope, report)
    assert not (report / "old.html").exists()
    assert [path.name for path in scope.results.iterdir() if path.name.endswith(".part")] == []


def test_folder_that_is_no_report_is_left_alone(scope):
    with pytest.raises(InputError, match="holds something that is no report"):
        site.build(scope, scope.results)
    assert (scope.results / "verdicts.csv").exists()


def test_failure_leaves_the_former_report(report, scope):
    before = contents(report)
    (scope.results / "artefacts/toy_fig1/toy_fig1.png").write_text("no picture")
    with pytest.raises(InputError, match="toy_fig1.png is no picture"):
        site.build(scope, report)
    assert contents(report) == before


@pytest.mark.parametrize(
    ("verdicts", "scale", "sentence"),
    [
        ({"T-1": "CONFIRMED"}, "demo", "differ in claim T-2"),
        ({"T-1": "PERHAPS"}, "demo", "T-1 has the verdict 'PERHAPS'; allowed are CONFIRMED"),
        ({"T-1": "CONFIRMED"}, "paper", "T-1 is of scale 'paper', not 'demo'"),
    ],
)
def test_verdicts_that_do_not_fit_are_refused(scope, verdicts, scale, sentence):
    write_verdicts(scope.results / "verdicts.csv", verdicts, scale)
    with pytest.raises(InputError, match=sentence):
        site.build(scope, scope.results / "report")
    assert not (scope.results / "report").exists()


def test_table_without_a_column_is_refused(tmp_path):
    (tmp_path / "verdicts.csv").write_text("claim,paper\nT-1,toy\n")
    with pytest.raises(InputError, match="has no column 'artefact'"):
        read_verdicts(tmp_path / "verdicts.csv", "demo")


def test_columns_of_numbers_only_are_set_flush_right():
    rows = [["name", "ours", "alike"], ["REPA", "0.5", "0.29 (0.23)"], ["WD", "–", "–"]]
    assert site.number_columns(rows) == [False, True, False]
    assert site.number_columns(rows[:1]) == [False, False, False]


def test_every_verdict_has_its_colour():
    style = files("clustered_fl.report").joinpath("templates/style.css").read_text()
    names = map(site.slug, MEANING)
    assert {name for name in names if f".{name} {{ color: var(--{name}); }}" not in style} == set()


def test_scorecard_in_markdown_keeps_its_columns(scope):
    text = scorecard(read_verdicts(scope.results / "verdicts.csv", "demo"), "demo", "builtin")
    summary, _, *table = text.splitlines()
    assert summary == f"Scorecard (scale demo, {DEMO}): 1 CONFIRMED, 1 NOT RUN, 1 DEMO ONLY."
    assert len(table) == 2 + len(LEDGER.claims)
    assert {row.replace("\\|", "").count("|") for row in table} == {8}


# ---- A section that is no paper -----------------------------------------------------------------

GUIDE = "# Add your own\n\nOne `module`:\n\n```python\nx = 1 < 2\n```\n"


@pytest.fixture
def section(scope, tmp_path):
    """The scope of a ledger with a ground, and a guide."""
    ground = {
        "title": "labels swapped",
        "differs": "Names of labels",
        "clusters": 2,
        "dataset": "mnist",
        "federation": {"kind": "iid", "clients": 9},
        "model": {"name": "le_net"},
        "training": {"epochs": 1},
        "rounds": 3,
        "minutes": {},
        "seeds": {"demo": [0]},
        "grouping_seeds": {},
        "scales": {"demo": {"federation": {"clients": 4}}},
    }
    other = {"title": "writers", "differs": "Their hands", "dataset": "femnist", "truth": False}
    other = ground | other | {"seeds": {}}
    contender = {"title": "FedAvg", "citation": "A", "method": {"name": "fedavg"}}
    one_shot = {"method": {"name": "pca_kmeans_hc"}, "minutes": {}}
    one_shot = contender | {"title": "PCA", "grouping": one_shot, "lesson": "Finds nobody."}
    content = LEDGER.model_dump() | {
        "grounds": {"swap": ground, "writers": other},
        "contenders": {"f": contender, "o": one_shot},
    }
    ledger = LEDGER.model_validate(content)
    (tmp_path / "guide.md").write_text(GUIDE)
    return replace(scope, ledgers=(ledger,), guide=tmp_path / "guide.md")


@pytest.fixture
def site_of_section(section):
    section = replace(section, ledgers=tuple(expanded(ledger) for ledger in section.ledgers))
    site.build(section, section.results / "report")
    return section.results / "report"


def test_a_section_is_called_by_its_title_and_says_what_differs(site_of_section):
    pages_ = pages(site_of_section)
    assert "A toy paper" in pages_["index.html"].words()
    assert "TOY: A toy paper" not in pages_["index.html"].words()
    text = pages_["toy.html"].words()
    assert "labels swapped Names of labels. mnist 2 iid, clients 4 le_net epochs 1 3" in text
    assert "writers Their hands. femnist – not part of this scale" in text
    assert "The paper shows" not in text


def test_what_to_take_away_is_said_of_whoever_has_something_to_say(site_of_section):
    text = pages(site_of_section)["toy.html"].words()
    table = text[text.index("Method What to take away") : text.index("Figures and tables")]
    assert "PCA Finds nobody." in table
    assert "FedAvg" not in table


def test_without_anything_to_take_away_there_is_no_heading_for_it(report):
    assert "What to take away" not in pages(report)["toy.html"].words()


def test_groups_that_nobody_knows_are_not_scored(section):
    known = section.ledgers[0].grounds["swap"].model_copy(update={"grouping_seeds": {"demo": [0]}})
    grounds = {"swap": known, "writers": known.model_copy(update={"truth": False})}
    ledger = expanded(section.ledgers[0].model_copy(update={"grounds": grounds}))
    for ground in grounds:
        folder = section.results / f"groupings/toy_groups_{ground}_o/seed0"
        agreement = {"ari": 0.5, "components": 2.0, "recall": 1.0, "false_edges": 0.0}
        write_json(folder / "record.json", RECORD | {"agreement": agreement})
        write_json(folder / "cost.json", {"seconds": 90.0, "peak_memory_mb": 500, "threads": 1})
    (paper,) = gather(replace(section, ledgers=(ledger,)), ())
    scores = {name: entry.seeds[0].score for name, entry in paper.groupings.items()}
    assert scores == {"toy_groups_swap_o": 0.5, "toy_groups_writers_o": None}


def test_a_section_comes_with_a_page_for_who_adds_to_it(site_of_section):
    assert set(pages(site_of_section)) >= {"add_your_own.html", "toy.html"}
    text = (site_of_section / "add_your_own.html").read_text()
    assert "<code>module</code>" in text
    assert 'href="add_your_own.html"' in (site_of_section / "index.html").read_text()
    assert dangling(site_of_section) == []


def test_papers_alone_have_no_such_page(scope, tmp_path):
    (tmp_path / "guide.md").write_text(GUIDE)
    site.build(replace(scope, guide=tmp_path / "guide.md"), scope.results / "report")
    assert "add_your_own.html" not in pages(scope.results / "report")


def test_an_absent_guide_is_one_sentence(section, tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*absent.md: No such file or directory"):
        site.build(replace(section, guide=tmp_path / "absent.md"), section.results / "report")


def test_very_many_records_are_counted_and_not_listed(scope):
    names = [f"toy_run{number}" for number in range(41)]
    artefact = LEDGER.artefacts["toy_fig1"].model_copy(update={"runs": names})
    runs = dict.fromkeys(names, LEDGER.runs["toy_run"])
    changes = {"runs": LEDGER.runs | runs, "artefacts": LEDGER.artefacts | {"toy_fig1": artefact}}
    site.build(replace(scope, ledgers=(LEDGER.model_copy(update=changes),)), scope.results / "r")
    text = pages(scope.results / "r")["toy.html"].words()
    assert "Made from 41 records and more" in text
    assert "toy_run40" not in text
