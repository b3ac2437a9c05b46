"""Numba kernels of the Gibbs sampler: moves that keep tables consistent (Sun 2019, eq. 2.5), drawn exactly."""

import math

import numpy as np
from numba import njit

from agglearn.collective.kernels import EXACT, GAUSSIAN, LAPLACE, POISSON

NEGLIGIBLE = 1e-18  # relative to the largest probability


@njit(cache=True, inline="always")
def log_ratio_noise(code, y, parameter, n):
    """log p(y | n + 1) − log p(y | n), 0 for exact counts. The parameter is the rate of Poisson noise, or the scale."""
    if code == POISSON:
        return (y * math.log((n + 1.0) / n) if n > 0 else (math.inf if y > 0 else 0.0)) - parameter
    if code == GAUSSIAN:
        return ((n - y) ** 2 - (n + 1.0 - y) ** 2) / (2 * parameter * parameter)
    if code == LAPLACE:
        return (abs(n - y) - abs(n + 1.0 - y)) / parameter
    return 0.0


@njit(cache=True, inline="always")
def log_ratio_cell(observed, cell, n):
    """Return `log_ratio_noise` of a cell of `CellCounts`."""
    return log_ratio_noise(observed.codes[cell], observed.counts[cell], observed.parameters[cell], n)


@njit(cache=True)
def draw_delta(low, high, n_cells, change, uniform):
    """Draw δ in [low, high] from p(δ) ∝ Π_k φ^(sδ) / ((n + sδ)!)^power · p(y | n + sδ), without exact counts.

    change : signs s, log φ and powers of the cells that change together, edge cells first, then the two states of a
    node. Then codes, counts and parameters of their noise, and present counts n. All are arrays of the largest number of cells.
    """
    mode = 0
    while mode < high and log_step_ratio(mode, n_cells, change) > 0:
        mode += 1
    if mode == 0:
        while mode > low and log_step_ratio(mode - 1, n_cells, change) < 0:
            mode -= 1
    total = 1.0
    for direction in (-1, 1):
        delta, weight = mode, 1.0
        while weight > NEGLIGIBLE and low <= delta + direction <= high:
            weight *= math.exp(direction * log_step_ratio(min(delta, delta + direction), n_cells, change))
            delta += direction
            total += weight
    remaining = uniform * total - 1.0
    for direction in (-1, 1):
        delta, weight = mode, 1.0
        while remaining >= 0 and weight > NEGLIGIBLE and low <= delta + direction <= high:
            weight *= math.exp(direction * log_step_ratio(min(delta, delta + direction), n_cells, change))
            delta += direction
            remaining -= weight
        if remaining < 0:
            return delta
    return mode


@njit(cache=True)
def log_step_ratio(delta, n_cells, change):
    signs, log_phi, powers, codes, counts, parameters, n = change
    total = 0.0
    for k in range(n_cells):
        now = n[k] + signs[k] * delta
        if signs[k] > 0:
            total += log_phi[k] - powers[k] * math.log(now + 1.0)
            total += log_ratio_noise(codes[k], counts[k], parameters[k], now)
        else:
            total += powers[k] * math.log(now) - log_phi[k]
            total -= log_ratio_noise(codes[k], counts[k], parameters[k], now - 1.0)
    return total


@njit(cache=True)
def choose_rectangle(tree, sizes, cells, signs, rng):
    """Write the four cells of two random rows and columns of a random table. Returns 4, or 0 if two are equal."""
    c = tree.order[1 + rng.integers(0, tree.order.size - 1)]
    rows, columns = sizes[tree.parent[c]], sizes[c]
    i, j = rng.integers(0, rows), rng.integers(0, columns)
    a, b = rng.integers(0, rows), rng.integers(0, columns)
    if i == a or j == b:
        return 0
    for k in range(4):
        cells[k, 0] = c
        cells[k, 1] = i if k < 2 else a
        cells[k, 2] = j if k % 2 == 0 else b
        signs[k] = 1 if k in (0, 3) else -1
    return 4


