"""Numba kernels of belief propagation on a rooted tree, pure and on one thread.

Nodes are padded to L states. `tables[table_index[c]]` (L, L) is the potential of the edge above node c, parent's state
first. Messages are scaled to a largest entry of one. Kernels compile when called, so a process may still fork.
"""

import math

import numpy as np
from numba import njit

POISSON, GAUSSIAN, LAPLACE, EXACT = 1, 2, 3, 4  # codes of the noise models, where 0 is no count
FAST = {"nsz", "arcp", "contract", "reassoc"}
MIN_ROW_SUM, MIN_PROBABILITY = 1e-150, 1e-100  # of a row in scaled numbers: smaller ones may have lost a part
MIN_LOG_WEIGHT = -1100.0  # relative to the largest: below it a probability is zero, given `MIN_ROW_SUM`
TINY = 1e-290  # relative to the largest entry: smaller entries become zero, because denormal numbers are slow


@njit(cache=True, fastmath=FAST)
def dot(a, b):
    total = 0.0
    for j in range(b.size):
        total += a[j] * b[j]
    return total


@njit(cache=True, fastmath=FAST)
def matvec(table, v, out):
    for i in range(table.shape[0]):
        out[i] = dot(table[i], v)


@njit(cache=True, fastmath=FAST)
def matvec_transposed(table, v, out):
    """Write tableᵀ · v to `out`, without the rows of weight zero."""
    out[:] = 0.0
    for i in range(table.shape[0]):
        a, row = v[i], table[i]
        if a != 0.0:
            for j in range(out.size):
                out[j] += a * row[j]


@njit(cache=True)
def rescale(v, out):
    """Write v, scaled to a largest entry of one, without tiny entries. Returns the scale, 0 where v is zero."""
    top = v.max()
    if not top > 0.0 or top == math.inf:
        return 0.0
    for i in range(v.size):
        out[i] = v[i] / top if v[i] > TINY * top else 0.0
    return top


@njit(cache=True)
def sweep(tables, table_index, tree, weights, messages):
    """Fill messages, for weights (N, L) exp(node potentials). Returns log Z, NaN if all of a message is zero."""
    order, parent, children, bounds = tree.order, tree.parent, tree.children, tree.bounds
    subtree, context, raw_up, raw_down, marginals = messages
    n, size = weights.shape
    up, down = np.ones((n, size)), np.ones((n, size))
    log_z = 0.0
    for k in range(n - 1, -1, -1):
        c = order[k]
        s = rescale(subtree[c], subtree[c])
        if s == 0.0:
            return math.nan
        log_z += math.log(s)
        if k > 0:
            matvec(tables[table_index[c]], subtree[c], raw_up[c])
            s = rescale(raw_up[c], up[c])
            if s == 0.0:
                return math.nan
            log_z += math.log(s)
            for i in range(size):
                subtree[parent[c], i] *= up[c, i]
    log_z += math.log(subtree[order[0]].sum())
    for k in range(n):
        c = order[k]
        if k > 0:
            p = parent[c]
            for i in range(size):
                context[c, i] = weights[p, i] * down[p, i]
            for q in range(bounds[p], bounds[p + 1]):
                if children[q] != c:
                    for i in range(size):
                        context[c, i] *= up[children[q], i]
            if rescale(context[c], context[c]) == 0.0:
                return math.nan
            matvec_transposed(tables[table_index[c]], context[c], raw_down[c])
            if rescale(raw_down[c], down[c]) == 0.0:
                return math.nan
        total = 0.0
        for i in range(size):
            marginals[c, i] = subtree[c, i] * down[c, i]
            total += marginals[c, i]
        if not total > 0.0:
            return math.nan
        for i in range(size):
            marginals[c, i] /= total
    return log_z


@njit(cache=True, fastmath=FAST)
def multiply_row(row, weights, out):
    """Write row · weights, entry by entry, to `out` and return the sum."""
    total = 0.0
    for j in range(weights.size):
        out[j] = row[j] * weights[j]
        total += out[j]
    return total


@njit(cache=True)
def log_sum_exp(v):
    top = v.max()
    if top == -math.inf:
        return top
    total = 0.0
    for i in range(v.size):
        total += math.exp(v[i] - top)
    return top + math.log(total)


