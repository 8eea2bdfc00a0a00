"""The networks have the sizes the papers (or we) state, and are what their layers say."""

from importlib import import_module

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from clustered_fl.errors import InputError
from clustered_fl.models import IMAGE_MODELS, MODELS, build_model, cnn, model_entry

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
STATED = [
    ("small_conv_net", cnn.small_conv_net, MNIST, 5_142),
    ("wide_conv_net", cnn.wide_conv_net, MNIST, 160_362),
    ("le_net", cnn.le_net, CIFAR, 62_006),
    ("three_conv_net", cnn.three_conv_net, CIFAR, 122_570),
]
WORDS = {"vocabulary": 40, "embedding": 6, "hidden": 7}


def image_model(name, shape=MNIST):
    torch.manual_seed(0)
    return build_model(name, shape, 10)


def word_model():
    torch.manual_seed(0)
    return build_model("word_lstm", (), 4, **WORDS)


@pytest.mark.parametrize(("name", "described", "shape", "count"), STATED)
def test_number_of_parameters_is_the_one_in_the_docstring(name, described, shape, count):
    network = image_model(name, shape)
    assert sum(parameter.numel() for parameter in network.parameters()) == count
    assert f"{count:,} parameters" in " ".join(described.__doc__.split())


@pytest.mark.parametrize("shape", [MNIST, CIFAR])
@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_an_image_gets_one_score_per_class(name, shape):
    assert image_model(name, shape)(torch.zeros(5, *shape)).shape == (5, 10)
    assert build_model(name, shape, 62)(torch.zeros(1, *shape)).shape == (1, 62)


def literal(network):
    """The same network from PyTorch's own layers, sharing the parameters."""
    layers = []
    for number, layer in enumerate(network.convolutions):
        sizes = (layer.in_channels, layer.out_channels, layer.kernel_size)
        plain = nn.Conv2d(*sizes, padding=layer.padding)
        plain.weight, plain.bias = layer.weight, layer.bias
        layers += [plain, nn.ReLU(), *([nn.MaxPool2d(2)] if number < 2 else [])]
    layers.append(nn.Flatten())
    for layer in network.layers:
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("shape", [MNIST, CIFAR])
@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_image_models_equal_a_stack_of_plain_layers(name, shape):
    network = image_model(name, shape)
    images = torch.rand(3, *shape, generator=torch.Generator().manual_seed(0))
    expected = literal(network)(images)
    torch.testing.assert_close(network(images), expected, rtol=1e-4, atol=1e-5)
    assert (
        len(network.layers) + len(network.convolutions)
        == {
            "mlp": 2,
            "small_conv_net": 3,
            "leaf_cnn": 4,
            "wide_conv_net": 4,
            "le_net": 5,
            "three_conv_net": 5,
        }[name]
    )


def test_images_do_not_mix():
    network = image_model("le_net", CIFAR)
    images = torch.rand(4, *CIFAR, generator=torch.Generator().manual_seed(0))
    apart = torch.cat([network(image[None]) for image in images])
    torch.testing.assert_close(network(images), apart, rtol=1e-4, atol=1e-5)


def test_words_get_one_score_per_next_word():
    words = torch.randint(0, 40, (3, 9), generator=torch.Generator().manual_seed(0))
    assert word_model()(words).shape == (3, 8, 40)


def test_scores_depend_on_earlier_words_only():
    network = word_model()
    words = torch.randint(2, 40, (2, 9), generator=torch.Generator().manual_seed(0))
    changed = words.clone()
    changed[:, 5:] = 1
    before, after = network(words), network(changed)
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])
    # The last word is asked for only.
    changed = words.clone()
    changed[:, -1] = 1
    assert torch.equal(network(changed), before)


def test_word_model_has_two_layers_of_the_stated_widths():
    vocabulary, embedding, hidden = WORDS.values()
    lstm = 4 * hidden * (embedding + hidden + 2) + 4 * hidden * (2 * hidden + 2)
    count = vocabulary * embedding + lstm + (hidden + 1) * vocabulary
    assert sum(parameter.numel() for parameter in word_model().parameters()) == count


@pytest.mark.parametrize("build", [lambda: image_model("le_net", CIFAR), word_model])
def test_parameters_come_from_the_global_generator(build):
    one, again = (parameters_to_vector(build().parameters()) for _ in range(2))
    assert torch.equal(one, again)
    assert one.std() > 0


def test_unknown_model_is_told():
    sentence = f"unknown model 'resnet'; allowed are {', '.join(sorted(MODELS))}"
    for ask in (model_entry, lambda name: build_model(name, MNIST, 10)):
        with pytest.raises(InputError) as caught:
            ask("resnet")
        assert str(caught.value) == sentence


@pytest.mark.parametrize("name", MODELS)
def test_the_entry_of_a_model_is_the_function_that_builds_it(name):
    module, _, function = model_entry(name).partition(":")
    assert function == name
    assert callable(getattr(import_module(module), function))
