"""Numba kernels of vocabulary compression. Pure: arrays in, arrays out. They hold no lock of the interpreter.

Values have ranks 0 … n − 1 by label rate. N and C are prefix sums over ranks, (n + 1,) float64: ranks i … j − 1 have
N[j] − N[i] records, C[j] − C[i] of label 1. Cut k is before rank k. Information is in nats × records.
"""

import heapq

import numpy as np
from numba import njit

from agglearn.observations.kernels import mix

FEW = 512  # records from which pairs of count and label sum are not numbered
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True, inline="always")
def information(n, c, p):
    """n·f(c/n), f(t) = t·log(t/p) + (1 − t)·log((1 − t)/(1 − p)) (Bateni et al. 2019, eq. 3), or c²/n where p is NaN."""
    if np.isnan(p):
        return c * c / n
    r, out = c / n, 0.0
    if c > 0:
        out += c * np.log(r / p)
    if n > c:
        out += (n - c) * np.log((1 - r) / (1 - p))
    return out


@njit(cache=True, nogil=True, inline="always")
def split_gain(n1, c1, n2, c2):
    """Δ of eq. 2, as a divergence: small gains keep their digits."""
    n, c, out = n1 + n2, c1 + c2, 0.0
    if c1 > 0:
        out += c1 * np.log(c1 * n / (n1 * c))
    if n1 > c1:
        out += (n1 - c1) * np.log((n1 - c1) * n / (n1 * (n - c)))
    if c2 > 0:
        out += c2 * np.log(c2 * n / (n2 * c))
    if n2 > c2:
        out += (n2 - c2) * np.log((n2 - c2) * n / (n2 * (n - c)))
    return max(out, 0.0)


@njit(cache=True, nogil=True, inline="always")
def gain_of(N, C, left, k, right):
    return split_gain(N[k] - N[left], C[k] - C[left], N[right] - N[k], C[right] - C[k])


