"""Numba kernels of the Gibbs sampler over tables (Sheldon and Dietterich 2011): moves along cycles, exact draws.

Two kinds of move keep a population's tables consistent (Sun 2019, eq. 2.5):
* four cells of one edge table, +δ −δ +δ −δ around a rectangle: node tables stay;
* at one node, δ individuals change from state a to state b: one pair of cells in each table at the node.
δ is drawn exactly from its conditional law, which is log-concave: from its mode outwards until nothing is left.
"""

import math

import numpy as np
from numba import njit

NOTHING = 1e-18  # beside the largest probability


@njit(cache=True, inline="always")
def log_ratio_noise(kind, y, parameter, n):
    """log p(y | n + 1) − log p(y | n): 1 Poisson (rate), 2 Gaussian, 3 Laplace (scale), 4 exact."""
    if kind == 1:
        return (y * math.log((n + 1.0) / n) if n > 0 else (math.inf if y > 0 else 0.0)) - parameter
    if kind == 2:
        return ((n - y) ** 2 - (n + 1.0 - y) ** 2) / (2 * parameter * parameter)
    if kind == 3:
        return (abs(n - y) - abs(n + 1.0 - y)) / parameter
    return 0.0


@njit(cache=True)
def draw(low, high, cells, signs, log_phi, powers, kinds, counts, parameters, n, uniform):
    """δ in [low, high] from the law ∝ Π over k of φ^(s δ) / ((n + s δ)!)^power · p(y | n + s δ).

    One entry per cell that moves: n its count now, s its sign. Exact kinds must stay as they are, so they allow δ = 0
    only, unless they move back to their count: the caller sees to it.
    """
    delta = 0
    while delta < high and step_up(delta, cells, signs, log_phi, powers, kinds, counts, parameters, n) > 0:
        delta += 1
    if delta == 0:
        while delta > low and step_up(delta - 1, cells, signs, log_phi, powers, kinds, counts, parameters, n) < 0:
            delta -= 1
    mode, total, weight = delta, 1.0, 1.0
    first = mode
    while first > low and weight > NOTHING:
        first -= 1
        weight *= math.exp(-step_up(first, cells, signs, log_phi, powers, kinds, counts, parameters, n))
        total += weight
    last, weight = mode, 1.0
    while last < high and weight > NOTHING:
        weight *= math.exp(step_up(last, cells, signs, log_phi, powers, kinds, counts, parameters, n))
        last += 1
        total += weight
    rest = uniform * total - 1.0
    if rest < 0:
        return mode
    weight, delta = 1.0, mode
    while delta > first:
        delta -= 1
        weight *= math.exp(-step_up(delta, cells, signs, log_phi, powers, kinds, counts, parameters, n))
        rest -= weight
        if rest < 0:
            return delta
    weight, delta = 1.0, mode
    while delta < last:
        weight *= math.exp(step_up(delta, cells, signs, log_phi, powers, kinds, counts, parameters, n))
        delta += 1
        rest -= weight
        if rest < 0:
            return delta
    return mode


@njit(cache=True)
def step_up(delta, cells, signs, log_phi, powers, kinds, counts, parameters, n):
    """log p(δ + 1) − log p(δ)."""
    total = 0.0
    for k in range(cells):
        now = n[k] + signs[k] * delta
        if signs[k] > 0:
            total += log_phi[k] - powers[k] * math.log(now + 1.0)
            total += log_ratio_noise(kinds[k], counts[k], parameters[k], now)
        else:
            total += powers[k] * math.log(now) - log_phi[k]
            total -= log_ratio_noise(kinds[k], counts[k], parameters[k], now - 1.0)
    return total


@njit(cache=True)
def choose_rectangle(order, parent, sizes, at, signs, rng):
    """Four cells of a random table with two random rows and columns; returns how many, 0 where they are not four."""
    c = order[1 + rng.integers(0, order.size - 1)]
    i, j = rng.integers(0, sizes[parent[c]]), rng.integers(0, sizes[c])
    a, b = rng.integers(0, sizes[parent[c]]), rng.integers(0, sizes[c])
    if i == a or j == b:
        return 0
    for k in range(4):
        at[k, 0] = c
        at[k, 1] = i if k < 2 else a
        at[k, 2] = j if k % 2 == 0 else b
        signs[k] = 1 if k in (0, 3) else -1
    return 4


