"""IFCA against its round written out, and local training of the last layer alone."""

from dataclasses import replace

import literal_flt as literal
import numpy as np
import pytest
import torch
from literal_cfl import NINE, local_update, make_engine
from torch import nn
from torch.nn import functional

from clustered_fl.data.federation import Federation
from clustered_fl.engine import checkpoint, scoring
from clustered_fl.engine.evaluation import evaluate, training_losses
from clustered_fl.engine.task import ImageTask
from clustered_fl.engine.training import PATHS, Engine, supported
from clustered_fl.engine.workload import LocalSettings, Workload
from clustered_fl.errors import InputError
from clustered_fl.methods import fedavg, ifca
from clustered_fl.methods.state import State, participants
from clustered_fl.options import call
from clustered_fl.randomness import generator

ROUNDS = 6
CLIENTS = list(range(9))


def run(engine, settings, rounds=ROUNDS, scored=False):
    state = ifca.init(engine, settings)
    for number in range(rounds):
        if scored:
            ifca.before_scores(state, engine, settings, number)
        state, _ = ifca.round_(state, engine, settings, number)
    return state


# ---- Choice and average -------------------------------------------------------------------------


def literal_losses(engine, models, client):
    """Half the mean squared distance of the client's points to every model."""
    points = engine.task.points[engine.federation.train[client]].double().numpy()
    return [np.mean([sum((p - m) ** 2) / 2 for p in points]) for m in models]


class Literal:
    """IFCA's server: one model per cluster and the cluster of every client."""

    def __init__(self, engine, settings):
        self.engine, self.settings = engine, settings
        self.together = settings.pretrain
        self.chosen = settings.pretrain + settings.random_rounds
        numbers = range(settings.clusters) if self.chosen == 0 else [0] * settings.clusters
        self.models = [engine.initial_model(n).double().numpy() for n in numbers]
        drawn = generator(engine.seed, "random clusters").permutation(9) % settings.clusters
        self.cluster = dict(enumerate(drawn.tolist()))

    def choose(self, clients):
        for client in clients:
            losses = literal_losses(self.engine, self.models, client)
            self.cluster[client] = losses.index(min(losses))

    def round(self, number):
        drawn = participants(self.engine, self.settings.fraction, number)
        if number >= self.chosen:
            self.choose(drawn)
        trained = {}
        for client in drawn:
            start = self.models[self.cluster[client]]
            trained[client] = start + local_update(self.engine, start, client, number)
        for cluster in range(self.settings.clusters):
            own = [c for c in drawn if number < self.together or self.cluster[c] == cluster]
            if own:
                mine = {client: trained[client] for client in own}
                self.models[cluster] = literal.mean(self.engine, mine, self.settings.weighting)