@njit(cache=True)
def log_sweep(log_tables, tables, log_scales, table_index, tree, potentials, conditionals, marginals):
    """Fill conditionals (N, L, L), P(node = j | parent = i), and marginals (N, L) in log space. Returns log Z."""
    (n, size), order, parent = potentials.shape, tree.order, tree.parent
    subtree, weights, row, alive = potentials.copy(), np.empty(size), np.empty(size), np.empty(size, np.int64)
    for k in range(n - 1, 0, -1):
        c, count = order[k], 0
        top = subtree[c].max()
        log_table, table, into = log_tables[table_index[c]], tables[table_index[c]], conditionals[c]
        for j in range(size):
            weights[j] = 0.0
            if subtree[c, j] - top > MIN_LOG_WEIGHT:
                weights[j] = math.exp(subtree[c, j] - top)
                alive[count] = j
                count += 1
        for i in range(size):
            scaled = multiply_row(table[i], weights, into[i])
            if scaled > MIN_ROW_SUM:
                total = math.log(scaled) + top + log_scales[table_index[c]]
                for j in range(size):
                    into[i, j] /= scaled
                for q in range(count):
                    j = alive[q]
                    if into[i, j] < MIN_PROBABILITY:
                        into[i, j] = math.exp(log_table[i, j] + subtree[c, j] - total)
            else:
                for j in range(size):
                    row[j] = log_table[i, j] + subtree[c, j]
                total = log_sum_exp(row)
                for j in range(size):
                    into[i, j] = math.exp(row[j] - total) if total > -math.inf else 0.0
            subtree[parent[c], i] += total
    root = order[0]
    log_z = log_sum_exp(subtree[root])
    for j in range(size):
        marginals[root, j] = math.exp(subtree[root, j] - log_z)
    for k in range(1, n):
        c = order[k]
        matvec_transposed(conditionals[c], marginals[parent[c]], marginals[c])
    return log_z


@njit(cache=True)
def covariance_product(tables, table_index, tree, messages, v, out, pairs, w, out_pairs):
    """Write covariances with Σ v(x) + Σ w(x, x′) of nodes to `out` (N, L) and, if w is not None, of edges (N, L, L).

    v (N, L) and w (N, L, L) are a direction of node and edge potentials, pairs (N, L, L) the marginals of edges. The
    messages are those of a sweep.
    """
    (n, size), order, parent = v.shape, tree.order, tree.parent
    subtree, context, raw_up, raw_down, marginals = messages
    above, outside, scratch = np.zeros((n, size)), np.zeros((n, size)), np.empty(size)
    collected = v.copy()
    for k in range(n - 1, 0, -1):
        c, p = order[k], parent[order[k]]
        table = tables[table_index[c]]
        if w is None:
            for j in range(size):
                scratch[j] = subtree[c, j] * collected[c, j]
            matvec(table, scratch, above[c])
        else:
            for i in range(size):
                total, row, extra_row = 0.0, table[i], w[c, i]
                for j in range(size):
                    total += row[j] * subtree[c, j] * (collected[c, j] + extra_row[j])
                above[c, i] = total
        for i in range(size):
            above[c, i] = above[c, i] / raw_up[c, i] if raw_up[c, i] > 0.0 else 0.0
            collected[p, i] += above[c, i]
    for k in range(1, n):
        c, p = order[k], parent[order[k]]
        table, into = tables[table_index[c]], outside[c]
        if w is None:
            for i in range(size):
                scratch[i] = context[c, i] * (collected[p, i] - above[c, i] + outside[p, i])
            matvec_transposed(table, scratch, into)
        else:
            for i in range(size):
                a = context[c, i]
                if a != 0.0:
                    shared, row, extra_row = collected[p, i] - above[c, i] + outside[p, i], table[i], w[c, i]
                    for j in range(size):
                        into[j] += a * row[j] * (shared + extra_row[j])
        for j in range(size):
            into[j] = into[j] / raw_down[c, j] if raw_down[c, j] > 0.0 else 0.0
    root, mean = order[0], 0.0
    for j in range(size):
        mean += marginals[root, j] * collected[root, j]
    for c in range(n):
        for j in range(size):
            out[c, j] = marginals[c, j] * (collected[c, j] + outside[c, j] - mean)
    if w is not None:
        for c in order[1:]:
            p = parent[c]
            for i in range(size):
                shared = collected[p, i] - above[c, i] + outside[p, i] - mean
                for j in range(size):
                    out_pairs[c, i, j] = pairs[c, i, j] * (shared + w[c, i, j] + collected[c, j])


