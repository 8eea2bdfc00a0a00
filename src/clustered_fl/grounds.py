"""What a ledger may say of grounds and contenders: every method on every kind of clients.

A ground is clients, a network and a way to train it; a contender is a method. Each contender trains
on each ground under the same conditions, so that the results make a matrix. A method that is added
is one entry, and so is a ground (`clustered_fl.same_ground` makes the runs of them).
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from clustered_fl.strict import Scale, Strict, Word

Lesson = Annotated[
    str, Field(description="what the reader should take away, from results on real data at desktop")
]


class WarmUp(Strict):
    """A short federated training on a ground, whose network describes clients to some methods."""

    model: dict[str, Any] = Field(description="name and its settings; it must encode images")
    training: dict[str, int | float | Word | None] = Field(description="as of a run")
    method: dict[str, Any] = Field(default={"name": "fedavg"}, description="as of a run")
    rounds: int = Field(ge=1, description="communication rounds")
    minutes: dict[Scale, float] = Field(description="expected minutes per seed on one CPU core")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="settings that differ at a scale, nested like the warm-up"
    )


class Ground(Strict):
    """Clients that differ in one way, on whom all contenders train alike."""

    title: str = Field(description="what differs, in two or three words: a column of the matrix")
    differs: str = Field(description="what differs between clients, as a sentence")
    lesson: Lesson = ""
    clusters: int = Field(
        ge=1, description="number that contenders are told where they ask for `{clusters}`"
    )
    truth: bool = Field(
        default=True,
        description="whether there are true groups; without them there is no agreement to measure, "
        "and contenders that need the truth stay away",
    )
    dataset: str = Field(description="key of `config/datasets.yaml`")
    federation: dict[str, Any] = Field(description="kind and its settings")
    model: dict[str, Any] = Field(description="name and its settings")
    training: dict[str, int | float | Word | None] = Field(description="as of a run")
    rounds: int = Field(ge=1, description="communication rounds")
    evaluate_every: int = Field(default=2, ge=1, description="rounds between two tests")
    encoder: str | None = Field(
        default=None, description="name of the encoder of contenders that need one"
    )
    warm_up: WarmUp | None = Field(
        default=None, description="for contenders that describe clients by a network of theirs"
    )
    minutes: dict[Scale, float] = Field(description="expected minutes per run on one CPU core")
    seeds: dict[Scale, list[int]] = Field(description="of runs, per scale; none: not run there")
    grouping_seeds: dict[Scale, list[int]] = Field(
        description="of groupings and warm-ups, per scale; those of the runs and more"
    )
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="settings that differ at a scale, nested like the ground"
    )


class OneShot(Strict):
    """How a contender finds its grouping before training."""

    method: dict[str, Any] = Field(description="name and its settings")
    network: Literal["none", "encoder", "warm_up"] = Field(
        default="none", description="what it looks at images with, both of them the ground's"
    )
    minutes: dict[Scale, float] = Field(description="expected minutes per seed on one CPU core")
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="settings that differ at a scale, nested like this part"
    )


class Needs(Strict):
    """What a contender asks for, beyond what FedAvg does."""

    training: bool = Field(default=False, description="that clients train before they are grouped")
    labels: bool = Field(default=False, description="labels, so that clients can be grouped")
    everybody: bool = Field(default=False, description="all clients in every round")
    clusters: bool = Field(default=False, description="the number of clusters")
    public_data: bool = Field(default=False, description="data at the server, for an encoder")
    truth: bool = Field(default=False, description="the true groups, which nobody has")
    note: str = Field(default="", description="what else there is to say of it")


Part = Literal["encoder", "network", "signature"]
"""What is sent once: an encoder, the network of the warm-up, what a client is described by."""


class Traffic(Strict):
    """What a client and the server send each other."""

    down: int | Literal["{clusters}"] = Field(
        default=1, description="models that a participant receives in a round"
    )
    up: int = Field(default=1, ge=0, description="models that it returns")
    before_down: list[Part] = Field(
        default=[],
        description="what a client receives before the first round: `encoder`, "
        "`network` (of the warm-up, which is counted besides)",
    )
    before_up: list[Part] = Field(
        default=[], description="what it returns then: `network`, `signature`"
    )


class Change(Strict):
    """What a contender does differently on one ground, where it must."""

    method: dict[str, Any] = Field(default={}, description="settings of its method")
    grouping: dict[str, Any] = Field(default={}, description="settings of its grouping's method")


class Contender(Strict):
    """A method that trains on every ground."""

    title: str = Field(description="name of the method: a row of the matrix")
    citation: str = Field(description="who published it, and where")
    lesson: Lesson = ""
    method: dict[str, Any] = Field(description="name and its settings, as of a run")
    grouping: OneShot | None = Field(
        default=None, description="for methods that average by a grouping found before"
    )
    needs: Needs = Field(default=Needs(), description="what it needs from clients and server")
    traffic: Traffic = Field(default=Traffic(), description="what is sent")
    variant: Literal["paper", "code"] = Field(default="paper", description="as of a run")
    changes: dict[str, Change] = Field(
        default={}, description="what it must do differently, by name of the ground"
    )
    scales: dict[Scale, dict[str, Any]] = Field(
        default={}, description="settings of its runs that differ at a scale"
    )
