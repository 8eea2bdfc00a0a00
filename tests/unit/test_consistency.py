"""Every check of the results fails on a table that was doctored for it, and on no other."""

from pathlib import Path

import pandas as pd
import pytest

from clustered_fl.claims.consistency import check_results
from clustered_fl.claims.verdicts import COLUMNS, VERDICTS
from clustered_fl.errors import InputError

CLAIMS = list("ABCDEFGH")


@pytest.fixture
def table():
    """One claim for every verdict, all as they should be."""
    rows = pd.DataFrame(index=range(len(VERDICTS)), columns=list(COLUMNS))
    rows["claim"], rows["verdict"] = CLAIMS, VERDICTS
    rows["measured"] = ["x 1", "x 2", "x 3", "x nan", "x 4", "x 5", "", "x 6"]
    rows["seeds"] = [1, 3, 1, 1, 1, 1, 0, 1]
    rows["source"] = ["none", *["real"] * 6, "builtin"]
    return rows.fillna("text")


@pytest.fixture
def check(tmp_path):
    def check(table: pd.DataFrame, artefacts: dict[str, str] | None = None) -> None:
        table.to_csv(tmp_path / "verdicts.csv", index=False)
        paths = {}
        for name, text in (artefacts or {}).items():
            paths[name] = tmp_path / f"{name}.csv"
            paths[name].write_text(text)
        check_results(tmp_path / "verdicts.csv", CLAIMS, paths)

    return check


def test_a_whole_and_honest_table_passes(check, table):
    check(table, {"fig": "round,value,note\n0,,yes\n1,0.5,\n", "table": "symbol\nNA\n"})


def test_a_claim_may_be_measured_in_some_settings_and_not_run_in_others(check, table):
    others = table["verdict"] == "NOT RUN"
    table.loc[others, ["measured", "seeds"]] = ["x 1; with width 64:  (NOT RUN)", 1]
    check(table)


@pytest.mark.parametrize(
    ("column", "claim", "value", "sentence"),
    [
        ("source", "A", "builtin", "claim A is judged on stand-in data"),
        ("source", "B", "builtin", "claim B is judged on stand-in data"),
        ("source", "C", "builtin", "claim C is judged on stand-in data"),
        ("source", "D", "builtin", "claim D is judged on stand-in data"),
        ("source", "E", "builtin", "claim E is judged on stand-in data"),
        ("measured", "A", "", "claim A is judged without a measurement"),
        ("measured", "B", "", "claim B is judged without a measurement"),
        ("seeds", "G", 2, "claim G was measured but is called not run"),
        ("verdict", "A", "TRUE", "unknown verdict 'TRUE'"),
        ("verdict", "A", "", "unknown verdict ''"),
        ("claim", "A", "B", "claim A must have one row"),
        ("claim", "A", "Z", "claim A must have one row"),
    ],
)
def test_a_doctored_value_is_named(check, table, column, claim, value, sentence):
    table.loc[table["claim"] == claim, column] = value
    with pytest.raises(InputError, match=f"verdicts.csv: {sentence}"):
        check(table)


def test_a_claim_left_out_is_named(check, table):
    with pytest.raises(InputError, match="verdicts.csv: claim C must have one row"):
        check(table[table["claim"] != "C"])


def test_a_claim_that_the_ledger_does_not_have_is_named(check, table):
    extra = pd.concat([table, table.tail(1).assign(claim="Z")])
    with pytest.raises(InputError, match="verdicts.csv: claim Z is not in the ledger"):
        check(extra)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop(columns="source"),
        lambda table: table[[*COLUMNS[1:], COLUMNS[0]]],
        lambda table: table.assign(more=1),
    ],
    ids=["fewer", "other order", "more"],
)
def test_other_columns_are_refused(check, table, change):
    with pytest.raises(InputError, match="verdicts.csv: columns are "):
        check(change(table))


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ("a,b\n", "fig.csv: there are no rows"),
        ("a,b\n1,\n2,\n", "fig.csv: the column 'b' is empty"),
        ("", "cannot read .*fig.csv: No columns to parse"),
    ],
)
def test_an_artefact_without_numbers_is_named(check, table, numbers, sentence):
    with pytest.raises(InputError, match=sentence):
        check(table, {"good": "a\n1\n", "fig": numbers})


def test_absent_verdicts_and_artefacts_are_named(check, table, tmp_path):
    absent = Path(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="cannot read .*absent.csv: .*No such file"):
        check_results(absent, CLAIMS, {})
    check(table)
    with pytest.raises(InputError, match="cannot read .*absent.csv: .*No such file"):
        check_results(tmp_path / "verdicts.csv", CLAIMS, {"fig": absent})
