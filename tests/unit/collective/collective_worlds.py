"""Small worlds that can be enumerated: every assignment, every population."""

import itertools
from collections import defaultdict

import numpy as np

from agglearn.collective import TreeModel
from agglearn.collective.noise import noise_model
from agglearn.observations import FlowCounts

TREES = {
    "chain": [(0, 1), (1, 2), (2, 3)],
    "star": [(0, 1), (0, 2), (0, 3)],
    "mixed": [(1, 0), (1, 2), (3, 1), (3, 4)],
}


def random_tree(rng, n_nodes, zeros=0.0, most=3, strength=1.0) -> TreeModel:
    """A random tree with 2 to `most` states per node; a share of pairs is forbidden."""
    sizes = rng.integers(2, most + 1, n_nodes)
    edges, tables = [], []
    for i in range(1, n_nodes):
        pair = (i, int(rng.integers(i)))
        pair = pair if rng.random() < 0.5 else pair[::-1]
        table = rng.normal(0, strength, (sizes[pair[0]], sizes[pair[1]]))
        table[rng.random(table.shape) < zeros] = -np.inf
        table[0, 0] = 0.0  # something stays possible
        edges.append(pair)
        tables.append(table)
    return TreeModel(edges, tables)


def fixed_tree(name, rng, size=2) -> TreeModel:
    edges = TREES[name]
    return TreeModel(edges, [rng.normal(size=(size, size)) for _ in edges])


def assignments(model) -> tuple[np.ndarray, np.ndarray]:
    """All assignments (k, N) and their unnormalised weights."""
    states = np.array(list(itertools.product(*map(range, model.sizes))))
    scores = sum(t[states[:, i], states[:, j]] for (i, j), t in zip(model.edges, model.log_potentials, strict=True))
    return states, np.exp(scores)


def populations(model, m) -> dict[tuple, float]:
    """p(n; θ) of all edge tables of m individuals, by adding up ordered populations; keys are flattened tables."""
    states, weights = assignments(model)
    p, law = weights / weights.sum(), defaultdict(float)
    possible = np.flatnonzero(p > 0)
    for chosen in itertools.product(possible, repeat=m):
        law[flat(model.tables_of(states[list(chosen)]))] += float(np.prod(p[list(chosen)]))
    return law


def flat(tables) -> tuple:
    return tuple(np.concatenate([np.asarray(t).ravel() for t in tables]))


def unflat(model, key) -> list[np.ndarray]:
    shapes = [(model.sizes[i], model.sizes[j]) for i, j in model.edges]
    ends = np.cumsum([a * b for a, b in shapes])
    return [np.array(part).reshape(s) for part, s in zip(np.split(np.array(key), ends[:-1]), shapes, strict=True)]


NOISES = {"poisson": {"rate": 0.8}, "gaussian": {"scale": 1.5}, "laplace": {"scale": 0.9}}


def observe(model, tables, noise, rng, on="node", missing=0.0, **parameters) -> FlowCounts:
    """Noisy counts of tables, a share of them missing."""
    law = noise_model(noise, **parameters)
    true = model.node_tables_of(tables) if on == "node" else tables
    seen = [np.where(rng.random(np.shape(t)) < missing, np.nan, law.sample(t, rng)) for t in true]
    return FlowCounts(**{f"{on}_counts": seen}, noise=noise, **parameters)


def sampled(name, seed, m, noise="poisson", on="node", **parameters) -> tuple[TreeModel, FlowCounts, int]:
    """A fixed tree, noisy counts of persons who were drawn from it, and the number of persons."""
    rng = np.random.default_rng(seed)
    model = fixed_tree(name, rng)
    return model, observe(model, model.sample_tables(m, rng), noise, rng, on, **parameters), m
