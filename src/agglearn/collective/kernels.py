"""Numba kernels of belief propagation on a rooted tree. Pure: arrays in, arrays changed in place, nothing else.

Layout. Nodes have up to L states (rows of fewer are padded by states of potential zero). Edge c joins node c to its
parent p: `tables[which[c]]` is its (L, L) potential, parent's state first. `order` lists nodes, parents first;
children of node p are `children[bounds[p]:bounds[p + 1]]`. A sweep goes up the tree and down again; every message is
scaled to a largest entry of one, the logarithms of the scales add up to log Z.

Sums run in one fixed order on one thread: results do not depend on the number of threads. Kernels compile when first
called, not when imported: a process that imports this may still fork.
"""

import math

import numpy as np
from numba import njit

FAST = {"nsz", "arcp", "contract", "reassoc"}
LEAST_SUM, LEAST_SHARE = 1e-150, 1e-100  # of a row in scaled numbers; smaller ones may have vanished in part
HOPELESS = -1100.0  # logarithm beside the largest weight below which a share is zero, given `LEAST_SUM`
TINY = 1e-290  # smaller entries are nothing beside the largest, and denormal numbers are slow


@njit(cache=True, fastmath=FAST)
def times(table, v, out):
    """out = table · v; one row at a time."""
    for i in range(table.shape[0]):
        total, row = 0.0, table[i]
        for j in range(v.size):
            total += row[j] * v[j]
        out[i] = total


@njit(cache=True, fastmath=FAST)
def times_transposed(table, v, out):
    """out = tableᵀ · v; rows of weight zero are skipped."""
    out[:] = 0.0
    for i in range(table.shape[0]):
        a, row = v[i], table[i]
        if a != 0.0:
            for j in range(out.size):
                out[j] += a * row[j]


@njit(cache=True)
def rescale(v):
    """Scale v to a largest entry of one and drop what is nothing beside it; returns the scale, 0 where v is zero."""
    top = 0.0
    for i in range(v.size):
        top = max(top, v[i])
    if not top > 0.0 or top == math.inf:
        return 0.0
    for i in range(v.size):
        v[i] = v[i] / top if v[i] > TINY * top else 0.0
    return top


@njit(cache=True)
def sweep(tables, which, order, parent, children, bounds, weights, outer, inner, den_up, den_down, marginals):
    """Belief propagation, up and down; returns log Z, or NaN where all of a message is zero.

    weights : (N, L) exponentials of node potentials. Filled, all (N, L):
    outer : weight of a node times the messages of its children. inner : the same of the parent without this child,
    times its message from above. den_up : message up before scaling. den_down : message down before scaling.
    marginals : of nodes, rows add up to one.

    Rows are copied in loops: an assignment of arrays takes numba three seconds to compile.
    """
    n, size = weights.shape
    up, down = np.ones((n, size)), np.ones((n, size))
    for c in range(n):
        for i in range(size):
            outer[c, i] = weights[c, i]
    log_z = 0.0
    for k in range(n - 1, -1, -1):
        c = order[k]
        s = rescale(outer[c])
        if s == 0.0:
            return math.nan
        log_z += math.log(s)
        if k > 0:
            times(tables[which[c]], outer[c], den_up[c])
            for i in range(size):
                up[c, i] = den_up[c, i]
            s = rescale(up[c])
            if s == 0.0:
                return math.nan
            log_z += math.log(s)
            for i in range(size):
                outer[parent[c], i] *= up[c, i]
    log_z += math.log(outer[order[0]].sum())
    for k in range(n):
        c = order[k]
        if k > 0:
            p = parent[c]
            for i in range(size):
                inner[c, i] = weights[p, i] * down[p, i]
            for q in range(bounds[p], bounds[p + 1]):
                if children[q] != c:
                    for i in range(size):
                        inner[c, i] *= up[children[q], i]
            if rescale(inner[c]) == 0.0:
                return math.nan
            times_transposed(tables[which[c]], inner[c], den_down[c])
            for i in range(size):
                down[c, i] = den_down[c, i]
            if rescale(down[c]) == 0.0:
                return math.nan
        total = 0.0
        for i in range(size):
            marginals[c, i] = outer[c, i] * down[c, i]
            total += marginals[c, i]
        if not total > 0.0:
            return math.nan
        for i in range(size):
            marginals[c, i] /= total
    return log_z


