"""Whether images fit a network, found without computing anything."""

from typing import Any
from warnings import catch_warnings

import torch
from torch import Tensor

from clustered_fl.errors import InputError
from clustered_fl.models import RECONSTRUCTING_MODELS, TEXT_MODELS, build_model

LARGEST = 256
"""Pixels a side of the largest images for which the smallest that fit are sought."""


def require_fit(name: str, image_shape: tuple[int, ...], classes: int, /, **options: Any) -> None:
    """InputError if images of this shape do not fit model `name`, or come back in another.

    Models of texts have no images. Arguments as for `build_model`.
    """
    if name in TEXT_MODELS:
        return
    channels, height, width = image_shape
    found = _outputs(name, image_shape, classes, options)
    if found is None:
        sides = range(1, LARGEST + 1)
        fitting = (s for s in sides if _outputs(name, (channels, s, s), classes, options))
        smallest = next(fitting, None)
        allowed = f"the smallest square ones that do have {smallest} pixels a side"
        if smallest is None:
            allowed = f"no square ones of up to {LARGEST} pixels a side do"
        raise InputError(f"images of {height} x {width} pixels do not fit model {name}; {allowed}")
    if name in RECONSTRUCTING_MODELS and found[1].shape[1:] != image_shape:
        other = " x ".join(map(str, found[1].shape[2:]))
        raise InputError(
            f"images of {height} x {width} pixels do not fit model {name}, whose reconstructions "
            f"would have {other}"
        )


def _outputs(
    name: str, image_shape: tuple[int, ...], classes: int, options: dict[str, Any]
) -> tuple[Tensor, ...] | None:
    """The outputs for one image on PyTorch's meta device, which computes shapes only.

    None if a layer has no output, because the image is too small.
    """
    # Layers without parameters warn.
    with torch.device("meta"), catch_warnings(action="ignore", category=UserWarning):
        network = build_model(name, image_shape, classes, **options).eval()
        try:
            found = network(torch.empty(1, *image_shape))
        except RuntimeError:
            return None
    return found if isinstance(found, tuple) else (found,)
