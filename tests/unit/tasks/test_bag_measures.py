"""Measures of persons in bags, of votes and of regions, by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from measured_by_hand import about, mean, measured

from agglearn import tasks
from agglearn.datasets import SoftmaxLabels
from agglearn.observations import Bags, LabelledBags
from agglearn.tasks import TaskInput, bags

PERSONS = Bags(np.arange(5.0)[:, None], np.array([0, 2, 5]), np.array([[1, 1], [1, 2]]))
CERTAINTY = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])  # a tie goes to class 0


def of_bags(observes=Bags) -> dict:
    truth = bags.HeldOutPersons(PERSONS, np.array([0, 1, 1, 1, 0]))
    stub = SimpleNamespace(
        predict_proba=lambda x: CERTAINTY, observes=observes,
        predict_counts=lambda b: np.array([[0.5, 1.5], [1.75, 1.25]]),
    )  # fmt: skip
    return measured(tasks.BagClassification, stub, truth)


def of_bags_by_hand(sign=-2) -> dict:
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in (0.7, 0.5, 0.8) for b in (0.4, 0.1)]
    single = {
        "accuracy": 4 / 5,
        "gap_to_oracle": sign * 4 / 5,
        "auc": mean(wins),
        "count_error": mean([(0.5 + 0.5) / 2 / 2, (0.75 + 0.75) / 2 / 3]),
    }
    return {(name, None, None): value for name, value in single.items()}


def test_an_oracle_counts_for_the_other_side_of_the_gap():
    assert of_bags(LabelledBags) == pytest.approx(of_bags_by_hand(2))


STATES = ["AL", "CA", "IA", "NY", "OH"]
VOTERS = [  # state, sex, weight, probabilities of none, R, D
    ("AL", "male", 2.0, (0.1, 0.8, 0.1)), ("AL", "male", 1.0, (0.1, 0.3, 0.6)),
    ("CA", "male", 1.0, (0.0, 0.1, 0.9)), ("CA", "male", 3.0, (0.2, 0.5, 0.3)),
    ("IA", "male", 4.0, (0.0, 0.6, 0.4)), ("IA", "male", 1.0, (0.0, 0.4, 0.6)),
    ("NY", "male", 1.0, (0.0, 0.2, 0.8)), ("NY", "male", 1.0, (0.0, 0.7, 0.3)),
    ("OH", "male", 1.0, (0.8, 0.1, 0.1)),  # does not vote, so the state's men have no share
    ("NY", "female", 5.0, (0.1, 0.1, 0.8)), ("NY", "female", 2.0, (0.1, 0.5, 0.4)),
    ("OH", "female", 1.0, (0.0, 0.9, 0.1)), ("AL", "female", 1.0, (0.0, 0.3, 0.7)),
]  # fmt: skip
NATION = {"male": (0.45, 48), "female": (0.455, 52)}  # (share of D, size): they differ by less than 0.01
POLLED = {("AL", "male"): 0.30, ("CA", "male"): 0.40, ("IA", "male"): 0.35, ("NY", "male"): 0.60, ("OH", "male"): 0.5}


def voters():
    frame = pd.DataFrame([(s, w, sex) for s, sex, w, _ in VOTERS], columns=["state", "weight", "sex"])
    frame["race"], frame["education"] = "other", "some college"
    rows = [("US", "sex", g, share, size) for g, (share, size) in NATION.items()]
    rows += [(state, "sex", g, share, 50) for (state, g), share in POLLED.items()]
    polls = pd.DataFrame(rows, columns=["area", "covariate", "group", "share", "size"])
    regions = Bags(np.zeros((4, 1)), np.array([0, 2, 4]), weights=np.array([9.0, 1, 2, 8]), target=np.array([0.5, 0.2]))
    known = [("AL", -86.6, 33.0, 0.4), ("WY", -107.2, 42.8, 0.3)]
    places = pd.DataFrame(known, columns=["state", "longitude", "latitude", "share"])
    truth = bags.HeldOutPersons(regions, None, frame, polls, places)
    stub = SimpleNamespace(
        predict_proba=lambda x: np.array([p for *_, p in VOTERS]),
        predict_counts=lambda b: np.array([[5.0, 2.0, 3.0], [0.0, 3.0, 2.0]]),
    )
    return truth, stub


def share(chosen, votes) -> float:
    """Two-party share of D by weight; `votes` of a voter: (none, R, D)."""
    d = sum(w * votes(p)[2] for _, _, w, p in chosen)
    r = sum(w * votes(p)[1] for _, _, w, p in chosen)
    return d / (d + r) if d + r else math.nan


def hard(p):
    return [1.0 if q == max(p) else 0.0 for q in p]


def soft(p):
    return p


def of_votes() -> dict:
    truth, stub = voters()
    return measured(tasks.BagClassification, stub, truth)


def of_votes_by_hand() -> dict:
    found = {}
    sides = {g: [v for v in VOTERS if v[1] == g] for g in NATION}
    for covariate, groups in (("sex", sides), ("race", {"other": VOTERS}), ("education", {"some college": VOTERS})):
        for name, chosen in groups.items():
            polled = {"exit_poll": NATION[name][0]} if name in NATION else {}
            keys = about(covariate=covariate, group=name, **polled)
            found["share", keys, None], found["expected_share", keys, None] = share(chosen, hard), share(chosen, soft)
    predicted = {g: share(chosen, hard) for g, chosen in sides.items()}
    rmse = lambda of: math.sqrt(sum(s * (of[g] - q) ** 2 for g, (q, s) in NATION.items()) / 100)  # noqa: E731
    sex = about(covariate="sex")
    found["majority", sex, None] = sum((predicted[g] > 0.5) == (q > 0.5) for g, (q, _) in NATION.items())
    found["pair_auc", sex, None] = float((predicted["male"] > predicted["female"]) == (0.45 > 0.455))
    found["pair_auc_close", sex, None] = 1.0
    found["poll_rmse", sex, None] = rmse(predicted)
    found["expected_poll_rmse", sex, None] = rmse({g: share(chosen, soft) for g, chosen in sides.items()})
    points = {s: share([v for v in VOTERS if v[:2] == (s, "male")], hard) for s in STATES}
    assert math.isnan(points.pop("OH"))
    for state, value in points.items():
        keys = about(covariate="sex", group="male", state=state)
        found["state_share", keys, None], found["state_poll", keys, None] = value, POLLED[state, "male"]
    found["state_rmse", sex, None] = math.sqrt(mean((v - POLLED[s, "male"]) ** 2 for s, v in points.items()))
    # regions: weights 10 and 10; shares 3/5 and 2/5 beside 0.5 and 0.2
    found["region_rmse", None, None] = math.sqrt((10 * 0.1**2 + 10 * 0.2**2) / 20)
    places = (("AL", -86.6, 33.0), ("WY", -107.2, 42.8))
    alabama, wyoming = (about(state=s, longitude=x, latitude=y) for s, x, y in places)
    found["map_share", alabama, None] = share([v for v in VOTERS if v[0] == "AL"], soft)
    found |= {("map_counted", alabama, None): 0.4, ("map_counted", wyoming, None): 0.3}
    return found


def test_regions_count_by_the_weight_of_their_persons():
    regions = Bags(
        np.zeros((4, 1)), np.array([0, 2, 4]), weights=np.array([90.0, 0, 4, 6]), target=np.array([0.5, 0.2])
    )
    votes = np.array([[0, 1.0, 1], [7, 1.0, 4]])  # shares 0.5 and 0.8
    assert tasks.bags.region_rmse(votes, regions) == pytest.approx(math.sqrt((90 * 0 + 10 * 0.6**2) / 100))


def test_five_states_have_a_correlation():
    truth, stub = voters()
    four = measured(tasks.BagClassification, stub, truth)
    assert not any(m == "state_correlation" for m, *_ in four)
    probabilities = np.array([p for *_, p in VOTERS])
    probabilities[8] = (0.0, 0.1, 0.9)  # now men of Ohio vote
    stub.predict_proba = lambda x: probabilities
    found = measured(tasks.BagClassification, stub, truth, ["state_correlation", "state_share", "state_poll"])
    x, y = (
        [found[m, about(covariate="sex", group="male", state=s), None] for s in STATES]
        for m in ("state_share", "state_poll")
    )
    top = sum((a - mean(x)) * (b - mean(y)) for a, b in zip(x, y, strict=True))
    spread = math.sqrt(sum((a - mean(x)) ** 2 for a in x) * sum((b - mean(y)) ** 2 for b in y))
    assert found["state_correlation", about(covariate="sex", group="male"), None] == pytest.approx(top / spread)


def test_records_of_three_classes_are_counted_in_bags_of_one_size():
    drawn = SoftmaxLabels(n_classes=3, n_features=2, bags=50).draw(0)
    source = TaskInput("softmax_labels", {"split": 0.2}, {"bags": 50}, drawn)
    seen, truth = tasks.BagClassification().observe(source, LabelledBags, {}, 0)
    assert seen.bags.counts.shape == (1, 3)
    np.testing.assert_array_equal(seen.bags.counts[0], np.bincount(seen.y, minlength=3))
    np.testing.assert_array_equal(truth.bags.counts.sum(axis=0), np.bincount(truth.y, minlength=3))
