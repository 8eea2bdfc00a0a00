"""What holds for profiles of any clients: statistics, clusters, similarities, deals of labels."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clustered_fl.data.partitions.two_labels import label_pairs
from clustered_fl.groupings.profiles.clusters import by_appearance, cluster, related
from clustered_fl.groupings.profiles.similarity import mean_divergence
from clustered_fl.groupings.profiles.statistics import described, normalised
from clustered_fl.metrics.repa.uniformity import uniformity

NAMES = ("mean", "std", "q25", "q50", "q75", "skewness", "kurtosis")
SHAPES = st.tuples(st.integers(1, 12), st.integers(1, 4))
VALUES = st.floats(-100, 100, width=32)


@given(SHAPES.flatmap(lambda shape: arrays(np.float32, shape, elements=VALUES)), st.randoms())
def test_statistics_do_not_hang_on_the_order_of_the_images(codes, random):
    order = list(range(len(codes)))
    random.shuffle(order)
    found = described(codes[order], NAMES[:5])
    np.testing.assert_allclose(found, described(codes, NAMES[:5]), atol=1e-6)


@given(SHAPES.flatmap(lambda shape: arrays(np.float32, shape, elements=VALUES)))
def test_statistics_lie_where_they_must(codes):
    mean, deviation, low, middle, high, skewness, kurtosis = described(codes, NAMES).reshape(7, -1)
    assert np.isfinite(described(codes, NAMES)).all()
    assert (deviation >= 0).all()
    assert (low <= middle + 1e-9).all()
    assert (middle <= high + 1e-9).all()
    # The median is within a deviation of the mean, and no kurtosis is below skewness squared - 2.
    assert (np.abs(middle - mean) <= deviation + 1e-4).all()
    steep = deviation > 1e-3
    assert (kurtosis >= skewness**2 - 2 - 1e-3)[steep].all()


@given(SHAPES.flatmap(lambda shape: arrays(np.float64, shape, elements=st.floats(-9, 9))))
def test_normalised_vectors_have_length_one_or_none(vectors):
    lengths = np.linalg.norm(normalised(vectors), axis=1)
    assert (np.isclose(lengths, 1) | (lengths == 0)).all()


@st.composite
def clients(draw):
    shape = (draw(st.integers(1, 10)), draw(st.integers(1, 3)))
    points = draw(arrays(np.float64, shape, elements=st.integers(-3, 3)))
    return points, draw(st.integers(1, shape[0])), draw(st.integers(0, 3))


@given(clients())
def test_every_client_is_nearest_to_the_mean_of_its_own_cluster(case):
    points, k, seed = case
    clusters = cluster(points, k, seed)
    groups = clusters.groups
    assert len(clusters.centres) == groups.max() + 1 <= k
    assert by_appearance(groups).tolist() == groups.tolist()
    apart = np.linalg.norm(points[:, None] - clusters.centres[None], axis=2)
    assert (apart[np.arange(len(points)), groups] <= apart.min(1) + 1e-9).all()
    assert groups[clusters.hosts].tolist() == list(range(groups.max() + 1))


@given(clients(), st.integers(0, 9))
def test_newcomers_are_placed_with_a_client_of_the_nearest_cluster(case, cut):
    points, k, seed = case
    number = max(k, len(points) - cut)
    clusters = cluster(points[:number], k, seed)
    found = related(points, clusters)
    assert len(found.placed) == len(points) - number
    assert (found.placed < number).all()
    for newcomer, host in zip(points[number:], found.placed, strict=True):
        apart = np.linalg.norm(clusters.centres - newcomer, axis=1)
        assert apart[clusters.groups[host]] <= apart.min() + 1e-9
    assert (found.related == found.related.T).all()
    assert (np.diag(found.related) == 1).all()


@given(st.integers(1, 5), st.integers(1, 4), st.integers(2, 6), st.integers(0, 99))
def test_divergences_are_symmetric_bits(number, images, classes, seed):
    said = np.random.default_rng(seed).dirichlet(np.full(classes, 0.2), size=(number, images))
    found = mean_divergence(said)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(found), 0, atol=1e-12)
    assert found.max() <= 1


@given(st.integers(1, 40), st.integers(2, 12), st.integers(0, 99))
def test_two_labels_are_two_and_fairly_dealt(number, classes, seed):
    pairs = label_pairs(number, classes, np.random.default_rng(seed))
    assert (pairs[:, 0] != pairs[:, 1]).all()
    times = np.bincount(pairs.reshape(-1), minlength=classes)
    assert times.max() - times.min() <= 1


@given(st.integers(2, 12), st.integers(1, 4), st.integers(0, 99))
def test_uniformity_lies_between_none_and_one(number, k, seed):
    rng = np.random.default_rng(seed)
    counts, groups = rng.integers(1, 9, (number, 3)), rng.integers(k, size=number)
    found = uniformity(groups, counts)
    assert np.isnan(found) or 0 < found <= 1 + 1e-12
    assert np.isnan(found) == (np.bincount(groups).max() < 2)