@njit(cache=True, fastmath=FAST)
def mix_edge_marginals(tables, table_index, tree, messages, keep, factor, out):
    """Set `out` (N, L, L) to keep · out + factor · P(parent = i, node = j), except at the root."""
    subtree, context, raw_up, _, _ = messages
    for k in range(1, tree.order.size):
        c, total = tree.order[k], 0.0
        for i in range(context.shape[1]):
            total += context[c, i] * raw_up[c, i]
        table, last = tables[table_index[c]], subtree[c]
        for i in range(context.shape[1]):
            a, row, into = factor * context[c, i] / total, table[i], out[c, i]
            for j in range(last.size):
                into[j] = keep * into[j] + a * row[j] * last[j]


@njit(cache=True)
def tilt(tables, table_index, order, potentials, out):
    """Write the table of each edge times exp(potentials) to `out` (N, L, L)."""
    for k in range(1, order.size):
        c = order[k]
        table = tables[table_index[c]]
        for i in range(table.shape[0]):
            for j in range(table.shape[1]):
                out[c, i, j] = table[i, j] * math.exp(potentials[c, i, j]) if table[i, j] > 0.0 else 0.0


@njit(cache=True, inline="always")
def loss_gradient(code, y, parameter, z):
    """Return ℓ′(z) of a count. The parameter is the rate of Poisson noise, the scale of Gaussian and Laplace noise."""
    if code == POISSON:
        return parameter - (y / max(z, 1e-300) if y > 0 else 0.0)
    if code == GAUSSIAN:
        return (z - y) / (parameter * parameter)
    if code == LAPLACE:
        return (1.0 if z > y else -1.0 if z < y else 0.0) / parameter
    return 0.0


@njit(cache=True)
def _fill_node_factors(p, tree, degrees, observed, row_sums, column_sums, out):
    """Write exp(−ℓ′/ν) of node p to `out`, at the mean of its edges' sums."""
    for x in range(out.size):
        z = column_sums[p, x] if tree.parent[p] >= 0 else 0.0
        for q in range(tree.bounds[p], tree.bounds[p + 1]):
            z += row_sums[tree.children[q], x]
        z /= degrees[p]
        slope = loss_gradient(observed.codes[p, x], observed.counts[p, x], observed.parameters[p, x], z)
        out[x] = math.exp(min(-slope / degrees[p], 700.0))


@njit(cache=True)
def _multiply_messages(p, without, tree, up, down, states, out):
    """Write the product of the messages to node p, without that along edge `without`, to `out`."""
    for x in range(out.size):
        out[x] = 1.0 if states[p, x] else 0.0
    if tree.parent[p] >= 0 and p != without:
        for x in range(out.size):
            out[x] *= down[p, x]
    for q in range(tree.bounds[p], tree.bounds[p + 1]):
        if tree.children[q] != without:
            for x in range(out.size):
                out[x] *= up[tree.children[q], x]
    rescale(out, out)


@njit(cache=True)
def _update_table(c, tree, states, population, damping, state, a, b):
    """Update the table of edge c from its potential and the messages, with damping (eq. 2.10). a, b : (L,) scratch."""
    up, down, potentials, z, row_sums, column_sums = state
    _multiply_messages(tree.parent[c], c, tree, up, down, states, a)
    _multiply_messages(c, c, tree, up, down, states, b)
    total = 0.0
    for i in range(a.size):
        total += a[i] * dot(potentials[c, i], b)
    if not total > 0.0 or total == math.inf:
        return
    factor = damping * population / total
    column_sums[c] = 0.0
    for i in range(a.size):
        row_sums[c, i] = _mix_row(z[c, i], 1 - damping, potentials[c, i], factor * a[i], b, column_sums[c])


@njit(cache=True, fastmath=FAST)
def _mix_row(row, keep, potentials, factor, weights, column_sums):
    """Set row to keep · row + factor · potentials · weights, add it to `column_sums` and return its sum."""
    total = 0.0
    for j in range(row.size):
        new = keep * row[j] + factor * potentials[j] * weights[j]
        row[j] = new
        column_sums[j] += new
        total += new
    return total


