"""Penalties of learners from bags that held-out bags choose."""

import numpy as np

from agglearn.observations import Bags
from agglearn.proportions import MeanMapClassifier, base


def test_scores_of_bags_count_by_the_size_of_their_part():
    """41 bags fall into a part of 9 and four of 8: 9 bags of 1 are more than 32 of 0.26, and one part is less than four."""
    bags = Bags(np.arange(82.0)[:, None], np.arange(0, 83, 2), np.ones(41, int))
    score = lambda held, l2: float(len(held) == 9) if l2 == 50 else 0.26 * (len(held) == 8)  # noqa: E731
    chosen, _ = MeanMapClassifier(random_state=0)._choose_l2(bags, lambda part: lambda l2, last: l2, score)
    assert chosen == 50


def test_a_path_of_penalties_starts_from_the_next_stronger_one():
    starts, bags = [], Bags(np.arange(20.0)[:, None], np.arange(0, 21, 2), np.ones(10, int))

    def fitter(part):
        return lambda l2, last: starts.append((l2, last)) or l2

    assert MeanMapClassifier(3.0)._choose_l2(bags, fitter, None) == (3.0, None)
    chosen, near = MeanMapClassifier(random_state=0)._choose_l2(bags, fitter, lambda held, l2: -abs(l2 - 0.5))
    assert (chosen, near) == (0.5, 0.5)
    assert starts[:3] == [(50.0, None), (5.0, 50.0), (0.5, 5.0)]
    assert starts[5:7] == [(50.0, None), (5.0, 50.0)]  # the solutions of the last part have seen this part's counts


def test_a_weak_penalty_far_behind_is_given_up():
    fitted, bags = [], Bags(np.arange(20.0)[:, None], np.arange(0, 21, 2), np.ones(10, int))
    scores = {50.0: -1.0, 5.0: 0.0, 0.5: -2.0, 0.05: -1.0, 0.005: -(base.BEHIND + 1) / 4}  # for two bags of a part
    MeanMapClassifier(random_state=0)._choose_l2(
        bags, lambda part: lambda l2, last: fitted.append(l2) or l2, lambda _, l2: scores[l2]
    )
    assert fitted.count(0.005) == 2  # behind by more than `BEHIND` after two parts
    assert fitted.count(0.05) == fitted.count(50.0) == 5
