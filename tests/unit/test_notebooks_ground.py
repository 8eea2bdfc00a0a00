"""The notebooks of the benchmark, on records that were not computed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny_groupings
import tiny_records as tiny
from playing import Played

from clustered_fl.files import read_json, write_json
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.records import index
from clustered_fl.records import reading as records

ROOT = Path(__file__).parents[2]
LEDGER = load_ledger(ROOT / "config" / "papers" / "ground.yaml")
TABLE = LEDGER.tables["matrix"]
SHOWN_ROWS = {name: row for name, row in TABLE.rows.items() if not row.hidden}
DATA = {"name": "mnist", "source": "builtin", "complete": False, "train_rows": 60, "note": "drawn"}
TRUTH = [0, 0, 1, 1, 2, 2]
ABSENT = "ring"
"""A kind of clients that was not run."""


def write_run(folder: Path, seed: int) -> str:
    """Six clients that grow better and end in the true groups, or nearly."""
    rng = np.random.default_rng(seed)
    groups = TRUTH if seed % 2 else [0, 0, 1, 2, 2, 2]
    content = tiny.record(groups=groups, true_groups=TRUTH, data=DATA, parameters=50, rounds=4)
    rows = tiny.scores({round_: (rng.random(6) * round_ / 4).tolist() for round_ in (0, 2, 4)})
    trained = [(round_, client) for round_ in range(4) for client in range(6)]
    rows += [(r, "client", c, "loss", 1.0) for r, c in trained]
    rows += [(r, "client", c, "group", float(groups[c] * (r > 1))) for r, c in trained]
    return tiny.write(folder, content, rows, seconds=1.0 + seed % 7)


def write_grouping(folder: Path) -> str:
    tiny_groupings.write(folder, TRUTH)
    about = {"data": DATA}
    write_json(folder / records.RECORD, read_json(folder / records.RECORD) | about)
    return str(folder)


def write_encoder(folder: Path) -> str:
    about = {"data": DATA, "parameters": {"encoder": 9, "decoder": 8}}
    write_json(folder / records.RECORD, about)
    write_json(folder / records.COST, {"seconds": 1.0})
    return str(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> pd.DataFrame:
    """What all artefacts read; groupings and warm-ups have two seeds, other runs one."""
    place, rows = tmp_path_factory.mktemp("results"), []
    for number, name in enumerate(LEDGER.runs):
        for seed in range(2 if name.endswith("warm_up") else 1):
            folder = write_run(place / name / f"seed{seed}", number + seed)
            rows.append(("run", name, name, seed, folder))
    for name in LEDGER.groupings:
        for seed in range(2):
            folder = write_grouping(place / name / f"seed{seed}")
            rows.append(("grouping", name, name, seed, folder))
    rows += [("encoder", name, name, 0, write_encoder(place / name)) for name in LEDGER.encoders]
    return index.build(row for row in rows if f"_{ABSENT}_" not in row[1])


# One artefact per notebook and one without true groups; others differ by the kind of clients.
SHOWN = ["ground_matrix", "ground_table", "ground_needs", "ground_costs", "ground_budgets"]
SHOWN += ["ground_swap", "ground_writers"]


@pytest.fixture(scope="module")
def played(made, tmp_path_factory) -> Played:
    return Played(LEDGER.artefacts, made, tmp_path_factory.mktemp("artefacts"))


def test_every_notebook_is_played():
    played = {LEDGER.artefacts[name].notebook for name in SHOWN}
    assert played == {artefact.notebook for artefact in LEDGER.artefacts.values()}


@pytest.mark.parametrize("name", SHOWN)
def test_promised_files_are_there_with_numbers_and_a_note(name, played):
    needs_data = name != "ground_needs"
    played.check_files(name, "scale demo · built-in demo data" if needs_data else "scale demo")


@pytest.mark.parametrize("name", SHOWN)
def test_files_are_the_same_every_time(name, played, tmp_path):
    played.check_again(name, tmp_path)


def test_the_matrix_has_every_pair_that_was_run(played):
    table = played.table("ground_matrix")
    expected = {
        (cell.column, cell.row)
        for cell in LEDGER.cells
        if cell.column != ABSENT and cell.row in SHOWN_ROWS
    }
    assert set(zip(table["setting"], table["method"], strict=True)) == expected
    assert set(table["seeds"]) == {1}
    shot = {cell.row for cell in LEDGER.cells if cell.grouping}
    assert set(table.loc[table["trials"] == 2, "method"]) == shot
    assert table.loc[table["setting"] == "writers", "agreement"].isna().all()


def test_the_table_says_with_a_dash_what_there_is_not(played):
    table = played.table("ground_table", dtype=str)
    writers = table[table["setting"] == "writers"]
    assert set(writers["agreement"]) == {"–"}
    assert "oracle grouping" not in set(writers["method"])
    base = table[table["method"] == "FedAvg"]
    assert set(base["gain"]) == {"+0.00"}
    looking = {
        row.title + (" (k)" if row.needs.clusters else "")
        for row in SHOWN_ROWS.values()
        if row.finds
    }
    assert set(table.loc[table["groups"] != "–", "method"]) == looking


def test_methods_that_are_given_the_number_of_clusters_are_marked(played):
    found = set(played.table("ground_table")["method"])
    marked = {row.title + (" (k)" if row.needs.clusters else "") for row in SHOWN_ROWS.values()}
    assert found == marked
    assert {"IFCA (k)", "random groups (k)", "CFL", "FLT"} <= found


def test_budgets_have_every_pair_that_was_run(played):
    table, matrix = played.table("ground_budgets"), played.table("ground_matrix")
    keys = ["setting", "method"]
    assert set(table["budget"]) == {4}  # the end of runs that are shorter than any budget
    both = table.merge(matrix, on=keys, suffixes=("", "_at_the_end"))
    assert len(both) == len(table) == len(matrix)
    np.testing.assert_allclose(both["gain"], both["gain_at_the_end"], atol=1e-9)


def test_needs_are_those_of_the_ledger(played):
    table = played.table("ground_needs").set_index("method")
    assert list(table.index) == [row.title for row in SHOWN_ROWS.values()]
    for row in SHOWN_ROWS.values():
        line = table.loc[row.title]
        assert line["labels"] == ("yes" if row.needs.labels else "no")
        assert line["number of clusters"] == ("yes" if row.needs.clusters else "no")


def test_curves_are_those_of_one_kind_of_clients(played):
    table = played.table("ground_swap")
    assert set(table["setting"]) == {"swap"}
    assert set(table["method"]) == set(SHOWN_ROWS)
    assert "agreement" not in played.table("ground_writers")
