"""Similarity of two pipelines: a network's outputs for the same images through both.

REPA, section "Correlation between Client Embeddings and Data-Generation Processes": the images of
both pipelines are mapped by "a pre-trained network" and a softmax to distributions, whose
Jensen-Shannon divergences are averaged over the images. The paper applies the softmax to "image
embeddings"; here it is applied to class scores. The paper does not name the network; here it is the
profiler's, whose training included all pipelines.
"""

import numpy as np
import torch
from scipy.special import xlogy

from clustered_fl.data.drift import Drift
from clustered_fl.data.transforms import pipeline, transformed
from clustered_fl.groupings.profiles.network import Profiler
from clustered_fl.randomness import generator


def pipeline_similarity(profiler: Profiler, drift: Drift, images: int, seed: int) -> np.ndarray:
    """Similarity of training clients' pipelines: float64 [M, M], in 0..1.

    `images` is the number of official test images to draw at random.
    """
    dataset, network = profiler.dataset, profiler.network()
    tests = np.arange(dataset.train_rows, len(dataset.y))
    rows = generator(seed, "images to compare by").permutation(tests)[:images]
    found = []
    for client in range(profiler.federation.clients):
        draw = int(generator(seed, "compared images", client).integers(2**31))
        seen = transformed(dataset.x[rows], pipeline(drift, seed, client), draw)
        found.append(profiler.probabilities(torch.from_numpy(seen), network))
    return 1 - mean_divergence(np.stack(found))


def mean_divergence(distributions: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence between clients in bits: float64 [M, M], in 0..1.

    It is the mean over the n images of `distributions` [M, n, classes].
    """
    own = _entropy(distributions)
    found = np.zeros((len(own), len(own)))
    for client, each in enumerate(distributions):
        mixed = _entropy((distributions + each) / 2)
        found[client] = (mixed - (own + own[client]) / 2).mean(1)
    return np.clip(found, 0, 1)


def _entropy(distributions: np.ndarray) -> np.ndarray:
    """Entropy in bits over the last axis."""
    return -xlogy(distributions, distributions).sum(-1) / np.log(2)
