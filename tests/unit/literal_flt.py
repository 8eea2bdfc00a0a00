"""FLT and what it is compared with, written out literally: one client and one pair at a time."""

from collections import deque
from itertools import combinations, permutations

import numpy as np
import torch
from literal_cfl import local_update
from sklearn.cluster import KMeans
from torch.nn import functional

from clustered_fl.methods.state import participants
from clustered_fl.randomness import generator

# ---- Who is related to whom ---------------------------------------------------------------------


def distance(one, other):
    return np.sqrt(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)))


def minimum(mine, yours):
    """Algorithm 2, line 16, as printed."""
    return min(distance(a, b) for a in mine for b in yours)


def matching(mine, yours):
    """The authors' code, which tries every pairing."""
    k = len(mine)
    return min(
        np.sqrt(sum(distance(mine[r], yours[pairing[r]]) ** 2 for r in range(k))) / k
        for pairing in permutations(range(k))
    )


def distances(points, between):
    clients = range(len(points))
    return np.array(
        [[0.0 if i == j else between(points[i], points[j]) for j in clients] for i in clients]
    )


def components(related):
    """Component of each client by walking over its relatives, numbered as they are found."""
    found = {}
    for start in range(len(related)):
        if start in found:
            continue
        number, waiting = len(set(found.values())), deque([start])
        while waiting:
            client = waiting.popleft()
            found[client] = number
            relatives = [j for j in range(len(related)) if related[client][j] or related[j][client]]
            waiting += [j for j in relatives if j not in found]
    return [found[client] for client in range(len(related))]


def ward(rows, groups):
    """Merge, again and again, the two clusters whose merger adds least to the sum of squares."""
    clusters = [[i] for i in range(len(rows))]

    def added(pair):
        one, other = (rows[clusters[c]] for c in pair)
        away = one.mean(0) - other.mean(0)
        return len(one) * len(other) / (len(one) + len(other)) * (away @ away)

    while len(clusters) > groups:
        first, second = min(combinations(range(len(clusters)), 2), key=added)
        clusters[first] += clusters.pop(second)
    return clusters


def agreement(related, true):
    """Adjusted Rand index by counting pairs (Hubert and Arabie 1985), and shares of edges."""
    found, counts = components(related), np.zeros((2, 2))
    edges = {True: [], False: []}
    for i, j in combinations(range(len(true)), 2):
        same = bool(true[i] == true[j])
        counts[int(same), int(found[i] == found[j])] += 1
        edges[same].append(bool(related[i][j]))
    (neither, only_found), (only_true, both) = counts
    below = (both + only_true) * (only_true + neither) + (both + only_found) * (
        only_found + neither
    )
    return {
        "ari": 2 * (both * neither - only_true * only_found) / below if below else 1.0,
        "components": float(len(set(found))),
        "recall": np.mean(edges[True]) if edges[True] else np.nan,
        "false_edges": np.mean(edges[False]) if edges[False] else np.nan,
    }


def sets(groups):
    """A partition without the numbers of its groups."""
    members = {}
    for client, group in enumerate(groups):
        members.setdefault(int(group), set()).add(client)
    return {frozenset(own) for own in members.values()}


# ---- Who averages with whom ---------------------------------------------------------------------


def share(engine, client, weighting):
    return engine.federation.sizes[client] if weighting == "samples" else 1


def mean(engine, models, weighting="samples"):
    """Weighted mean of {client: model}."""
    shares = {client: share(engine, client, weighting) for client in models}
    return sum(shares[i] * models[i] for i in models) / sum(shares.values())


class Literal:
    """A federation in which every client has a model of its own, float64.

    Args:
        engine: of `literal_cfl`, whose local training is written out there.
        settings: of the method.
    """

    def __init__(self, engine, settings):
        self.engine, self.settings = engine, settings
        self.clients = range(engine.federation.clients)
        self.models = {i: engine.initial_model().double().numpy() for i in self.clients}
        self.slots = dict(self.models)
        self.centres = None

    def trained(self, number):
        """What the participants of a round have: {client: model}."""
        drawn = participants(self.engine, self.settings.fraction, number)
        return {
            i: self.models[i] + local_update(self.engine, self.models[i], i, number) for i in drawn
        }

    def one_shot(self, number, related):
        """Algorithm 3: mean over related participants, if there are any."""
        uploads = self.trained(number)
        for i in self.clients:
            mine = {j: uploads[j] for j in uploads if related[i][j]}
            if mine:
                self.models[i] = mean(self.engine, mine, self.settings.weighting)

    def stale(self, number, related):
        """The code of January 2021: mean over the last uploads of all related."""
        self.slots |= self.trained(number)
        for i in self.clients:
            mine = {j: self.slots[j] for j in self.clients if related[i][j]}
            self.models[i] = mean(self.engine, mine, self.settings.weighting)

    def in_place(self, number, related):
        """The code since March 2021: later clients average what earlier ones have averaged."""
        self.models |= self.trained(number)
        for i in self.clients:
            mine = {j: self.models[j] for j in self.clients if related[i][j]}
            self.models[i] = mean(self.engine, mine, self.settings.weighting)

    def fedsem(self, number):
        """k-means on the flattened models of all clients, then means; returns the clusters."""
        uploads = self.trained(number)
        self.slots = (self.slots if self.settings.stale else self.models) | uploads
        flat = np.stack([self.slots[i] for i in self.clients])
        first = {"n_init": self.settings.restarts, "random_state": 0}
        later = {"init": self.centres, "n_init": 1}
        means = KMeans(self.settings.clusters, **first if self.centres is None else later).fit(flat)
        self.centres = means.cluster_centers_
        for i in self.clients:
            mine = {j: self.slots[j] for j in self.clients if means.labels_[j] == means.labels_[i]}
            self.models[i] = mean(self.engine, mine, self.settings.weighting)
        return sets(means.labels_)


# ---- Who trains the encoder ---------------------------------------------------------------------


def reconstruction_steps(network, batches, optimiser):
    network.train()
    for images in batches:
        optimiser.zero_grad()
        functional.mse_loss(network(images), images).backward()
        optimiser.step()


def batches(images, order, size):
    return [images[torch.from_numpy(order[at : at + size])] for at in range(0, len(order), size)]


def tune_one(network, images, rows, settings, seed, client, optimiser=None, before=0):
    """Train on one client's images; `before` epochs have been counted already."""
    optimiser = optimiser or torch.optim.Adam(network.parameters(), settings.lr)
    for epoch in range(settings.epochs):
        optimiser.param_groups[0]["lr"] = settings.lr / 2 ** ((before + epoch) // 10)
        order = generator(seed, "fine-tuning", client, epoch).permutation(rows)
        reconstruction_steps(network, batches(images, order, settings.batch_size), optimiser)
    return optimiser


def tune_all(network, images, rows, settings, seed):
    """Train on the images of all; the rate is halved after every ten batches."""
    optimiser, seen = torch.optim.Adam(network.parameters(), settings.lr), 0
    for epoch in range(settings.epochs):
        order = generator(seed, "pooled fine-tuning", epoch).permutation(np.concatenate(rows))
        for batch in batches(images, order, settings.batch_size):
            optimiser.param_groups[0]["lr"] = settings.lr / 2 ** (seen // 10)
            reconstruction_steps(network, [batch], optimiser)
            seen += 1
