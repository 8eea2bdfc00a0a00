"""Whether images fit a network, found without computing anything."""

from typing import Any

import torch

from clustered_fl.errors import InputError
from clustered_fl.models import RECONSTRUCTING_MODELS, build_model


def require_fit(name: str, image_shape: tuple[int, ...], classes: int, **options: Any) -> None:
    """InputError if images of this shape are too small for model `name`, or come back in another.

    A forward pass on PyTorch's meta device checks shapes only. Arguments as for `build_model`.
    """
    height, width = image_shape[1:]
    with torch.device("meta"):
        network = build_model(name, image_shape, classes, **options).eval()
        try:
            found = network(torch.empty(1, *image_shape))
        except RuntimeError as error:
            raise InputError(
                f"images of {height} x {width} pixels are too small for model {name}"
            ) from error
    if name in RECONSTRUCTING_MODELS and found[1].shape[1:] != image_shape:
        other = " x ".join(map(str, found[1].shape[2:]))
        raise InputError(
            f"images of {height} x {width} pixels do not fit model {name}, whose reconstructions "
            f"would have {other}"
        )
