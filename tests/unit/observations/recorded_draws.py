"""Draws that tests of releases put in the place of noise: they remember what they were to draw."""

import math

import numpy as np

from agglearn.privacy import discrete_gaussian_delta, gaussian_delta

EPSILON, DELTA = 0.7, 1e-5


def promise_of(kind: str) -> tuple[float | None, float]:
    """(δ that a release is given, the most that `loss` may be)."""
    return (DELTA, DELTA) if kind.endswith("gaussian") else (None, EPSILON)


class Recorder:
    """Remembers (mechanism, exact numbers, names) of each draw. It gives the exact numbers, or what `answer` makes of the same."""

    def __init__(self, answer=None) -> None:
        self.draws, self.answer = [], answer

    def __call__(self, mechanism, values, *names):
        self.draws.append((mechanism, np.array(values, float), names))
        return np.asarray(values) if self.answer is None else self.answer(mechanism, np.asarray(values), *names)


def loss(one: Recorder, other: Recorder, epsilon: float) -> float:
    """ε of two neighbours under Laplace noise, else δ at `epsilon`, from the changes of all numbers and the scales of their noise."""
    (laws, before, names), (others, after, their_names) = (
        zip(*recorder.draws, strict=True) for recorder in (one, other)
    )
    assert (laws, names) == (others, their_names)  # which tell nothing
    changes = np.concatenate([np.ravel(abs(a - b)) for a, b in zip(before, after, strict=True)])
    scales = np.concatenate([np.full(values.size, law.scale) for law, values in zip(laws, before, strict=True)])
    [kind] = {law.kind for law in laws}
    if kind.endswith("laplace") or not changes.any():
        return float(np.sum(changes / scales))
    if kind == "gaussian":
        return gaussian_delta(1.0, math.sqrt(np.sum((changes / scales) ** 2)), epsilon)
    return discrete_gaussian_delta(scales[changes > 0], changes[changes > 0].astype(int), epsilon)
