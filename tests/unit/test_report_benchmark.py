"""Pages of a benchmark: every method in every setting, and how sure each difference is."""

import shutil
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from site_pages import dangling, pages
from tiny_results import (
    CONTENT,
    COST,
    RECORD,
    RUN,
    index_of,
    ledger_of,
    write_results,
    write_run,
    write_verdicts,
)

from clustered_fl.errors import InputError
from clustered_fl.files import write_json
from clustered_fl.records.archive import Key
from clustered_fl.report import site
from clustered_fl.report.comparison import AHEAD, BEHIND, UNCLEAR, Difference, compared
from clustered_fl.report.evidence import gather
from clustered_fl.report.scope import Scope


@pytest.fixture
def scope(tmp_path) -> Scope:
    return write_results(tmp_path / "demo")


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
                "seeds": {"demo": [0, 1, 2]},
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
    assert "labels swapped Names of labels. mnist 2 3" in text
    assert "writers Their hands. femnist – not part of this scale" in text
    text = found["toy/settings/swap.html"].words()
    assert "Clients label_swap, clients 4 Data mnist Network small_conv_net Local" in text
    assert "has been trained in this setting at this scale" in text
    assert "The paper shows" not in text


def test_what_to_take_away_is_said_of_methods_with_a_lesson(its_report):
    text = pages(its_report)["toy/index.html"].words()
    table = text[text.index("Method What to take away") : text.index("Expectations Each was")]
    assert "PCA Finds no group." in table
    assert "FedAvg" not in table


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
    assert "Configuration 0 accuracy 0.25 after 2 rounds 90.0" in text
    assert "Configuration 0 – 90.0" in text


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


# ---- Every pair of methods -----------------------------------------------------------------------

SCORES = {
    "f": {0: 0.80, 1: 0.82, 2: 0.81},
    "o": {0: 0.84, 1: 0.86, 2: 0.88},
    "g": {0: 0.85, 1: 0.83, 2: 0.81},
}
METHODS = {"f": "FedAvg", "o": "PCA", "g": "Another"}


@pytest.fixture
def trained(benchmark) -> Scope:
    """Three methods trained in the first setting."""
    rows = TABLE["rows"] | {"g": {"title": "Another", "method": {"name": "local"}}}
    columns = TABLE["columns"] | {"swap": TABLE["columns"]["swap"] | {"seeds": {"demo": [0, 1, 2]}}}
    table = TABLE | {"rows": rows, "columns": columns}
    ledger = ledger_of(CONTENT | {"tables": {"matrix": table}})
    for method, seeds in SCORES.items():
        for seed, score in seeds.items():
            reached(benchmark.results / f"runs/toy_swap_{method}/seed{seed}", score)
    agreement = {"ari": 0.5, "components": 3.0, "recall": 1.0, "false_edges": 0.0}
    folder = benchmark.results / "groupings/toy_groups_swap_o/seed0"
    write_json(folder / "record.json", RECORD | {"agreement": agreement})
    write_json(folder / "cost.json", COST)
    records = index_of(ledger, benchmark.results, "demo")
    return replace(benchmark, ledgers=(ledger,), records=records)


def reached(folder, score: float) -> None:
    """A run whose clients reach this on average, at its only test after round 0."""
    write_run(folder, last=2 * score)  # accuracies from 0 to `last` in equal steps


def comparison_of(scope: Scope):
    (ledger,) = scope.ledgers
    records = scope.packed(ledger)
    return compared(gather(ledger, records, None, lambda name: {}, "demo"), records)


def literal_difference(first: dict[int, float], second: dict[int, float]) -> Difference:
    """Seed by seed; the rule of the verdicts, written out."""
    shared = sorted(seed for seed in first if seed in second)
    values = [100 * (first[seed] - second[seed]) for seed in shared]
    mean = sum(values) / len(values)
    if len(values) > 1:
        spread = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        interval = 2.920 * (spread / len(values)) ** 0.5  # the 95% quantile for three seeds
    else:
        shares = [own[shared[0]] for own in (first, second)]
        tests = sum(share * (1 - share) / RECORD["test_rows"] for share in shares)
        interval = 600 * tests**0.5
    same = sum(value * mean > 0 for value in values) / len(values)
    clear = abs(mean) >= interval and same >= 0.8
    word = (AHEAD if mean > 0 else BEHIND) if clear else UNCLEAR
    return Difference(values, interval, word)


def test_differences_are_those_of_the_literal_rule(trained):
    found = comparison_of(trained)
    pairs = [(a, b) for a, b in product(SCORES, SCORES) if a != b]
    assert set(found.differences) == {("swap", a, b) for a, b in pairs}
    words = set()
    for first, second in pairs:
        expected = literal_difference(SCORES[first], SCORES[second])
        here = found.differences["swap", first, second]
        np.testing.assert_allclose(here.values, expected.values, atol=1e-9)
        assert here.interval == pytest.approx(expected.interval, rel=1e-4)
        assert here.word == expected.word
        words.add(here.word)
    assert words == {AHEAD, BEHIND, UNCLEAR}


def test_methods_are_ranked_and_their_groups_counted(trained):
    found = comparison_of(trained)
    assert found.baseline == "f"
    assert found.ranked("swap") == ["o", "g", "f"]
    assert found.ranked("writers") == []
    assert found.scores["swap", "o"].agreement.values == [0.5]
    assert found.scores["swap", "o"].groups.values == [3.0]
    # All four clients of the runs are in one group, and there are two true ones.
    assert found.scores["swap", "f"].agreement.values == [0.0] * 3
    assert found.scores["swap", "f"].groups.values == [1.0] * 3
    assert found.seeds == "3"
    assert [found.seeds_in(each) for each in found.settings] == ["3", ""]


