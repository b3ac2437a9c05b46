"""Exact posteriors: against enumeration, against an extended-precision dynamic program, and under every symmetry."""

import itertools

import numpy as np
import pytest
from samples import printed_with_threads
from scipy.optimize import brentq
from scipy.special import expit, logit

from agglearn.errors import AgglearnError, DataError
from agglearn.linear.softmax import bag_sums, log_softmax, scores
from agglearn.proportions import cardinality_posterior, class_posteriors, kernels, multiclass
from agglearn.proportions.convolution_tree import tree_posterior
from agglearn.proportions.posterior import binary_posteriors

SHAPES = [(0.5, 0.5), (1, 1), (0.05, 3), (5, 0.2), (0.1, 0.1), (30, 30)]


def enumerated(p: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, float]:
    """Posteriors (n, C) and P(z) for class probabilities (n, C), over all labellings."""
    n, classes = p.shape
    q = np.zeros(p.shape)
    total = 0.0
    for y in itertools.product(range(classes), repeat=n):
        if (np.bincount(y, minlength=classes) == z).all():
            weight = np.prod(p[np.arange(n), y])
            total += weight
            q[np.arange(n), y] += weight
    return q / total, total


def dynamic_program(p: np.ndarray, z: int) -> tuple[np.ndarray, float]:
    """Posteriors and log P(z) in extended precision, O(n²), with the odds tilted so that nothing underflows."""
    odds = p.astype(np.longdouble) / (1 - p.astype(np.longdouble))
    tilt = np.longdouble(brentq(lambda t: expit(logit(p) + t).sum() - z, -60, 60))
    x = odds * np.exp(tilt)
    one, zero = x / (1 + x), 1 / (1 + x)
    n = len(p)
    prefix = np.zeros((n + 1, z + 1), np.longdouble)
    prefix[0, 0] = 1
    for i in range(n):
        prefix[i + 1] = prefix[i] * zero[i]
        prefix[i + 1, 1:] += prefix[i, :-1] * one[i]
    suffix = np.zeros(z + 1, np.longdouble)
    suffix[z] = 1
    q = np.empty(n)
    for i in range(n - 1, -1, -1):
        q[i] = (prefix[i, :-1] * suffix[1:]).sum() * one[i] / prefix[n, z]
        suffix = suffix * zero[i] + np.append(suffix[1:] * one[i], 0)
    log_p = np.log(prefix[n, z]) + (np.log1p(x) - np.log1p(odds)).sum() - z * tilt
    return q, float(log_p)


def dynamic_program_of_logs(log_p: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, float]:
    """Posteriors (n, 3) and log P(z) for three classes, all sums in logarithms, forwards and backwards."""
    n = len(log_p)

    def after(table, row):
        new = table + row[0]
        new[1:] = np.logaddexp(new[1:], table[:-1] + row[1])
        new[:, 1:] = np.logaddexp(new[:, 1:], table[:, :-1] + row[2])
        return new

    first = np.full((z[1] + 1, z[2] + 1), -np.inf)
    first[0, 0] = 0.0
    before = list(itertools.accumulate(log_p, after, initial=first))
    behind = list(itertools.accumulate(log_p[::-1], after, initial=first))[::-1]  # of the instances after each
    log_total, q = before[n][z[1], z[2]], np.empty(log_p.shape)
    for i in range(n):
        for c, (a, b) in enumerate([(0, 0), (1, 0), (0, 1)]):
            left = before[i][: z[1] + 1 - a, : z[2] + 1 - b] + behind[i + 1][: z[1] + 1 - a, : z[2] + 1 - b][::-1, ::-1]
            q[i, c] = log_p[i, c] + np.logaddexp.reduce(left, axis=None) - log_total if left.size else -np.inf
    return np.exp(q), log_total