@njit(cache=True, fastmath=FAST)
def scaled_row(row, weights, out):
    """Put row · weights, entry by entry, into `out` and return the sum."""
    total = 0.0
    for j in range(weights.size):
        out[j] = row[j] * weights[j]
        total += out[j]
    return total


@njit(cache=True)
def log_sum_exp(v):
    """log Σ exp(v), −inf where all are."""
    top = v[0]
    for i in range(v.size):
        top = max(top, v[i])
    if top == -math.inf:
        return top
    total = 0.0
    for i in range(v.size):
        total += math.exp(v[i] - top)
    return top + math.log(total)


@njit(cache=True)
def log_sweep(log_tables, tables, tops, which, order, parent, potentials, conditionals, marginals):
    """Belief propagation in log space, where nothing vanishes. Returns log Z.

    tables, tops : `log_tables` are log `tables` + `tops`. Filled: conditionals (N, L, L), P(node = j | parent = i), rows of
    impossible i zero, and marginals (N, L).

    A row is summed in scaled numbers where its sum is large enough. Only entries that are too small there take exponentials.
    """
    n, size = potentials.shape
    outer, weights, row, alive = potentials.copy(), np.empty(size), np.empty(size), np.empty(size, np.int64)
    for k in range(n - 1, 0, -1):
        c, top, count = order[k], -math.inf, 0
        log_table, table, into = log_tables[which[c]], tables[which[c]], conditionals[c]
        for j in range(size):
            top = max(top, outer[c, j])
        for j in range(size):
            weights[j] = 0.0
            if outer[c, j] - top > HOPELESS:
                weights[j] = math.exp(outer[c, j] - top)
                alive[count] = j
                count += 1
        for i in range(size):
            scaled = scaled_row(table[i], weights, into[i])
            if scaled > LEAST_SUM:
                total = math.log(scaled) + top + tops[which[c]]
                for j in range(size):
                    into[i, j] /= scaled
                for q in range(count):
                    j = alive[q]
                    if into[i, j] < LEAST_SHARE:
                        into[i, j] = math.exp(log_table[i, j] + outer[c, j] - total)
            else:
                for j in range(size):
                    row[j] = log_table[i, j] + outer[c, j]
                total = log_sum_exp(row)
                for j in range(size):
                    into[i, j] = math.exp(row[j] - total) if total > -math.inf else 0.0
            outer[parent[c], i] += total
    root = order[0]
    log_z = log_sum_exp(outer[root])
    for j in range(size):
        marginals[root, j] = math.exp(outer[root, j] - log_z)
    for k in range(1, n):
        c = order[k]
        times_transposed(conditionals[c], marginals[parent[c]], marginals[c])
    return log_z


@njit(cache=True)
def centred(root, marginals, collected, rest, out):
    """out (N, L): marginals times what a node's own side and the rest contribute, less the mean; returns the mean."""
    mean = 0.0
    for j in range(out.shape[1]):
        mean += marginals[root, j] * collected[root, j]
    for c in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[c, j] = marginals[c, j] * (collected[c, j] + rest[c, j] - mean)
    return mean


@njit(cache=True)
def covariance_product(
    tables, which, order, parent, children, bounds, outer, inner, den_up, den_down, marginals, v, out
):
    """out (N, L) = Cov(1[x_c = j], Σ v(x)) for a direction v (N, L) of node potentials: one pass up, one down.

    With what a sweep left: above[c] = E[v of the subtree | parent], below[c] = E[v of the rest | node].
    """
    n, size = v.shape
    above, rest, work = np.zeros((n, size)), np.zeros((n, size)), np.empty(size)
    collected = v.copy()
    for k in range(n - 1, 0, -1):
        c = order[k]
        for j in range(size):
            work[j] = outer[c, j] * collected[c, j]
        times(tables[which[c]], work, above[c])
        p = parent[c]
        for i in range(size):
            above[c, i] = above[c, i] / den_up[c, i] if den_up[c, i] > 0.0 else 0.0
            collected[p, i] += above[c, i]
    for k in range(1, n):
        c, p = order[k], parent[order[k]]
        for i in range(size):
            work[i] = inner[c, i] * (collected[p, i] - above[c, i] + rest[p, i])
        times_transposed(tables[which[c]], work, rest[c])
        for j in range(size):
            rest[c, j] = rest[c, j] / den_down[c, j] if den_down[c, j] > 0.0 else 0.0
    centred(order[0], marginals, collected, rest, out)


