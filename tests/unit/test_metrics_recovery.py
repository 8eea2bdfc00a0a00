"""Agreement over seeds, and how block-like a relatedness is, against loops over pairs."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import tiny_groupings as tiny
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.decomposition import PCA
from tiny_groupings import trial

from clustered_fl.metrics.flt import recovery
from clustered_fl.records import index, relatedness

TRUTH = [0, 0, 1, 1, 2]


@pytest.fixture
def groupings(tmp_path):
    """Two seeds of one grouping, with two trials of a setting each, and one trial of another."""
    first = [trial(ari=1.0), trial(umap_seed=1, ari=0.4, components=4.0), trial(gamma=2.0, ari=0.1)]
    second = [trial(ari=0.7, components=3.0, recall=0.5), trial(umap_seed=1, ari=1.0)]
    folders = [
        tiny.write(tmp_path / "a", TRUTH, trials=first),
        tiny.write(tmp_path / "b", TRUTH, np.eye(5, dtype=np.uint8), second),
    ]
    rows = [("grouping", "found", "found", seed, str(path)) for seed, path in enumerate(folders)]
    return index.build(rows)


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


def test_no_related_pair_is_no_share():
    assert np.isnan(recovery.inside(np.eye(4), np.zeros(4)))


def test_ward_brings_shuffled_blocks_together():
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(4), 5))
    tree, order = recovery.ward_tree(tiny.blocks(groups))
    assert sorted(order) == list(range(20))
    assert tree.shape == (19, 4)
    changes = np.count_nonzero(np.diff(groups[order]))
    assert changes == 3


@pytest.mark.parametrize("number", [2, 3, 5, 10])
@pytest.mark.parametrize("seed", range(3))
def test_the_largest_gap_counts_noisy_blocks(number, seed):
    """As many clusters as the cut halfway up the widest range of heights leaves."""
    generator = np.random.default_rng(seed)
    truth = generator.permutation(np.repeat(np.arange(number), 12))
    noise = np.triu(generator.random((len(truth),) * 2) < 0.03, 1)
    related = (truth[:, None] == truth) ^ (noise | noise.T)
    assert len(set(recovery.proposed(related))) == number
    tree = linkage(related.astype(float), method="ward")
    heights = sorted(tree[:, 2])
    low, high = max(pairwise(heights), key=lambda pair: pair[1] - pair[0])
    assert len(set(fcluster(tree, (low + high) / 2, criterion="distance"))) == number


@pytest.mark.parametrize("clients", [1, 2])
def test_one_or_two_clients_have_no_gap(clients):
    assert len(set(recovery.proposed(np.eye(clients)))) == clients


def test_principal_components_are_those_of_scikit_learn_up_to_sign():
    vectors = np.random.default_rng(1).normal(size=(30, 8)) * np.arange(1, 9)
    found, expected = recovery.principal(vectors, 3), PCA(3).fit_transform(vectors)
    assert np.abs(found) == pytest.approx(np.abs(expected))
    assert recovery.principal(-vectors, 3) == pytest.approx(-found)


def test_layouts_have_one_row_per_centre(tmp_path):
    """Of clients that were there from the start: newcomers are not laid out."""
    rng = np.random.default_rng(2)
    sent = rng.normal(size=(5, 3, 4)).astype(np.float32)
    points = rng.normal(size=(4, 3, 2)).astype(np.float32)
    tiny.write(tmp_path / "a", [0, 1, 0, 1], signatures=sent, points=points)
    plane, axes, flat = recovery.layouts(relatedness.load(tmp_path / "a")).values()
    assert flat.tolist() == [vector.tolist() for client in sent[:4] for vector in client]
    assert plane.tolist() == [place.tolist() for client in points for place in client]
    assert axes == pytest.approx(recovery.principal(flat, 3))


def silhouette(points: np.ndarray, labels: np.ndarray) -> float:
    """Mean of (b - a) / max(a, b): distances to the own and to the nearest other group."""
    found = []
    for i, label in enumerate(labels):
        apart = np.linalg.norm(points - points[i], axis=1)
        own = apart[(labels == label) & (np.arange(len(labels)) != i)].mean()
        other = min(apart[labels == each].mean() for each in set(labels) - {label})
        found.append((other - own) / max(own, other))
    return float(np.mean(found))


def test_silhouettes_are_those_of_the_groups_in_each_layout(tmp_path):
    """Three tight groups in the signatures, and three others in the plane."""
    rng, labels = np.random.default_rng(3), np.arange(12) % 3
    sent = 9 * np.eye(4)[labels] + rng.normal(size=(12, 4))
    plane = 9 * np.eye(2, 3).T[np.arange(12) // 4] + rng.normal(size=(12, 2))
    shapes = {"signatures": sent.reshape(4, 3, 4), "points": plane.reshape(4, 3, 2)}
    arrays = {name: array.astype(np.float32) for name, array in shapes.items()}
    tiny.write(tmp_path / "a", [0, 1, 0, 1], **arrays)
    found = recovery.silhouettes(relatedness.load(tmp_path / "a"), 3)
    assert found["all dimensions"] == pytest.approx(silhouette(sent, labels), rel=1e-4)
    assert found["UMAP"] == pytest.approx(silhouette(plane, np.arange(12) // 4), rel=1e-4)
