"""Noise of observations: no two parts and no two seeds share it, and it is as large as it is stated."""

from dataclasses import replace

import numpy as np
import pytest
from observed_sources import NOISY, birds, parts_of

from agglearn import tasks
from agglearn.observations import (
    FlowInstances,
)


def noise_of(row, folders, seed: int) -> dict[str, np.ndarray]:
    """Released less exact numbers; parts without noise are left out."""
    seen, exact = (parts_of(row.observe(folders, seed, exactly)[0]) for exactly in (False, True))
    found = {name: values - exact[name] for name, values in seen.items()}
    return {name: values for name, values in found.items() if np.any(values) and len(values) > 3}


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether numbers are the same but for their scale."""
    n = min(len(a), len(b))
    a, b = a[:n], b[:n]
    return bool(abs(a @ b) > 0.99 * np.linalg.norm(a) * np.linalg.norm(b) > 0)


@pytest.mark.parametrize("row", NOISY, ids=str)
def test_no_two_parts_and_no_two_seeds_share_their_noise(row, folders):
    noise = [(f"seed {s}: {name}", v) for s in (0, 1) for name, v in noise_of(row, folders, s).items()]
    assert len(noise) >= 2
    shared = [(a, b) for i, (a, u) in enumerate(noise) for b, v in noise[:i] if alike(u, v)]
    assert shared == []


@pytest.mark.parametrize("on", ["node", "edge"])
@pytest.mark.parametrize(
    "law", [{"noise": "gaussian", "scale": 3.0}, {"noise": "laplace", "scale": 3.0}, {"epsilon": 0.5}]
)
def test_no_two_steps_and_no_two_years_share_their_noise(on, law, folders):
    parts = []
    for seed in (0, 1):
        seen, truth = tasks.FlowLearning().observe(birds(folders), FlowInstances, {"evidence": on, **law}, seed)
        for year, (counts, true) in enumerate(zip(seen.instances, truth.edge_tables, strict=True)):
            exact = tasks.flows._node_tables(true) if on == "node" else true
            gaps = (counts.node_counts if on == "node" else counts.edge_counts) - exact
            parts += [((seed, year, step), gap.ravel()) for step, gap in enumerate(gaps)]
    assert [(a, b) for i, (a, u) in enumerate(parts) for b, v in parts[:i] if alike(u, v)] == []


@pytest.mark.parametrize("law", [{"summed_as": "laplace"}, {"summed_as": "gaussian"}])
def test_noise_of_sums_is_as_large_as_it_is_stated(law, folders):
    """Sums of nine Laplace numbers of scale 3 have a standard deviation of 3·√18; as Gaussian noise they state it."""
    gaps = []
    for seed in range(8):
        params = {"evidence": "node_sums", "noise": "laplace", "scale": 3.0, **law}
        seen, truth = tasks.FlowLearning().observe(birds(folders), FlowInstances, params, seed)
        for counts, true in zip(seen.instances, truth.edge_tables, strict=True):
            gaps.append(counts.node_counts - tasks.flows._node_tables(true))
            stated = counts.scale if counts.noise == "gaussian" else counts.scale * np.sqrt(2 * 9)
    assert np.std(gaps) == pytest.approx(3 * np.sqrt(18), rel=0.15)
    assert stated == pytest.approx(3 * np.sqrt(18))


def test_poisson_counts_of_years_are_their_own(folders):
    """Two years of the same true counts are seen differently."""
    source = birds(folders)
    same = replace(source.data, edge_tables=[source.data.edge_tables[0]] * 2)
    seen, _ = tasks.FlowLearning().observe(replace(source, data=same), FlowInstances, {}, 0)
    assert not np.array_equal(seen.instances[0].node_counts, seen.instances[1].node_counts)
