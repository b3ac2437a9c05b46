"""Each kernel against plain NumPy, and a wrong version of each that the same check must reject."""

import itertools

import numpy as np
import pytest
from vocabulary_samples import drawn, ranked

from agglearn.vocabulary import kernels


def information_counts(n, c, p):
    r = c / n
    return sum(n * a * np.log(a / b) for a, b in ((r, p), (1 - r, 1 - p)) if a > 0)


def cost_table(N, C, p):
    """(n + 1, n + 1) loss of every interval of places."""
    n = len(N) - 1
    single = [information_counts(N[k + 1] - N[k], C[k + 1] - C[k], p) for k in range(n)]
    out = np.full((n + 1, n + 1), np.inf)
    for i in range(n):
        for j in range(i + 1, n + 1):
            out[i, j] = sum(single[i:j]) - information_counts(N[j] - N[i], C[j] - C[i], p)
    return out


def scratch(n):
    return np.empty(n + 1), *(np.empty(n + 1, np.int32) for _ in range(3))


def check_split_gain(kernel):
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = ((float(n), float(rng.integers(0, n + 1))) for n in rng.integers(1, 50, 2))
        assert kernel(*a, *b) == pytest.approx(_cost(a, b, 0.3), abs=1e-12)


def check_information(kernel):
    for n, c in ((5, 0), (5, 5), (7, 3), (1000, 1)):
        assert kernel(float(n), float(c), 0.2) == pytest.approx(information_counts(n, c, 0.2), rel=1e-12)


def check_greedy(kernel):
    """With every candidate asked, it is the greedy algorithm: compared with one that recomputes everything."""
    (N, C, _), m = ranked(*drawn(40, 1)), 8
    order, gains = kernel(N, C, np.array([0, len(N) - 1]), np.ones(1), m, len(N), np.uint64(3))
    chosen = {0, len(N) - 1}
    for k, gain in zip(order, gains, strict=True):
        options = {s: _gain(N, C, chosen, s) for s in range(1, len(N) - 1) if s not in chosen}
        assert gain == pytest.approx(max(options.values()), rel=1e-9)
        assert options[k] == pytest.approx(gain, rel=1e-9)
        chosen.add(int(k))


def _gain(N, C, chosen, s):
    left, right = max(c for c in chosen if c < s), min(c for c in chosen if c > s)
    return _cost((N[s] - N[left], C[s] - C[left]), (N[right] - N[s], C[right] - C[s]), C[-1] / N[-1])


def check_thresholds(kernel):
    """Compared with asking every candidate in every round."""
    N, C, _ = ranked(*drawn(60, 2))
    largest, epsilon, rounds, most = kernels.largest_gain(N, C), 0.2, 30, 12
    order, made = kernel(N, C, largest, epsilon, rounds, most)
    chosen, expected = {0, len(N) - 1}, []
    for i in range(rounds):
        for s in range(1, len(N) - 1):
            enough = s not in chosen and _gain(N, C, chosen, s) >= largest * (1 - epsilon) ** i - 1e-12
            if enough and len(expected) < most:
                chosen.add(s)
                expected.append((s, i))
    assert list(zip(order.tolist(), made.tolist(), strict=True)) == expected


def check_penalised(kernel):
    for seed in range(5):
        N, C, p = ranked(*drawn(60, seed, 300))
        n, cost = len(N) - 1, cost_table(N, C, p)
        S = kernels.single_information(N, C, p)
        for penalty in (0.003, 0.1, 1.0, 30.0):
            best = np.zeros(n + 1)
            for j in range(1, n + 1):
                best[j] = min(best[i] + cost[i, j] + penalty for i in range(j))
            cuts, loss = kernel(N, C, S, p, penalty, *scratch(n))
            ends = [0, *cuts.tolist(), n]
            assert loss == pytest.approx(sum(cost[i, j] for i, j in itertools.pairwise(ends)), abs=1e-9)
            assert loss + penalty * (len(cuts) + 1) == pytest.approx(best[n], abs=1e-9)


def check_program(kernel):
    N, C, p = ranked(*drawn(30, 4))
    n, cost = len(N) - 1, cost_table(N, C, p)
    for divide in (False, True):
        loss, begins = kernel(N, C, kernels.single_information(N, C, p), p, n, divide)
        level = np.append(0.0, np.full(n, np.inf))
        for m in range(1, n + 1):
            level = np.array([min((level[i] + cost[i, j] for i in range(j)), default=np.inf) for j in range(n + 1)])
            assert loss[m, m:] == pytest.approx(level[m:], abs=1e-9)
            for j in range(m, n + 1):
                assert loss[m, j] == pytest.approx(loss[m - 1, begins[m, j]] + cost[begins[m, j], j], abs=1e-9)