SETTINGS = [
    ifca.Settings(clusters=4),
    ifca.Settings(clusters=4, fraction=0.6),
    ifca.Settings(clusters=3, fraction=0.4, weighting="uniform"),
    ifca.Settings(clusters=4, random_rounds=2, fraction=0.6),
    ifca.Settings(clusters=4, pretrain=2, random_rounds=2),
    ifca.Settings(clusters=2, pretrain=1, random_rounds=1, fraction=0.3),
    ifca.Settings(clusters=1, pretrain=2),
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("settings", SETTINGS)
def test_clusters_and_models_are_those_of_the_literal_algorithm(settings, seed):
    engine = make_engine(seed=seed)
    twin, state = Literal(engine, settings), ifca.init(engine, settings)
    for number in range(ROUNDS):
        twin.round(number)
        state, rows = ifca.round_(state, engine, settings, number)
        assert state.grouping == [twin.cluster[client] for client in CLIENTS]
        np.testing.assert_allclose(state.models, np.stack(twin.models), atol=1e-4)
        named = {client: value for _, _, client, metric, value in rows if metric == "group"}
        assert named == {client: twin.cluster[client] for client in named}


def test_clients_find_their_like_after_random_rounds():
    engine = make_engine()
    state = run(engine, ifca.Settings(clusters=4, random_rounds=1), 12)
    groups = literal.sets(state.grouping)
    assert len(groups) > 1
    true = literal.sets(NINE)
    assert all(any(own <= group for group in groups) for own in true)


def test_the_choice_is_the_smallest_training_loss_and_the_first_of_equals():
    engine = make_engine()
    rng = np.random.default_rng(0)
    models = torch.from_numpy(20 * rng.normal(size=(3, 5)).astype(np.float32))
    models = torch.cat([models, models[:1]])  # the last is as good as the first
    found = training_losses(engine, models, CLIENTS)
    expected = [literal_losses(engine, models.double().numpy(), client) for client in CLIENTS]
    assert (found.shape, found.dtype) == ((9, 4), np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    state = ifca.init(engine, ifca.Settings(clusters=4))
    state.models = models
    ifca.before_scores(state, engine, ifca.Settings(clusters=4), 0)
    assert state.grouping == [int(np.argmin(losses[:3])) for losses in expected]
    assert 0 in state.grouping


@pytest.mark.parametrize("fraction", [1.0, 0.4])
def test_pretraining_is_fedavg_to_the_bit(fraction):
    engine = make_engine()
    settings = ifca.Settings(clusters=3, pretrain=4, random_rounds=1, fraction=fraction)
    state = ifca.init(engine, settings)
    plain = fedavg.Settings(fraction=fraction)
    expected = fedavg.init(engine, plain)
    for number in range(4):
        state, _ = ifca.round_(state, engine, settings, number)
        expected, _ = fedavg.round_(expected, engine, plain, number)
        assert torch.equal(state.models, expected.models.repeat(3, 1))
        assert sorted(set(state.grouping)) == [0, 1, 2]
    state, _ = ifca.round_(state, engine, settings, 4)
    assert not torch.equal(state.models[0], state.models[1])


def test_random_clusters_are_even_and_stay_until_there_is_a_choice():
    engine, settings = make_engine(), ifca.Settings(clusters=4, pretrain=2, random_rounds=2)
    state = ifca.init(engine, settings)
    drawn = list(state.grouping)
    assert sorted(np.bincount(drawn).tolist()) == [2, 2, 2, 3]
    assert drawn != NINE
    for number in range(4):
        ifca.before_scores(state, engine, settings, number)
        state, _ = ifca.round_(state, engine, settings, number)
        assert state.grouping == drawn
    ifca.before_scores(state, engine, settings, 4)
    assert state.grouping != drawn


def test_before_scores_all_clients_move_participants_or_not():
    engine, settings = make_engine(), ifca.Settings(clusters=4, random_rounds=1, fraction=0.2)
    state = run(engine, settings, 3)
    models = state.models.double().numpy()
    best = [int(np.argmin(literal_losses(engine, models, client))) for client in CLIENTS]
    assert state.grouping != best
    ifca.before_scores(state, engine, settings, 3)
    assert state.grouping == best


@pytest.mark.parametrize("settings", SETTINGS[1:4])
def test_scores_change_no_model(settings):
    engine = make_engine()
    plain, scored = run(engine, settings), run(engine, settings, scored=True)
    assert torch.equal(plain.models, scored.models)


def test_cluster_models_begin_different_and_the_first_is_that_of_fedavg():
    engine = make_engine()
    models = ifca.init(engine, ifca.Settings(clusters=4)).models
    assert torch.equal(models[0], engine.initial_model())
    assert len({model.numpy().tobytes() for model in models}) == 4
    for settings in SETTINGS[3:6]:
        models = ifca.init(engine, settings).models
        assert torch.equal(models, engine.initial_model().repeat(settings.clusters, 1))


def test_interrupted_rounds_continue_with_the_same_bits(tmp_path):
    engine = make_engine()
    settings = ifca.Settings(clusters=3, pretrain=1, random_rounds=1, fraction=0.4)
    expected, state = run(engine, settings), ifca.init(engine, settings)
    for number in range(ROUNDS):
        state, _ = ifca.round_(state, engine, settings, number)
        checkpoint.save(tmp_path / "saved", "this run", *state.pack())
        state = State.unpack(*checkpoint.load(tmp_path / "saved", "this run"))
    assert torch.equal(state.models, expected.models)
    assert state.pack()[1] == expected.pack()[1]


def test_more_clusters_than_clients_are_refused():
    with pytest.raises(InputError) as caught:
        ifca.init(make_engine(), ifca.Settings(clusters=10))
    assert str(caught.value) == "IFCA with 10 clusters of 9 clients; too many"


def test_equal_models_that_nothing_tells_apart_are_refused():
    with pytest.raises(InputError) as caught:
        call(ifca.Settings, "method ifca", {"clusters": 2, "pretrain": 3})
    told = "IFCA after FedAvg needs random_rounds of 1 or more: equal models stay equal"
    assert str(caught.value) == told


# ---- Training of the last layer -----------------------------------------------------------------

LAST = {
    "sgd": LocalSettings(epochs=2, batch_size=4, lr=0.1, layers="last"),
    "momentum": LocalSettings(epochs=2, batch_size=4, lr=0.1, momentum=0.5, layers="last"),
    "proximal": LocalSettings(epochs=2, batch_size=4, lr=0.1, proximal=0.3, layers="last"),
    "clip": LocalSettings(epochs=2, batch_size=4, lr=0.1, clip=0.2, layers="last"),
    "adam": LocalSettings(epochs=2, batch_size=4, lr=0.01, optimiser="adam", layers="last"),
}


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))


