"""Simulated movements: intervals of flows cover them, and a right model is not called a bad one."""

import warnings

import numpy as np
import pytest

from agglearn.collective import ChainModel, reconstruct
from agglearn.collective.noise import noise_model
from agglearn.errors import PoorFit
from agglearn.observations import FlowCounts

TRIALS, PLACES, TIMES, PERSONS = 25, 4, 5, 400


def simulate(noise, scale, kind, rng, staying=0.0):
    """True flows, the probabilities of a step, the first step, and noisy counts of one random chain."""
    step, first = rng.dirichlet(np.full(PLACES, 2.0), PLACES), rng.dirichlet(np.full(PLACES, 2.0))
    step = staying * np.eye(PLACES) + (1 - staying) * step
    logs = [np.log(step * first[:, None]), *[np.log(step)] * (TIMES - 2)]
    tables = np.array(ChainModel(logs).sample_tables(PERSONS, rng), float)
    nodes = np.concatenate([tables.sum(axis=2), tables[-1:].sum(axis=1)])
    noisy = noise_model(noise, 1.0, scale).sample(nodes if kind == "node" else tables, rng)
    return tables, step, first, {f"{kind}_counts": noisy, "noise": noise, "scale": scale}


@pytest.mark.parametrize(
    ("noise", "scale", "kind", "initial", "size_known"),
    [
        ("poisson", 1, "node", "learned", True), ("poisson", 1, "node", "stated", True),
        ("poisson", 1, "edge", "learned", False), ("gaussian", 5, "node", "learned", False),
        ("laplace", 5, "edge", "learned", True), ("exact", 1, "node", "learned", False),
        ("exact", 1, "node", "stated", True),
    ],
)  # fmt: skip
def test_intervals_cover_and_a_right_model_is_not_warned_of(noise, scale, kind, size_known, initial):
    rng, covered, squares = np.random.default_rng(7), [], []
    for _ in range(TRIALS):
        tables, step, first, counts = simulate(noise, scale, kind, rng)
        counts = FlowCounts(**counts, population_size=PERSONS if size_known else None)
        with warnings.catch_warnings():
            warnings.simplefilter("error", PoorFit)
            movements = reconstruct(counts, step, initial="learned" if initial == "learned" else first)
        if initial == "learned":  # EM alone is twice as far from its fixed point after 500 steps
            assert abs(movements.node_tables[0] / movements.population_size - movements.initial).sum() < 6e-5
        covered.append(abs(np.array(movements.edge_tables) - tables) <= 1.96 * movements.spread)
        squares.append(np.nanmean(np.concatenate([movements.node_z, movements.edge_z], axis=None) ** 2))
    assert 0.9 < np.mean(covered) < 0.985
    assert np.mean(squares) < 1.1


def test_a_wrong_model_is_warned_of():
    rng, caught = np.random.default_rng(7), 0
    for _ in range(TRIALS):
        _, step, _, counts = simulate("poisson", 1, "node", rng, staying=0.7)  # by `step[::-1]` nobody stays
        with warnings.catch_warnings(record=True) as messages:
            warnings.simplefilter("always", PoorFit)
            reconstruct(FlowCounts(**counts), step[::-1])
        caught += bool(messages)
    assert caught > 0.8 * TRIALS
