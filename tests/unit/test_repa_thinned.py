"""Clients that keep a part of their images are those of `dirichlet` otherwise."""

import numpy as np
import pytest

from clustered_fl.data import dataset as datasets
from clustered_fl.data.partitions import build_federation
from clustered_fl.errors import InputError

LABELS, TRAIN = 10, 4000


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (TRAIN + 100, 3, 2, 2), dtype=np.uint8)
    y = np.concatenate([rng.permutation(np.arange(n) % LABELS) for n in (TRAIN, 100)])
    return datasets.build("cifar10", "mirror", x, y, TRAIN, tuple("abcdefghij"))


def counts(dataset, rows):
    return np.bincount(dataset.y[rows], minlength=LABELS)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.4, 1.0])
def test_everybody_keeps_that_part_of_what_dirichlet_deals(images, share):
    whole = build_federation(images, 3, "dirichlet", clients=8)
    thin = build_federation(images, 3, "thinned_dirichlet", clients=8, share=share)
    assert (thin.clients, thin.newcomers) == (8, 0)
    for parts in ("train", "test_sets"):
        for all_of_it, kept in zip(getattr(whole, parts), getattr(thin, parts), strict=True):
            assert len(kept) == max(1, round(share * len(all_of_it)))
            assert set(kept) <= set(all_of_it)
    for name in ("test_of", "label_maps", "groups"):
        np.testing.assert_array_equal(getattr(thin, name), getattr(whole, name))


def test_what_is_kept_has_the_labels_of_the_whole(images):
    """A draw of half the images of about 400 is off by a few; half of the sorted ones is not."""
    whole = build_federation(images, 3, "dirichlet", clients=8)
    thin = build_federation(images, 3, "thinned_dirichlet", clients=8, share=0.5)
    for all_of_it, kept in zip(whole.train, thin.train, strict=True):
        assert np.abs(counts(images, kept) - counts(images, all_of_it) / 2).max() < 20


def test_pipelines_make_the_same_groups(images):
    drift = {"transforms": 2, "pipelines": 4}
    settings = {"clients": 8, "alpha": None, "drift": drift}
    whole = build_federation(images, 3, "dirichlet", **settings)
    thin = build_federation(images, 3, "thinned_dirichlet", share=0.5, **settings)
    np.testing.assert_array_equal(thin.groups, whole.groups)
    assert len(set(thin.groups)) == 4


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"share": 0}, "partition thinned_dirichlet: share = 0 is not allowed"),
        ({"share": 1.5}, "partition thinned_dirichlet: share = 1.5 is not allowed"),
        ({"newcomers": 2}, "partition thinned_dirichlet has no setting 'newcomers'; allowed are"),
        ({"clients": 500}, "500 clients of 10 images or more; allowed are 1 to 400 clients"),
    ],
)
def test_what_cannot_be_is_told(images, changes, told):
    with pytest.raises(InputError) as caught:
        build_federation(images, 3, "thinned_dirichlet", **({"clients": 8, "share": 0.5} | changes))
    assert str(caught.value).startswith(told)
