"""Networks of the papers, by name; each says which paper uses it and how many parameters it has."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clustered_fl.errors import InputError
from clustered_fl.options import call

if TYPE_CHECKING:
    from torch import nn

# Name in the ledger -> module and callable. Text, so that listing models imports none of them and a
# run's code fingerprint covers only the network it trains.
IMAGE_MODELS = {
    "mlp": ("clustered_fl.models.cnn", "mlp"),
    "small_conv_net": ("clustered_fl.models.cnn", "small_conv_net"),
    "wide_conv_net": ("clustered_fl.models.cnn", "wide_conv_net"),
    "le_net": ("clustered_fl.models.cnn", "le_net"),
    "leaf_cnn": ("clustered_fl.models.cnn", "leaf_cnn"),
    "three_conv_net": ("clustered_fl.models.cnn", "three_conv_net"),
}
RECONSTRUCTING_MODELS = {
    "supervised_autoencoder": (
        "clustered_fl.models.supervised_autoencoder",
        "supervised_autoencoder",
    )
}
TEXT_MODELS = {"word_lstm": ("clustered_fl.models.lstm", "word_lstm")}
MODELS = IMAGE_MODELS | RECONSTRUCTING_MODELS | TEXT_MODELS


def model_module(name: str) -> str:
    """Dotted name of the module that defines model `name`.

    Raises:
        InputError: if there is no such model.
    """
    if name not in MODELS:
        raise InputError(f"unknown model {name!r}; allowed are {', '.join(sorted(MODELS))}")
    return MODELS[name][0]


def build_model(
    name: str, image_shape: tuple[int, ...], classes: int, **options: Any
) -> "nn.Module":
    """Create model `name` with random parameters from torch's global generator.

    Args:
        name: key of `MODELS`.
        image_shape: (channels, height, width) of the data; ignored by text models.
        classes: number of labels; ignored by text models.
        options: the model's own settings from the ledger (mlp: dropout; text models: widths).
    Raises:
        InputError: if the model is unknown, has no such setting, or does not fit the data.
    """
    constructor = getattr(import_module(model_module(name)), MODELS[name][1])
    if name in TEXT_MODELS:
        return call(constructor, f"model {name}", options)
    channels, side, _ = image_shape
    given = {"channels": channels, "side": side, "classes": classes}
    return call(constructor, f"model {name}", options, **given)
