"""Autoencoders have the shapes and sizes that FLT says, and refuse images that do not fit."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from clustered_fl.errors import InputError
from clustered_fl.models.autoencoder import AUTOENCODERS, build_autoencoder


def build(name, shape, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build_autoencoder(name, shape, **options).eval()


def size(network):
    return sum(parameter.numel() for parameter in network.parameters())


def test_the_encoder_for_mnist_has_as_many_parameters_as_table_vi_says():
    network = build("conv_autoencoder", (1, 28, 28))
    assert size(network.encoder) == 25_956
    # A fully connected layer back, then 4 -> 16 -> 1 filters of 2 x 2.
    assert size(network.decoder) == 128 * 196 + 196 + 4 * 16 * 4 + 16 + 16 * 4 + 1


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("conv_autoencoder", (1, 28, 28), {}),
        ("conv_autoencoder", (3, 32, 32), {}),
        ("conv_autoencoder", (1, 4, 4), {}),
        ("residual_autoencoder", (3, 32, 32), {}),
        ("residual_autoencoder", (1, 28, 28), {"width": 32}),
    ],
)
@pytest.mark.parametrize("code", [128, 7])
def test_images_become_codes_and_images_again(name, shape, options, code):
    network = build(name, shape, code=code, **options)
    images = torch.rand(3, *shape, generator=torch.Generator().manual_seed(0))
    codes = network.encoder(images)
    assert codes.shape == (3, code)
    again = network(images)
    assert again.shape == images.shape
    assert torch.equal(again, network.decoder(codes))
    assert not torch.equal(codes[0], codes[1])
    if name == "conv_autoencoder":
        assert 0 <= again.min() < again.max() <= 1


def test_codes_have_128_entries_unless_told_otherwise():
    for name in AUTOENCODERS:
        network = build(name, (1, 8, 8))
        assert network.encoder(torch.zeros(2, 1, 8, 8)).shape == (2, 128)


def test_the_convolutional_autoencoder_is_that_of_the_code():
    network = build("conv_autoencoder", (1, 12, 12), code=5)
    weights = dict(network.named_parameters())
    images = torch.rand(4, 1, 12, 12, generator=torch.Generator().manual_seed(0))

    def layer(part, number):
        return weights[f"{part}.{number}.weight"], weights[f"{part}.{number}.bias"]

    hidden = images
    for number in (0, 3):
        hidden = functional.conv2d(hidden, *layer("encoder", number), padding=1)
        hidden = functional.max_pool2d(functional.relu(hidden), 2)
    code = functional.linear(hidden.flatten(1), *layer("encoder", 7))
    torch.testing.assert_close(network.encoder(images), code)
    hidden = functional.linear(code, *layer("decoder", 0)).view(4, 4, 3, 3)
    hidden = functional.relu(functional.conv_transpose2d(hidden, *layer("decoder", 2), stride=2))
    expected = functional.conv_transpose2d(hidden, *layer("decoder", 4), stride=2).sigmoid()
    torch.testing.assert_close(network(images), expected)


def test_the_encoder_for_cifar_has_as_many_parameters_as_that_of_the_code():
    encoder = build("residual_autoencoder", (3, 32, 32)).encoder
    convolutions = 3 * 64 * 16 + 64 + 64 * 128 * 16 + 128 + 128 * 128 * 9 + 128
    convolutions += 128 * 64 + 64 + 64 * 8 + 8
    residuals = 2 * (128 * 32 * 9 + 32 * 128)
    norms = 2 * (64 + 128 + 128 + 64 + 8)
    assert size(encoder) == convolutions + residuals + norms + 8 * 64 * 128 + 128 == 439_064


def test_the_input_passes_around_a_residual_block():
    encoder = build("residual_autoencoder", (1, 8, 8), width=16).encoder
    blocks = [layer for layer in encoder if hasattr(layer, "inner")]
    assert len(blocks) == 2
    features = torch.randn(2, 16, 2, 2, generator=torch.Generator().manual_seed(0))
    into, back = (layer.weight for layer in blocks[0].inner if isinstance(layer, nn.Conv2d))
    hidden = functional.conv2d(functional.relu(features), into, padding=1)
    expected = features + functional.conv2d(functional.relu(hidden), back)
    torch.testing.assert_close(blocks[0](features), expected)


@pytest.mark.parametrize(
    ("name", "shape", "options", "told"),
    [
        ("vae", (1, 8, 8), {}, "unknown autoencoder 'vae'; allowed are conv_autoencoder, resid"),
        (
            "conv_autoencoder",
            (1, 30, 30),
            {},
            "the autoencoder needs a side that 4 divides, not 30",
        ),
        (
            "residual_autoencoder",
            (3, 30, 30),
            {},
            "the autoencoder needs a side that 4 divides, no",
        ),
        (
            "residual_autoencoder",
            (3, 32, 32),
            {"width": 24},
            "the residual autoencoder needs a width that 16 divides, not 24",
        ),
        (
            "conv_autoencoder",
            (1, 8, 12),
            {},
            "autoencoders need square images, not samples of shap",
        ),
        (
            "conv_autoencoder",
            (40,),
            {},
            "autoencoders need square images, not samples of shape (40",
        ),
        (
            "conv_autoencoder",
            (1, 8, 8),
            {"codes": 3},
            "autoencoder conv_autoencoder has no setting",
        ),
        (
            "conv_autoencoder",
            (1, 8, 8),
            {"side": 3},
            "autoencoder conv_autoencoder has no setting 's",
        ),
        (
            "conv_autoencoder",
            (1, 8, 8),
            {"code": 0},
            "autoencoder conv_autoencoder: code = 0 is not",
        ),
    ],
)
def test_what_cannot_be_built_is_told(name, shape, options, told):
    with pytest.raises(InputError) as caught:
        build_autoencoder(name, shape, **options)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