@njit(cache=True)
def choose_cycle(tree, sizes, log_tables, table_index, evidence, cells, signs, last, rng):
    """Write the cells of a random cycle in a random table, and return their number, or 0. `last` (L,) is scratch."""
    c = tree.order[1 + rng.integers(0, tree.order.size - 1)]
    rows, columns = sizes[tree.parent[c]], sizes[c]
    last[:] = -1
    row, column, n_cells = rng.integers(0, rows), -1, 0
    while True:
        last[row] = n_cells
        for turn in range(2):
            before, is_free = column if turn == 0 else row, False
            for _ in range(8 * max(rows, columns)):
                candidate = rng.integers(0, columns if turn == 0 else rows)
                i, j = (row, candidate) if turn == 0 else (candidate, column)
                is_exact = evidence.has_edges and evidence.edges.codes[c, i, j] == EXACT
                if candidate != before and log_tables[table_index[c], i, j] > -math.inf and not is_exact:
                    is_free = True
                    break
            if not is_free:
                return 0
            cells[n_cells, 0], cells[n_cells, 1], cells[n_cells, 2] = c, i, j
            signs[n_cells] = 1 if turn == 0 else -1
            n_cells += 1
            row, column = (row, candidate) if turn == 0 else (candidate, column)
        if last[row] >= 0:
            break
    first = last[row]
    if cells[first, 2] == cells[n_cells - 1, 2]:  # the walk returns on its first cell, which would move twice
        return 0
    for k in range(first, n_cells):
        for axis in range(3):  # an assignment of arrays takes numba three seconds to compile
            cells[k - first, axis] = cells[k, axis]
        signs[k - first] = signs[k]
    return n_cells - first


@njit(cache=True)
def choose_shift(node, tree, sizes, old, new, cells, signs, rng):
    """Write one cell of state `old` and one of `new`, with a random state at the other end, in each table at a node."""
    n_cells = 0
    for q in range(tree.bounds[node] - 1, tree.bounds[node + 1]):  # the edge above the node comes first
        upward = q < tree.bounds[node]
        edge = node if upward else tree.children[q]
        if tree.parent[edge] < 0:
            continue
        opposite = rng.integers(0, sizes[tree.parent[node] if upward else edge])
        for s in range(2):
            state = old if s == 0 else new
            cells[n_cells, 0] = edge
            cells[n_cells, 1], cells[n_cells, 2] = (opposite, state) if upward else (state, opposite)
            signs[n_cells] = -1 if s == 0 else 1
            n_cells += 1
    return n_cells


@njit(cache=True)
def delta_limits(n_cells, cells, signs, tables):
    low, high = -(10**15), 10**15
    for k in range(n_cells):
        count = int(tables[cells[k, 0], cells[k, 1], cells[k, 2]])
        if signs[k] > 0:
            low = max(low, -count)
        else:
            high = min(high, count)
    return low, high


@njit(cache=True)
def fill_cells(n_cells, cells, tables, log_tables, table_index, evidence, change):
    """Fill a change with edge cells. Returns False if one is forbidden or observed exactly."""
    edge_codes, edge_counts, edge_parameters = evidence.edges
    _, log_phi, powers, codes, counts, parameters, n = change
    for k in range(n_cells):
        c, i, j = cells[k, 0], cells[k, 1], cells[k, 2]
        n[k], powers[k], codes[k] = tables[c, i, j], 1.0, 0
        log_phi[k] = log_tables[table_index[c], i, j]
        if evidence.has_edges:
            codes[k], counts[k] = edge_codes[c, i, j], edge_counts[c, i, j]
            parameters[k] = edge_parameters[c, i, j]
        if log_phi[k] == -math.inf or codes[k] == EXACT:
            return False
    return True


@njit(cache=True)
def pick(weights, total, uniform):
    """Return an index, with a probability in proportion to its weight."""
    remaining, index = uniform * total, -1
    for k in range(weights.size):
        if weights[k] > 0:
            index = k
            remaining -= weights[k]
            if remaining < 0:
                break
    return index


@njit(cache=True)
def change_path(tree, log_tables, table_index, evidence, conditionals, first, nodes, tables, old, new, rng):
    """Draw an individual's path `old` (N,), and `new` from the chain (conditionals, first). Returns whether to move."""
    root = tree.order[0]
    old[root], new[root] = pick(nodes[root], nodes[root].sum(), rng.random()), pick(first, first.sum(), rng.random())
    total = math.log(first[old[root]]) - math.log(first[new[root]])
    for c in tree.order[1:]:
        p = tree.parent[c]
        i, k = old[p], new[p]
        old[c] = pick(tables[c, i], nodes[p, i], rng.random())
        new[c] = pick(conditionals[c, k], conditionals[c, k].sum(), rng.random())
        j, m = old[c], new[c]
        total += log_tables[table_index[c], k, m] - log_tables[table_index[c], i, j]
        total += math.log(conditionals[c, i, j]) - math.log(conditionals[c, k, m])
        if evidence.has_edges and (i != k or j != m):
            total += log_ratio_cell(evidence.edges, (c, k, m), tables[c, k, m])
            total -= log_ratio_cell(evidence.edges, (c, i, j), tables[c, i, j] - 1)
    for c in tree.order:
        i, k = old[c], new[c]
        if i != k:
            total += log_ratio_cell(evidence.nodes, (c, k), nodes[c, k])
            total -= log_ratio_cell(evidence.nodes, (c, i), nodes[c, i] - 1)
    return math.log(rng.random()) < total