@njit(cache=True, fastmath=FAST)
def mix_edge_marginals(tables, which, order, outer, inner, den_up, keep, factor, out):
    """out (N, L, L) = keep · out + factor · P(parent = i, node = j), but for the root."""
    for k in range(1, order.size):
        c, total = order[k], 0.0
        for i in range(inner.shape[1]):
            total += inner[c, i] * den_up[c, i]
        table, last = tables[which[c]], outer[c]
        for i in range(inner.shape[1]):
            a, row, into = factor * inner[c, i] / total, table[i], out[c, i]
            for j in range(last.size):
                into[j] = keep * into[j] + a * row[j] * last[j]


@njit(cache=True)
def tangent_edges(
    tables, which, order, parent, children, bounds, outer, inner, den_up, den_down, marginals, pairs, v, w, out, out_pairs
):  # fmt: skip
    """As `covariance_product`, for a direction (v, w) of node and edge potentials: covariances of nodes and of edges.

    pairs : (N, L, L) edge marginals; w, out_pairs : (N, L, L).
    """
    n, size = v.shape
    above, rest = np.zeros((n, size)), np.zeros((n, size))
    collected = v.copy()
    for k in range(n - 1, 0, -1):
        c, p = order[k], parent[order[k]]
        table, extra = tables[which[c]], w[c]
        for i in range(size):
            total, row, more = 0.0, table[i], extra[i]
            for j in range(size):
                total += row[j] * outer[c, j] * (collected[c, j] + more[j])
            above[c, i] = total / den_up[c, i] if den_up[c, i] > 0.0 else 0.0
            collected[p, i] += above[c, i]
    for k in range(1, n):
        c, p = order[k], parent[order[k]]
        table, extra, into = tables[which[c]], w[c], rest[c]
        for i in range(size):
            a = inner[c, i]
            if a != 0.0:
                known, row, more = collected[p, i] - above[c, i] + rest[p, i], table[i], extra[i]
                for j in range(size):
                    into[j] += a * row[j] * (known + more[j])
        for j in range(size):
            into[j] = into[j] / den_down[c, j] if den_down[c, j] > 0.0 else 0.0
    mean = centred(order[0], marginals, collected, rest, out)
    for k in range(1, n):
        c, p = order[k], parent[order[k]]
        for i in range(size):
            known = collected[p, i] - above[c, i] + rest[p, i] - mean
            for j in range(size):
                out_pairs[c, i, j] = pairs[c, i, j] * (known + w[c, i, j] + collected[c, j])


@njit(cache=True)
def tilt(tables, which, order, potentials, out):
    """out (N, L, L) = table of each edge times exp(potentials)."""
    for k in range(1, order.size):
        c = order[k]
        table = tables[which[c]]
        for i in range(table.shape[0]):
            for j in range(table.shape[1]):
                out[c, i, j] = table[i, j] * math.exp(potentials[c, i, j]) if table[i, j] > 0.0 else 0.0


@njit(cache=True, inline="always")
def slope(kind, y, parameter, z):
    """ℓ′(z) of a count: kind 0 none, 1 Poisson (rate), 2 Gaussian (scale), 3 Laplace (scale)."""
    if kind == 1:
        return parameter - (y / max(z, 1e-300) if y > 0 else 0.0)
    if kind == 2:
        return (z - y) / (parameter * parameter)
    if kind == 3:
        return (1.0 if z > y else -1.0 if z < y else 0.0) / parameter
    return 0.0


@njit(cache=True)
def _node_slopes(p, order, parent, children, bounds, degrees, kinds, counts, parameters, rows, columns, out):
    """out = exp(−ℓ′/ν) at node p, z_p being the mean of what its edges say."""
    for x in range(out.size):
        z = columns[p, x] if parent[p] >= 0 else 0.0
        for q in range(bounds[p], bounds[p + 1]):
            z += rows[children[q], x]
        z /= degrees[p]
        out[x] = math.exp(min(-slope(kinds[p, x], counts[p, x], parameters[p, x], z) / degrees[p], 700.0))


@njit(cache=True)
def _messages_into(p, without, parent, children, bounds, up, down, states, out):
    """out = product of the messages into node p, but for the one along edge `without`."""
    for x in range(out.size):
        out[x] = 1.0 if states[p, x] else 0.0
    if parent[p] >= 0 and p != without:
        for x in range(out.size):
            out[x] *= down[p, x]
    for q in range(bounds[p], bounds[p + 1]):
        if children[q] != without:
            for x in range(out.size):
                out[x] *= up[children[q], x]
    rescale(out)