@njit(cache=True, nogil=True)
def pair_keys(counts, sums):
    """(U,) keys n(n + 1)/2 + c of units with whole count n < FEW and label sum c, else −1, and units by key."""
    keys, times = np.empty(counts.size, np.int32), np.zeros(FEW * (FEW + 1) // 2, np.int64)
    for u in range(counts.size):
        n, c = np.int64(counts[u]) if counts[u] < FEW else FEW, np.int64(sums[u]) if sums[u] < FEW else FEW
        if n < FEW and n == counts[u] and c == sums[u]:
            keys[u] = n * (n + 1) // 2 + c
            times[keys[u]] += 1
        else:
            keys[u] = -1
    return keys, times


@njit(cache=True, nogil=True)
def stochastic_greedy(N, C, bounds, weights, cuts, sample, seed):
    """Lazier-than-lazy greedy (Mirzasoleiman et al. 2015). weights[d] multiply gains from rank bounds[d] on."""
    n = N.size - 1
    left, right = np.empty(bounds.size - 1 + cuts, np.int64), np.empty(bounds.size - 1 + cuts, np.int64)
    weight = np.empty(left.size)
    segment, candidates, m = np.empty(n, np.int32), np.empty(n, np.int32), 0
    for d in range(bounds.size - 1):
        left[d], right[d], weight[d] = bounds[d], bounds[d + 1], weights[d]
        segment[bounds[d] : bounds[d + 1]] = d
        for k in range(bounds[d] + 1, bounds[d + 1]):
            candidates[m] = k
            m += 1
    order, gains, state = np.empty(cuts, np.int64), np.empty(cuts), np.uint64(seed)
    for t in range(cuts):
        best, position = -1.0, 0
        for u in range(min(sample, m)):
            state += _GOLDEN
            v = u + np.int64(mix(state) % np.uint64(m - u))
            candidates[u], candidates[v] = candidates[v], candidates[u]
            k = candidates[u]
            s = segment[k]
            gain = weight[s] * gain_of(N, C, left[s], k, right[s])
            if gain > best:
                best, position = gain, u
        k, new = np.int64(candidates[position]), bounds.size - 1 + t
        m -= 1
        candidates[position] = candidates[m]
        order[t], gains[t] = k, best
        s = segment[k]
        if k - left[s] < right[s] - k:
            left[new], right[new], left[s] = left[s], k, k
        else:
            left[new], right[new], right[s] = k, right[s], k
        weight[new] = weight[s]
        segment[left[new] : right[new]] = new
    return order, gains


@njit(cache=True, nogil=True)
def largest_gain(N, C):
    n, best = N.size - 1, 0.0
    for k in range(1, n):
        best = max(best, gain_of(N, C, 0, k, n))
    return best


@njit(cache=True, nogil=True)
def threshold_cuts(N, C, largest, epsilon, rounds, limit):
    """Cuts by thresholds largest·(1 − ε)^i (Badanidiyuru and Vondrák 2014), and the round of each. Gains only fall."""
    n = N.size - 1
    last, following = np.full(n, np.inf), np.full(n + 1, n, np.int64)
    order, round_of, m = np.empty(min(limit, max(n - 1, 0)), np.int64), np.empty(min(limit, max(n - 1, 0)), np.int64), 0
    for i in range(rounds):
        threshold, before = largest * (1 - epsilon) ** i, 0
        for k in range(1, n):
            if m == order.size:
                return order, round_of
            if k == following[before]:
                before = k
            elif last[k] >= threshold:
                last[k] = gain_of(N, C, before, k, following[before])
                if last[k] >= threshold:
                    following[k], following[before] = following[before], k
                    order[m], round_of[m], before, m = k, i, k, m + 1
    return order[:m], round_of[:m]


@njit(cache=True, nogil=True, inline="always")
def loss_of(N, C, S, p, i, j):
    """Information lost by making ranks i … j − 1 one cluster, for prefix sums S of the information of single ranks."""
    return S[j] - S[i] - information(N[j] - N[i], C[j] - C[i], p)


@njit(cache=True, nogil=True)
def single_information(N, C, p):
    S = np.zeros(N.size)
    for k in range(N.size - 1):
        S[k + 1] = S[k] + information(N[k + 1] - N[k], C[k + 1] - C[k], p)
    return S


@njit(cache=True, nogil=True, inline="always")
def _later_wins(N, C, S, p, best, i, j, end):
    """Whether a cluster that ends before rank `end` should start at j rather than at i < j."""
    return best[j] + loss_of(N, C, S, p, j, end) <= best[i] + loss_of(N, C, S, p, i, end)


@njit(cache=True, nogil=True)
def _first_win(N, C, S, p, best, i, j, low):
    """The first end after `low` for which a start at j wins over i, by galloping, or n + 1 where there is none."""
    n, step, high = N.size - 1, 1, low + 1
    while high <= n and not _later_wins(N, C, S, p, best, i, j, high):
        step, low = 2 * step, high
        high = n + 1 if low == n else min(low + step, n)
    while high <= n and high - low > 1:
        middle = (low + high) // 2
        if _later_wins(N, C, S, p, best, i, j, middle):
            high = middle
        else:
            low = middle
    return high


@njit(cache=True, nogil=True)
def penalised(N, C, S, p, penalty, best, before, start, queue):
    """Return cuts of cheapest clusters, in O(n log n) (Galil and Park 1992), and the loss without penalties."""
    n, head, tail = N.size - 1, 0, 1
    best[0], queue[0], start[0] = 0.0, 0, 1
    for j in range(1, n + 1):
        while head + 1 < tail and start[head + 1] <= j:
            head += 1
        i = queue[head]
        best[j] = best[i] + loss_of(N, C, S, p, i, j) + penalty
        before[j] = i
        if j == n:
            break
        while tail > head + 1 and _later_wins(N, C, S, p, best, queue[tail - 1], j, start[tail - 1]):
            tail -= 1
        end = _first_win(N, C, S, p, best, queue[tail - 1], j, max(j, start[tail - 1]))
        if end <= n:
            queue[tail], start[tail] = j, end
            tail += 1
    clusters, j = 0, n
    while j > 0:
        clusters, j = clusters + 1, before[j]
    cuts, j = np.empty(clusters - 1, np.int64), before[n]
    for k in range(clusters - 2, -1, -1):
        cuts[k] = j
        j = before[j]
    return cuts, best[n] - penalty * clusters


@njit(cache=True, nogil=True)
def dynamic_program(N, C, S, p, limit, divide):
    """Losses (limit + 1, n + 1) and last starts of m clusters of j ranks, O(n²·limit) (Kurkoski and Yagi 2014).

    With `divide` it takes O(n·limit·log n), since the best start moves only forward with the end.
    """
    n = N.size - 1
    loss, starts = np.full((limit + 1, n + 1), np.inf), np.zeros((limit + 1, n + 1), np.int32)
    loss[0, 0] = 0.0
    stack = np.empty((max(4 * 64, n), 4), np.int64)  # ranges of ends and of their starts
    for m in range(1, limit + 1):
        depth = 1 if divide else n - m + 1
        for k in range(depth):
            stack[k, 0], stack[k, 1], stack[k, 2], stack[k, 3] = m + k, n if divide else m + k, m - 1, n - 1
        while depth:
            depth -= 1
            first, last, low, high = stack[depth]
            j = (first + last) // 2
            for i in range(max(low, m - 1), min(high, j - 1) + 1):
                value = loss[m - 1, i] + loss_of(N, C, S, p, i, j)
                if value < loss[m, j]:
                    loss[m, j], starts[m, j] = value, i
            split = np.int64(starts[m, j])
            if first < j:
                stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = first, j - 1, low, split
                depth += 1
            if j < last:
                stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = j + 1, last, split, high
                depth += 1
    return loss, starts


@njit(cache=True, nogil=True)
def agglomerate(N, C, bounds, weights, merges):
    """Merge `merges` times the neighbours whose union loses least, and return (n,) starts: O(n log n)."""
    n = N.size - 1
    starts, before, after = np.ones(n, np.bool_), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    weight, fixed = np.empty(n), np.zeros(n + 1, np.bool_)
    fixed[n] = True
    for d in range(bounds.size - 1):
        fixed[bounds[d]] = True
        weight[bounds[d] : bounds[d + 1]] = weights[d]
    for k in range(n + 1):
        before[k], after[k] = k - 1, k + 1
    heap = [(weight[k] * gain_of(N, C, k - 1, k, k + 1), k, k - 1, k + 1) for k in range(1, n) if not fixed[k]]
    heapq.heapify(heap)
    while merges and len(heap):
        _, k, left, right = heapq.heappop(heap)
        if not starts[k] or before[k] != left or after[k] != right:
            continue  # a neighbour has changed since
        starts[k] = False
        after[left], before[right] = right, left
        merges -= 1
        for k in (left, right):
            if not fixed[k]:
                cost = weight[k] * gain_of(N, C, before[k], k, after[k])
                heapq.heappush(heap, (cost, k, before[k], after[k]))
    return starts


@njit(cache=True, nogil=True)
def information_of(counts, sums, labels, n, c):
    p, preserved, lost = c.sum() / n.sum(), 0.0, 0.0
    for k in range(n.size):
        preserved += information(n[k], c[k], p)
    for u in range(counts.size):
        k = labels[u]
        if 0 < c[k] < n[k]:
            lost += information(counts[u], sums[u], c[k] / n[k])
    return preserved, lost
