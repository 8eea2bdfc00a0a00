"""An encoder is trained once, leaves four files, the same bytes each time, and refuses nonsense."""

import copy
import json

import numpy as np
import pytest
import torch
from torch.nn import functional

from clustered_fl.cli import main
from clustered_fl.data import dataset as datasets
from clustered_fl.encoders.storage import load_encoder, load_pictures
from clustered_fl.encoders.training import Reconstruction, TrainingSettings, embed, reconstruct
from clustered_fl.engine import checkpoint
from clustered_fl.engine.checkpoint import sole_owner
from clustered_fl.errors import InputError
from clustered_fl.files import digest
from clustered_fl.jobs.encode import execute
from clustered_fl.models.autoencoder import build_autoencoder
from clustered_fl.randomness import generator
from clustered_fl.records import archive
from clustered_fl.records import reading as records
from clustered_fl.records.reading import Origin
from clustered_fl.workflow import kinds

CONFIG = {
    "name": "tiny",
    "paper": "flt",
    "scale": "demo",
    "dataset": "mnist",
    "model": {"name": "conv_autoencoder", "code": 6},
    "training": {"epochs": 3, "batch_size": 16, "lr": 0.003, "halve_every": 2},
}
RESIDUAL = {"model": {"name": "residual_autoencoder", "code": 6, "width": 16}}
TRAIN, TEST = 60, 24
FILES = (*kinds.FILES["encoder"], archive.LEARNT["encoder"])
ORIGIN = Origin("0123456789abcdef", "fedcba9876543210")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """File of a dataset of blurred noisy pictures, 8 x 8 pixels."""
    rng = np.random.default_rng(0)
    things = rng.integers(0, 256, (3, 1, 4, 4)).repeat(2, axis=2).repeat(2, axis=3)
    y = np.arange(TRAIN + TEST) % 3
    x = (0.9 * things[y] + 0.1 * rng.integers(0, 256, (len(y), 1, 8, 8))).astype(np.uint8)
    path = tmp_path_factory.mktemp("data") / "mnist.safetensors"
    datasets.save(datasets.build("mnist", "builtin", x, y, TRAIN, ("a", "b", "c")), path)
    return path


def train(data, folder, **changes):
    lines = []
    where = {"out": folder, "saved": folder.parent / f"{folder.name}.safetensors"}
    how = {"origin": ORIGIN, "device": "cpu", "tell": lines.append}
    execute(CONFIG | changes, data, **where, **how)
    assert lines.pop(0).startswith("on ")
    return lines


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    train(data, folder)
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "cost.json"}


def test_four_files_are_left(trained):
    assert sorted(path.name for path in trained.iterdir()) == sorted(FILES)


def test_the_record_says_what_was_trained_on_what(trained, data):
    record = records.load_record(trained)
    assert (record["config"], record["config_digest"]) == (CONFIG, digest(CONFIG))
    assert record["data"] == datasets.load(data).described
    assert (record["code"], record["identity"], record["image_shape"]) == (*ORIGIN, [1, 8, 8])
    # Convolutions 1 -> 16 -> 4, then 2 x 2 x 4 features to a code of 6, and back.
    encoder = 16 * 9 + 16 + 16 * 4 * 9 + 4 + 16 * 6 + 6
    decoder = 6 * 16 + 16 + 4 * 16 * 4 + 16 + 16 * 4 + 1
    assert record["parameters"] == {"encoder": encoder, "decoder": decoder}
    assert record["versions"].keys() == {"python", "torch", "numpy", "numba"}
    assert record["cost"].keys() >= {"seconds", "peak_memory_mb", "threads"}


def literal_training(data, epochs, rows):
    """The same training on images in memory."""
    images = torch.from_numpy(datasets.load(data).x).float() / 255
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(0, "encoder").integers(2**31)))
        network = build_autoencoder("conv_autoencoder", (1, 8, 8), code=6)
    settings = TrainingSettings(**CONFIG["training"])
    reconstruction = Reconstruction(network, settings)
    losses = [
        reconstruction.epoch(lambda own: images[own], rows, generator(0, "encoder order", epoch))
        for epoch in range(epochs)
    ]
    return network, losses, images


