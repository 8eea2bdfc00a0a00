"""Stand-ins: the promised sizes, the same bytes every time, learnable but not trivial."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from clustered_fl.data import builtin
from clustered_fl.data.dataset import Dataset
from clustered_fl.data.glyphs import digits
from clustered_fl.data.registry import read_registry
from clustered_fl.data.shapes import shapes
from clustered_fl.data.sources import prepare
from clustered_fl.data.topics import articles
from clustered_fl.errors import InputError

TABLE = Path(__file__).parents[2] / "config" / "datasets.yaml"
REGISTRY = read_registry(TABLE)
OFFERED = [name for name, entry in REGISTRY.items() if entry.stand_in]


@pytest.fixture(scope="module", params=OFFERED)
def stand_in(request) -> Dataset:
    nowhere = Path("not used")
    return prepare(request.param, "builtin", nowhere, nowhere, registry=TABLE)


def test_offered_are_those_of_the_first_paper():
    assert set(OFFERED) == {"mnist", "cifar10", "ag_news"}


def test_shape_and_classes_are_those_of_the_original(stand_in):
    entry = REGISTRY[stand_in.name]
    assert stand_in.x.shape[1:] == entry.shape
    assert len(stand_in.classes) == len(entry.classes)
    assert bool(stand_in.vocabulary) == entry.is_text


def test_says_that_it_is_a_stand_in(stand_in):
    assert stand_in.note.startswith(
        "built-in demo data: shows that the pipeline works, says nothing"
    )
    assert (stand_in.source, stand_in.complete) == ("builtin", False)


def test_classes_are_balanced_in_both_splits(stand_in):
    for labels in (stand_in.y[: stand_in.train_rows], stand_in.y[stand_in.train_rows :]):
        share = np.bincount(labels, minlength=len(stand_in.classes)) / len(labels)
        assert np.abs(share * len(stand_in.classes) - 1).max() < 0.1


def test_no_row_appears_twice(stand_in):
    assert len(np.unique(stand_in.x.reshape(len(stand_in.x), -1), axis=0)) == len(stand_in.x)


def test_every_label_is_in_every_part_of_the_rows(stand_in):
    """The rows are mixed: a demo federation may take the first n."""
    parts = np.array_split(stand_in.y[: stand_in.train_rows], 20)
    assert all(len(np.unique(part)) == len(stand_in.classes) for part in parts)


@pytest.mark.parametrize("make", [digits, shapes, articles])
def test_same_seed_same_bytes(make):
    first, again, other = (make((40, 20), np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_training_and_test_digits_come_from_different_originals():
    """With varying switched off, every image is an enlarged original."""

    class Plain:
        def uniform(self, low, high, size=None):
            middle = (low + high) / 2
            return middle if size is None else np.full(size, middle)

    train, _, test, _ = digits((1497, 300), Plain())
    together = np.concatenate([train, test]).reshape(1797, -1)
    assert len(np.unique(together, axis=0)) == 1797


def test_digits_stand_upright_in_the_middle():
    images, labels, *_ = digits((500, 100), np.random.default_rng(0))
    mean = images[labels == 0].mean(axis=(0, 1))
    assert mean[13:15, 13:15].mean() < 0.4 * mean[7:9, 12:16].mean()
    assert np.abs(mean - mean[:, ::-1]).mean() < 0.15 * mean.max()
    assert images[:, :, :2].mean() < 0.02 * images.mean() * 28
    assert images.max(axis=(1, 2, 3)).min() > 150


@pytest.mark.parametrize(("make", "least", "most"), [(digits, 0.6, 0.95), (shapes, 0.15, 0.6)])
def test_a_linear_model_learns_but_does_not_solve(make, least, most):
    train_x, train_y, test_x, test_y = make((1000, 300), np.random.default_rng(0))
    model = RidgeClassifier(alpha=300)
    model.fit(train_x.reshape(1000, -1) / 255, train_y)
    assert least < model.score(test_x.reshape(300, -1) / 255, test_y) < most


def bigram_perplexity(train: list[str], test: list[str]) -> float:
    words = sorted({word for line in train + test for word in line.split()})
    number = {word: index for index, word in enumerate(words)}
    counts = np.full((len(words), len(words)), 0.05)
    for line in train:
        ids = [number[word] for word in line.split()]
        np.add.at(counts, (ids[:-1], ids[1:]), 1)
    chance = counts / counts.sum(axis=1, keepdims=True)
    ids = [[number[word] for word in line.split()] for line in test]
    surprise = [-np.log(chance[pair]) for line in ids for pair in pairwise(line)]
    return float(np.exp(np.mean(surprise)))


def test_one_model_per_topic_predicts_better_than_one_for_all():
    train, train_y, test, test_y = articles((1600, 80), np.random.default_rng(0))
    own = [line for line, topic in zip(train, train_y, strict=True) if topic == 0]
    test = [line for line, topic in zip(test, test_y, strict=True) if topic == 0]
    assert 1.3 * bigram_perplexity(own, test) < bigram_perplexity(train, test) < 60


def test_dataset_without_stand_in():
    with pytest.raises(
        InputError, match="femnist has no built-in stand-in yet: use the data source"
    ):
        builtin.stand_in(REGISTRY["femnist"])
