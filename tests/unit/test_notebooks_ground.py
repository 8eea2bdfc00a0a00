"""The notebooks on the same ground, on records that nobody computed."""

from pathlib import Path

import numpy as np
import pytest
import tiny_groupings
import tiny_records as tiny
from playing import Played

from clustered_fl import records
from clustered_fl.files import read_json, write_json
from clustered_fl.ledger import load_ledger

ROOT = Path(__file__).parents[2]
LEDGER = load_ledger(ROOT / "config" / "papers" / "ground.yaml")
DATA = {"name": "mnist", "source": "builtin", "complete": False, "train_rows": 60, "note": "drawn"}
TRUTH = [0, 0, 1, 1, 2, 2]
ABSENT = "ring"
"""A ground that was not run."""


def write_run(folder: Path, seed: int) -> str:
    """Six clients that grow better and end in the true groups, or nearly."""
    rng = np.random.default_rng(seed)
    groups = TRUTH if seed % 2 else [0, 0, 1, 2, 2, 2]
    content = tiny.record(groups=groups, true_groups=TRUTH, data=DATA, parameters=50, rounds=4)
    rows = tiny.scores({round_: (rng.random(6) * round_ / 4).tolist() for round_ in (0, 2, 4)})
    everybody = [(round_, client) for round_ in range(4) for client in range(6)]
    rows += [(r, "client", c, "loss", 1.0) for r, c in everybody]
    rows += [(r, "client", c, "group", float(groups[c] * (r > 1))) for r, c in everybody]
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


def folders(name: str, write, seeds: int) -> dict[str, str]:
    if f"_{ABSENT}_" in name:
        return {}
    return {str(seed): write(seed) for seed in range(seeds)}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, dict]:
    """What all artefacts read; groupings and warm-ups have two seeds, other runs one."""
    place = tmp_path_factory.mktemp("results")
    runs, groupings = {}, {}
    for number, name in enumerate(LEDGER.runs):
        seeds = 2 if name.endswith("warm_up") else 1

        def run(seed: int, name: str = name, number: int = number) -> str:
            return write_run(place / name / f"seed{seed}", number + seed)

        runs[name] = {name: folders(name, run, seeds)}
    for name in LEDGER.groupings:
        groupings[name] = folders(
            name, lambda seed, name=name: write_grouping(place / name / f"seed{seed}"), 2
        )
    encoders = {name: write_encoder(place / name) for name in LEDGER.encoders}
    return {"runs": runs, "groupings": groupings, "encoders": encoders}


# One artefact per notebook and one of a ground without true groups; others differ by the ground.
SHOWN = ["ground_matrix", "ground_table", "ground_needs", "ground_costs", "ground_swap"]
SHOWN.append("ground_writers")


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
        (ground, contender)
        for ground, about in LEDGER.grounds.items()
        for contender, who in LEDGER.contenders.items()
        if ground != ABSENT and (about.truth or not who.needs.truth)
    }
    assert set(zip(table["ground"], table["contender"], strict=True)) == expected
    assert set(table["seeds"]) == {1}
    shot = {name for name, who in LEDGER.contenders.items() if who.grouping}
    assert set(table.loc[table["trials"] == 2, "contender"]) == shot
    assert table.loc[table["ground"] == "writers", "agreement"].isna().all()


def test_the_table_says_with_a_dash_what_there_is_not(played):
    table = played.table("ground_table", dtype=str)
    writers = table[table["ground"] == "real writers"]
    assert set(writers["agreement"]) == {"–"}
    assert "true groups" not in set(writers["contender"])
    base = table[table["contender"] == "FedAvg"]
    assert set(base["gain"]) == {"+0.00"}


def test_needs_are_those_of_the_ledger(played):
    table = played.table("ground_needs").set_index("contender")
    assert list(table.index) == [who.title for who in LEDGER.contenders.values()]
    for who in LEDGER.contenders.values():
        line = table.loc[who.title]
        assert line["labels"] == ("yes" if who.needs.labels else "no")
        assert line["number of clusters"] == ("yes" if who.needs.clusters else "no")


def test_curves_are_those_of_one_ground(played):
    table = played.table("ground_swap")
    assert set(table["ground"]) == {"swap"}
    assert set(table["contender"]) == set(LEDGER.contenders)
    assert "agreement" not in played.table("ground_writers")