def test_what_is_kept_is_what_was_trained_on_the_training_rows(trained, data):
    network, losses, images = literal_training(data, 3, np.arange(TRAIN))
    record, found = records.load_record(trained), load_encoder(trained)
    assert record["losses"] == losses
    assert losses[2] < losses[0]
    np.testing.assert_array_equal(embed(found, images), embed(network, images))
    again = reconstruct(network, images[TRAIN:])
    error = float(functional.mse_loss(again, images[TRAIN:]))
    assert record["test_error"] == pytest.approx(error, rel=1e-5)


def test_pictures_are_test_images_and_what_becomes_of_them(trained, data):
    x, pictures = datasets.load(data).x, load_pictures(trained)
    assert {name: each.shape for name, each in pictures.items()} == {
        "images": (10, 1, 8, 8),
        "reconstructions": (10, 1, 8, 8),
    }
    tests = {image.tobytes() for image in x[TRAIN:]}
    assert all(image.tobytes() in tests for image in pictures["images"])
    seen = torch.from_numpy(pictures["images"]).float() / 255
    again = reconstruct(load_encoder(trained), seen).numpy() * 255
    np.testing.assert_allclose(pictures["reconstructions"], again, atol=0.51)


def test_a_reconstruction_outside_of_black_and_white_is_cut_off(data, tmp_path):
    """The residual autoencoder ends without a sigmoid: 1.01 must not come back as black."""
    train(data, tmp_path, **RESIDUAL)
    pictures = load_pictures(tmp_path)
    seen = torch.from_numpy(pictures["images"]).float() / 255
    again = reconstruct(load_encoder(tmp_path), seen).clamp(0, 1).numpy() * 255
    np.testing.assert_allclose(pictures["reconstructions"], again, atol=0.51)


@pytest.mark.parametrize("changes", [{}, RESIDUAL], ids=["conv", "residual"])
def test_a_second_training_leaves_the_same_bytes_whatever_was_before(data, tmp_path, changes):
    train(data, tmp_path / "one", **changes)
    torch.manual_seed(5)
    torch.rand(3)
    train(data, tmp_path / "two", **changes)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_progress_is_a_line_per_epoch(data, tmp_path):
    lines = train(data, tmp_path)
    assert [line.split("  ")[0] for line in lines[:3]] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert lines[3].startswith("mean squared error 0.")
    assert len(lines) == 4


def test_samples_are_some_training_rows(data, tmp_path):
    training = CONFIG["training"] | {"samples": 20}
    train(data, tmp_path, training=training)
    rows = generator(0, "encoder samples").permutation(np.arange(TRAIN))[:20]
    assert records.load_record(tmp_path)["losses"] == literal_training(data, 3, rows)[1]


def test_no_epochs_leave_a_random_encoder(data, tmp_path):
    train(data, tmp_path, training={"epochs": 0})
    assert records.load_record(tmp_path)["losses"] == []
    network, *_ = literal_training(data, 0, np.arange(TRAIN))
    found = load_encoder(tmp_path).state_dict()
    assert all(torch.equal(found[name], each) for name, each in network.state_dict().items())


# ---- Interruptions -------------------------------------------------------------------------------


def interrupted(data, folder, after, monkeypatch, **changes):
    """Train until so many epochs are done, keeping a checkpoint after each."""
    monkeypatch.setattr(checkpoint, "SAVE_SECONDS", 0)
    epoch, done = Reconstruction.epoch, []

    def ends(process, *arguments):
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(epoch(process, *arguments))
        return done[-1]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Reconstruction, "epoch", ends)
        train(data, folder, **changes)
    assert not folder.exists()


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("changes", [{}, RESIDUAL], ids=["conv", "residual"])
def test_an_interrupted_training_ends_with_the_same_bytes(
    data, tmp_path, monkeypatch, changes, after
):
    """Averages of batch normalisation, Adam's moments and the falling rate are all continued."""
    train(data, tmp_path / "undisturbed", **changes)
    interrupted(data, tmp_path / "out", after, monkeypatch, **changes)
    lines = train(data, tmp_path / "out", **changes)
    told = [f"continuing after epoch {after}"] if after else []
    assert [line for line in lines if "continuing" in line] == told
    assert sum(line.startswith("epoch ") for line in lines) == 3 - after
    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize("changed", ["config", "code", "data"])