def image_engine(settings, workers=1):
    """Two clients with images of 2 x 3 pixels, which call the classes differently."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.integers(0, 256, (30, 1, 2, 3), dtype=np.uint8))
    y = torch.from_numpy(rng.integers(0, 3, 30))
    train = (np.arange(11), np.arange(11, 20))
    maps = np.array([[0, 1, 2], [2, 0, 1]])
    federation = Federation(train, (np.arange(20, 30),), np.zeros(2, int), maps, np.arange(2))
    task = ImageTask(x, y, 0.5, 0.25)
    place = torch.device("cpu")
    return Engine(Workload(network, task, federation, settings, 0, place), workers)


def last_layer_only(engine, start, client):
    """PyTorch's own optimiser on a weight and a bias; everything else is a fixed function."""
    settings, net = engine.settings, network()
    nn.utils.vector_to_parameters(start.clone(), net.parameters())
    own = list(net[3].parameters())
    before = [parameter.detach().clone() for parameter in own]
    optimiser = torch.optim.SGD(own, settings.lr, settings.momentum)
    if settings.optimiser == "adam":
        optimiser = torch.optim.Adam(own, settings.lr)
    for epoch in range(settings.epochs):
        order = generator(0, "batches", client, 7, epoch).permutation(
            engine.federation.train[client]
        )
        for first in range(0, len(order), settings.batch_size):
            rows = order[first : first + settings.batch_size]
            with torch.no_grad():
                hidden = net[:3]((engine.task.x[rows].float() / 255 - 0.5) / 0.25)
            labels = engine.federation.label_maps[client][engine.task.y[rows].numpy()]
            loss = functional.cross_entropy(net[3](hidden), torch.from_numpy(labels))
            pull = sum(((p - q) ** 2).sum() for p, q in zip(own, before, strict=True))
            optimiser.zero_grad()
            (loss + settings.proximal / 2 * pull).backward()
            if settings.clip is not None:
                nn.utils.clip_grad_norm_(own, settings.clip)
            optimiser.step()
    return nn.utils.parameters_to_vector(net.parameters()).detach() - start


@pytest.mark.parametrize("settings", LAST)
def test_only_the_last_layer_is_trained(settings):
    engine = image_engine(LAST[settings])
    start = engine.initial_model()
    updates, _ = engine.train([start, start], [0, 1], 7)
    expected = torch.stack([last_layer_only(engine, start, client) for client in (0, 1)])
    frozen = 6 * 5 + 5
    assert (updates[:, :frozen] == 0).all()
    assert (updates[:, frozen:] != 0).any(1).all()
    torch.testing.assert_close(updates, expected, atol=2e-6, rtol=1e-4)


