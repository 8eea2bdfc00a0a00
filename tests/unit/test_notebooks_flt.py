"""FLT's notebooks on made-up records: all play, and leave what the ledger promises."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny_groupings
import tiny_records as tiny
import torch
from playing import Played
from tiny_groupings import trial

from clustered_fl.encoders.storage import PICTURES, save_tensors
from clustered_fl.figures.flt.convergence import READ_OFF
from clustered_fl.figures.methods import LOOKS
from clustered_fl.files import read_json, write_json
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.records import index
from clustered_fl.records import reading as records

ROOT = Path(__file__).parents[2]
LEDGER = load_ledger(ROOT / "config" / "papers" / "flt.yaml")
FROM_RECORDS = [name for name, entry in LEDGER.artefacts.items() if not entry.studies]
DATA = {"name": "mnist", "source": "builtin", "complete": False, "train_rows": 60, "note": "drawn"}


def write_run(folder: Path, seed: int) -> str:
    """A run whose six clients of three clusters grow better, with one newcomer of each kind."""
    rng = np.random.default_rng(seed)
    new = [{"client": 6, "true_group": 1, "leaf": 2, "clients": [2, 3, 6], "accuracy": 0.6}]
    new += [{"client": 7, "true_group": 0, "leaf": 4, "clients": [4, 5], "accuracy": 0.1}]
    content = tiny.record(newcomers=new, test_rows=100, data=DATA)
    content["config"] = content["config"] | {"federation": {"newcomers": 1, "groups": 1}}
    curve = {round_: (rng.random(6) * round_ / 10).tolist() for round_ in (0, 2, 5, 10)}
    return tiny.write(folder, content, tiny.scores(curve))


def write_grouping(folder: Path, name: str) -> str:
    """Twelve clients in four clusters, two of which a link joins."""
    truth = [0, 1, 2, 3] * 3
    related, rng = tiny_groupings.blocks(truth), np.random.default_rng(0)
    related[0, 1] = related[1, 0] = 1
    trials = [
        trial(k=k, distance=distance, gamma=gamma, ari=rng.random())
        for k in (2, 5)
        for distance in ("minimum", "matching")
        for gamma in (0.5, 1.0, 2.0)
    ]
    sent, points = (rng.normal(size=(12, 3, n)).astype(np.float32) for n in (8, 2))
    arrays = {"signatures": sent, "points": points}
    tiny_groupings.write(folder, truth, related, trials, **arrays)
    method = {"name": "pca_kmeans_hc" if name.endswith("_pca") else "flt"}
    about = {"data": DATA, "config": {"name": name, "method": method}}
    write_json(folder / records.RECORD, read_json(folder / records.RECORD) | about)
    return str(folder)


def write_encoder(folder: Path, channels: int) -> str:
    """An encoder with two epochs and ten pictures."""
    images = torch.randint(0, 255, (10, channels, 6, 6), dtype=torch.uint8)
    folder.mkdir(parents=True)
    save_tensors({"images": images, "reconstructions": 255 - images}, folder / PICTURES)
    found = {"losses": [0.2, 0.1], "test_error": 0.15, "data": DATA}
    found |= {"config": {"training": {}}, "parameters": {"encoder": 9, "decoder": 8}}
    write_json(folder / records.RECORD, found)
    write_json(folder / records.COST, {"seconds": 1.0})
    return str(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> pd.DataFrame:
    """What all artefacts read, as the workflow passes it; every second run has two seeds."""
    place = tmp_path_factory.mktemp("results")
    rows = [
        ("run", name, name, seed, write_run(place / name / f"seed{seed}", seed))
        for number, name in enumerate(LEDGER.runs)
        for seed in range(1 + number % 2)
    ]
    rows += [
        ("grouping", n, n, 0, write_grouping(place / n / "seed0", n)) for n in LEDGER.groupings
    ]
    rows += [
        ("encoder", name, name, 0, write_encoder(place / name, 3 if "cifar" in name else 1))
        for name in LEDGER.encoders
    ]
    return index.build(rows)


@pytest.fixture(scope="module")
def played(made, tmp_path_factory) -> Played:
    return Played(LEDGER.artefacts, made, tmp_path_factory.mktemp("artefacts"))


@pytest.fixture(scope="module")
def partly(made, tmp_path_factory) -> Played:
    """The artefacts that may be made in part, without any record of the CNN and of CIFAR-10."""
    there = made[~made["entry"].str.contains("_cnn|_cifar")]
    return Played(LEDGER.artefacts, there, tmp_path_factory.mktemp("partly"))


@pytest.mark.parametrize("name", FROM_RECORDS)
def test_promised_files_are_there_and_say_that_data_are_stand_ins(name, played):
    played.check_files(name, "scale demo · built-in demo data")


# One artefact per notebook, as the others differ by a parameter only.
ONE_EACH = {LEDGER.artefacts[name].notebook: name for name in FROM_RECORDS}.values()


@pytest.mark.parametrize("name", ONE_EACH)
def test_files_are_the_same_every_time(name, played, tmp_path):
    played.check_again(name, tmp_path)


@pytest.mark.parametrize("name", ["flt_table1", "flt_table2", "flt_table3", "flt_table4"])
def test_rows_of_the_paper_stand_beside_ours(name, played):
    """Every cell is a line, but for those that do what the public code did in place of another."""
    cells = LEDGER.artefacts[name].parameters["cells"]
    coded = {(cell["column"], cell["of"]) for cell in cells if cell["of"] != cell["row"]}
    lines = played.table(name, dtype=str).to_dict("records")
    printed = [cell for cell in cells if cell["of"] == cell["row"]]
    for cell, line in zip(printed, lines, strict=True):
        published = cell["published"].get("accuracy")
        only_coded = cell["row"] == "sweep_fedavg"
        expected = f"{published:.2f}" if published else "–"
        assert line["published acc."] == expected
        assert (line["ours acc."] == "–") == only_coded
        replaced = (cell["column"], cell["row"]) in coded
        assert (line["as coded acc."] == "–") == (not (replaced or only_coded))
        assert (line["difference"] == "–") == (not published)
        assert (line["± 95%"] != "–") == (line["seeds"] == "2" and not only_coded)


def test_lines_are_called_as_the_paper_calls_them(played):
    shown = played.table("flt_table3", dtype=str).set_index(["data", "method"])
    assert {("MLP", "IFCA"), ("CNN", "IFCA, last layer only")} < set(shown.index)
    assert {(data, "PCA+kM+HC (C = 3)") for data in ("MLP", "CNN")} < set(shown.index)


def test_table_5_has_two_lines_per_row_and_reads_half_of_the_rounds(played):
    shown = played.table("flt_table5", dtype=str)
    assert len(shown) == 2 * len(LEDGER.tables["ablation"].columns)
    rounds = shown[shown["rounds"] != "–"].groupby("T")["rounds"].agg(set)
    assert rounds.to_dict() == {"100": {"10"}, "50": {"5"}}
    lines = shown.query("M == '100' and E == '5' and T == '100' and images == 'drawn'")
    columns = LEDGER.tables["ablation"].published
    expected = [f"{columns[name]['flt'][1]:.2f}" for name in ("e5", "half")]
    assert lines["FLT (Enc1), published"].tolist() == expected


def test_the_map_has_a_row_per_grouping_with_an_encoder(played):
    """From top to bottom as the ledger has the labels; PCA+kM+HC stands beside the map."""
    cells = LEDGER.artefacts["flt_fcr"].parameters["cells"]
    drawn = played.variables("flt_fcr")["drawn"]
    assert {name for *_, name in drawn} == {c["grouping"] for c in cells if c["row"] != "pca"}
    assert [label for heading, label, _ in drawn if heading == "Scenario 1, MNIST: 5 clusters"] == [
        "Enc1",
        "Enc1, positions as fitted by UMAP",
        "Enc2, tuned by each client",
        "Enc2, tuned sequentially",
        "Enc2, tuned on pooled images",
    ]
    assert [row[:2] for row in drawn][-2:] == [
        ("Scenario 4, EMNIST: 10 clusters", "600 clients, Enc2, tuned sequentially"),
        ("Scenario 4, EMNIST: 10 clusters", "600 clients, Enc2, tuned on pooled images"),
    ]


@pytest.mark.parametrize("figure", ["flt_fig4", "flt_fig5"])
def test_published_values_are_in_the_axes_of_our_curves(figure, played):
    variables = played.variables(figure)
    axes, cells = variables["axes"], LEDGER.artefacts[figure].parameters["cells"]
    assert [axis.get_title() for axis in axes] == ["MLP, 1–2 seeds", "CNN, 1–2 seeds"]
    for axis, column in zip(axes, variables["panels"], strict=True):
        marks = [line for line in axis.lines if line.get_markerfacecolor() == "white"]
        beyond, within = ([m for m in marks if m.get_clip_on() == clip] for clip in (False, True))
        ends = {c["row"]: c["published"]["accuracy"] for c in cells if c["column"] == column}
        assert [mark.get_ydata()[0] for mark in beyond] == list(ends.values())
        assert [mark.get_color() for mark in beyond] == [LOOKS[row]["color"] for row in ends]
        read = READ_OFF[column]
        last = max(line.get_xdata().max() for line in axis.lines if len(line.get_xdata()) > 1)
        expected = [(k, value) for k, own in read.items() if k <= last for value in own.values()]
        found = [(m.get_xdata()[0], m.get_ydata()[0]) for m in within if len(m.get_xdata())]
        assert found == expected


IN_PART = [name for name, artefact in LEDGER.artefacts.items() if artefact.in_part]


@pytest.mark.parametrize("name", IN_PART)
def test_what_is_not_trained_is_left_out(name, partly):
    partly.check_files(name, "scale demo · built-in demo data")


@pytest.mark.parametrize("figure", ["flt_fig4", "flt_fig5"])
def test_a_panel_names_the_methods_that_are_not_trained(figure, partly):
    mlp, cnn = (axis.get_title() for axis in partly.variables(figure)["axes"])
    assert mlp == "MLP, 1–2 seeds"
    assert cnn.startswith("CNN\nnot trained: FedAvg, PCA")


def test_the_map_counts_its_rows(partly, played):
    drawn = {name for *_, name in partly.variables("flt_fcr")["drawn"]}
    there = [name for name in drawn if "_cnn" not in name and "_cifar" not in name]
    assert f"{len(there)} of {len(drawn)} rows" in partly.variables("flt_fcr")["note"]
    assert f"{len(drawn)} rows" in played.variables("flt_fcr")["note"]


def test_newcomers_are_counted_by_kind(played):
    shown = played.table("flt_newcomers", dtype=str)
    assert shown["client"].tolist() == ["new", "changed"] * 3
    right = shown["placed right"].astype(int) == shown["newcomers"].astype(int)
    assert right.tolist() == [True, False] * 3
