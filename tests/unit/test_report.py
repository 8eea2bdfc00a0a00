"""The report: complete, escaped, offline, the same every time, and honest about what is missing."""

import csv
import shutil
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from site_pages import dangling, pages
from tiny_results import (
    CONTENT,
    COST,
    LEDGER,
    NASTY,
    RECORD,
    RUN,
    contents,
    index_of,
    ledger_of,
    scope_of,
    write_notebook,
    write_results,
    write_run,
    write_verdicts,
)

from clustered_fl.errors import InputError
from clustered_fl.figures import DEMO
from clustered_fl.files import write_json
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.records import index
from clustered_fl.records.archive import FILE, Key, read
from clustered_fl.report import site
from clustered_fl.report.evidence import gather
from clustered_fl.report.scope import Scope
from clustered_fl.report.verdicts import MEANING, read_verdicts, scorecard

PAPERS = sorted((Path(__file__).parents[2] / "config" / "papers").glob("*.yaml"))


@pytest.fixture
def scope(tmp_path) -> Scope:
    return write_results(tmp_path / "demo")


@pytest.fixture
def report(scope):
    """The folder of a report."""
    site.build(scope, scope.results / "report")
    return scope.results / "report"


def test_every_link_leads_to_a_file_of_the_report(report):
    names = {"index.html", "words.html", "toy/index.html", "toy/runs.html"}
    names |= {"toy/toy_fig1.html", "toy/toy_table1.html"}
    assert set(pages(report)) == names
    assert dangling(report) == []


def test_dangling_links_are_noticed(report):
    (report / "toy/toy_fig1.png").unlink()
    page = report / "index.html"
    page.write_text(page.read_text().replace("toy/index.html#T-1", "toy/index.html#T-9"))
    page = report / "toy/runs.html"
    page.write_text(page.read_text().replace("../words.html", "../../demo/verdicts.csv"))
    assert dangling(report) == [
        "index.html: toy/index.html#T-9 has no such anchor",
        *["toy/index.html: toy_fig1.png"] * 2,
        "toy/runs.html: ../../demo/verdicts.csv",
        "toy/toy_fig1.html: toy_fig1.png",
    ]


def test_report_is_complete_without_its_surroundings(report, tmp_path):
    alone = tmp_path / "elsewhere"
    shutil.move(report, alone)
    shutil.rmtree(tmp_path / "demo")
    assert dangling(alone) == []


def test_pages_of_the_committed_ledgers_link_to_what_is_there(tmp_path):
    """Every claim, run and table of them, though nothing was computed."""
    ledgers = [load_ledger(path) for path in PAPERS]
    claims = [claim for ledger in ledgers for claim in ledger.claims]
    words = dict.fromkeys(claims, "NOT RUN")
    write_verdicts(tmp_path / "verdicts.csv", words, "desktop", *ledgers)
    scope = Scope(tuple(ledgers), tmp_path, index.build([]), "desktop", "real")
    site.build(scope, tmp_path / "report")
    assert len(list((tmp_path / "report").glob("*/runs.html"))) == len(ledgers)
    assert dangling(tmp_path / "report") == []


def test_a_page_shows_how_to_read_an_artefact_before_its_notebook(report):
    """Figure, reading, claims, then text, folded code and outputs, of which the figure is none."""
    page = pages(report)["toy/toy_fig1.html"]
    order = ["A figure Fig. 1", "Decides T-1 DEMO ONLY", "What it shows", "How to read it"]
    order += ["Upwards is better", "Claims", "It works", "The notebook", "What is asked."]
    order += ["Code number = 1", "Draw", f"Code draw({NASTY!r})", NASTY, "a cell"]
    text, places = page.words(), []
    for words in order:
        places.append(text.index(" ".join(words.split()), places[-1] + 1 if places else 0))
    assert "index.html#toy_fig1" in page.links
    assert "A title" not in text
    assert page.path.read_text().count("<details>") == 2
    (figure,) = [found for tag, found in page.tags if tag == "img"]
    assert (figure["src"], figure["alt"]) == ("toy_fig1.png", "A figure (Fig. 1). What it shows")


def test_a_further_picture_of_a_notebook_is_on_its_page(scope):
    path = scope.results / "artefacts/toy_table1/toy_table1.ipynb"
    write_notebook(path)
    site.build(scope, scope.results / "report")
    page = pages(scope.results / "report")["toy/toy_table1.html"]
    (picture,) = [found["src"] for tag, found in page.tags if tag == "img"]
    assert picture.startswith("data:image/png;base64,")


def test_an_executed_notebook_that_is_none_is_one_sentence(scope):
    path = scope.results / "artefacts/toy_fig1/toy_fig1.ipynb"
    path.write_text("{")
    with pytest.raises(InputError, match="cannot read .*toy_fig1.ipynb: .*make the artefact again"):
        site.build(scope, scope.results / "report")