def check_agglomerate(kernel):
    """Compared with trying every pair of clusters, neighbours or not."""
    counts, sums = drawn(25, 6, 60)
    N, C, p = ranked(counts, sums)
    clusters = [[N[k + 1] - N[k], C[k + 1] - C[k]] for k in range(len(N) - 1)]
    while len(clusters) > 4:
        i, j = min(itertools.combinations(range(len(clusters)), 2), key=lambda ij: _cost(*(clusters[k] for k in ij), p))
        last = clusters.pop(j)
        clusters[i] = [clusters[i][0] + last[0], clusters[i][1] + last[1]]
    begins = kernel(N, C, np.array([0, len(N) - 1]), np.ones(1), len(N) - 5)
    at = np.append(np.flatnonzero(begins), len(N) - 1)
    assert np.diff(N[at]).tolist() == [c[0] for c in sorted(clusters, key=lambda c: c[1] / c[0])]


def _cost(a, b, p):
    return information_counts(*a, p) + information_counts(*b, p) - information_counts(a[0] + b[0], a[1] + b[1], p)


def check_losses(kernel):
    counts, sums = drawn(50, 3)
    labels = np.random.default_rng(0).integers(0, 5, 50)
    n, c = np.bincount(labels, counts), np.bincount(labels, sums)
    p = sums.sum() / counts.sum()
    kept = sum(information_counts(a, b, p) for a, b in zip(n, c, strict=True))
    whole = sum(information_counts(a, b, p) for a, b in zip(counts, sums, strict=True))
    found = kernel(counts.astype(float), sums.astype(float), labels.astype(np.int32), n, c)
    assert found == pytest.approx((kept, whole - kept), rel=1e-9)


def check_pair_keys(kernel):
    counts = np.array([1.0, 1, 3, 511, 512, 3, 2.5, 7, 3])
    sums = np.array([0.0, 1, 2, 511, 1, 2, 1, 0.5, 3])
    keys, times = kernel(counts, sums)
    assert keys.tolist() == [1, 2, 8, 511 * 256 + 511, -1, 8, -1, -1, 9]
    assert times.sum() == 6
    assert times[8] == 2


def wrong_greedy(N, C, bounds, weights, cuts, sample, state):
    return kernels.stochastic_greedy(N, C, bounds, weights, cuts, 3, state)  # asks too few


def wrong_penalised(N, C, S, p, penalty, *more):
    return kernels.penalised(N, C, S, p, penalty * 1.2, *more)


def wrong_program(N, C, S, p, most, divide):
    loss, begins = kernels.dynamic_program(N, C, S, p, most, divide)
    return loss, np.maximum(begins - 1, 0)


def wrong_agglomerate(N, C, bounds, weights, merges):
    out = np.zeros(len(N) - 1, bool)
    out[np.linspace(0, len(N) - 2, len(N) - 1 - merges).astype(int)] = True  # evenly, not cheapest
    return out


KERNELS = {
    "pair_keys": (check_pair_keys, lambda n, c: kernels.pair_keys(n, np.floor(c))),
    "split_gain": (check_split_gain, lambda a, b, c, d: kernels.split_gain(a, b, c, d) * (1 + 1e-6)),
    "information": (check_information, lambda n, c, p: kernels.information(n, c, 1 - p)),
    "stochastic_greedy": (check_greedy, wrong_greedy),
    "threshold_cuts": (check_thresholds, lambda N, C, w, e, r, m: kernels.threshold_cuts(N, C, w * 0.9, e, r, m)),
    "penalised": (check_penalised, wrong_penalised), "dynamic_program": (check_program, wrong_program),
    "agglomerate": (check_agglomerate, wrong_agglomerate),
    "information_of": (check_losses, lambda *a: kernels.information_of(*a)[::-1]),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_right_and_a_wrong_one_is_noticed(name):
    check, wrong = KERNELS[name]
    check(getattr(kernels, name))
    with pytest.raises(AssertionError):
        check(wrong)


def test_sampled_greedy_takes_the_best_of_its_sample():
    """Each of n candidates alike is taken first equally often, when one of them is asked for at a time."""
    n, runs = 12, 4000
    N = np.arange(n + 1.0)
    C = np.append(0.0, np.cumsum(np.arange(n) / n))
    cut = lambda seed: kernels.stochastic_greedy(N, C, np.array([0, n]), np.ones(1), 1, 1, np.uint64(seed))[0][0]  # noqa: E731
    seen = np.bincount([cut(1000 * s) for s in range(runs)], minlength=n)[1:]
    expected = runs / (n - 1)
    assert ((seen - expected) ** 2 / expected).sum() < 52  # χ², 10 degrees of freedom, 1e-7
