"""What a network is given and asked for: the settings of each kind, and data that fit them."""

import numpy as np
import pytest
import torch
from refusals import told

from clustered_fl.data import dataset as datasets
from clustered_fl.data.partitions import build_federation
from clustered_fl.engine.task import ImageTask, ReconstructionTask, WordTask
from clustered_fl.errors import InputError
from clustered_fl.jobs.train import build_engine
from clustered_fl.models import build_model, fit
from clustered_fl.models.inputs import ImageInputs, ReconstructedInputs, WordInputs, separated

AUTOENCODER = {"name": "supervised_autoencoder"}
WORDS = {"name": "word_lstm", "vocabulary": 5, "embedding": 2, "hidden": 3, "length": 4}
TRAINING = {"epochs": 1, "batch_size": 4, "lr": 0.1}


@pytest.mark.parametrize(
    ("model", "inputs", "network"),
    [
        ({"name": "mlp", "dropout": 0.2}, ImageInputs((0.0, 1.0)), {"name": "mlp", "dropout": 0.2}),
        ({"name": "mlp", "normalise": [0.1, 0.3]}, ImageInputs((0.1, 0.3)), {"name": "mlp"}),
        (
            AUTOENCODER | {"code": 5},
            ReconstructedInputs((0.0, 1.0), 0.5),
            AUTOENCODER | {"code": 5},
        ),
        (
            AUTOENCODER | {"reconstruction": 0, "normalise": [0.4, 1]},
            ReconstructedInputs((0.4, 1.0), 0.0),
            AUTOENCODER,
        ),
        (WORDS, WordInputs(4), {name: WORDS[name] for name in WORDS if name != "length"}),
    ],
)
def test_a_model_of_a_ledger_is_its_inputs_and_a_network(model, inputs, network):
    assert separated(model) == (inputs, network)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ({"name": "mlp", "normalise": [0.1, 0.2, 0.3]}, "normalise = [0.1, 0.2, 0.3] is not all"),
        ({"name": "mlp", "normalise": [0.1]}, "needs the setting 'normalise.1', which is missing"),
        ({"name": "mlp", "normalise": [0.1, 0]}, "normalise.1 = 0 is not allowed: input should be"),
        (AUTOENCODER | {"reconstruction": 1.5}, "reconstruction = 1.5 is not allowed"),
        (AUTOENCODER | {"reconstruction": -0.1}, "reconstruction = -0.1 is not allowed"),
        (WORDS | {"length": 1}, "length = 1 is not allowed"),
        ({"name": "word_lstm"}, "needs the setting 'length', which is missing"),
    ],
)
def test_inputs_that_cannot_be_are_refused_by_name(model, sentence):
    line = told(separated, model)
    assert line.startswith(f"model {model['name']}")
    assert sentence in line


@pytest.mark.parametrize(
    "model",
    [
        {"name": "mlp", "length": 4},
        {"name": "mlp", "reconstruction": 0.5},
        WORDS | {"normalise": [0, 1]},
    ],
    ids=["length of images", "reconstruction by a classifier", "normalised words"],
)
def test_inputs_of_another_kind_are_no_setting_of_a_network(model):
    _, network = separated(model)
    with pytest.raises(InputError, match=f"model {model['name']} has no setting"):
        build_model(network.pop("name"), (1, 28, 28), 2, **network)


@pytest.mark.parametrize(
    ("shape", "largest", "sentence"),
    [
        ((3, 28, 20), 256, "the smallest square ones that do have 16 pixels a side"),
        ((3, 28, 20), 15, "no square ones of up to 15 pixels a side do"),
    ],
)
def test_images_that_fit_a_network_are_named(monkeypatch, shape, largest, sentence):
    monkeypatch.setattr(fit, "LARGEST", largest)
    line = told(fit.require_fit, "le_net", shape, 10)
    assert line == f"images of 28 x 20 pixels do not fit model le_net; {sentence}"


# ---- Models and data ----------------------------------------------------------------------------


@pytest.fixture
def images():
    """Pictures of 16 x 16 pixels."""
    x = np.random.default_rng(0).integers(0, 256, (24, 1, 16, 16)).astype(np.uint8)
    return datasets.build("mnist", "builtin", x, np.arange(24) % 2, 16, ("a", "b"))


@pytest.fixture
def texts():
    """Articles of six words."""
    words = np.random.default_rng(0).integers(0, 9, (24, 6)).astype(np.int32)
    known = tuple("abcdefghi")
    return datasets.build(
        "news", "builtin", words, np.arange(24) % 2, 16, ("a", "b"), True, "", known
    )


def engine(data, model):
    federation = build_federation(data, 0, "iid", clients=2)
    config = {"model": model, "training": TRAINING, "seed": 0}
    return build_engine(config, data, federation, torch.device("cpu"), 1)


def test_the_task_has_what_the_model_sets(images, texts):
    plain = engine(images, {"name": "mlp", "normalise": [0.1, 0.3]}).task
    assert (type(plain), plain.mean, plain.deviation) == (ImageTask, 0.1, 0.3)
    drawn = engine(images, AUTOENCODER | {"normalise": [0.4, 2], "reconstruction": 0.7}).task
    assert (type(drawn), drawn.mean, drawn.deviation) == (ReconstructionTask, 0.4, 2)
    assert drawn.reconstruction == 0.7
    words = engine(texts, WORDS).task
    assert (type(words), words.vocabulary, words.length) == (WordTask, 5, 4)
    assert words.inputs(torch.tensor([3])).shape == (1, 4)


@pytest.mark.parametrize(
    ("data", "model", "line"),
    [
        ("images", WORDS, "the model needs texts, but the dataset mnist has images"),
        ("texts", {"name": "mlp"}, "the model needs images, but the dataset news has texts"),
        ("texts", AUTOENCODER, "the model needs images, but the dataset news has texts"),
    ],
)
def test_a_model_for_another_kind_of_data_is_refused(request, data, model, line):
    with pytest.raises(InputError) as caught:
        engine(request.getfixturevalue(data), model)
    assert str(caught.value) == line