@njit(cache=True)
def add(amount, c, i, j, move, tables, sums, stamps):
    """Change a cell, and bring its sum up to this move."""
    sums[c, i, j] += tables[c, i, j] * (move - stamps[c, i, j])
    stamps[c, i, j] = move
    tables[c, i, j] += amount


@njit(cache=True, inline="always")
def exchange_paths(move, tree, old, new, nodes, tables, sums, stamps):
    for c in tree.order:
        nodes[c, old[c]] -= 1
        nodes[c, new[c]] += 1
    for c in tree.order[1:]:
        add(-1.0, c, old[tree.parent[c]], old[c], move, tables, sums, stamps)
        add(1.0, c, new[tree.parent[c]], new[c], move, tables, sums, stamps)


@njit(cache=True, inline="always")
def fill_states(n_cells, node, old, new, degrees, nodes, observed, change):
    """Fill a change with two states of a node, behind its edge cells."""
    signs, log_phi, powers, codes, counts, parameters, n = change
    for s in range(2):
        k, x = n_cells + s, old if s == 0 else new
        n[k], signs[k], codes[k] = nodes[node, x], -1 if s == 0 else 1, observed.codes[node, x]
        log_phi[k], powers[k] = 0.0, 1.0 - degrees[node]
        counts[k], parameters[k] = observed.counts[node, x], observed.parameters[node, x]


@njit(cache=True, nogil=True)
def make_moves(
    n_moves, tree, degrees, sizes, log_tables, table_index, evidence, incomplete, needs_paths, conditionals, first, nodes,
    tables, sums, stamps, rng,
):  # fmt: skip
    """Make random moves that leave the posterior invariant. nodes (N, L) and tables (N, L, L) change in place.

    sums (N, L, L) add up the tables after each move, each cell up to the move in stamps (N, L, L), its last change.
    With `needs_paths` a third of the moves change a path. Of the others half are cycles, half change a node.
    """
    max_cells = 2 * (int(degrees.max()) + 1 + sizes.max()) + 4
    last = np.zeros(sizes.max(), np.int64)
    old_path, new_path = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    signs, codes = np.zeros(max_cells, np.int64), np.zeros(max_cells, np.int64)
    cells, numbers = np.zeros((max_cells, 3), np.int64), np.zeros((5, max_cells))
    change = signs, numbers[0], numbers[1], codes, numbers[2], numbers[3], numbers[4]
    for move in range(n_moves):
        node, old, new = -1, 0, 0
        if needs_paths and rng.random() < 1 / 3:
            if change_path(
                tree, log_tables, table_index, evidence, conditionals, first, nodes, tables, old_path, new_path, rng
            ):
                exchange_paths(move, tree, old_path, new_path, nodes, tables, sums, stamps)
            continue
        if rng.random() >= 0.5:
            node = rng.integers(0, len(nodes))
            old, new = rng.integers(0, sizes[node]), rng.integers(0, sizes[node])
            n_cells = choose_shift(node, tree, sizes, old, new, cells, signs, rng) if old != new else 0
        elif incomplete and rng.random() < 0.5:
            n_cells = choose_cycle(tree, sizes, log_tables, table_index, evidence, cells, signs, last, rng)
        else:
            n_cells = choose_rectangle(tree, sizes, cells, signs, rng)
        low, high = delta_limits(n_cells, cells, signs, tables)
        if n_cells == 0 or low >= high:
            continue
        if not fill_cells(n_cells, cells, tables, log_tables, table_index, evidence, change):
            continue
        total = n_cells
        if node >= 0:
            if evidence.nodes.codes[node, old] == EXACT or evidence.nodes.codes[node, new] == EXACT:
                continue
            fill_states(n_cells, node, old, new, degrees, nodes, evidence.nodes, change)
            total += 2
        delta = draw_delta(low, high, total, change, rng.random())
        if delta != 0:
            for k in range(n_cells):
                add(signs[k] * delta, cells[k, 0], cells[k, 1], cells[k, 2], move, tables, sums, stamps)
            if node >= 0:
                nodes[node, old] -= delta
                nodes[node, new] += delta
