"""What FLT's public code does: every rule against a literal twin, and the numbers it leads to."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram, linkage
from sklearn.metrics import adjusted_rand_score

from clustered_fl.data.partitions import structured
from clustered_fl.groupings.distances import ward
from clustered_fl.randomness import generator
from clustered_fl.theory.flt import averaging_code as averaging
from clustered_fl.theory.flt.code_differences import code_differences
from clustered_fl.theory.flt.grouping_code import (
    _divided,
    groups_by_leaf_order,
    leaf_order,
    noisy_blocks,
    ward_clusters,
)
from clustered_fl.theory.flt.partition_code import (
    MNIST,
    client_sizes,
    coded_sizes,
    padding,
    power_law_sizes,
)


@pytest.fixture
def federation():
    """Relatedness of 8 clients without structure, their samples and models [3, clients]."""
    random = generator(0, "federation")
    related = np.triu(random.random((8, 8)) < 0.4, 1)
    related = (related | related.T | np.eye(8, dtype=bool)).astype(float)
    return related, random.integers(1, 9, 8).astype(float), random.standard_normal((3, 8))


def literal_averages(related, samples, models, in_place):
    """Algorithm 3, line 17, as the authors' code loops: reading from what it writes, or not."""
    slots = [models[:, i].copy() for i in range(len(samples))]
    read = slots if in_place else [slot.copy() for slot in slots]
    for i in range(len(samples)):
        total, count = np.zeros(3), 0
        for j in range(len(samples)):
            if related[i, j] == 1:
                total, count = total + read[j] * samples[j], count + samples[j]
        slots[i] = total / count
    return np.array(slots)


@pytest.mark.parametrize("in_place", [False, True])
def test_average_twins(federation, in_place):
    related, samples, models = federation
    rule = averaging.in_place_average if in_place else averaging.plain_average
    expected = literal_averages(related, samples, models, in_place)
    np.testing.assert_allclose(rule(related, samples) @ models.T, expected)


def test_printed_case_1_twin(federation):
    related, samples, models = federation
    shares = [n / samples.sum() for n in samples]
    scale = np.diag([p / np.linalg.norm(row, 0) for p, row in zip(shares, related, strict=True)])
    expected = models @ related @ scale
    np.testing.assert_allclose(models @ averaging.printed_case_1(related, samples).T, expected)


def test_printed_case_2_twin(federation):
    _, samples, models = federation
    groups, expected = np.array([0, 1, 1, 0, 2, 1, 0, 0]), np.zeros((3, 8))
    for cluster in range(3):
        members = [m for m in range(8) if groups[m] == cluster]
        average = sum(samples[m] / samples.sum() * models[:, m] for m in members) / len(members)
        for m in members:
            expected[:, m] = average
    np.testing.assert_allclose(models @ averaging.printed_case_2(groups, samples).T, expected)


def test_in_place_sweep_of_the_scenario():
    """Five ordered clusters of 20 clients under an all-ones matrix."""
    table = averaging.in_place(5, 20).query("matrix == 'all ones'")
    weights = table.pivot_table("weight", ["rule", "receiver"], "cluster")
    expected = [
        [0.20, 0.20, 0.20, 0.20, 0.20],
        [0.02, 0.24, 0.24, 0.24, 0.24],
        [0.03, 0.08, 0.30, 0.30, 0.30],
        [0.04, 0.10, 0.14, 0.36, 0.36],
        [0.04, 0.12, 0.18, 0.22, 0.44],
    ]
    np.testing.assert_allclose(weights.loc["in place"], expected, atol=0.0065)
    np.testing.assert_allclose(weights.loc["plain"], 0.2)


def test_in_place_sweep_stays_within_blocks():
    table = averaging.in_place(3, 4).query("matrix == 'blocks'")
    own = table["receiver"] == table["cluster"]
    np.testing.assert_allclose(table.loc[own, "weight"], 1)
    assert (table.loc[~own, "weight"] == 0).all()


def test_printed_formulas_shrink_models():
    sums = averaging.weight_sums(5, 20).set_index(["samples", "formula"])["weight_sum"]
    np.testing.assert_allclose(sums["equal", "case I, printed"], 0.01)
    np.testing.assert_allclose(sums["equal", "case II, printed"], 0.01)
    np.testing.assert_allclose(sums["unequal", "case I, printed"], np.arange(1, 101) / 5050)
    # The first cluster holds 1 + 2 + ... + 20 of 5,050 samples.
    np.testing.assert_allclose(sums["unequal", "case II, printed"][:20], 210 / 5050 / 20)
    np.testing.assert_allclose(sums[:, "normalised"], 1)


def test_thresholds_by_hand():
    table = averaging.thresholds(5, 20).set_index("rule")
    printed, reversed_, coded = (table.loc[name].tolist() for name in averaging.THRESHOLDS)
    assert printed == pytest.approx([-1, 1, -0.2, 0.8])
    assert reversed_ == pytest.approx([1, -1, 0.2, -0.8])
    assert coded == pytest.approx([1, 0, 1, 0])


def test_leaf_order_by_hand():
    # Clients 0 and 2 are alike, 1 and 3 too; the leaves come as 0, 2, 1, 3.
    memberships, leaves = np.array([1, 2, 1, 2]), np.array([0, 2, 1, 3])
    assert groups_by_leaf_order(memberships, leaves).tolist() == [1, 1, 2, 2]


