"""Stand-ins: the promised sizes, the same bytes every time, learnable but not trivial."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from clustered_fl.data import builtin
from clustered_fl.data.dataset import Dataset
from clustered_fl.data.garments import GARMENTS, garments
from clustered_fl.data.glyphs import digits
from clustered_fl.data.handwriting import CHARACTERS, LETTERS, letters, writers
from clustered_fl.data.registry import Entry, read_registry
from clustered_fl.data.shapes import FINE_CLASSES, fine_shapes, shapes
from clustered_fl.data.sources import prepare
from clustered_fl.data.topics import articles
from clustered_fl.errors import InputError

TABLE = Path(__file__).parents[2] / "config" / "datasets.yaml"
REGISTRY = read_registry(TABLE)
ENTRIES = [name for name, entry in REGISTRY.items() if isinstance(entry, Entry)]


def prepared(name: str) -> Dataset:
    nowhere = Path("not used")
    return prepare(name, "builtin", nowhere, nowhere, registry=TABLE)


@pytest.fixture(scope="module", params=ENTRIES)
def stand_in(request) -> Dataset:
    return prepared(request.param)


def test_shape_and_classes_are_those_of_the_original(stand_in):
    entry = REGISTRY[stand_in.name]
    assert stand_in.x.shape[1:] == entry.shape
    # Of CIFAR-100 the papers need twenty classes.
    expected = {"cifar100": 20}.get(stand_in.name, len(entry.classes))
    assert len(stand_in.classes) == expected
    assert bool(stand_in.vocabulary) == entry.is_text
    assert bool(stand_in.owner.size) == bool(entry.owner)


@pytest.mark.parametrize(("name", "classes"), [("emnist", LETTERS), ("femnist", CHARACTERS)])
def test_characters_are_those_of_the_original(name, classes):
    assert REGISTRY[name].classes == classes


def test_cifar20_is_made_of_two_stand_ins():
    both = prepared("cifar20")
    assert (both.source, both.complete, len(both.classes)) == ("builtin", False, 20)
    assert both.note.startswith("built-in demo data: shows that the pipeline works, says nothing")
    assert len(set(both.classes) & set(FINE_CLASSES)) == 10
    np.testing.assert_array_equal(np.bincount(both.y[: both.train_rows]), [600] * 10 + [200] * 10)


def test_fine_shapes_are_not_the_shapes_of_cifar10():
    assert not {name for each in FINE_CLASSES for name in each.split()} & {
        name for each in prepared("cifar10").classes for name in each.split()
    }


def test_says_that_it_is_a_stand_in(stand_in):
    assert stand_in.note.startswith(
        "built-in demo data: shows that the pipeline works, says nothing"
    )
    assert (stand_in.source, stand_in.complete) == ("builtin", False)


def test_classes_are_balanced_in_both_splits(stand_in):
    if stand_in.owner.size:
        pytest.skip("which rows are test rows is decided writer by writer")
    for labels in (stand_in.y[: stand_in.train_rows], stand_in.y[stand_in.train_rows :]):
        share = np.bincount(labels, minlength=len(stand_in.classes)) / len(labels)
        assert np.abs(share * len(stand_in.classes) - 1).max() < 0.1


def test_no_row_appears_twice(stand_in):
    assert len(np.unique(stand_in.x.reshape(len(stand_in.x), -1), axis=0)) == len(stand_in.x)


def test_every_label_is_in_every_part_of_the_rows(stand_in):
    """The rows are mixed: a demo federation may take the first n."""
    count = min(20, stand_in.train_rows // (20 * len(stand_in.classes)))
    parts = np.array_split(stand_in.y[: stand_in.train_rows], count)
    assert all(len(np.unique(part)) == len(stand_in.classes) for part in parts)


MAKERS = [digits, shapes, fine_shapes, letters, writers, garments, articles]


@pytest.mark.parametrize("make", MAKERS)
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


@pytest.mark.parametrize(
    ("make", "least", "most"),
    [
        (digits, 0.6, 0.95),
        (shapes, 0.15, 0.6),
        (fine_shapes, 0.15, 0.6),
        (letters, 0.2, 0.7),
        (writers, 0.1, 0.5),
        (garments, 0.6, 0.9),
    ],
)
def test_a_linear_model_learns_but_does_not_solve(make, least, most):
    train_x, train_y, test_x, test_y, *_ = make((1000, 300), np.random.default_rng(0))
    model = RidgeClassifier(alpha=300)
    model.fit(train_x.reshape(len(train_x), -1) / 255, train_y)
    assert least < model.score(test_x.reshape(len(test_x), -1) / 255, test_y) < most


def test_writers_write_unequally_and_each_has_a_test_row_in_ten():
    written = prepared("femnist")
    train, test = np.split(written.owner, [written.train_rows])
    of = np.stack([np.bincount(rows, minlength=40) for rows in (train, test)])
    images = of.sum(axis=0)
    assert (len(images), images.min(), images.max(), images.sum()) == (40, 60, 200, 5200)
    np.testing.assert_array_equal(of[0], images * 9 // 10)


def test_a_writer_is_recognised_by_hand():
    """Mean ink and its spread tell writers apart: what clusters of writers could rest on."""
    x, _, _, _, owners, _ = writers((4680, 520), np.random.default_rng(0))
    ink = (255 - x.astype(float)).mean(axis=(1, 2, 3))
    means = np.array([ink[owners == name].mean() for name in np.unique(owners)])
    within = np.mean([ink[owners == name].std() for name in np.unique(owners)])
    assert means.std() > 0.8 * within


def test_paper_is_white_in_femnist_only():
    rows = (100, 50)
    border = [make(rows, np.random.default_rng(0))[0][:, 0, 0] for make in (letters, garments)]
    assert [np.median(each) for each in border] == [0, 0]
    assert np.median(writers(rows, np.random.default_rng(0))[0][:, 0, 0]) == 255


def test_letters_stand_upright():
    """A "T" has its bar on top, an "L" at the bottom, and the stem of an "L" is on the left."""
    images, labels, *_ = letters((2000, 47), np.random.default_rng(0))
    of_t, of_l = (images[labels == LETTERS.index(letter), 0] for letter in "TL")
    assert of_t[:, :14].mean() > 1.3 * of_t[:, 14:].mean()
    assert of_l[:, 14:].mean() > 1.1 * of_l[:, :14].mean()
    assert of_l[:, 10:14, :14].mean() > 1.3 * of_l[:, 10:14, 14:].mean()


def test_small_letters_are_smaller_in_femnist_only():
    images, labels, *_ = writers((4000, 400), np.random.default_rng(0))
    heights = (images[:, 0] < 128).any(axis=2).sum(axis=1)
    small, large = (heights[labels == CHARACTERS.index(letter)].mean() for letter in "xX")
    assert small < 0.85 * large


def test_trousers_have_two_legs():
    images, labels, *_ = garments((1000, 10), np.random.default_rng(0))
    legs = images[labels == GARMENTS.index("trousers"), 0].astype(float)
    # From the middle of the picture down, the middle is dark and both sides are light.
    mean = legs[:, 19:22].mean(axis=(0, 1))
    assert mean[13:15].mean() < 0.75 * min(mean[9:12].mean(), mean[16:19].mean())


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
        builtin.stand_in(REGISTRY["femnist"].model_copy(update={"stand_in": None}))
    with pytest.raises(InputError, match="no stand-in 'digit'; allowed are digits, shapes, "):
        builtin.stand_in(REGISTRY["mnist"].model_copy(update={"stand_in": "digit"}))