def skewed(n: int, seed: int = 0):
    """Probabilities of every shape, with sums from the edge to the middle."""
    rng = np.random.default_rng(seed)
    for a, b in SHAPES:
        p = rng.beta(a, b, n).clip(1e-9, 1 - 1e-9)
        for z in sorted({1, max(1, n // 10), max(1, n // 2), n - 1}):
            yield p, z


def binary(p, z, how=kernels.FOURIER):
    q, found = binary_posteriors(np.log(p) - np.log1p(-p), [0, len(p)], [z], how)
    return q, found[0]


@pytest.mark.parametrize("method", ["fourier", "direct", "tree"])
@pytest.mark.parametrize(("n", "classes"), [(2, 2), (9, 2), (6, 3), (5, 4)])
def test_enumeration(n, classes, method):
    rng = np.random.default_rng(n)
    for sharpness in (1.0, 0.2):
        p = rng.dirichlet(np.full(classes, sharpness), n) + 1e-7
        p /= p.sum(axis=1, keepdims=True)
        z = np.bincount([rng.choice(classes, p=row) for row in p], minlength=classes)
        q, total = enumerated(p, z)
        assert np.allclose(cardinality_posterior(p, z, method), q, rtol=1e-9 if method != "tree" else 1e-6, atol=1e-12)
        assert class_posteriors(np.log(p), [0, n], z[None])[1][0] == pytest.approx(np.log(total), abs=1e-10)
        if classes == 2:
            assert np.allclose(cardinality_posterior(p[:, 1], z[1], method), q[:, 1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 12, 63, 64, 65, 129, 500, 2000])
def test_dynamic_program(n):
    """Relative error below 1e-10 for every posterior, however small."""
    for p, z in itertools.islice(skewed(n), None, None, 1 if n < 1000 else 5):
        if z in (0, n):
            continue
        q, found = binary(p, z)
        wanted, log_p = dynamic_program(p, z)
        assert abs(q - wanted).max() <= 1e-10
        assert (abs(q - wanted) / np.maximum(wanted, 1e-300)).max() < 1e-10
        assert found == pytest.approx(log_p, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("n", [70, 500])
def test_direct_and_tree_agree(n):
    for p, z in skewed(n):
        q = cardinality_posterior(p, z)
        assert np.allclose(cardinality_posterior(p, z, "direct"), q, rtol=1e-9, atol=0)
        if 0.1 < p.mean() < 0.9 and z == n // 2:
            assert np.allclose(cardinality_posterior(p, z, "tree"), q, atol=1e-6)


@pytest.mark.parametrize("spread", ["wide", "sure"])
def test_a_million_adds_up(spread):
    rng, n = np.random.default_rng(1), 1_000_000
    p = rng.beta(1, 3, n) if spread == "wide" else np.where(rng.random(n) < 0.3, 1 - 1e-7, 1e-7)
    z = n // 5 if spread == "wide" else int((p > 0.5).sum())
    assert abs(cardinality_posterior(p, z).sum() - z) < 1e-9 * n


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_ends_are_certain(n):
    p = np.random.default_rng(n).uniform(0.01, 0.99, n)
    assert (cardinality_posterior(p, 0) == 0).all()
    assert (cardinality_posterior(p, n) == 1).all()


def test_damped_steps_solve_their_system():
    rng = np.random.default_rng(2)
    for size in (1, 2, 5):
        root = rng.normal(size=(size, size))
        spread, gap, out, lower = root @ root.T, rng.normal(size=size), np.empty(size), np.empty((size, size))
        multiclass.damped_step(spread, 0.1, gap, lower, out)
        np.testing.assert_allclose(out, np.linalg.solve(spread + 0.1 * np.eye(size), gap), rtol=1e-10)


@pytest.mark.slow
def test_the_lattice_agrees_with_the_box():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1, 1, 2], 150)
    z = np.sort(np.bincount([rng.choice(3, p=row) for row in p], minlength=3))
    p = p[:, np.argsort(p.sum(axis=0))]
    within, _ = multiclass.tilt_classes(np.log(p), z)
    box, lattice = np.empty_like(p), np.empty_like(p)
    frequencies, log_points = multiclass.frequencies(within, 10_000)
    found = multiclass.lattice(within, z, frequencies, log_points, lattice)
    assert found == pytest.approx(multiclass.box(within, z, box), abs=1e-10)
    assert (abs(box - lattice) / box).max() < 1e-10


@pytest.mark.parametrize("scale", [1, 30, 60, 200])
@pytest.mark.filterwarnings("ignore:invalid value encountered in logaddexp")
def test_classes_of_which_the_model_is_sure(scale):
    """Scores far apart: the tilt is hard to find, and probabilities underflow."""
    rng = np.random.default_rng(scale)
    log_p = np.concatenate([log_softmax(scale * rng.normal(size=(30, 2))) for _ in range(30)])
    z = rng.multinomial(30, [0.3, 0.3, 0.4], size=30)
    offsets = np.arange(0, len(log_p) + 1, 30)
    q, found = class_posteriors(log_p, offsets, z)
    for b, low in enumerate(offsets[:-1]):
        wanted, log_total = dynamic_program_of_logs(log_p[low : low + 30], z[b])
        assert found[b] == pytest.approx(log_total, rel=1e-10, abs=1e-8)
        assert np.allclose(q[low : low + 30], wanted, atol=1e-8)


@pytest.mark.parametrize("scale", [1, 30])
def test_large_bags_of_which_the_model_is_sure(scale):
    """The lattice is used only where its sum does not cancel: posteriors add up to the counts."""
    rng = np.random.default_rng(scale)
    log_p, z = log_softmax(scale * rng.normal(size=(600, 2))), np.array([100, 400, 100])
    q, _ = class_posteriors(log_p, [0, 600], z[None])
    assert np.allclose(q.sum(axis=0), z, atol=1e-6)
    assert np.allclose(q.sum(axis=1), 1, atol=1e-6)


def test_counts_that_are_impossible_name_the_bag():
    log_p = np.log(np.full((4, 3), 1 / 3))
    log_p[2:, 1:] = -np.inf
    with pytest.raises(DataError, match=r"bag 1: counts \[1, 1, 0\] are impossible"):
        class_posteriors(log_p, [0, 2, 4], [[1, 0, 1], [1, 1, 0]])


def test_a_tree_whose_errors_drown_the_total_refuses():
    """Far more than expected: P(z) is far below the FFT's rounding errors; the answer is z/n."""
    with pytest.raises(DataError, match="too improbable for the tree"):
        cardinality_posterior(np.full(4000, 0.3), 3000, "tree")
    assert np.allclose(cardinality_posterior(np.full(4000, 0.3), 3000), 0.75)
    assert np.allclose(cardinality_posterior(np.full(4000, 0.3), 1210, "tree"), 1210 / 4000, atol=1e-6)


def test_impossible_counts_have_no_posterior():
    with pytest.raises(DataError, match="impossible"):
        tree_posterior(np.array([[1.0, 0.0], [1.0, 0.0]]), [0, 2])


def test_certain_instances():
    p = np.array([1.0, 0.0, 0.3, 0.6])
    q = cardinality_posterior(p, 2)
    assert q[0] == 1
    assert q[1] == 0
    assert q[2:] == pytest.approx([0.3 * 0.4 / (0.3 * 0.4 + 0.7 * 0.6), 0.7 * 0.6 / (0.3 * 0.4 + 0.7 * 0.6)])


@pytest.mark.parametrize(
    ("p", "z", "said"),
    [
        ([0.5, 0.5], 3, "from 0 to the 2 instances"), ([0.5, 0.5], -1, "from 0 to the 2 instances"),
        ([0.5, 0.5], 0.5, "whole number"), ([1.0, 1.0, 0.5], 1, "2 instances have probability 1"),
        ([0.0, 0.0, 0.5], 2, "1 have more than 0"), ([0.5, np.nan], 1, "instance 1"), ([0.5, 1.5], 1, "instance 1"),
        ([[0.5, 0.5]], [1, 1], "add up to the 1 instances"), ([[0.5, 0.6]], [1, 0], "rows must add up"),
        ([[1.0, 0.0], [1.0, 0.0]], [1, 1], "impossible"),
    ],
)  # fmt: skip
def test_what_is_impossible_is_said(p, z, said):
    with pytest.raises(DataError, match=said):
        cardinality_posterior(p, z)


def test_an_unknown_method():
    with pytest.raises(AgglearnError, match="fourier, tree, direct"):
        cardinality_posterior([0.5], 1, "magic")


def test_too_many_classes_for_so_large_a_bag():
    p = np.full((4000, 6), 1 / 6)
    with pytest.raises(DataError, match=r"bag 0: .*too large for exact inference over 6 classes"):
        class_posteriors(np.log(p), [0, 4000], np.array([[667, 667, 667, 667, 666, 666]]))


def test_a_wrong_posterior_is_noticed():
    """Planted: the sum of all labels in the place of the sum without label i."""
    p = np.random.default_rng(0).random(40)
    wanted, _ = dynamic_program(p, 15)
    right = lambda q: np.allclose(q, wanted, rtol=1e-10)  # noqa: E731
    assert right(binary(p, 15)[0])
    assert not right(p * np.exp(binary(p, 14)[1] - binary(p, 15)[1]))


def test_a_wrong_posterior_of_classes_is_noticed():
    """Planted: classes taken one at a time, without the counts of the others."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], 7)
    z = np.array([2, 2, 3])
    wanted, _ = enumerated(p, z)
    assert np.allclose(cardinality_posterior(p, z), wanted, atol=1e-12)
    apart = np.column_stack([cardinality_posterior(p[:, c], z[c]) for c in range(3)])
    assert not np.allclose(apart / apart.sum(axis=1, keepdims=True), wanted, atol=1e-3)


def test_scores_and_sums():
    """Against NumPy; planted: a bag that ends one instance early."""
    rng = np.random.default_rng(2)
    x, theta, w = rng.normal(size=(50, 3)).astype(np.float32), rng.normal(size=(2, 4)), rng.normal(size=(50, 2))
    assert np.allclose(scores(x, theta), x @ theta[:, :3].T + theta[:, 3], atol=1e-6)
    offsets = np.array([0, 1, 20, 50])
    whole = np.einsum("ik,ij->ikj", w, np.column_stack([x, np.ones(50)]))
    wanted = np.add.reduceat(whole, offsets[:-1], axis=0)
    assert np.allclose(bag_sums(x, w, offsets), wanted, atol=1e-6)
    assert not np.allclose(bag_sums(x, w, np.array([0, 1, 19, 50])), wanted, atol=1e-3)


CODE = """
import numba, numpy as np
from agglearn.proportions.posterior import binary_posteriors, class_posteriors
rng = np.random.default_rng(0)
logits, sizes = rng.normal(size=6000), np.array([1, 2, 7, 90, 900, 5000])
z = np.array([1, 1, 3, 20, 444, 2100])
p = rng.dirichlet([1, 1, 1], 60)
for threads in (1, 2, 4):
    numba.set_num_threads(threads)
    q, found = binary_posteriors(logits, np.append(0, np.cumsum(sizes)), z)
    r, _ = class_posteriors(np.log(p), [0, 20, 40, 60], np.tile([5, 7, 8], (3, 1)))
    print(hash(q.tobytes() + found.tobytes() + r.tobytes()))
"""


@pytest.mark.slow
def test_the_same_under_any_number_of_threads():
    first, *others = printed_with_threads(CODE)
    assert others == [first, first]