def test_leaf_order_twin():
    random = generator(4, "x")
    related = noisy_blocks(random, random.permutation(_divided(30, np.ones(3))), 0.05)
    found, leaves = ward_clusters(related, 3)
    tree = linkage(related, method="ward", metric="euclidean")
    assert leaves.tolist() == dendrogram(tree, no_plot=True)["leaves"]
    coded = groups_by_leaf_order(found, leaves)
    for cluster in np.unique(found):
        members = [int(leaves[place]) for place in range(30) if found[place] == cluster]
        assert sorted(members) == np.flatnonzero(coded == cluster).tolist()


def test_leaf_order_is_wrong_unless_sorted_and_equal():
    table = leaf_order(0, 15, 40, 4, 0.02).groupby(["order", "sizes"])
    assert (table["right"].mean() > 0.95).all()
    wrong, coded = table["wrong"].mean(), table["coded"].mean()
    assert wrong["random"].min() == 1
    assert coded["random"].abs().max() < 0.1
    assert wrong["sorted", "equal"] == 0
    assert coded["sorted", "equal"] == table["right"].mean()["sorted", "equal"]
    assert wrong["sorted", "unequal"] > 0.5


@pytest.mark.parametrize("flipped", [0.0, 0.1])
def test_groups_are_those_of_the_grouping_that_runs_use(flipped):
    """`theory` may not import it. Without flipped pairs, the heights of merges are tied."""
    for trial in range(10):
        random = generator(trial, "x")
        truth = random.permutation(_divided(24, [1, 2, 3]))
        related = noisy_blocks(random, truth, flipped)
        for clusters in (2, 3, 7):
            found, leaves = ward_clusters(related, clusters)
            assert len(np.unique(found)) == clusters
            for groups, order in [(found, "client"), (groups_by_leaf_order(found, leaves), "leaf")]:
                assert adjusted_rand_score(groups, ward(related, clusters, order)) == 1


def test_noisy_blocks_are_symmetric_and_keep_the_diagonal():
    group = _divided(50, [1, 2, 2])
    assert np.bincount(group).tolist() == [10, 20, 20]
    related = noisy_blocks(generator(0, "x"), group, 0.1)
    assert (related == related.T).all()
    assert (np.diagonal(related) == 1).all()
    upper = np.triu_indices(50, 1)
    flipped = related[upper] != averaging.blocks(group)[upper]
    assert flipped.mean() == pytest.approx(0.1, abs=0.03)
    assert (noisy_blocks(generator(0, "x"), group, 0.0) == averaging.blocks(group)).all()


def test_padding_twin():
    """The list of 10,000 places per label, filled up with -1, that the public code cuts."""
    table = padding([5, 12, 30], clients_per_cluster=4, per_label=6)
    for label, count in enumerate([5, 12, 30]):
        places = np.full(10_000, -1)
        places[:count] = np.arange(count)
        for client in range(4):
            taken = places[client * 6 : (client + 1) * 6]
            row = table[(table["label"] == label) & (table["client"] == client)]
            assert row["copies"].item() == (taken == -1).sum()
            assert row["images"].item() == (taken != -1).sum()


def test_padding_of_mnist():
    copies = padding(MNIST, 20, 300).set_index(["label", "client"])["copies"]
    assert sum(MNIST) == 60_000
    assert copies.sum() == 1138
    assert (copies[5, 18], copies[5, 19]) == (279, 300)


def literal_sizes(samples, clients):
    """The public code's sizes, with x by halving."""
    base = samples // 2 // clients
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        total = sum(base + np.exp(min(middle * i * i, 700)) for i in range(1, clients + 1))
        low, high = (middle, high) if total < samples else (low, middle)
    sizes = [int(np.floor(base + np.exp(low * i * i))) for i in range(1, clients + 1)]
    sizes[0] += samples - sum(sizes)
    return sizes


@pytest.mark.parametrize(
    ("samples", "clients", "smallest", "median", "largest"),
    [(12_000, 240, 26, 29, 259), (4_800, 240, 11, None, 105), (12_000, 60, 101, 106.5, 1256)],
)
def test_coded_sizes_twin(samples, clients, smallest, median, largest):
    sizes = coded_sizes(samples, clients)
    assert sizes.tolist() == literal_sizes(samples, clients)
    assert sizes.tolist() == structured.sizes(samples, clients).tolist()
    assert (sizes.sum(), sizes.min(), sizes.max()) == (samples, smallest, largest)
    assert median in (None, np.median(sizes))


def test_power_law_is_one_and_as_large():
    sizes = power_law_sizes(12_000, 240, 259)
    assert sizes[0] == 259
    assert sizes.sum() == pytest.approx(12_000)
    steps = np.diff(np.log(sizes)) / np.diff(np.log(np.arange(1, 241)))
    np.testing.assert_allclose(steps, steps[0])
    ranked = client_sizes(12_000, 240).query("rule == 'code'")["samples"].to_numpy()
    assert (np.diff(ranked) <= 0).all()
    assert sorted(ranked) == sorted(coded_sizes(12_000, 240))


def test_study_has_every_table():
    tables = code_differences(0, clusters=3, clients_per_cluster=4, trials=2)
    names = ("in_place", "weight_sums", "thresholds", "leaf_order", "padding", "client_sizes")
    assert tuple(tables) == names
    assert all(len(table) > 0 for table in tables.values())
    again = code_differences(0, clusters=3, clients_per_cluster=4, trials=2)
    assert all(tables[name].equals(again[name]) for name in tables)