@njit(cache=True)
def _update_edge_potential(c, table, parent_factors, child_factors, observed, has_edges, z, edge):
    """Write the potential of the edge above c given the evidence (eq. 2.8, with the sign of its gradient) to `edge`."""
    codes, counts, parameters = observed
    for i in range(len(edge)):
        for j in range(len(edge)):
            edge[i, j] = table[i, j] * parent_factors[i] * child_factors[j]
            if has_edges and codes[c, i, j] > 0:
                force = -loss_gradient(codes[c, i, j], counts[c, i, j], parameters[c, i, j], z[c, i, j])
                edge[i, j] *= math.exp(min(force, 700.0))


@njit(cache=True)
def run_naive_round(tables, table_index, tree, degrees, states, evidence, population, damping, state):
    """Algorithm 1 (Sun 2019), one round: potential (eq. 2.8), message, then tables of all edges that depend on it.

    state : what changes: messages to the parent and from it (N, L), potentials and tables z (N, L, L), and the sums of
    the rows and of the columns of z (N, L).
    """
    order, parent, children, bounds = tree.order, tree.parent, tree.children, tree.bounds
    up, down, potentials, z, row_sums, column_sums = state
    n, size = up.shape
    parent_factors, child_factors, into, scratch, new = np.empty((5, size))
    for turn in range(2 * n):
        upward = turn < n
        c = order[n - 1 - turn] if upward else order[turn - n]
        p = parent[c]
        if p < 0:
            continue
        _fill_node_factors(p, tree, degrees, evidence.nodes, row_sums, column_sums, parent_factors)
        _fill_node_factors(c, tree, degrees, evidence.nodes, row_sums, column_sums, child_factors)
        factors = tables[table_index[c]], parent_factors, child_factors
        _update_edge_potential(c, *factors, evidence.edges, evidence.has_edges, z, potentials[c])
        old = up[c] if upward else down[c]
        _multiply_messages(c if upward else p, c, tree, up, down, states, into)
        if upward:
            matvec(potentials[c], into, new)
        else:
            matvec_transposed(potentials[c], into, new)
        total = new.sum()
        if total > 0.0 and total < math.inf:
            for x in range(size):
                old[x] = (1 - damping) * old[x] + damping * new[x] / total
        target = p if upward else c
        first = bounds[target] - 2  # the edge itself, then the edge above the target, then those to its children
        for q in range(first, bounds[target + 1]):
            k = c if q == first else target if q == first + 1 else children[q]
            if q == first or (k != c and parent[k] >= 0):
                _update_table(k, tree, states, population, damping, state, into, scratch)


@njit(cache=True)
def fill_softmax_moments(features, allowed, weights, theta, skip, gradient, hessian):
    """Return Σ w log Σ_j exp(θ·f(t, i, j)) over allowed j and w > `skip`. Fill gradient (K,), Hessian (K, K)."""
    steps, size, _, k = features.shape
    total, scores = 0.0, np.empty(size)
    mean, square = np.empty(k), np.empty((k, k))
    gradient[:] = 0.0
    hessian[:] = 0.0
    for t in range(steps):
        for i in range(size):
            w = weights[t, i]
            if w <= skip:
                continue
            top = -math.inf
            for j in range(size):
                s = 0.0 if allowed[i, j] else -math.inf
                for a in range(k):
                    s += theta[a] * features[t, i, j, a]
                scores[j] = s
                top = max(top, s)
            z = 0.0
            mean[:] = 0.0
            square[:] = 0.0
            for j in range(size):
                p = math.exp(scores[j] - top)
                if p < 1e-18:
                    continue
                z += p
                for a in range(k):
                    f = p * features[t, i, j, a]
                    mean[a] += f
                    for b in range(a + 1):
                        square[a, b] += f * features[t, i, j, b]
            total += w * (top + math.log(z))
            for a in range(k):
                gradient[a] += w * mean[a] / z
                for b in range(a + 1):
                    hessian[a, b] += w * (square[a, b] / z - mean[a] * mean[b] / (z * z))
    for a in range(k):
        for b in range(a):
            hessian[b, a] = hessian[a, b]
    return total
