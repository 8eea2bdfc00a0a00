"""FLT's Table VI: the formulas against messages counted one by one, and the parameters used."""

from dataclasses import replace

import pandas as pd
import pytest

from clustered_fl.errors import InputError
from clustered_fl.models import build_model
from clustered_fl.models.autoencoder import conv_autoencoder
from clustered_fl.options import call
from clustered_fl.theory.flt.communication import (
    CIFAR10_CLIENTS,
    CIFAR10_ENCODERS,
    COLOUR,
    GREY,
    SCENARIOS,
    Scenario,
    communication,
    rounds_until,
)

# Channels, side and classes of the datasets.
IMAGES = {
    "MNIST": (1, 28, 10),
    "CIFAR-10": (3, 32, 10),
    "FEMNIST": (1, 28, 62),
    "EMNIST": (1, 28, 47),
}
SMALL = Scenario("x", "y", "z", 10, 0.3, 4, 3, 7, 11, 13)


@pytest.fixture(scope="module")
def tables():
    return communication(0)


def find(table: pd.DataFrame, **values) -> pd.Series:
    for column, value in values.items():
        table = table[table[column] == value]
    (row,) = table.to_dict("records")
    return row


@pytest.mark.parametrize("each", SCENARIOS, ids=lambda each: f"{each.dataset} {each.model}")
def test_parameters_are_those_of_the_real_models(each):
    channels, side, classes = IMAGES[each.dataset]
    model = build_model(each.model, (channels, side, side), classes)
    assert sum(part.numel() for part in model.parameters()) == each.parameters


@pytest.mark.parametrize("name", CIFAR10_CLIENTS)
def test_clients_of_cifar10_are_the_real_models(name):
    model = build_model(name, (3, 32, 32), 10)
    assert sum(part.numel() for part in model.parameters()) == CIFAR10_CLIENTS[name]


def test_the_printed_encoder_of_cifar10_is_that_of_grey_images_with_three_channels():
    own = conv_autoencoder(3, 32)
    sizes = [sum(p.numel() for p in part.parameters()) for part in (own.encoder, own.decoder)]
    assert tuple(sizes) == CIFAR10_ENCODERS["printed"]


def convolution(inputs, outputs, side, bias=True):
    return inputs * outputs * side**2 + bias * outputs


def dense(inputs, outputs):
    return inputs * outputs + outputs


def test_grey_encoder_layer_by_layer():
    encoder = convolution(1, 16, 3) + convolution(16, 4, 3) + dense(7 * 7 * 4, 128)
    decoder = dense(128, 7 * 7 * 4) + convolution(4, 16, 2) + convolution(16, 1, 2)
    assert (encoder, decoder) == GREY


def test_colour_encoder_layer_by_layer():
    residual = 2 * (convolution(128, 32, 3, bias=False) + convolution(32, 128, 1, bias=False))
    normalised = 2 * (64 + 128 + 128 + 64 + 8)
    encoder = convolution(3, 64, 4) + convolution(64, 128, 4) + convolution(128, 128, 3)
    encoder += residual + convolution(128, 64, 1) + convolution(64, 8, 1) + normalised
    encoder += dense(8 * 8 * 8, 128)
    decoder = dense(128, 8 * 8 * 8) + convolution(8, 64, 1) + convolution(64, 128, 1) + residual
    decoder += convolution(128, 128, 3) + convolution(128, 64, 4) + convolution(64, 3, 4)
    assert (encoder, decoder) == COLOUR


def counted(method: str, scenario: Scenario, centres: int, embedding: int) -> int:
    """Every message of a run, one after the other."""
    sent = 0
    if method.startswith("FLT"):
        for _client in range(scenario.clients):
            sent += scenario.encoder
            if method == "FLT, decoder counted":
                sent += scenario.decoder
            for _centre in range(centres):
                sent += embedding
    for _round in range(scenario.rounds):
        for _participant in range(3):
            for _model in range(scenario.clusters if method == "IFCA" else 1):
                sent += scenario.parameters
            sent += scenario.parameters
    return sent