def test_clusters_share_all_but_the_last_layer_once_fedavg_is_over():
    engine, frozen = image_engine(LocalSettings(epochs=1, batch_size=4, lr=0.1)), 6 * 5 + 5
    settings = ifca.Settings(clusters=2, pretrain=2, random_rounds=1, clustered_layers="last")
    state, models = ifca.init(engine, settings), []
    for number in range(4):
        state, _ = ifca.round_(state, engine, settings, number)
        models.append(state.models.clone())
    assert (models[0][:, :frozen] != models[1][:, :frozen]).any(1).all()  # FedAvg trains all
    for later in models[2:]:
        assert (later[:, :frozen] == models[1][:, :frozen]).all()
        assert (later[:, frozen:] != models[1][:, frozen:]).any(1).all()


def test_the_last_layer_is_trained_by_as_many_threads():
    engine = image_engine(LocalSettings(epochs=1, batch_size=4, lr=0.1), workers=3)
    assert ifca._of_last_layer(engine).workers.number == 3


def test_one_path_trains_the_last_layer_and_the_others_say_that_they_do_not():
    assert supported(image_engine(LAST["sgd"]).workload) == ["sequential"]
    for path in sorted(PATHS.keys() - {"sequential"}):
        told = f"path '{path}' cannot train this run; it allows sequential"
        with pytest.raises(InputError, match=told):
            image_engine(LAST["sgd"]).use(path)


def test_all_layers_are_trained_unless_told_otherwise():
    engine = image_engine(LocalSettings(epochs=1, batch_size=4, lr=0.1))
    start = engine.initial_model()
    updates, _ = engine.train([start], [0], 0)
    assert (updates[0, :35] != 0).any()
    with pytest.raises(InputError) as caught:
        call(LocalSettings, "local training", {"epochs": 1, "batch_size": 1, "lr": 1, "layers": 2})
    told = "local training: layers = 2 is not allowed: input should be 'all' or 'last'"
    assert str(caught.value) == told


def test_training_losses_are_means_over_what_the_client_calls_its_images(monkeypatch):
    engine = image_engine(LAST["sgd"])
    models = torch.stack([engine.initial_model(number) for number in (0, 1)])
    expected = np.empty((2, 2))
    for client, rows in enumerate(engine.federation.train):
        images = (engine.task.x[rows].float() / 255 - 0.5) / 0.25
        labels = engine.federation.label_maps[client][engine.task.y[rows].numpy()]
        for row, model in enumerate(models):
            net = network()
            nn.utils.vector_to_parameters(model.clone(), net.parameters())
            loss = functional.cross_entropy(net(images), torch.from_numpy(labels))
            expected[client, row] = loss.detach()
    np.testing.assert_allclose(training_losses(engine, models, [0, 1]), expected, rtol=1e-5)
    monkeypatch.setattr(scoring, "ON_CPU", 4)
    np.testing.assert_allclose(training_losses(engine, models, [1])[0], expected[1], rtol=1e-5)


def test_losses_and_scores_are_read_from_the_device_once(monkeypatch):
    engine, reads = image_engine(LAST["sgd"]), []
    models = torch.stack([engine.initial_model(number) for number in (0, 1)])
    cpu = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda own: reads.append(own) or cpu(own))
    training_losses(engine, models, [0, 1])
    assert len(reads) == 1
    evaluate(engine, models, [0, 1], [0, 1])
    assert len(reads) == 2


def test_training_losses_drop_nothing():
    def dropping():
        return nn.Sequential(nn.Flatten(), nn.Dropout(0.9), nn.Linear(6, 3))

    plain = image_engine(LAST["sgd"])
    losses = []
    for build in (dropping, lambda: nn.Sequential(nn.Flatten(), nn.Linear(6, 3))):
        engine = Engine(replace(plain.workload, build=build))
        engine.train([engine.initial_model()], [0], 0)
        losses.append(training_losses(engine, engine.initial_model()[None], [0, 1]))
    np.testing.assert_array_equal(*losses)
