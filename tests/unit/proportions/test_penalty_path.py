"""λ by held-out bags: every bag is held out once, from the strongest to the weakest."""

import numpy as np
from small_bags import TWO

from agglearn.observations import Bags
from agglearn.proportions import CardinalityClassifier, MeanMapClassifier, base
from agglearn.proportions.base import PATH


def test_the_penalty_is_chosen_by_all_bags():
    """Every bag is held out once, whatever λ is tried, so that few bags do not decide by which of them are held out."""
    bags, held = Bags(np.arange(12.0)[:, None], np.arange(13), np.tile([1, 0], (12, 1))), []

    def score(part, solution):
        held.append((solution, part.X[:, 0].tolist()))
        return -abs(np.log10(2 * solution))  # best at λ = ½, after a fall from none

    l2, near = MeanMapClassifier(random_state=0)._choose_l2(bags, lambda rest: lambda value, start: value, score)
    assert l2 == near == 0.5
    for value in PATH:
        assert sorted(x for solution, part in held if solution == value for x in part) == list(range(12))


def test_one_fall_does_not_end_the_path():
    bags = Bags(np.arange(12.0)[:, None], np.arange(13), np.tile([1, 0], (12, 1)))
    scores = dict(zip(PATH, [0.0, -1.0, -1.0, 2.0, 1.0], strict=True))
    model = MeanMapClassifier(random_state=0)
    assert model._choose_l2(bags, lambda rest: lambda value, start: value, lambda b, s: scores[s])[0] == PATH[3]


def test_noisy_counts_take_the_largest_penalty_within_one_standard_error():
    """λ = 1 is best by 1.9 over four bags. That of 10 loses 1.9 with a standard error of 2.2, that of 100 two for sure."""
    by_bag = {100.0: [-3.0, -3, -3, -3], 10.0: [-1.0, -4, -2.9, -2.0], 1.0: [-2.0, -2, -2, -2]}
    model = CardinalityClassifier(random_state=0)
    score = lambda bags, theta: np.array([by_bag[theta][int(b)] for b in bags.X[:, 0]])  # noqa: E731
    bags = Bags(np.arange(4.0)[:, None], np.arange(5), np.array([1, 0, 0, 1]))
    assert model._choose_l2(bags, lambda _: lambda l2, __: l2, score, tuple(by_bag))[0] == 10.0
    mean = lambda bags, theta: float(score(bags, theta).mean())  # noqa: E731
    assert model._choose_l2(bags, lambda _: lambda l2, __: l2, mean, tuple(by_bag))[0] == 1.0


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
    fitter = lambda part: lambda l2, last: fitted.append(l2) or l2  # noqa: E731
    MeanMapClassifier(random_state=0)._choose_l2(bags, fitter, lambda _, l2: scores[l2])
    assert fitted.count(0.005) == 2  # behind by more than `BEHIND` after two parts
    assert fitted.count(0.05) == fitted.count(50.0) == 5


def test_a_single_bag_takes_the_middle_of_the_path():
    bags = TWO.take([1])
    assert MeanMapClassifier()._choose_l2(bags, None, None, (9.0, 4.0, 1.0)) == (4.0, None)
    assert MeanMapClassifier()._choose_l2(bags, None, None, (9.0, 4.0)) == (4.0, None)
