"""Groupings on disk: signatures in few dimensions, cosines with single precision."""

import numpy as np
import pandas as pd
import pytest

from clustered_fl.metrics.repa import uniformity
from clustered_fl.records import archive, relatedness, seal
from clustered_fl.records.archive import Key, pack
from clustered_fl.records.relatedness import Relatedness, in_few_dimensions

CLIENTS, NEWCOMERS = 10, 2
FILES = relatedness.FILE, relatedness.SIGNATURES, relatedness.COMPARISONS


@pytest.fixture
def sent():
    """Signatures of twelve clients in forty dimensions."""
    shape = (CLIENTS + NEWCOMERS, 1, 40)
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.fixture
def found(sent):
    square, groups = np.ones((CLIENTS, CLIENTS), np.uint8), np.zeros(CLIENTS, np.int64)
    placed = np.zeros(NEWCOMERS, np.int64)
    return Relatedness(square, groups, placed, square, square, sent, sent[:CLIENTS])


def save(folder, found, rows):
    """Write a grouping with its record."""
    relatedness.save(found, folder)
    relatedness.save_comparisons(rows, folder)
    seal.write(folder, {"groups": [0]}, {"seconds": 2}, FILES)


def test_signatures_in_few_dimensions_give_the_same_products_and_clusters(found, sent, tmp_path):
    save(tmp_path, found, [])
    loaded = relatedness.load(tmp_path)
    less, given = loaded.signatures[:, 0], sent[:, 0]
    assert less.shape == (12, 12)
    np.testing.assert_allclose(less @ less.T, given @ given.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(loaded.points[:, 0], less[:CLIENTS])
    counts = np.random.default_rng(1).integers(9, size=(12, 10))
    before, after = (uniformity.curves({"a": v}, counts, [2, 5], 0) for v in (given, less))
    pd.testing.assert_frame_equal(after, before)


def test_several_vectors_of_a_client_are_rotated_together():
    several = np.random.default_rng(0).normal(size=(4, 3, 50)).astype(np.float32)
    less, given = in_few_dimensions(several).reshape(12, 12), several.reshape(12, 50)
    np.testing.assert_allclose(less @ less.T, given @ given.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dimensions", [12, 5, 0])
def test_signatures_in_few_dimensions_stay_as_they_are(sent, dimensions):
    given = sent[..., :dimensions]
    assert in_few_dimensions(given) is given


def test_cosines_of_pairs_have_single_precision_and_other_measurements_do_not(found, tmp_path):
    rows = [{"measure": name, "value": 0.1} for name in ("cosine", "similarity", "labels")]
    save(tmp_path, found, rows)
    values = relatedness.load_comparisons(tmp_path)["value"]
    assert values.tolist() == [float(np.float32(0.1))] * 2 + [0.1]


@pytest.mark.parametrize("rows", [[{"k": 2, "score": 0.1}], [{"measure": "labels", "n": 3}]])
def test_tables_without_measurements_of_pairs_stay_as_they_are(found, tmp_path, rows):
    save(tmp_path, found, rows)
    pd.testing.assert_frame_equal(relatedness.load_comparisons(tmp_path), pd.DataFrame(rows))


def test_an_archive_has_every_number_of_a_grouping(found, tmp_path):
    whole, there = tmp_path / "whole", tmp_path / "there"
    save(whole, found, [{"measure": "cosine", "value": 0.1}])
    archive.unpack(pack(Key("grouping", "one", 0), "one", whole, ""), there)
    for name in FILES[:2]:
        assert (there / name).read_bytes() == (whole / name).read_bytes()
    before, after = (relatedness.load_comparisons(folder) for folder in (whole, there))
    pd.testing.assert_frame_equal(after, before, check_exact=True)
