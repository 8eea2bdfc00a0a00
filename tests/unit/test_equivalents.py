"""Faster layers of REPA's network against the layers that they replace."""

import copy

import pytest
import torch
from torch import nn

from clustered_fl.engine.equivalents import Enlarging, accelerate
from clustered_fl.models import build_model


def gradients(network, images):
    """Outputs, and gradients of the input and of the parameters for a fixed random direction."""
    images = images.clone().requires_grad_()
    network.zero_grad()
    found = network(images)
    found = found if isinstance(found, tuple) else (found,)
    generator = torch.Generator().manual_seed(1)
    weighted = [(torch.randn(each.shape, generator=generator) * each).sum() for each in found]
    torch.stack(weighted).sum().backward()
    grads = [parameter.grad.clone() for parameter in network.parameters()]
    return [*(each.detach() for each in found), images.grad, *grads]


@pytest.mark.parametrize("size", [1, 3, 5, 7])
@pytest.mark.parametrize("side", [1, 4, 5])
def test_convolving_before_enlarging_computes_the_same(size, side):
    torch.manual_seed(0)
    convolution = nn.ConvTranspose2d(3, 4, size)
    images = torch.randn(2, 3, side, side)
    expected = gradients(nn.Sequential(nn.Upsample(scale_factor=2), convolution), images)
    for found, wanted in zip(gradients(Enlarging(convolution), images), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)])
def test_repas_network_computes_the_same(shape):
    torch.manual_seed(0)
    network = build_model("supervised_autoencoder", shape, 10)
    images = torch.randn(5, *shape)
    faster = copy.deepcopy(network)
    accelerate(faster)
    assert sum(isinstance(each, Enlarging) for each in faster.modules()) == 2
    same = zip(faster.parameters(), network.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in same)
    for found, wanted in zip(gradients(faster, images), gradients(network, images), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)


def test_pooling_before_relu_computes_the_same_bits():
    torch.manual_seed(0)
    network = build_model("supervised_autoencoder", (3, 32, 32), 10)
    images = torch.randn(5, 3, 32, 32)
    faster = copy.deepcopy(network)
    accelerate(faster)
    assert [type(layer) for layer in faster.encoder][1:3] == [nn.MaxPool2d, nn.ReLU]
    found, expected = (
        gradients(nn.Sequential(each.encoder, each.classifier), images)
        for each in (faster, network)
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs)


def test_other_networks_are_kept():
    network = build_model("le_net", (3, 32, 32), 10)
    before = list(network.modules())
    accelerate(network)
    assert list(network.modules()) == before
