"""Networks of the papers, by name; docstrings state the paper and the number of parameters."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clustered_fl.errors import InputError
from clustered_fl.options import call

if TYPE_CHECKING:
    from torch import nn

# Name in the ledger -> module and callable. As text, so that listing models imports none of them,
# and a run's code fingerprint covers only its own network.
IMAGE_MODELS = {
    name: ("clustered_fl.models.cnn", name)
    for name in ("mlp", "small_conv_net", "wide_conv_net", "le_net", "leaf_cnn", "three_conv_net")
}
RECONSTRUCTING_MODELS = {
    "supervised_autoencoder": ("clustered_fl.models.autoencoder", "supervised_autoencoder")
}
TEXT_MODELS = {"word_lstm": ("clustered_fl.models.lstm", "word_lstm")}
MODELS = IMAGE_MODELS | RECONSTRUCTING_MODELS | TEXT_MODELS


def model_entry(name: str) -> str:
    """Where model `name` is defined, "module:function"; an InputError if there is none."""
    if name not in MODELS:
        raise InputError(f"unknown model {name!r}; allowed are {', '.join(sorted(MODELS))}")
    return ":".join(MODELS[name])


def build_model(
    name: str, image_shape: tuple[int, ...], classes: int, /, **options: Any
) -> "nn.Module":
    """Create model `name` with random parameters from torch's global generator.

    Args:
        image_shape, classes: (channels, height, width) and labels; ignored by text models.
        options: the model's own settings from the ledger (mlp: dropout; text models: widths).
    Raises: InputError if the model is unknown, has no such setting, or does not fit the data.
    """
    module, _, function = model_entry(name).partition(":")
    constructor, given = getattr(import_module(module), function), {}
    if name not in TEXT_MODELS:
        given = {"channels": image_shape[0], "side": image_shape[1], "classes": classes}
    return call(constructor, f"model {name}", options, **given)