def test_a_setting_is_shown_for_the_seeds_that_all_its_methods_have(trained):
    for seed in (0, 2):
        shutil.rmtree(trained.results / f"runs/toy_swap_g/seed{seed}")
    trained = replace(trained, records=index_of(*trained.ledgers, trained.results, "demo"))
    found = comparison_of(trained)
    only = {method: {1: scores[1]} for method, scores in SCORES.items()}
    for method in SCORES:
        assert [*found.scores["swap", method].accuracies] == [1]
        for other in SCORES.keys() - {method}:
            expected = literal_difference(only[method], only[other])
            here = found.differences["swap", method, other]
            np.testing.assert_allclose(here.values, expected.values, atol=1e-9)
            assert (here.interval, here.word) == (pytest.approx(expected.interval), expected.word)
    # The only record of the grouping is of seed 0.
    assert found.scores["swap", "o"].agreement is None
    site.build(trained, trained.results / "report")
    text = pages(trained.results / "report")["toy/settings/swap.html"].words()
    assert "PCA its run – +3.0 ± 15.3 +4.0 ± 15.5" in text


def test_methods_that_are_equal_as_they_are_shown_share_a_rank(trained):
    """86.99% and 87% read the same; two first places leave no second."""
    for seed in range(3):
        reached(trained.results / f"runs/toy_swap_f/seed{seed}", 0.8699)
        reached(trained.results / f"runs/toy_swap_o/seed{seed}", 0.87)
    records = index_of(*trained.ledgers, trained.results, "demo")
    found = comparison_of(replace(trained, records=records))
    assert [found.rank("swap", each) for each in "ofg"] == [1, 1, 3]
    site.build(replace(trained, records=records), trained.results / "report")
    text = (trained.results / "report/toy/index.html").read_text()
    assert text.count('class="best"') == 2
    text = pages(trained.results / "report")["toy/settings/swap.html"].words()
    assert "1 PCA 87.0" in text
    assert "1 FedAvg 87.0" in text
    assert "3 Another 83.0" in text


def test_every_setting_says_on_how_many_seeds_it_rests(trained):
    site.build(trained, trained.results / "report")
    found = pages(trained.results / "report")
    assert "Seeds 3 seeds – FedAvg" in found["toy/index.html"].words()
    text = found["toy/settings/swap.html"].words()
    assert "Each method was trained on 3 seeds in this setting." in text


def test_statements_of_a_benchmark_are_called_expectations(its_report):
    text = pages(its_report)["toy/index.html"].words()
    assert "Expectation Statement What decides it Seeds Verdict T-1 It works" in text
    assert "Kind" not in text
    text = pages(its_report)["toy/runs.html"].words()
    assert "Runs of the benchmark" in text


def test_every_pair_is_two_clicks_from_the_front_page(trained):
    site.build(trained, trained.results / "report")
    found = pages(trained.results / "report")
    assert dangling(trained.results / "report") == []
    assert "toy/index.html#matrix" in found["index.html"].links
    for method in SCORES:
        assert f"settings/swap.html#{method}" in found["toy/index.html"].links
        assert f"methods/{method}.html" in found["toy/index.html"].links
    text = found["toy/settings/swap.html"].words()
    assert "1 PCA 86.0 84.0 to 88.0, 3 seeds +5.0 0.50 3" in text
    assert "PCA its run – +3.0 −1.0 to +7.0 +5.0 +4.0 to +7.0" in text


def test_a_method_is_shown_in_all_its_settings_against_all_others(trained):
    site.build(trained, trained.results / "report")
    text = pages(trained.results / "report")["toy/methods/o.html"].words()
    assert "labels swapped 86.0 84.0 to 88.0, 3 seeds +5.0 1 of 3 0.50 3" in text
    assert "Setting FedAvg Another labels swapped +5.0 +3.0" in text
    assert "writers" not in text


def test_a_setting_that_is_not_trained_says_so(its_report):
    text = pages(its_report)["toy/settings/writers.html"].words()
    assert "No method has been trained in this setting at this scale." in text
    text = pages(its_report)["toy/methods/f.html"].words()
    assert "This method has not been trained at this scale." in text


def test_expectations_hold_or_do_not(benchmark):
    words = {"T-1": "REFUTED", "T-2": "CONFIRMED", "T-3": "REFUTED"}
    write_verdicts(benchmark.results / "verdicts.csv", words, "demo", *benchmark.ledgers)
    site.build(benchmark, benchmark.results / "report")
    folder = benchmark.results / "report"
    texts = [pages(folder)[name].words() for name in ("index.html", "toy/index.html")]
    texts.append((folder / "toy/scorecard.md").read_text())
    for text in texts:
        assert "DID NOT HOLD" in text
        assert "CONFIRMED" not in text
        assert "REFUTED" not in text


def test_a_hidden_row_and_a_missing_cell_are_no_results(trained):
    """A warm-up is computed for other methods, and some settings lack some methods."""
    (ledger,) = trained.ledgers
    table = ledger.tables["matrix"]
    rows = table.rows | {"g": table.rows["g"].model_copy(update={"hidden": True})}
    cells = tuple(cell for cell in ledger.cells if (cell.column, cell.row) != ("swap", "f"))
    changes = {"tables": {"matrix": table.model_copy(update={"rows": rows})}, "cells": cells}
    changed = ledger.model_copy(update=changes)
    found = comparison_of(replace(trained, ledgers=(changed,)))
    assert list(found.methods) == ["f", "o"]
    assert found.scores.keys() == {("swap", "o")}
    assert found.gain("swap", "o") is None