def test_nothing_is_loaded_from_elsewhere(report):
    for name, page in pages(report).items():
        style = "../style.css" if "/" in name else "style.css"
        assert {load for load in page.loads if load.endswith(".css")} == {style}
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
    for name in ("index.html", "toy/index.html"):
        text = pages(report)[name].words()
        assert f"0.5 0.512 {NASTY} holds if score > 0.5 2 DEMO ONLY" in text
        assert "0.5 – holds if score > 0.5 2 NOT RUN" in text


def test_claims_are_in_the_order_of_the_ledger_on_every_page(report):
    """Not in that of the artefacts' names: Fig. 10 comes after Fig. 9."""
    for name in ("index.html", "toy/index.html"):
        text = pages(report)[name].words()
        places = [text.index(f" {claim} ") for claim in LEDGER.claims]
        assert places == sorted(places)


def test_claims_link_to_what_they_are_measured_on(report):
    links = pages(report)["toy/index.html"].links
    assert {"runs.html#toy_run", "runs.html#toy_study", "runs.html#toy_sweep"} <= set(links)


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
    text = found["toy/index.html"].words()
    assert "Missing: this figure has not been made at this scale." in text
    text = found["toy/runs.html"].words()
    assert "toy_run 1 not run" in text
    assert "toy_run Something to look at 1 of 2" in text
    assert "toy_sweep Something to look at 0 of 4" in text


def test_report_of_nothing(tmp_path):
    (tmp_path / "paper").mkdir()
    scope = scope_of(tmp_path / "paper", LEDGER, scale="paper", source="real")
    site.build(scope, tmp_path / "paper" / "report")
    found = pages(tmp_path / "paper" / "report")
    assert dangling(tmp_path / "paper" / "report") == []
    assert "have not been evaluated" in found["index.html"].words()
    assert "Not part of this scale" in found["toy/runs.html"].words()
    assert read(tmp_path / "paper" / "report" / "toy" / FILE) == {}


def test_runs_say_what_was_computed_and_what_it_cost(report):
    text = pages(report)["toy/runs.html"].words()
    assert "label_swap, clients 4, samples 10, 30 (a run each)" in text
    assert "accuracy 0.3 after 2 rounds 90.0 500" in text
    assert "mnist (builtin), 1,797 rows" in text
    assert "0.5 1.5" in text  # expected and measured minutes


def test_runs_say_what_made_them_and_on_which_machine(report):
    """Data, code, configuration, versions and device of every record."""
    text = pages(report)["toy/runs.html"].words()
    assert f"1 CPU {NASTY} python 3.11, torch 2.13.0 1 0.03" in text
    made_by = next(iter(read(report / "toy" / FILE).values())).made_by
    assert f"500 1 {made_by} {'f' * 16} {'c' * 16}" in text
    assert f"digest {'d' * 16}" in text
    assert f"{made_by}, code {'b' * 16}, configuration {'a' * 16}" in text


def test_stand_ins_are_named_wherever_they_were_used(report):
    found = pages(report)
    assert all(DEMO in page.words() for page in found.values())
    figure, table, _ = found["toy/index.html"].path.read_text().split("<section")[1:]
    assert 'class="stand-in"' in figure
    assert 'class="stand-in"' not in table


def test_real_data_carries_no_demo_words_but_says_what_is_incomplete(scope):
    real = {"source": "mirror", "note": "1,500 of 60,000 images"}
    write_run(scope.results / "runs/toy_run/seed0", real)
    write_verdicts(scope.results / "verdicts.csv", dict.fromkeys(LEDGER.claims, "REFUTED"))
    site.build(replace(scope, source="real"), scope.results / "report")
    for name in ("index.html", "toy/index.html"):
        text = pages(scope.results / "report")[name].words()
        assert DEMO not in text
        assert "Incomplete: mnist, 1,500 of 60,000 images." in text


def test_an_artefact_names_datasets_once_that_differ_by_their_seed_only(scope):
    for seed, digest in enumerate("de"):
        data = {"source": "mirror", "note": "turned", "digest": digest * 64}
        write_run(scope.results / f"runs/toy_run/seed{seed}", data)
    site.build(replace(scope, source="real"), scope.results / "report")
    found = pages(scope.results / "report")
    assert found["toy/index.html"].words().count("1,797 rows (mirror): turned") == 1
    assert found["toy/runs.html"].words().count("1,797 rows, digest") == 2


def test_contradictions_of_a_paper_are_shown(scope):
    ledger = LEDGER.model_copy(update={"contradictions": ["Text says 2, table says 3"]})
    site.build(replace(scope, ledgers=(ledger,)), scope.results / "report")
    text = pages(scope.results / "report")["toy/index.html"].words()
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
    assert {row.replace("\\|", "").count("|") for row in table} == {9}


def test_very_many_records_are_counted_and_not_listed(scope):
    names = [f"toy_run{number}" for number in range(41)]
    artefact = LEDGER.artefacts["toy_fig1"].model_copy(update={"runs": names})
    runs = dict.fromkeys(names, LEDGER.runs["toy_run"])
    changes = {"runs": LEDGER.runs | runs, "artefacts": LEDGER.artefacts | {"toy_fig1": artefact}}
    site.build(replace(scope, ledgers=(LEDGER.model_copy(update=changes),)), scope.results / "r")
    text = pages(scope.results / "r")["toy/index.html"].words()
    assert "Made from 41 records and more" in text
    assert "toy_run40" not in text


