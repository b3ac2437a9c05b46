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
def moves(
    n_moves, order, parent, children, bounds, degrees, sizes, log_tables, which, node_kinds, node_counts, node_parameters,
    edge_kinds, edge_counts, edge_parameters, has_edges, nodes, tables, sums, stamps, rng,
):  # fmt: skip
    """Make random moves. Changed in place: nodes (N, L), tables (N, L, L), and sums (N, L, L): the tables after each move.

    stamps (N, L, L) say up to which move a cell is in its sum, so that a move costs the same whatever the size of the
    tables. Half of the moves are rectangles, half change a node; choices do not depend on the tables, so that each move
    leaves the posterior invariant.
    """
    n_nodes = len(nodes)
    most = 2 * (int(degrees.max()) + 1) + 4
    signs, kinds = np.zeros(most, np.int64), np.zeros(most, np.int64)
    log_phi, powers, counts, parameters = np.zeros((4, most))
    n = np.zeros(most)
    edge, row, column = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    for move in range(n_moves):
        if rng.random() < 0.5:
            c = order[1 + rng.integers(0, n_nodes - 1)]
            p = parent[c]
            i, j = rng.integers(0, sizes[p]), rng.integers(0, sizes[c])
            a, b = rng.integers(0, sizes[p]), rng.integers(0, sizes[c])
            if i == a or j == b:
                continue
            cells = 4
            for k in range(4):
                edge[k] = c
                row[k] = i if k < 2 else a
                column[k] = j if k % 2 == 0 else b
                signs[k] = 1 if k in (0, 3) else -1
            chosen, from_state, to_state = -1, 0, 0
        else:
            chosen = rng.integers(0, n_nodes)
            from_state, to_state = rng.integers(0, sizes[chosen]), rng.integers(0, sizes[chosen])
            if from_state == to_state:
                continue
            cells = 0
            if parent[chosen] >= 0:
                other = rng.integers(0, sizes[parent[chosen]])
                for s in range(2):
                    edge[cells], row[cells] = chosen, other
                    column[cells], signs[cells] = (from_state, -1) if s == 0 else (to_state, 1)
                    cells += 1
            for q in range(bounds[chosen], bounds[chosen + 1]):
                c = children[q]
                other = rng.integers(0, sizes[c])
                for s in range(2):
                    edge[cells], column[cells] = c, other
                    row[cells], signs[cells] = (from_state, -1) if s == 0 else (to_state, 1)
                    cells += 1
        low, high, allowed = -(10**15), 10**15, True
        for k in range(cells):
            c = edge[k]
            count = tables[c, row[k], column[k]]
            log_phi[k] = log_tables[which[c], row[k], column[k]]
            if log_phi[k] == -math.inf:
                allowed = False
                break
            n[k], powers[k], kinds[k] = count, 1.0, 0
            if has_edges:
                kinds[k] = edge_kinds[c, row[k], column[k]]
                counts[k] = edge_counts[c, row[k], column[k]]
                parameters[k] = edge_parameters[c, row[k], column[k]]
                if kinds[k] == 4:
                    allowed = False
                    break
            if signs[k] > 0:
                low = max(low, -count)
            else:
                high = min(high, count)
        if not allowed:
            continue
        total = cells
        if chosen >= 0:
            for s in range(2):
                x = from_state if s == 0 else to_state
                n[total], signs[total] = nodes[chosen, x], -1 if s == 0 else 1
                log_phi[total], powers[total] = 0.0, 1.0 - degrees[chosen]
                kinds[total] = node_kinds[chosen, x]
                counts[total], parameters[total] = node_counts[chosen, x], node_parameters[chosen, x]
                if kinds[total] == 4:
                    allowed = False
                total += 1
        if allowed and low < high:
            delta = draw(low, high, total, signs, log_phi, powers, kinds, counts, parameters, n, rng.random())
            if delta != 0:
                for k in range(cells):
                    at = edge[k], row[k], column[k]
                    sums[at] += tables[at] * (move - stamps[at])
                    stamps[at] = move
                    tables[at] += signs[k] * delta
                if chosen >= 0:
                    nodes[chosen, from_state] -= delta
                    nodes[chosen, to_state] += delta
    for c in order[1:]:
        sums[c] += tables[c] * (n_moves - stamps[c])