@njit(cache=True, fastmath=FAST)
def _inner(a, b):
    total = 0.0
    for j in range(b.size):
        total += a[j] * b[j]
    return total


@njit(cache=True)
def _set_marginals(c, phi, parent, children, bounds, up, down, states, population, damping, z, rows, columns, a, b):
    """Damped update of the table of edge c from potential and messages (eq. 2.10)."""
    _messages_into(parent[c], c, parent, children, bounds, up, down, states, a)
    _messages_into(c, c, parent, children, bounds, up, down, states, b)
    total = 0.0
    for i in range(a.size):
        total += a[i] * _inner(phi[i], b)
    if not total > 0.0 or total == math.inf:
        return
    factor = damping * population / total
    for j in range(b.size):
        columns[c, j] = 0.0
    for i in range(a.size):
        rows[c, i] = _mix_row(z[i], 1 - damping, phi[i], factor * a[i], b, columns[c])


@njit(cache=True, fastmath=FAST)
def _mix_row(row, keep, phi, factor, weights, columns):
    """Set row to keep · row + factor · phi · weights, add it to `columns` and return its sum."""
    total = 0.0
    for j in range(row.size):
        new = keep * row[j] + factor * phi[j] * weights[j]
        row[j] = new
        columns[j] += new
        total += new
    return total


@njit(cache=True)
def _update_potential(c, table, at_parent, at_child, kinds, counts, parameters, has_edges, z, edge):
    """Potential of the edge above node c under the evidence (eq. 2.8, with the sign of its gradient), written to `edge`."""
    for i in range(len(edge)):
        for j in range(len(edge)):
            edge[i, j] = table[i, j] * at_parent[i] * at_child[j]
            if has_edges and kinds[c, i, j] > 0:
                force = -slope(kinds[c, i, j], counts[c, i, j], parameters[c, i, j], z[c, i, j])
                edge[i, j] *= math.exp(min(force, 700.0))


@njit(cache=True)
def naive_round(
    tables, which, order, parent, children, bounds, degrees, states, kinds, counts, parameters, edge_kinds, edge_counts,
    edge_parameters, has_edges, population, damping, up, down, phi, z, rows, columns,
):  # fmt: skip
    """One round of NLBP with the naive schedule (Sun 2019, Algorithm 1): messages in order, up the tree and down.

    Before a message along an edge its potential is updated (eq. 2.8), after it the tables of all edges that depend on
    it. Changed in place: up, down (N, L), messages to and from the parent; phi, z (N, L, L), potentials and tables;
    rows, columns (N, L), their sums.
    """
    n, size = up.shape
    at_parent, at_child, into, other, new = np.empty((5, size))
    for turn in range(2 * n):
        upward = turn < n
        c = order[n - 1 - turn] if upward else order[turn - n]
        p = parent[c]
        if p < 0:
            continue
        _node_slopes(p, order, parent, children, bounds, degrees, kinds, counts, parameters, rows, columns, at_parent)
        _node_slopes(c, order, parent, children, bounds, degrees, kinds, counts, parameters, rows, columns, at_child)
        _update_potential(
            c, tables[which[c]], at_parent, at_child, edge_kinds, edge_counts, edge_parameters, has_edges, z, phi[c]
        )
        old = up[c] if upward else down[c]
        _messages_into(c if upward else p, c, parent, children, bounds, up, down, states, into)
        if upward:
            times(phi[c], into, new)
        else:
            times_transposed(phi[c], into, new)
        total = new.sum()
        if total > 0.0 and total < math.inf:
            for x in range(size):
                old[x] = (1 - damping) * old[x] + damping * new[x] / total
        target = p if upward else c
        for q in range(
            bounds[target] - 2, bounds[target + 1]
        ):  # the edge itself, the target's own, those to its children
            k = c if q == bounds[target] - 2 else target if q == bounds[target] - 1 else children[q]
            if q == bounds[target] - 2 or (k != c and parent[k] >= 0):
                _set_marginals(
                    k, phi[k], parent, children, bounds, up, down, states, population, damping, z[k], rows, columns, into,
                    other,
                )  # fmt: skip


@njit(cache=True)
def softmax_moments(features, allowed, weights, theta, skip, gradient, hessian):
    """Σ w(t, i) log Σ_j exp(θ·f(t, i, j)) with its gradient (K,) and Hessian (K, K), which are filled; rows of weight at
    most `skip` are left out, and so is j where `allowed` (L, L) is false."""
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