# ---- A benchmark, which is no paper --------------------------------------------------------------

GUIDE = "# Add your own\n\nOne `module`:\n\n```python\nx = 1 < 2\n```\n"
SHARED = {key: RUN[key] for key in ("minutes", "dataset", "model", "training", "rounds")}
TABLE = {
    "all": SHARED,
    "columns": {
        "swap": {
            "title": "labels swapped",
            "differs": "Names of labels",
            "values": {"clusters": 2},
            "federation": {"kind": "label_swap", "clients": 9},
            "seeds": {"demo": [0]},
            "scales": {"demo": {"federation": {"clients": 4}, "rounds": 3}},
        },
        "writers": {
            "title": "writers",
            "differs": "Their hands",
            "truth": False,
            "dataset": "femnist",
            "federation": {"kind": "writers", "clients": 9},
            "seeds": {},
        },
    },
    "rows": {
        "f": {"title": "FedAvg", "method": {"name": "fedavg"}},
        "o": {
            "title": "PCA",
            "method": {"name": "one_shot"},
            "grouping": {
                "method": {"name": "pca_kmeans_hc"},
                "minutes": {},
                "seeds": {"demo": [0]},
            },
            "lesson": "Finds no group.",
        },
    },
}


@pytest.fixture
def benchmark(scope, tmp_path):
    """The scope of a ledger with a table of all methods on all clients, and a guide."""
    ledger = ledger_of(CONTENT | {"tables": {"matrix": TABLE}})
    (tmp_path / "guide.md").write_text(GUIDE)
    records = index_of(ledger, scope.results, "demo")
    return replace(scope, ledgers=(ledger,), records=records, guide=tmp_path / "guide.md")


@pytest.fixture
def its_report(benchmark):
    site.build(benchmark, benchmark.results / "report")
    return benchmark.results / "report"


def test_a_benchmark_is_called_by_its_title_and_says_what_differs(its_report):
    found = pages(its_report)
    assert "A toy paper" in found["index.html"].words()
    assert "TOY: A toy paper" not in found["index.html"].words()
    text = found["toy/index.html"].words()
    swap = "labels swapped Names of labels. mnist 2 label_swap, clients 4 small_conv_net epochs 3 3"
    assert swap in text
    assert "writers Their hands. femnist – not part of this scale" in text
    assert "The paper shows" not in text


def test_what_to_take_away_is_said_of_methods_with_a_lesson(its_report):
    text = pages(its_report)["toy/index.html"].words()
    table = text[text.index("Method What to take away") : text.index("Figures and tables")]
    assert "PCA Finds no group." in table
    assert "FedAvg" not in table


def test_without_anything_to_take_away_there_is_no_heading_for_it(report):
    assert "What to take away" not in pages(report)["toy/index.html"].words()


def test_groupings_of_clients_without_true_groups_have_no_score(benchmark):
    columns = {name: column | {"seeds": {"demo": [0]}} for name, column in TABLE["columns"].items()}
    ledger = ledger_of(CONTENT | {"tables": {"matrix": TABLE | {"columns": columns}}})
    for column in columns:
        folder = benchmark.results / f"groupings/toy_groups_{column}_o/seed0"
        write_json(folder / "record.json", {**RECORD, "score": 0.25})
        write_json(folder / "cost.json", COST)
    scope = replace(
        benchmark, ledgers=(ledger,), records=index_of(ledger, benchmark.results, "demo")
    )
    records = scope.packed(ledger)
    assert Key("grouping", "toy_groups_writers_o", 0) in records
    found = gather(ledger, records, None, lambda name: {}, "demo")
    scored = {name: entry.scored for name, entry in found.computed["groupings"].items()}
    assert scored == {"toy_groups_swap_o": True, "toy_groups_writers_o": False}
    site.build(scope, benchmark.results / "report")
    text = pages(benchmark.results / "report")["toy/runs.html"].words()
    assert "toy_groups_swap_o 0 accuracy 0.25" in text
    assert "toy_groups_writers_o 0 – 90.0" in text


def test_a_benchmark_comes_with_a_page_on_adding_to_it(its_report):
    assert set(pages(its_report)) >= {"add_your_own.html", "toy/index.html"}
    text = (its_report / "add_your_own.html").read_text()
    assert "<code>module</code>" in text
    assert 'href="add_your_own.html"' in (its_report / "index.html").read_text()
    assert dangling(its_report) == []


def test_papers_alone_have_no_such_page(scope, tmp_path):
    (tmp_path / "guide.md").write_text(GUIDE)
    site.build(replace(scope, guide=tmp_path / "guide.md"), scope.results / "report")
    assert "add_your_own.html" not in pages(scope.results / "report")


def test_an_absent_guide_is_one_sentence(benchmark, tmp_path):
    scope = replace(benchmark, guide=tmp_path / "absent.md")
    with pytest.raises(InputError, match=r"cannot read .*absent.md: No such file or directory"):
        site.build(scope, benchmark.results / "report")
