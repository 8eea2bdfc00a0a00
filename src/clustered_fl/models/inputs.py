"""Inputs and targets of networks: the settings in `model:` that several models share."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from clustered_fl.models import RECONSTRUCTING_MODELS, TEXT_MODELS
from clustered_fl.options import STRICT, call, fields_of


@dataclass(frozen=True, config=STRICT)
class ImageInputs:
    """Settings of every model of images.

    Attributes:
        normalise: mean and standard deviation; pixels become (value / 255 - mean) / deviation.
    """

    normalise: tuple[float, Annotated[float, Field(gt=0)]] = (0.0, 1.0)


@dataclass(frozen=True, config=STRICT)
class ReconstructedInputs(ImageInputs):
    """Settings of every model that reconstructs its images.

    Attributes:
        reconstruction: weight w of the squared error; the cross-entropy has 1 - w.
    """

    reconstruction: float = Field(default=0.5, ge=0, le=1)


@dataclass(frozen=True, config=STRICT)
class WordInputs:
    """Settings of every model of texts.

    Attributes:
        length: words read of an article; all but the first are predicted.
    """

    length: int = Field(ge=2)


Inputs = ImageInputs | ReconstructedInputs | WordInputs


def inputs_of(name: str) -> type[Inputs]:
    """The class of the inputs of a model."""
    if name in TEXT_MODELS:
        return WordInputs
    return ReconstructedInputs if name in RECONSTRUCTING_MODELS else ImageInputs


def separated(model: dict[str, Any]) -> tuple[Inputs, dict[str, Any]]:
    """Split `model:` into inputs and arguments of `build_model`; InputError for bad inputs."""
    kind = inputs_of(model["name"])
    own = {key: value for key, value in model.items() if key in fields_of(kind)}
    network = {key: value for key, value in model.items() if key not in own}
    return call(kind, f"model {model['name']}", own), network
