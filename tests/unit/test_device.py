"""One place decides where jobs compute; what a GPU needs is tested without one."""

import numpy as np
import pytest
import torch

from clustered_fl.data import dataset as datasets
from clustered_fl.data.partitions import build_federation
from clustered_fl.encoders.training import Reconstruction, TrainingSettings, embed
from clustered_fl.encoders.tuning import tuned
from clustered_fl.errors import InputError
from clustered_fl.groupings.clients import clients_of
from clustered_fl.groupings.profiles.network import Profiler
from clustered_fl.jobs import device
from clustered_fl.models.autoencoder import build_autoencoder

FLAGS = (torch.backends.cuda.matmul, torch.backends.cudnn)


@pytest.fixture(autouse=True)
def settings():
    """What is changed here is changed back."""
    flags = [each.allow_tf32 for each in FLAGS]
    yield
    for each, flag in zip(FLAGS, flags, strict=True):
        each.allow_tf32 = flag


@pytest.mark.parametrize("there", [False, True])
def test_auto_is_the_gpu_only_where_there_is_one(monkeypatch, there):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert device.choose_device("auto").type == ("cuda" if there else "cpu")
    assert device.choose_device("cpu").type == "cpu"


def test_a_gpu_that_is_not_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError) as caught:
        device.prepared("cuda")
    sentence = "device cuda asked for but no CUDA GPU is visible; use device=cpu or auto"
    assert str(caught.value) == sentence


def test_a_job_says_its_device_and_computes_without_tf32_on_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda place: f"a {place.type} device")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    torch.backends.cudnn.allow_tf32, told = True, []
    assert device.prepared("cuda", told.append) == torch.device("cuda")
    assert told == ["on a cuda device"]
    assert [each.allow_tf32 for each in FLAGS] == [False, False]
    # What convolutions and recurrent layers ask; "none" is what nothing allows.
    layers = torch.backends.cudnn.conv, torch.backends.cudnn.rnn, torch.backends
    assert {each.fp32_precision for each in layers} == {"none"}
    assert device.os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert torch.are_deterministic_algorithms_enabled()


def test_auto_is_resolved_once_and_told(monkeypatch):
    asked, told = [], []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: asked.append(None) or False)
    assert device.prepared("auto", told.append) == torch.device("cpu")
    assert (len(asked), len(told)) == (1, 1)


def test_a_cpu_needs_nothing_of_that(monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    torch.backends.cudnn.allow_tf32, told = True, []
    device.prepared("cpu", told.append)
    assert torch.backends.cudnn.allow_tf32
    assert "CUBLAS_WORKSPACE_CONFIG" not in device.os.environ
    assert told[0].startswith("on ")


# ---- Nothing leaves the device -------------------------------------------------------------------
# PyTorch's "meta" device has shapes and no numbers, and refuses to work with tensors of a CPU, so
# that an operation on the wrong device is found as it would be on a GPU.


@pytest.fixture
def there(monkeypatch):
    """Clients on the device; what a job fetches from it at last is numbers of the right shape."""
    monkeypatch.setattr(torch.Tensor, "cpu", lambda each: torch.zeros(each.shape, dtype=each.dtype))
    monkeypatch.setattr(torch.Tensor, "tolist", lambda each: [0.0] * len(each))
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (80, 1, 16, 16), dtype=np.uint8), np.arange(80) % 4
    data = datasets.build("mnist", "builtin", x, y, 60, tuple("abcd"))
    federation = build_federation(data, 0, kind="iid", clients=3)
    return data, federation, clients_of(data, federation, "meta")


@pytest.mark.parametrize("mode", ["none", "independent", "sequential", "pooled"])
@pytest.mark.parametrize("name", ["conv_autoencoder", "residual_autoencoder"])
def test_autoencoders_are_tuned_and_embed_where_their_images_are(there, name, mode):
    _, _, clients = there
    network = build_autoencoder(name, (1, 16, 16), code=6).to("meta")
    settings = TrainingSettings(epochs=2, batch_size=8)
    for own in tuned(network, clients.images, clients.rows, mode, settings, 0):
        assert {each.device.type for each in own.state_dict().values()} == {"meta"}
        assert embed(own, clients.images(clients.rows[0])).shape == (len(clients.rows[0]), 6)


def test_an_operation_on_another_device_would_be_found(there):
    _, _, clients = there
    network = build_autoencoder("conv_autoencoder", (1, 16, 16), code=6)
    process = Reconstruction(network, TrainingSettings(epochs=1))
    with pytest.raises(RuntimeError):
        process.epoch(clients.images, clients.rows[0], np.random.default_rng(0))


def test_profilers_see_images_where_they_are_told_to(there):
    data, federation, clients = there
    config = {"run": "r", "federation": {}, "model": {"name": "supervised_autoencoder", "code": 5}}
    about = ("r", config, 3, {}, data, federation)
    size = sum(each.numel() for each in Profiler(*about).build().parameters())
    profiler = Profiler(*about[:3], {3: torch.zeros(size)}, *about[4:], "meta")
    network = profiler.network()
    assert {each.device.type for each in network.parameters()} == {"meta"}
    here = torch.from_numpy(data.x)
    assert profiler.codes(clients.x[:7], network).shape == (7, 5)
    assert profiler.codes(here[:7], network).shape == (7, 5)
    assert profiler.probabilities(here[:7], network).shape == (7, 4)
