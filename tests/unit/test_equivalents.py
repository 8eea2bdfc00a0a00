"""Faster layers against the layers that they replace."""

import pytest
import torch
from torch import nn

from clustered_fl.engine.equivalents import Enlarging, accelerate


class Network(nn.Module):
    """Layers in a sequence, as in the project's networks."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, images):
        return self.layers(images)


def gradients(network, images):
    """Output, and gradients of the input and of the parameters for a fixed random direction."""
    images = images.clone().requires_grad_()
    network.zero_grad()
    found = network(images)
    direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    found.backward(direction)
    return [found.detach(), images.grad, *(p.grad.clone() for p in network.parameters())]


@pytest.mark.parametrize("size", [1, 3, 5, 7])
@pytest.mark.parametrize("side", [1, 4, 5])
def test_convolving_before_enlarging_computes_the_same(size, side):
    torch.manual_seed(0)
    network = Network(nn.Upsample(scale_factor=2), nn.ConvTranspose2d(3, 4, size))
    images = torch.randn(2, 3, side, side)
    expected = gradients(network, images)
    accelerate(network)
    assert isinstance(network.layers[0], Enlarging)
    for found, wanted in zip(gradients(network, images), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_pooling_before_relu_computes_the_same_bits():
    torch.manual_seed(0)
    network = Network(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    images = torch.randn(5, 3, 9, 9)
    expected = gradients(network, images)
    accelerate(network)
    assert [type(layer) for layer in network.layers][1:3] == [nn.MaxPool2d, nn.ReLU]
    for found, wanted in zip(gradients(network, images), expected, strict=True):
        assert torch.equal(found, wanted)


@pytest.mark.parametrize(
    ("enlarge", "convolution"),
    [
        ({"scale_factor": 3}, {}),
        ({"scale_factor": 2, "mode": "bilinear"}, {}),
        ({"scale_factor": 2}, {"stride": 2}),
        ({"scale_factor": 2}, {"padding": 1}),
        ({"scale_factor": 2}, {"dilation": 2}),
        ({"scale_factor": 2}, {"groups": 2}),
        ({"scale_factor": 2}, {"bias": False}),
        ({"scale_factor": 2}, {"kernel_size": 4}),
        ({"scale_factor": 2}, {"kernel_size": (3, 5)}),
    ],
)
def test_other_layers_are_kept(enlarge, convolution):
    layers = nn.Upsample(**enlarge), nn.ConvTranspose2d(2, 4, **{"kernel_size": 3} | convolution)
    network = Network(*layers)
    accelerate(network)
    assert tuple(network.layers) == layers
