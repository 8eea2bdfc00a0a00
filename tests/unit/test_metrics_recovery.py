"""Agreement over seeds, and how block-like a relatedness is, against loops over pairs."""

import numpy as np
import pandas as pd
import pytest
import tiny_groupings as tiny
from sklearn.decomposition import PCA
from tiny_groupings import trial

from clustered_fl.metrics import recovery

TRUTH = [0, 0, 1, 1, 2]


@pytest.fixture
def groupings(tmp_path):
    """Two seeds of one grouping, with two trials of a setting each, and one trial of another."""
    first = [trial(ari=1.0), trial(umap_seed=1, ari=0.4, components=4.0), trial(gamma=2.0, ari=0.1)]
    second = [trial(ari=0.7, components=3.0, recall=0.5), trial(umap_seed=1, ari=1.0)]
    folders = {
        "0": str(tiny.write(tmp_path / "a", TRUTH, trials=first)),
        "1": str(tiny.write(tmp_path / "b", TRUTH, np.eye(5, dtype=np.uint8), second)),
    }
    return {"found": folders}


def test_comparisons_keep_every_trial(groupings):
    table = recovery.comparisons(groupings)
    assert len(table) == 5
    assert set(table["clusters"]) == {3}
    assert table.groupby("seed").size().to_dict() == {0: 3, 1: 2}


def test_a_setting_is_judged_by_all_its_seeds(groupings):
    table = recovery.over_seeds(recovery.comparisons(groupings))
    found = table.loc["found", 3, 5, "minimum", 1.0]
    expected = {"ari": 0.775, "ari_min": 0.4, "ari_max": 1.0, "exact": 2, "trials": 4}
    expected |= {"components": 2.75, "recall": 0.875, "false_edges": 0.0}
    assert found.to_dict() == pytest.approx(expected)
    assert table.loc[("found", 3, 5, "minimum", 2.0), ["exact", "trials"]].tolist() == [0, 1]


def test_nearly_is_not_exactly():
    rows = pd.DataFrame([trial(ari=1 - 1e-9), trial(ari=1.0)]).assign(grouping="g", clusters=2)
    assert recovery.over_seeds(rows)["exact"].tolist() == [1]


def test_agreements_are_those_of_the_records(groupings):
    table = recovery.agreements(groupings).set_index("seed")
    assert table["ari"].tolist() == pytest.approx([1, 0])
    assert table["components"].tolist() == [3, 5]
    assert table["clusters"].tolist() == [3, 3]


def random_relatedness(seed: int, clients: int = 12) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).random((clients, clients)) < 0.3, 1)
    return (upper | upper.T | np.eye(clients, dtype=bool)).astype(np.uint8)


@pytest.mark.parametrize("seed", range(4))
def test_density_and_inside_against_a_loop_over_pairs(seed):
    related, groups = random_relatedness(seed), np.arange(12) % 3
    pairs = [(i, j) for i in range(12) for j in range(i + 1, 12)]
    links = [(i, j) for i, j in pairs if related[i, j]]
    assert recovery.density(related) == pytest.approx(len(links) / len(pairs))
    within = sum(groups[i] == groups[j] for i, j in links) / len(links)
    assert recovery.inside(related, groups) == pytest.approx(within)


def test_nobody_related_is_no_share():
    assert np.isnan(recovery.inside(np.eye(4), np.zeros(4)))


def test_ward_brings_shuffled_blocks_together():
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(4), 5))
    tree, order = recovery.ward_tree(tiny.blocks(groups))
    assert sorted(order) == list(range(20))
    assert tree.shape == (19, 4)
    changes = np.count_nonzero(np.diff(groups[order]))
    assert changes == 3


def test_principal_components_are_those_of_scikit_learn_up_to_sign():
    vectors = np.random.default_rng(1).normal(size=(30, 8)) * np.arange(1, 9)
    found, expected = recovery.principal(vectors, 3), PCA(3).fit_transform(vectors)
    assert np.abs(found) == pytest.approx(np.abs(expected))
    assert recovery.principal(-vectors, 3) == pytest.approx(-found)