@pytest.mark.parametrize("method", ["FLT", "FLT, decoder counted", "FedSEM", "IFCA"])
def test_totals_are_the_messages_counted(method):
    table = communication(0, centres=2, embedding=5, scenarios=[SMALL])["communication"]
    row = find(table, method=method)
    expected = counted(method, SMALL, 2, 5)
    assert (row["total"], row["bytes"]) == (expected, 4 * expected)
    assert row["one_off"] + row["rounds"] == expected
    assert row["relative"] == expected / counted("FedSEM", SMALL, 2, 5)
    assert row["one_off_share"] == row["one_off"] / expected


def test_scenario_3_by_hand(tables):
    row = find(tables["communication"], scenario="3", model="mlp", method="FLT")
    assert row["one_off"] == 200 * 25_956 + 5 * 200 * 128 == 5_319_200
    assert row["rounds"] == 2 * 40 * 169_462 * 1000 == 13_556_960_000
    assert row["one_off_share"] == pytest.approx(0.00039, abs=1e-5)


def test_one_off_is_small_but_for_the_large_encoder(tables):
    shares = tables["one_off"].set_index(["dataset", "model"])["share"]
    assert shares["CIFAR-10", "le_net"] == pytest.approx(0.151, abs=0.001)
    assert (shares.drop(("CIFAR-10", "le_net")) < 0.005).all()


@pytest.mark.parametrize(
    ("encoder", "client", "share"),
    [
        ("printed", "leaf_cnn", 0.000102),
        ("residual", "leaf_cnn", 0.00130),
        ("printed", "le_net", 0.0137),
        ("residual", "le_net", 0.1506),
    ],
)
def test_share_with_each_pair_of_networks(tables, encoder, client, share):
    """By hand: 100 encoders and signatures of 640, and 2 x 20 x 100 models of clients."""
    own = {"cifar10_encoder": encoder, "cifar10_client": client}
    row = find(tables["networks"], dataset="CIFAR-10", **own)
    once = 100 * (CIFAR10_ENCODERS[encoder][0] + 640)
    assert row["share"] == once / (once + 2 * 20 * 100 * CIFAR10_CLIENTS[client])
    assert row["share"] == pytest.approx(share, rel=0.01)
    assert (row["model"], row["parameters"]) == (client, CIFAR10_CLIENTS[client])


def test_networks_as_coded_are_those_of_the_other_tables(tables):
    every = tables["networks"].query("cifar10_encoder == 'residual' and cifar10_client == 'le_net'")
    coded = every.drop(columns=["cifar10_encoder", "cifar10_client"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(coded, tables["one_off"])


def test_both_tables_agree(tables):
    sent = tables["communication"]
    for row in tables["one_off"].to_dict("records"):
        place = {name: row[name] for name in ("scenario", "dataset", "model")}
        assert row["share"] == find(sent, **place, method="FLT")["one_off_share"]
        with_decoder = find(sent, **place, method="FLT, decoder counted")["one_off_share"]
        assert row["share_with_decoder"] == with_decoder > row["share"]
        assert row["ifca_over_fedsem"] == find(sent, **place, method="IFCA")["relative"]


@pytest.mark.parametrize("each", SCENARIOS, ids=lambda each: f"{each.dataset} {each.model}")
def test_share_falls_below_a_hundredth_when_the_table_says(tables, each):
    place = {name: getattr(each, name) for name in ("scenario", "dataset", "model")}
    until = find(tables["one_off"], **place)["rounds_until_negligible"]

    def share(rounds: int) -> float:
        changed = communication(0, scenarios=[replace(each, rounds=rounds)])
        return changed["one_off"]["share"].item()

    assert share(until) < 0.01
    assert until == 1 or share(until - 1) >= 0.01


def test_share_of_exactly_a_hundredth_is_not_below():
    assert rounds_until(1, 1, 0.5) == 2


def test_scenarios_of_a_ledger_are_checked():
    given = {name: getattr(SMALL, name) for name in Scenario.__dataclass_fields__}
    table = call(communication, "study", {"scenarios": [given]}, seed=0)["one_off"]
    assert table["parameters"].tolist() == [7]
    for wrong, message in [
        ({"roundz": 3}, "study has no setting"),
        ({"participation": 1.5}, "participation = 1.5 is not allowed"),
        ({"clients": 0}, "clients = 0 is not allowed"),
    ]:
        with pytest.raises(InputError, match=message):
            call(communication, "study", {"scenarios": [given | wrong]}, seed=0)
