"""Numba kernels of the Gibbs sampler over tables (Sheldon and Dietterich 2011): moves along cycles, exact draws.

Three kinds of move keep a population's tables consistent (Sun 2019, eq. 2.5):
* cells of one edge table, +δ −δ … +δ −δ around a cycle: node tables stay. The cycle is a rectangle; where cells are
  forbidden or fixed, it is a longer one as well (such cycles connect all tables with the same margins);
* at one node, δ individuals change from state a to state b: one pair of cells in each table at the node;
* where pairs are forbidden, one individual takes another path, proposed from a chain and accepted after Metropolis and
  Hastings.
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
def choose_cycle(order, parent, sizes, log_tables, which, edge_kinds, has_edges, at, signs, last, rng):
    """Cells of a random cycle in a random table: a walk from rows to columns along free cells, until a row comes again.

    Returns how many cells, 0 where the walk ends. last (L,) : place in the walk at which a row was left, scratch.
    """
    c = order[1 + rng.integers(0, order.size - 1)]
    rows, columns = sizes[parent[c]], sizes[c]
    last[:] = -1
    row, column, cells = rng.integers(0, rows), -1, 0
    while True:
        last[row] = cells
        for turn in range(2):
            before, found = column if turn == 0 else row, False
            for _ in range(8 * max(rows, columns)):
                other = rng.integers(0, columns if turn == 0 else rows)
                i, j = (row, other) if turn == 0 else (other, column)
                if (
                    other != before
                    and log_tables[which[c], i, j] > -math.inf
                    and not (has_edges and edge_kinds[c, i, j] == 4)
                ):
                    found = True
                    break
            if not found:
                return 0
            at[cells, 0], at[cells, 1], at[cells, 2] = c, i, j
            signs[cells] = 1 if turn == 0 else -1
            cells += 1
            row, column = (row, other) if turn == 0 else (other, column)
        if last[row] >= 0:
            break
    first = last[row]
    if at[first, 2] == at[cells - 1, 2]:  # it came back by the way it left: the first cell would move twice
        return 0
    for k in range(first, cells):
        for part in range(3):  # an assignment of arrays takes numba three seconds to compile
            at[k - first, part] = at[k, part]
        signs[k - first] = signs[k]
    return cells - first


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
def pick(weights, total, uniform):
    """A place, with a probability in proportion to its weight."""
    rest, found = uniform * total, -1
    for k in range(weights.size):
        if weights[k] > 0:
            found = k
            rest -= weights[k]
            if rest < 0:
                break
    return found


@njit(cache=True)
def change_path(
    order, parent, log_tables, which, node_kinds, node_counts, node_parameters, edge_kinds, edge_counts, edge_parameters,
    has_edges, conditionals, first, nodes, tables, old, new, rng,
):  # fmt: skip
    """Draw an individual's path and another one from the chain (conditionals, first); returns whether it changes.

    old, new : (N,) the two paths, filled. Given the tables, an individual's path is a Markov chain with the tables' ratios.
    """
    root = order[0]
    old[root], new[root] = pick(nodes[root], nodes[root].sum(), rng.random()), pick(first, first.sum(), rng.random())
    total = math.log(first[old[root]]) - math.log(first[new[root]])
    for c in order[1:]:
        i, k = old[parent[c]], new[parent[c]]
        old[c] = pick(tables[c, i], nodes[parent[c], i], rng.random())
        new[c] = pick(conditionals[c, k], conditionals[c, k].sum(), rng.random())
        j, m = old[c], new[c]
        total += log_tables[which[c], k, m] - log_tables[which[c], i, j]
        total += math.log(conditionals[c, i, j]) - math.log(conditionals[c, k, m])
        if has_edges and (i != k or j != m):
            total += log_ratio_noise(
                edge_kinds[c, k, m], edge_counts[c, k, m], edge_parameters[c, k, m], tables[c, k, m]
            )
            total -= log_ratio_noise(
                edge_kinds[c, i, j], edge_counts[c, i, j], edge_parameters[c, i, j], tables[c, i, j] - 1
            )
    for c in order:
        i, k = old[c], new[c]
        if i != k:
            total += log_ratio_noise(node_kinds[c, k], node_counts[c, k], node_parameters[c, k], nodes[c, k])
            total -= log_ratio_noise(node_kinds[c, i], node_counts[c, i], node_parameters[c, i], nodes[c, i] - 1)
    return math.log(rng.random()) < total


@njit(cache=True)
def add(amount, c, i, j, move, tables, sums, stamps):
    """Change a cell, after its sum has been brought up to this move."""
    sums[c, i, j] += tables[c, i, j] * (move - stamps[c, i, j])
    stamps[c, i, j] = move
    tables[c, i, j] += amount


@njit(cache=True, nogil=True)
def moves(
    n_moves, order, parent, children, bounds, degrees, sizes, log_tables, which, node_kinds, node_counts, node_parameters,
    edge_kinds, edge_counts, edge_parameters, has_edges, incomplete, paths, conditionals, first, nodes, tables, sums,
    stamps, rng,
):  # fmt: skip
    """Make random moves. Changed in place: nodes (N, L), tables (N, L, L), and sums (N, L, L): the tables after each move.

    stamps (N, L, L) have the move up to which a cell is in its sum, so that a move costs the same whatever the size of the
    tables. With `paths`, a third of all moves change a path: the individual is drawn from the tables, and the change is
    accepted after Metropolis and Hastings. Of the others half are cycles and half change a node. Which cells these change
    does not depend on the tables, and δ is drawn from its conditional law. So each move leaves the posterior invariant.
    incomplete : tables have cells that are forbidden or fixed, so that half of the cycles are long ones.

    It is one function: with the choice of cells and the change of a path in functions of their own, moves took 11 to 28 %
    longer.
    """
    most = 2 * (int(degrees.max()) + 1 + sizes.max()) + 4
    last = np.zeros(sizes.max(), np.int64)
    old_path, new_path = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    signs, kinds, at = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros((most, 3), np.int64)
    n, log_phi, powers = np.zeros(most), np.zeros(most), np.zeros(most)
    counts, parameters = np.zeros(most), np.zeros(most)
    for move in range(n_moves):
        node, old, new = -1, 0, 0
        if paths and rng.random() < 1 / 3:
            if change_path(
                order, parent, log_tables, which, node_kinds, node_counts, node_parameters, edge_kinds, edge_counts,
                edge_parameters, has_edges, conditionals, first, nodes, tables, old_path, new_path, rng,
            ):  # fmt: skip
                for c in order:
                    nodes[c, old_path[c]] -= 1
                    nodes[c, new_path[c]] += 1
                for c in order[1:]:
                    add(-1.0, c, old_path[parent[c]], old_path[c], move, tables, sums, stamps)
                    add(1.0, c, new_path[parent[c]], new_path[c], move, tables, sums, stamps)
            continue
        if rng.random() < 0.5:
            if incomplete and rng.random() < 0.5:
                cells = choose_cycle(
                    order, parent, sizes, log_tables, which, edge_kinds, has_edges, at, signs, last, rng
                )  # fmt: skip
            else:
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
                add(signs[k] * delta, at[k, 0], at[k, 1], at[k, 2], move, tables, sums, stamps)
            if node >= 0:
                nodes[node, old] -= delta
                nodes[node, new] += delta
    for c in order[1:]:
        for i in range(sums.shape[1]):
            for j in range(sums.shape[2]):
                sums[c, i, j] += tables[c, i, j] * (n_moves - stamps[c, i, j])