@njit(cache=True)
def choose_shift(node, parent, children, bounds, sizes, old, new, at, signs, rng):
    """One cell of state `old` and one of `new`, beside a random state at the other end, in each table at a node."""
    cells = 0
    if parent[node] >= 0:
        other = rng.integers(0, sizes[parent[node]])
        for s in range(2):
            at[cells, 0], at[cells, 1], at[cells, 2] = node, other, old if s == 0 else new
            signs[cells] = -1 if s == 0 else 1
            cells += 1
    for q in range(bounds[node], bounds[node + 1]):
        other = rng.integers(0, sizes[children[q]])
        for s in range(2):
            at[cells, 0], at[cells, 1], at[cells, 2] = children[q], old if s == 0 else new, other
            signs[cells] = -1 if s == 0 else 1
            cells += 1
    return cells


@njit(cache=True)
def limits(cells, at, signs, tables):
    """Smallest and largest δ that leave no cell negative."""
    low, high = -(10**15), 10**15
    for k in range(cells):
        count = int(tables[at[k, 0], at[k, 1], at[k, 2]])
        if signs[k] > 0:
            low = max(low, -count)
        else:
            high = min(high, count)
    return low, high


@njit(cache=True)
def look_up(
    cells, at, tables, log_tables, which, edge_kinds, edge_counts, edge_parameters, has_edges, n, log_phi, powers, kinds,
    counts, parameters,
):  # fmt: skip
    """Fill what `draw` wants to know of edge cells; False where one is forbidden or observed exactly."""
    for k in range(cells):
        c, i, j = at[k, 0], at[k, 1], at[k, 2]
        n[k], powers[k], kinds[k], log_phi[k] = tables[c, i, j], 1.0, 0, log_tables[which[c], i, j]
        if has_edges:
            kinds[k], counts[k], parameters[k] = edge_kinds[c, i, j], edge_counts[c, i, j], edge_parameters[c, i, j]
        if log_phi[k] == -math.inf or kinds[k] == 4:
            return False
    return True


@njit(cache=True)
def moves(
    n_moves, order, parent, children, bounds, degrees, sizes, log_tables, which, node_kinds, node_counts, node_parameters,
    edge_kinds, edge_counts, edge_parameters, has_edges, nodes, tables, sums, stamps, rng,
):  # fmt: skip
    """Make random moves. Changed in place: nodes (N, L), tables (N, L, L), and sums (N, L, L): the tables after each move.

    stamps (N, L, L) say up to which move a cell is in its sum, so that a move costs the same whatever the size of the
    tables. Half of the moves are rectangles, half change a node; choices do not depend on the tables, so that each move
    leaves the posterior invariant.
    """
    most = 2 * (int(degrees.max()) + 1) + 4
    signs, kinds, at = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros((most, 3), np.int64)
    n, log_phi, powers = np.zeros(most), np.zeros(most), np.zeros(most)
    counts, parameters = np.zeros(most), np.zeros(most)
    for move in range(n_moves):
        node, old, new = -1, 0, 0
        if rng.random() < 0.5:
            cells = choose_rectangle(order, parent, sizes, at, signs, rng)
        else:
            node = rng.integers(0, len(nodes))
            old, new = rng.integers(0, sizes[node]), rng.integers(0, sizes[node])
            cells = choose_shift(node, parent, children, bounds, sizes, old, new, at, signs, rng) if old != new else 0
        low, high = limits(cells, at, signs, tables)
        if cells == 0 or low >= high or not look_up(
            cells, at, tables, log_tables, which, edge_kinds, edge_counts, edge_parameters, has_edges, n, log_phi, powers,
            kinds, counts, parameters,
        ):  # fmt: skip
            continue
        total = cells
        if node >= 0:
            if node_kinds[node, old] == 4 or node_kinds[node, new] == 4:
                continue
            for s in range(2):
                x = old if s == 0 else new
                n[total], signs[total], kinds[total] = nodes[node, x], -1 if s == 0 else 1, node_kinds[node, x]
                log_phi[total], powers[total] = 0.0, 1.0 - degrees[node]
                counts[total], parameters[total] = node_counts[node, x], node_parameters[node, x]
                total += 1
        delta = draw(low, high, total, signs, log_phi, powers, kinds, counts, parameters, n, rng.random())
        if delta != 0:
            for k in range(cells):
                c, i, j = at[k, 0], at[k, 1], at[k, 2]
                sums[c, i, j] += tables[c, i, j] * (move - stamps[c, i, j])
                stamps[c, i, j] = move
                tables[c, i, j] += signs[k] * delta
            if node >= 0:
                nodes[node, old] -= delta
                nodes[node, new] += delta
    for c in order[1:]:
        for i in range(sums.shape[1]):
            for j in range(sums.shape[2]):
                sums[c, i, j] += tables[c, i, j] * (n_moves - stamps[c, i, j])
