"""The path of λ, on fits whose scores are planted."""

import numpy as np

from agglearn.linear.path import PathFit, fit_path
from agglearn.seeds import split_validation


def walk(scores: dict, **options):
    """λ and start of every fit, and the path. A solution is named by its λ."""
    calls = []

    def solve(l2, start):
        calls.append((l2, start))
        return f"at {l2}"

    fits = fit_path(scores, solve, lambda solution: scores[float(solution[3:])], **options)
    return calls, fits


def test_each_fit_starts_from_the_last_and_the_first_fall_ends_the_path():
    calls, fits = walk({4.0: 1.0, 2.0: 1.0, 1.0: 3.0, 0.5: 2.0, 0.25: 9.0})
    assert calls == [(4.0, None), (2.0, "at 4.0"), (1.0, "at 2.0"), (0.5, "at 1.0")]
    assert fits == [PathFit(l2, score, f"at {l2}") for l2, score in ((4.0, 1.0), (2.0, 1.0), (1.0, 3.0), (0.5, 2.0))]


def test_a_path_without_an_end_tries_every_value():
    calls, fits = walk({4.0: 3.0, 2.0: 1.0, 1.0: 5.0}, stop=False)
    assert [l2 for l2, _ in calls] == [f.l2 for f in fits] == [4.0, 2.0, 1.0]


def test_a_path_goes_on_from_an_earlier_fit():
    previous = PathFit(4.0, 2.0, "at 4.0")
    calls, fits = walk({8.0: 1.5, 16.0: 9.0}, previous=previous)
    assert calls == [(8.0, "at 4.0")]
    assert fits == [PathFit(8.0, 1.5, "at 8.0")]


def test_validation_units_and_the_rest_are_all_units_once():
    validation, rest = split_validation(11, 0.2, np.random.default_rng(0))
    assert len(validation) == 2
    assert sorted([*validation, *rest]) == list(range(11))
    assert (np.diff(validation) > 0).all()
    assert (np.diff(rest) > 0).all()
    assert len(split_validation(3, 0.01, np.random.default_rng(0))[0]) == 1
    other = split_validation(11, 0.2, np.random.default_rng(1))[0]
    assert other.tolist() != validation.tolist()
