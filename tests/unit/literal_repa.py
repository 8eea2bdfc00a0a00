"""REPA and WD as one would write them down: loops over clients, dimensions, pairs and steps."""

import copy
import math
from itertools import product

import numpy as np
import torch
from torch import nn

from clustered_fl.randomness import generator


def quantile(values, share):
    """Linear interpolation between the two neighbours in the sorted sample."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def statistic(values, name):
    n, mean = len(values), sum(values) / len(values)
    if name == "mean":
        return mean
    if name.startswith("q"):
        return quantile(values, {"q25": 0.25, "q50": 0.5, "q75": 0.75}[name])
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / n)
    if name == "std":
        return deviation
    power, normal = {"skewness": (3, 0), "kurtosis": (4, 3)}[name]
    if deviation == 0:
        return 0.0
    return sum(((v - mean) / deviation) ** power for v in values) / n - normal


def described(codes, names):
    columns = [[float(row[d]) for row in codes] for d in range(codes.shape[1])]
    return np.array([statistic(column, name) for name in names for column in columns])


def second_moments(codes):
    """Covariances of every two dimensions, one with itself too, and correlations of different."""
    n, e = codes.shape
    means = [sum(row[d] for row in codes) / n for d in range(e)]

    def covariance(a, b):
        return sum((row[a] - means[a]) * (row[b] - means[b]) for row in codes) / n

    def correlation(a, b):
        spread = math.sqrt(covariance(a, a) * covariance(b, b))
        return covariance(a, b) / spread if spread else 0.0

    pairs = [(a, b) for a in range(e) for b in range(a, e)]
    return [covariance(*p) for p in pairs], [correlation(a, b) for a, b in pairs if a != b]


def shortened(vector):
    length = math.sqrt(sum(v * v for v in vector))
    return vector / length if length else vector


def classifier_of(network):
    return nn.Sequential(network.encoder, network.classifier)


def update(network, images, labels, rows, key, optimiser, epochs, batch):
    """Trained minus given parameters after some epochs on one client; `key` names its draws."""
    model = classifier_of(copy.deepcopy(network)).train()
    before = torch.cat([p.detach().flatten() for p in model.parameters()]).clone()
    optimiser = optimiser(model.parameters())
    for epoch in range(epochs):
        order = generator(key[0], "batches", *key[1:], epoch).permutation(rows)
        for first in range(0, len(order), batch):
            part = torch.from_numpy(order[first : first + batch])
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images[part]), labels[part]).backward()
            optimiser.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()]) - before


def nearest(point, points, groups):
    """The cluster whose mean is nearest, by a loop over clusters."""
    away = {}
    for group in sorted(set(groups)):
        own = [points[i] for i in range(len(points)) if groups[i] == group]
        away[group] = np.linalg.norm(point - sum(own) / len(own))
    return min(away, key=away.__getitem__)


def best_inertia(points, k):
    """Smallest sum of squared distances to the means of k clusters, over all divisions."""
    every = product(range(k), repeat=len(points) - 1)
    return min(inertia(points, (0, *labels)) for labels in every)


def inertia(points, labels):
    total = 0.0
    for group in set(labels):
        own = np.array([point for point, at in zip(points, labels, strict=True) if at == group])
        total += ((own - own.mean(0)) ** 2).sum()
    return total


def divergence(p, q):
    """Jensen-Shannon divergence in bits."""
    total = 0.0
    for a, b in zip(p, q, strict=True):
        middle = (a + b) / 2
        total += 0.5 * (a * math.log2(a / middle) if a else 0)
        total += 0.5 * (b * math.log2(b / middle) if b else 0)
    return total


def cosine(a, b):
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def uniformity(groups, counts):
    """Equation 7 over unordered pairs, singletons left out."""
    means = []
    for group in sorted(set(groups)):
        own = [i for i in range(len(groups)) if groups[i] == group]
        pairs = [(i, j) for i in own for j in own if i < j]
        if pairs:
            means.append(sum(cosine(counts[i], counts[j]) for i, j in pairs) / len(pairs))
    return sum(means) / len(means)


def pearson(first, second, clients):
    """Over the pairs of different clients of a list in which clients may be several times."""
    pairs = [
        (first[a, b], second[a, b])
        for i, a in enumerate(clients)
        for b in clients[i + 1 :]
        if a != b
    ]
    x, y = np.array(pairs).T
    return float(np.corrcoef(x, y)[0, 1])
