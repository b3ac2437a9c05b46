"""The shared training: its steps beside Adam written out, its schedule, early stopping, losses, random numbers."""

import numpy as np
import pytest

from agglearn.errors import NotAvailable
from agglearn.networks import layers, training


def line(weights, x, key=None):
    return layers.perceptron(weights, "line", x, "elu")


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3)).astype(np.float32)
    y = (x @ [[1.0], [-2.0], [0.5]] + 0.3).astype(np.float32)
    return layers.initial_dense("line.0", 3, 1, rng), x, y


def adam(weights, x, y, schedule):
    """Adam of Kingma and Ba with clipped gradients, L2 and a cosine, on a linear model, in double precision."""
    w, b = (weights[f"line.0.{k}"].astype(float) for k in ("weight", "bias"))
    theta, m, v = np.append(w.ravel(), b), 0.0, 0.0
    for t in range(1, schedule.steps + 1):
        residual = (x @ theta[:3] + theta[3] - y[:, 0]).astype(float)
        g = 2 * np.append(x.T @ residual, residual.sum()) / len(x)
        g = g * min(1, schedule.clip / np.linalg.norm(g)) + schedule.l2 * theta
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        rate = schedule.rate * ((1 + np.cos(np.pi * (t - 1) / schedule.steps)) / 2 if schedule.cosine else 1)
        theta = theta - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return theta


@pytest.mark.parametrize("cosine", [True, False])
@pytest.mark.parametrize(("clip", "l2"), [(100.0, 0.0), (0.5, 0.0), (100.0, 0.5)])
def test_steps_are_those_of_adam(problem, cosine, clip, l2):
    weights, x, y = problem
    schedule = training.Schedule(0.02, clip, 30, 30, l2=l2, cosine=cosine)
    found, _ = training.train(line, weights, [[(x, y)]] * 30, lambda w: 0.0, "squared_error", schedule, 0)
    theta = np.append(found["line.0.weight"], found["line.0.bias"])
    np.testing.assert_allclose(theta, adam(weights, x, y, schedule), rtol=2e-4, atol=2e-5)


def test_a_batch_in_parts_has_the_mean_gradient(problem):
    weights, x, y = problem
    schedule = training.Schedule(0.02, 1.0, 30, 30)
    whole, parts = (
        training.train(line, weights, [batch] * 30, lambda w: 0.0, "squared_error", schedule, 0)[0]
        for batch in ([(x, y)], [(x[:3], y[:3]), (x[3:11], y[3:11]), (x[11:], y[11:])])
    )
    for name in weights:
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-4)


def test_the_best_look_is_kept_and_patience_ends_training(problem):
    weights, x, y = problem
    losses, looked = iter([np.nan, 3.0, 1.0, 1.0, 2.0, 0.0]), []

    def held_out(w):
        looked.append(w["line.0.bias"].copy())
        return next(losses)

    schedule = training.Schedule(0.1, 10.0, 50, 10, patience=2)
    found, kept = training.train(line, weights, [[(x, y)]] * 50, held_out, "squared_error", schedule, 0)
    np.testing.assert_array_equal(kept, [np.nan, 3.0, 1.0, 1.0, 2.0])
    np.testing.assert_array_equal(found["line.0.bias"], looked[2])  # of equal losses the first


def test_losses_are_those_of_the_books():
    rng = np.random.default_rng(0)
    scores, classes = rng.normal(size=(7, 3)), rng.integers(0, 3, 7)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert training.loss_of("cross_entropy", scores, classes) == pytest.approx(-np.log(p[np.arange(7), classes]).mean())
    z, y = rng.normal(size=(7, 1)), rng.integers(0, 2, 7)
    p = 1 / (1 + np.exp(-z[:, 0]))
    assert training.loss_of("log_loss", z, y) == pytest.approx(-np.log(np.where(y, p, 1 - p)).mean())


def test_dropout_keeps_expectations_and_needs_a_key():
    weights = {"g.0.weight": np.eye(2000, dtype=np.float32), "g.0.bias": np.zeros(2000, np.float32)}
    x, key = np.ones((1, 2000), np.float32), training.random_key(2**62)
    found = np.asarray(layers.perceptron(weights, "g", x, "elu", 0.25, key))
    assert set(found.ravel()) == {0.0, np.float32(1 / 0.75)}
    kept = (found > 0).mean()  # of 2,000; the smallest mistake noticed is a rate of 0.3 in the place of 0.25
    assert abs(kept - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 2000) < 0.05
    assert (np.asarray(layers.perceptron(weights, "g", x, "elu", 0.25)) == 1).all()


def test_a_device_that_is_not_there_is_one_line():
    with pytest.raises(NotAvailable, match="JAX has no tpu device here"), training.on_device("tpu"):
        pass


def test_batches_pass_over_all_in_random_order():
    drawn = list(training.draw_batches(10, 3, 7, np.random.default_rng(0)))
    assert [len(d) for d in drawn] == [3] * 7
    for start in (0, 3):
        assert len(set(np.concatenate(drawn[start : start + 3]))) == 9
    assert (drawn[0] != drawn[3]).any()


def test_dropout_is_drawn_anew_for_each_part_and_step_and_by_the_seed(problem, monkeypatch):
    """At a rate of 0 gradients of one batch differ by what is dropped alone."""
    weights, x, y = problem
    compute, gradients = training._gradient, []
    spied = lambda *args: gradients.append(np.asarray(compute(*args))) or gradients[-1]  # noqa: E731
    monkeypatch.setattr(training, "_gradient", spied)
    schedule = training.Schedule(0.0, 100.0, 2, 2)
    for seed in (0, 0, 1):
        training.train(dropped, weights, [[(x, y)] * 2] * 2, lambda w: 0.0, "squared_error", schedule, seed)
    assert len({g.tobytes() for g in gradients}) == 8  # two parts of two steps of either seed
    np.testing.assert_array_equal(gradients[:4], gradients[4:8])


def dropped(weights, x, key=None):
    kept = x if key is None else x * training.jax.random.bernoulli(key, 0.5, x.shape)
    return line(weights, kept)
