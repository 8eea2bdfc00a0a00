"""Small examples of where FLT's public code differs from the paper, or the print is wrong."""

import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from clustered_fl.theory.flt.averaging_code import in_place, thresholds, weight_sums
from clustered_fl.theory.flt.grouping_code import leaf_order
from clustered_fl.theory.flt.partition_code import MNIST, client_sizes, padding
from clustered_fl.theory.ranges import ErrorRate, Listed, TwoOrMore, require_at_least
from clustered_fl.theory.tables import leaves


@leaves("in_place", "weight_sums", "thresholds", "leaf_order", "padding", "client_sizes")
def code_differences(
    seed: int,
    *,
    clusters: TwoOrMore = 5,
    clients_per_cluster: TwoOrMore = 20,
    trials: PositiveInt = 200,
    flipped: ErrorRate = 0.02,
    images: Listed[NonNegativeInt] = MNIST,
    images_per_label: PositiveInt = 300,
    cluster_samples: PositiveInt = 12_000,
    cluster_clients: TwoOrMore = 240,
) -> dict[str, pd.DataFrame]:
    """Averaging, thresholding, grouping and partition as printed, as coded and as meant.

    Args:
        clusters, clients_per_cluster: of the federation (Scenario 1: 5 and 20).
        trials: random relatedness matrices per order and sizes.
        flipped: probability that a pair of clients is related wrongly in them.
        images: training images of each label, by default MNIST's.
        images_per_label: that a client is to get of each of its labels (Scenario 1: 300).
        cluster_samples, cluster_clients: of one cluster of Scenario 4.
    Returns: tables of the functions in `averaging_code`, `grouping_code` and `partition_code`.
    Raises: InputError for fewer than four samples per client of a cluster.
    """
    require_at_least(4 * cluster_clients, cluster_samples=cluster_samples)
    clients = clusters * clients_per_cluster
    return {
        "in_place": in_place(clusters, clients_per_cluster),
        "weight_sums": weight_sums(clusters, clients_per_cluster),
        "thresholds": thresholds(clusters, clients_per_cluster),
        "leaf_order": leaf_order(seed, trials, clients, clusters, flipped),
        "padding": padding(images, clients_per_cluster, images_per_label),
        "client_sizes": client_sizes(cluster_samples, cluster_clients),
    }
