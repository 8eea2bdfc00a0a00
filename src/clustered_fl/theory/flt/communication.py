"""FLT's Table VI (section V-B) in numbers: traffic of each method, once and in all rounds.

M clients take part in T rounds, a share rho of them in each. FLT sends M W_enc + k M e once: the
encoder to every client, and k means of e numbers back. In the rounds FLT and FedSEM send 2 rho M
W_local T, a model to every participant and back. IFCA sends C models to each, so (C + 1) rho M
W_local T. Added here: clients that fine-tune the encoder (Enc2) also need the decoder, because
fine-tuning reconstructs images, and CIFAR-10 has another encoder than MNIST.

The paper prints one encoder, "two convolutional layers followed by a single fully connected layer",
and "the CNN of LEAF" for clients (section IV-A3). On CIFAR-10 its public code has a residual
encoder and a LeNet. Tables show the code's networks, and `networks` all combinations.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Field, NonNegativeInt, PositiveInt
from pydantic.dataclasses import dataclass

from clustered_fl.theory.ranges import Listed
from clustered_fl.theory.tables import leaves


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Scenario:
    """One federation of the paper.

    Attributes:
        scenario, dataset, model: names for the reader.
        clients, participation, rounds, clusters: M, rho, T, C.
        parameters: W_local, of a client's model.
        encoder, decoder: W_enc, and the parameters of the half that only fine-tuning needs.
    """

    scenario: str
    dataset: str
    model: str
    clients: PositiveInt
    participation: Annotated[float, Field(gt=0, le=1)]
    rounds: PositiveInt
    clusters: PositiveInt
    parameters: PositiveInt
    encoder: PositiveInt
    decoder: NonNegativeInt

    @property
    def names(self) -> dict[str, str]:
        """What identifies a scenario in a table."""
        return {"scenario": self.scenario, "dataset": self.dataset, "model": self.model}

    @property
    def per_model(self) -> int:
        """Numbers sent if every participant of every round gets, or sends, one model."""
        return round(self.participation * self.clients) * self.parameters * self.rounds

    def one_off(self, signature: int, decoder: bool = False) -> int:
        """Numbers sent before the first round; `signature` is k e."""
        return self.clients * (self.encoder + decoder * self.decoder + signature)


# Trainable parameters of the encoders and decoders in the authors' public code, counted layer by
# layer: two convolutions and a dense layer for grey images, a residual network for CIFAR-10.
GREY, COLOUR = (25_956, 25_621), (439_064, 438_659)
SCENARIOS = (
    Scenario("1 and 2", "MNIST", "mlp", 100, 0.2, 100, 5, 159_010, *GREY),
    Scenario("1 and 2", "CIFAR-10", "le_net", 100, 0.2, 100, 5, 62_006, *COLOUR),
    Scenario("3", "FEMNIST", "mlp", 200, 0.2, 1000, 3, 169_462, *GREY),
    Scenario("3", "FEMNIST", "leaf_cnn", 200, 0.2, 100, 3, 6_603_710, *GREY),
    Scenario("4", "EMNIST", "mlp", 2400, 0.2, 100, 10, 166_447, *GREY),
    Scenario("4", "EMNIST", "leaf_cnn", 600, 0.2, 100, 10, 6_572_975, *GREY),
)
# Networks on CIFAR-10, printed ones first: encoder and decoder, and W_local.
CIFAR10_ENCODERS = {"printed": (33_924, 33_491), "residual": COLOUR}
CIFAR10_CLIENTS = {"leaf_cnn": 8_464_842, "le_net": 62_006}
# The paper gives no number for "negligible"; one hundredth is our choice.
NEGLIGIBLE = 0.01


@leaves("communication", "one_off", "networks")
def communication(
    seed: int,
    *,
    centres: PositiveInt = 5,
    embedding: PositiveInt = 128,
    scenarios: Listed[Scenario] = SCENARIOS,
    bytes_per_number: PositiveInt = 4,
) -> dict[str, pd.DataFrame]:
    """Evaluate Table VI for the paper's scenarios. Nothing is random: `seed` is not used.

    Args:
        centres, embedding: k and e of a client's signature.
        scenarios: with the parameters of their networks, which this module does not build.
    Returns: communication: see `methods`, with the column bytes; one_off: see `one_off_costs`;
        networks: see `networks`.
    """
    signature = centres * embedding
    table = pd.concat([methods(each, signature) for each in scenarios], ignore_index=True)
    table["bytes"] = table["total"] * bytes_per_number
    costs = {"one_off": one_off_costs(scenarios, signature)}
    return {"communication": table} | costs | {"networks": networks(scenarios, signature)}


def methods(scenario: Scenario, signature: int) -> pd.DataFrame:
    """Numbers that each method sends in one scenario; `signature` is k e.

    Returns: scenario, dataset, model, method, one_off, rounds (numbers sent in all rounds), total,
        one_off_share (of the total), relative (total over FedSEM's).
    """
    sent = {
        "FLT": (scenario.one_off(signature), 2),
        "FLT, decoder counted": (scenario.one_off(signature, decoder=True), 2),
        "FedSEM": (0, 2),
        "IFCA": (0, scenario.clusters + 1),
    }
    table = pd.DataFrame(
        scenario.names | {"method": name, "one_off": once, "rounds": models * scenario.per_model}
        for name, (once, models) in sent.items()
    )
    table["total"] = table["one_off"] + table["rounds"]
    table["one_off_share"] = table["one_off"] / table["total"]
    table["relative"] = table["total"] / (2 * scenario.per_model)
    return table


def one_off_costs(scenarios: Sequence[Scenario], signature: int) -> pd.DataFrame:
    """The one-off traffic of FLT, one row per scenario.

    Returns: scenario, dataset, model, clusters, parameters (W_local), encoder, encoder_over_local,
        signature (k e), share (of FLT's total), share_with_decoder, rounds_until_negligible (T from
        which the share is below one hundredth), ifca_over_fedsem.
    """
    rows = []
    for each in scenarios:
        once, sent = each.one_off(signature), 2 * each.per_model
        fine_tuned = each.one_off(signature, decoder=True)
        row = {"clusters": each.clusters, "parameters": each.parameters, "encoder": each.encoder}
        row |= {"encoder_over_local": each.encoder / each.parameters, "signature": signature}
        row["share"] = once / (once + sent)
        row["share_with_decoder"] = fine_tuned / (fine_tuned + sent)
        row["rounds_until_negligible"] = rounds_until(once, sent / each.rounds)
        rows.append(each.names | row | {"ifca_over_fedsem": (each.clusters + 1) / 2})
    return pd.DataFrame(rows)


def networks(scenarios: Sequence[Scenario], signature: int) -> pd.DataFrame:
    """The one-off traffic of FLT with printed and coded networks on CIFAR-10 (section IV-A3).

    Returns: as `one_off_costs` for every pair of networks, with cifar10_encoder and cifar10_client.
    """
    parts = []
    for (name, sizes), (client, local) in product(
        CIFAR10_ENCODERS.items(), CIFAR10_CLIENTS.items()
    ):
        change = {"model": client, "parameters": local}
        change |= dict(zip(("encoder", "decoder"), sizes, strict=True))
        own = [replace(s, **change) if s.dataset == "CIFAR-10" else s for s in scenarios]
        costs = one_off_costs(own, signature)
        parts.append(costs.assign(cifar10_encoder=name, cifar10_client=client))
    return pd.concat(parts, ignore_index=True)


def rounds_until(once: float, per_round: float, share: float = NEGLIGIBLE) -> int:
    """Smallest number of rounds after which `once` is less than `share` of all that was sent."""
    return int(np.floor(once * (1 / share - 1) / per_round)) + 1