def test_a_checkpoint_of_another_training_is_not_continued(data, tmp_path, monkeypatch, changed):
    other, changes = data, {}
    if changed == "data":
        found, other = datasets.load(data), tmp_path / "other.safetensors"
        arrays = (255 - found.x, found.y, TRAIN, found.classes)
        datasets.save(datasets.build("mnist", "builtin", *arrays), other)
    elif changed == "code":
        monkeypatch.setitem(globals(), "ORIGIN", Origin("another", ""))
    else:
        changes = {"training": CONFIG["training"] | {"lr": 0.01}}
    interrupted(other, tmp_path / "out", 2, monkeypatch, **changes)
    monkeypatch.setitem(globals(), "ORIGIN", Origin("0123456789abcdef", "fedcba9876543210"))
    assert not any("continuing" in line for line in train(data, tmp_path / "out"))


def test_two_processes_do_not_train_one_encoder(data, tmp_path):
    with sole_owner(tmp_path / "out.safetensors"), pytest.raises(InputError, match="still being"):
        train(data, tmp_path / "out")


# ---- The command line ---------------------------------------------------------------------------


def command(data, folder, **changes):
    config = json.dumps(copy.deepcopy(CONFIG) | changes)
    options = {"config": config, "data": data, "checkpoint": folder.parent / "checkpoint"}
    options |= {"device": "cpu", "code": "c", "out": folder}
    return ["encoder", *(f"--{name}={value}" for name, value in options.items())]


def test_the_step_trains_an_encoder(data, tmp_path, capsys, trained):
    assert main(command(data, tmp_path)) == 0
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 6)
    found, expected = contents(tmp_path), contents(trained)
    arrays = [name for name in FILES if name.endswith(".safetensors")]
    assert [found[name] for name in arrays] == [expected[name] for name in arrays]
    assert len(arrays) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"training": {"epochs": 1, "rate": 1}},
            "training of the encoder has no setting 'rate'; allowed are epochs, batch_size,",
        ),
        ({"training": {}}, "training of the encoder needs the setting 'epochs', which is missing"),
        ({"model": {"name": "vae"}}, "unknown autoencoder 'vae'; allowed are conv_autoencoder,"),
        ({"model": {"code": 6}}, "unknown autoencoder ''; allowed are conv_autoencoder, residual_"),
        ({"model": {"name": "conv_autoencoder", "k": 1}}, "autoencoder conv_autoencoder has no se"),
        (
            {"training": {"epochs": 3, "lr": 1e30}},
            "the loss of the autoencoder is no longer finite; a learning rate below 1e+30 may help",
        ),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(data, tmp_path, capsys, changes, sentence):
    assert main(command(data, tmp_path / "out", **changes)) == 2
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith(f"error: {sentence}")
    assert not (tmp_path / "out").exists()


def test_texts_and_absent_data_are_one_sentence(tmp_path, capsys):
    words, path = np.ones((6, 4), np.int32), tmp_path / "news.safetensors"
    labels = np.zeros(6, int)
    text = datasets.build("mnist", "builtin", words, labels, 4, ("a",), vocabulary=("x", "y"))
    datasets.save(text, path)
    assert main(command(path, tmp_path / "out")) == 2
    sentence = "error: autoencoders need square images, not samples of shape (4,)\n"
    assert capsys.readouterr().err.endswith(f"\n{sentence}")
    assert main(command(tmp_path / "absent", tmp_path / "out")) == 2
    assert "absent does not exist: run the dataset step" in capsys.readouterr().err
