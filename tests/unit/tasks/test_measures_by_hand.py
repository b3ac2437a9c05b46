"""Every measure of every task against plain arithmetic on a few rows. A measure without a value here fails.

Estimators are stubs with predictions written down, truths are written down too: nothing but the task computes.
"""

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from agglearn import tasks
from agglearn.collective import ChainModel
from agglearn.distribution import LinearRidge
from agglearn.encoding import CodedEncoder, FrameEncoder
from agglearn.errors import NotAvailable
from agglearn.evaluation.metrics import auc
from agglearn.observations import Bags, ContingencyTables, FlowCounts, LabelledBags, Table
from agglearn.tasks import bags, classification, compression, distribution, flows
from agglearn.tasks.base import Task
from agglearn.vocabulary.shrinkage import beta_prior

KINDS = [c for c in (getattr(tasks, name) for name in tasks.__all__) if isinstance(c, type) and issubclass(c, Task)]
KINDS = [c for c in KINDS if c is not Task]
SWITCHES = {"curve": ("nllh", "seconds")}  # a name that asks for curves of other measures


def about(**keys) -> str:
    """Keys of a measurement as JSON."""
    return json.dumps(keys)


THERE, BACK = (about(**{"from": a, "to": b}) for a, b in (([0.0, 1.0], [2.0, 0.5]), ([2.0, 0.5], [0.0, 1.0])))


def measured(task: type[Task], estimator, truth, measures=None) -> dict:
    """{(measure, JSON of the keys, step): value} of all measures that a task has, or of some."""
    found = list(task().measure(estimator, truth, list(task.MEASURES) if measures is None else measures))
    assert {key for m in found for key in m.keys or ()} <= set(task.KEYS)
    keys = [(m.measure, m.keys and about(**m.keys), m.step) for m in found]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, (m.value for m in found), strict=True))


def mean(values) -> float:
    values = list(values)
    return sum(values) / len(values)


def log_loss(y, p) -> float:
    return -mean(math.log(q if label else 1 - q) for label, q in zip(y, p, strict=True))


def nllh(y, p) -> float:
    return 1 - log_loss(y, p) / log_loss(y, [mean(y)] * len(y))


# -- classification ---------------------------------------------------------------------------------------------------

Y = [1, 0, 0, 1, 0, 0]
P = [0.8, 0.2, 0.5, 0.5, 0.2, 0.1]  # ties, within a label and between labels
STAGES = [  # the best stage of the rows 0, 2, 4 is the first, that of the rows 1, 3, 5 the second
    (1.0, 0.25, [0.9, 0.6, 0.1, 0.4, 0.2, 0.7]),
    (2.0, 0.5, [0.4, 0.2, 0.6, 0.9, 0.6, 0.1]),
    (4.0, 1.5, [0.5, 0.4, 0.5, 0.5, 0.4, 0.4]),
]


def block(pair: float) -> np.ndarray:
    """Weights of two features of two values whose interaction is `pair`, up to what changes no probability."""
    cells = np.array([[pair + 3.0, 3.0], [0.5, 0.5]])
    return np.block([[np.diag([1.0, 2.0]), cells], [cells.T, np.diag([0.3, -1.0])]])


def classified() -> dict:
    frame = pd.DataFrame({"few": ["u", "v", "u", None, "v", "u"], "many": list("abcdef")})
    truth = classification.HeldOutRows(
        frame, np.array(Y, np.int8), np.array([0.7, 0.2, 0.5, 0.5, 0.4, 0.1]), {"theta": block(2.0)}
    )
    estimator = SimpleNamespace(
        predict_proba=lambda frame: np.column_stack([1 - np.array(P), P]),
        staged_predict_proba=lambda frame: ((step, s, np.array(p)) for step, s, p in STAGES),
        coef_=np.array([0.5, -2.0]), coef_names_=["few = u", "few = v"],
        gradient_errors_=np.array([[1, 0.5], [8, 0.125]]),
        theta_=block(1.5), encoder_=SimpleNamespace(sizes=np.array([2, 2])),
    )  # fmt: skip
    return measured(tasks.Classification, estimator, truth)


def classified_by_hand() -> dict:
    even, odd = slice(0, None, 2), slice(1, None, 2)
    whole, first, second = ([nllh(Y[part], p[part]) for *_, p in STAGES] for part in (slice(None), even, odd))
    assert (max(first), max(second)) == (first[0], second[1])
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in (0.8, 0.5) for b in (0.2, 0.5, 0.2, 0.1)]
    single = {
        "nllh": nllh(Y, P),
        "log_loss": -(2 * math.log(0.8) + 2 * math.log(0.5) + math.log(0.8) + math.log(0.9)) / 6,
        "auc": mean(wins),
        "brier": (0.2**2 + 0.2**2 + 0.5**2 + 0.5**2 + 0.2**2 + 0.1**2) / 6,
        # ten groups of six rows: each prediction is one, equal ones are together
        "calibration_error": (abs(0 - 0.1) + abs(0 - 0.4) + abs(1 - 1.0) + abs(1 - 0.8)) / 6,
        "nllh_best_on_test": max(whole),
        "nllh_best_on_validation": (second[0] + first[1]) / 2,
        "probability_rmse": math.sqrt((0.1**2 + 0 + 0 + 0 + 0.2**2 + 0) / 6),
        "theta_error": 0.5 / 2.0,
        "gradient_error": 0.125,
    }
    found = {(name, None, None): value for name, value in single.items()}
    for (step, seconds, _), value in zip(STAGES, whole, strict=True):
        found |= {("nllh", None, step): value, ("seconds", None, step): seconds}
    found |= {("gradient_error", None, 1.0): 0.5, ("gradient_error", None, 8.0): 0.125}
    for modality, coefficient, prediction in (("u", 0.5, (0.8 + 0.5 + 0.1) / 3), ("v", -2.0, (0.2 + 0.2) / 2)):
        found["coefficient", about(coefficient=f"few = {modality}"), None] = coefficient
        found["prediction", about(feature="few", modality=modality), None] = prediction
    return found


def of_subsets() -> dict:
    truth = classification.HeldOutRows(pd.DataFrame({"a": range(6)}), np.array(Y, np.int8))
    stub = SimpleNamespace(
        subset_predict_proba=lambda frame: [(("a", "b"), np.array(P)), (("a", "c"), np.full(6, 1 / 3))]
    )
    return measured(tasks.SubsetClassification, stub, truth)


def of_subsets_by_hand() -> dict:
    return {("nllh", about(features=["a", "b"]), None): nllh(Y, P), ("nllh", about(features=["a", "c"]), None): 0.0}


def test_labels_of_one_class_have_no_ranking_and_no_base_rate():
    truth = classification.HeldOutRows(pd.DataFrame({"a": range(3)}), np.zeros(3, np.int8))
    stub = SimpleNamespace(predict_proba=lambda frame: np.column_stack([np.full(3, 0.75), np.full(3, 0.25)]))
    found = measured(tasks.Classification, stub, truth, ["nllh", "auc", "log_loss", "brier", "calibration_error"])
    assert math.isnan(found["nllh", None, None])
    assert math.isnan(found["auc", None, None])
    assert found["log_loss", None, None] == pytest.approx(-math.log(0.75))
    assert found["brier", None, None] == 0.0625
    assert found["calibration_error", None, None] == 0.25


@pytest.mark.parametrize("p", [P, [0.3] * 6, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]])
def test_scores_do_not_depend_on_the_order_of_rows(p):
    y, p = np.array(Y * 10, np.int8), np.array(p * 10)

    def scores(rows):
        truth = classification.HeldOutRows(pd.DataFrame({"a": range(60)}), y[rows])
        stub = SimpleNamespace(predict_proba=lambda frame: np.column_stack([1 - p, p])[rows])
        return measured(tasks.Classification, stub, truth, ["nllh", "auc", "log_loss", "brier", "calibration_error"])

    for rows in (np.argsort(y, kind="stable"), np.argsort(-y, kind="stable"), np.arange(60)[::-1]):
        assert scores(rows) == pytest.approx(scores(np.arange(60)), rel=1e-12)


def test_a_constant_prediction_ranks_nothing():
    truth = classification.HeldOutRows(pd.DataFrame({"a": range(6)}), np.array(Y, np.int8))
    stub = SimpleNamespace(predict_proba=lambda frame: np.full((6, 2), 0.5))
    found = measured(tasks.Classification, stub, truth, ["auc", "calibration_error"])
    assert found == {("auc", None, None): 0.5, ("calibration_error", None, None): pytest.approx(0.5 - 2 / 6)}


# -- bags -------------------------------------------------------------------------------------------------------------

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
    places = pd.DataFrame(
        {"state": ["AL", "WY"], "longitude": [-86.6, -107.2], "latitude": [33.0, 42.8], "share": [0.4, 0.3]}
    )
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
    found["majority", about(covariate="sex"), None] = sum(
        (predicted[g] > 0.5) == (q > 0.5) for g, (q, _) in NATION.items()
    )
    found["pair_auc", about(covariate="sex"), None] = float((predicted["male"] > predicted["female"]) == (0.45 > 0.455))
    found["pair_auc_close", about(covariate="sex"), None] = 1.0
    found["poll_rmse", about(covariate="sex"), None] = rmse(predicted)
    found["expected_poll_rmse", about(covariate="sex"), None] = rmse(
        {g: share(chosen, soft) for g, chosen in sides.items()}
    )
    points = {s: share([v for v in VOTERS if v[:2] == (s, "male")], hard) for s in STATES}
    assert math.isnan(points.pop("OH"))
    for state, value in points.items():
        keys = about(covariate="sex", group="male", state=state)
        found["state_share", keys, None], found["state_poll", keys, None] = value, POLLED[state, "male"]
    found["state_rmse", about(covariate="sex"), None] = math.sqrt(
        mean((v - POLLED[s, "male"]) ** 2 for s, v in points.items())
    )
    # regions: weights 10 and 10; shares 3/5 and 2/5 beside 0.5 and 0.2
    found["region_rmse", None, None] = math.sqrt((10 * 0.1**2 + 10 * 0.2**2) / 20)
    alabama, wyoming = (
        about(state=s, longitude=x, latitude=y) for s, x, y in (("AL", -86.6, 33.0), ("WY", -107.2, 42.8))
    )
    found["map_share", alabama, None] = share([v for v in VOTERS if v[0] == "AL"], soft)
    found |= {("map_counted", alabama, None): 0.4, ("map_counted", wyoming, None): 0.3}
    return found


def test_regions_count_by_the_weight_of_their_persons():
    regions = Bags(
        np.zeros((4, 1)), np.array([0, 2, 4]), weights=np.array([90.0, 0, 4, 6]), target=np.array([0.5, 0.2])
    )
    votes = np.array([[0, 1.0, 1], [7, 1.0, 4]])  # shares 0.5 and 0.8
    assert tasks.bags.polls.region_rmse(votes, regions) == pytest.approx(math.sqrt((90 * 0 + 10 * 0.6**2) / 100))


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


# -- compression ------------------------------------------------------------------------------------------------------

TRAIN = [([6, 4, 10, 5], [6, 1, 5, 0]), ([20, 5, 0, 0], [10, 2, 0, 0])]  # counts and label sums of two features' values
TEST = [([3, 2, 4, 0], [2, 1, 1, 0]), ([7, 1, 0, 0], [3, 1, 0, 0])]  # of 10 and 10: one and two records are unseen
CLUSTERS, UNSEEN = [[1, 0, 0, 0], [0, 1, 1, 1]], [0, 1]
LABELS = (12, 5)  # records with label 1 in training, of 25, and in the test, of 10


def single_tables(parts, total, positives) -> ContingencyTables:
    encoder = FrameEncoder((CodedEncoder("a", 4), CodedEncoder("b", 4)))
    tables = {}
    for i, (n, c) in enumerate(parts):
        cells = np.flatnonzero(n)
        tables[i,] = Table((4,), cells, np.array(n)[cells], np.array(c)[cells])
    return ContingencyTables(encoder, "y", total, positives, tables)


def information(groups) -> float:
    """I(Z; C) in nats of (records, records with label 1) of each cluster."""
    n, c = sum(a for a, _ in groups), sum(b for _, b in groups)
    found = 0.0
    for a, b in groups:
        for joint, margin in ((b, c), (a - b, n - c)):
            found += joint / n * math.log(joint * n / (a * margin)) if joint else 0.0
    return found


def compressed() -> dict:
    truth = compression.HeldOut(single_tables(TRAIN, 25, LABELS[0]), single_tables(TEST, 10, LABELS[1]))
    kept = {n: information(clustered(v, z)) for n, v, z in zip("ab", TRAIN, CLUSTERS, strict=True)}
    estimator = SimpleNamespace(
        relative_loss_=0.125, information_=0.1, information_loss_=0.3, n_clusters_=4, budget=4, min_count=0,
        features_=["a", "b"], feature_information_=kept, n_buckets_={"a": 2, "b": 2},
        labels_={n: np.array(z) for n, z in zip("ab", CLUSTERS, strict=True)}, unseen_=dict(zip("ab", UNSEEN, strict=True)),
    )  # fmt: skip
    return measured(tasks.Compression, estimator, truth)


def clustered(values, clusters, sums=None) -> list:
    n, c = values[0], values[1] if sums is None else sums
    return [[sum(v for v, z in zip(part, clusters, strict=True) if z == k) for part in (n, c)] for k in (0, 1)]


def partitions(items: list):
    """All ways to part items into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for groups in partitions(rest):
        yield [[first], *groups]
        for k, group in enumerate(groups):
            yield [*groups[:k], [first, *group], *groups[k + 1 :]]


def compressed_by_hand() -> dict:
    best, everything = 0.0, sum(information([v for v in zip(*t, strict=True) if v[0]]) for t in TRAIN)
    values = [[v for v in zip(*t, strict=True) if v[0]] for t in TRAIN]
    for ways in itertools.product(*(partitions(v) for v in values)):
        if sum(map(len, ways)) == 4:  # the budget
            best = max(best, sum(information([[sum(x) for x in zip(*g, strict=True)] for g in w]) for w in ways))
    rate, bounds = LABELS[0] / 25, []
    for t, z in zip(TRAIN, CLUSTERS, strict=True):
        base = sum(t[1]) / sum(t[0])
        f = lambda x, base=base: sum(q * math.log(q / b) for q, b in ((x, base), (1 - x, 1 - base)) if q)  # noqa: E731
        # two buckets, cut at 1/2; f is 0 at the base rate, in one of them
        low, high = (0.0, min(f(0.5), f(1.0))) if base <= 0.5 else (min(f(0.0), f(0.5)), 0.0)
        delta = max(max(f(0.0), f(0.5)) - low, max(f(0.5), f(1.0)) - high)
        lost = information([v for v in zip(*t, strict=True) if v[0]]) - information(clustered(t, z))
        bounds.append(lost / delta)
    held = plain = shrunk = 0.0
    for t, test, z, unseen in zip(TRAIN, TEST, CLUSTERS, UNSEEN, strict=True):
        groups = clustered(test, z)
        groups[unseen][0] += 10 - sum(test[0])
        groups[unseen][1] += LABELS[1] - sum(test[1])
        held += information(groups)
        a, b = beta_prior(*(np.array([v for v, n in zip(part, t[0], strict=True) if n], float) for part in t))
        softer = [n * (c + a) / (n + a + b) if n else 0.0 for n, c in zip(*t, strict=True)]
        for k, (n, c) in enumerate(groups):
            size, ones = clustered(t, z)[k]
            counted = min(max(ones / size, 0.5 / size), 1 - 0.5 / size)
            plain += (c * math.log(counted / rate) + (n - c) * math.log((1 - counted) / (1 - rate))) / 10
            soft_rate = clustered(t, z, softer)[k][1] / size
            shrunk += (c * math.log(soft_rate / rate) + (n - c) * math.log((1 - soft_rate) / (1 - rate))) / 10
    single = {
        "information_loss": 0.125,
        "information": 0.1,
        "information_ratio": 0.1 / best,
        "loss_ratio": 0.3 / (everything - best),
        "bound_ratio": max(bounds),
        "heldout_information": held,
        "heldout_predictive": plain,
        "heldout_predictive_shrunk": shrunk,
        "clusters": 4,
        "values": 6,
    }
    return {(name, None, None): value for name, value in single.items()}


# -- distribution regression ------------------------------------------------------------------------------------------

TARGET = [0.1 * k + (0.05 if k % 3 else 0.0) for k in range(33)]
GUESS = [0.8 * t + 0.3 * (k % 2) for k, t in enumerate(TARGET)]


def slope(t, f) -> float:
    return sum((a - mean(t)) * (b - mean(f)) for a, b in zip(t, f, strict=True)) / sum((a - mean(t)) ** 2 for a in t)


def regressed() -> dict:
    held = Bags(np.zeros((33, 1)), np.arange(34), target=np.array(TARGET))
    stub = SimpleNamespace(predict=lambda b: np.array(GUESS), tuned_={"scale": 0.5, "words": 20}, edges_=["scale"])
    return measured(tasks.DistributionRegression, stub, distribution.HeldOutBags(held))


def regressed_by_hand() -> dict:
    error = [(f - t) ** 2 for f, t in zip(GUESS, TARGET, strict=True)]
    variance = mean((t - mean(TARGET)) ** 2 for t in TARGET)
    single = {"mse": mean(error), "nmse": mean(error) / variance, "slope": slope(TARGET, GUESS), "edges": 1.0}
    found = {(name, None, None): value for name, value in single.items()}
    found |= {("tuned", about(parameter=p), None): v for p, v in (("scale", 0.5), ("words", 20.0))}
    for k in range(16):
        part = slice(k, None, 16)
        found["mse_of_part", about(part=k + 1), None] = mean(error[part])
        found["nmse_of_part", about(part=k + 1), None] = mean(error[part]) / variance
        found["slope_of_part", about(part=k + 1), None] = slope(TARGET[part], GUESS[part])
    for b in range(33):
        found["prediction", about(bag=b), None], found["target", about(bag=b), None] = GUESS[b], TARGET[b]
    return found


def of_classes() -> dict:
    held = Bags(np.zeros((3, 1)), np.arange(4), target=np.array(["a", "b", "b"]))
    stub = SimpleNamespace(predict=lambda b: np.array(["a", "a", "b"]), classifies=True)
    return measured(tasks.DistributionRegression, stub, distribution.HeldOutBags(held))


def of_classes_by_hand() -> dict:
    found = {("accuracy", None, None): 2 / 3}
    return found | {("accuracy_of_part", about(part=k + 1), None): right for k, right in enumerate((1.0, 0.0, 1.0))}


def test_every_entry_of_a_vector_is_judged_by_itself():
    target, guess = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[1.5, 5.0], [2.0, 4.0]])
    held = distribution.HeldOutBags(Bags(np.zeros((2, 1)), np.arange(3), target=target), ("2016", "2020"))
    found = measured(tasks.DistributionRegression, SimpleNamespace(predict=lambda b: guess), held, ["mse_of_part"])
    assert found == {
        ("mse", about(target="2016"), None): (0.25 + 1) / 2,
        ("nmse", about(target="2016"), None): (0.25 + 1) / 2 / 1.0,
        ("mse", about(target="2020"), None): 0.5,
        ("mse_of_part", about(target="2016", part=1), None): 0.25,
        ("mse_of_part", about(target="2016", part=2), None): 1.0,
        ("mse_of_part", about(target="2020", part=1), None): 0.0,
        ("mse_of_part", about(target="2020", part=2), None): 1.0,
    }  # fmt: skip  (a target without spread has no normalised error)


def test_a_constant_target_has_no_slope_and_no_normalised_error():
    held = distribution.HeldOutBags(Bags(np.zeros((4, 1)), np.arange(5), target=np.full(4, 2.0)))
    stub = SimpleNamespace(predict=lambda b: np.array([2.0, 3, 2, 2]))
    assert measured(tasks.DistributionRegression, stub, held, ["mse", "nmse", "slope"]) == {("mse", None, None): 0.25}


# -- flows ------------------------------------------------------------------------------------------------------------

LOG_PHI = np.log(np.array([[[0.4, 0.1], [0.2, 0.3]]]))
TRUE = np.array([[[3.0, 1.0], [2.0, 4.0]]])  # one step between two states, ten persons
SEEN = np.array([[5.0, 4.0], [6.0, 6.0]])
FOUND = [np.array([[3.5, 1.5], [-0.5, 5.5]])]
PLACES = np.array([[0.0, 1.0], [2.0, 0.5]])


def truth_of_flows(true=TRUE, counts=SEEN, m=10, **more) -> flows.TrueFlows:
    seen = FlowCounts(node_counts=counts, noise="gaussian", scale=2.0, population_size=m)
    return flows.TrueFlows(np.array([true]), np.array([LOG_PHI]), more.get("theta"), PLACES, seen)


def free_energy(z, m=10) -> float:
    """F of eq. 2.7 for one edge: Σ z log z − Σ z log φ − log p(y | z), for z (2, 2) that add up to m."""
    z = np.asarray(z, float).reshape(2, 2)
    value = sum(v * math.log(v) for v in z.ravel() if v > 0) - float((z * LOG_PHI[0]).sum())
    gaps = np.concatenate([z.sum(axis=1) - SEEN[0], z.sum(axis=0) - SEEN[1]])
    return value + sum(0.5 * (g / 2.0) ** 2 + math.log(2.0 * math.sqrt(2 * math.pi)) for g in gaps)


def lowest() -> float:
    at = optimize.minimize(
        lambda free: free_energy([*free, 10 - sum(free)]), [2.5, 2.5, 2.5], method="SLSQP",
        bounds=[(1e-6, 10)] * 3, constraints={"type": "ineq", "fun": lambda free: 10 - sum(free) - 1e-6},
        options={"ftol": 1e-15},
    )  # fmt: skip
    return float(at.fun)


BEST = lowest()
TRACE = [  # (iteration, seconds, objective, violation): good at 1, bad again at 2, good from 3 on
    (0, 0.1, BEST * 1.5, 2.0), (1, 0.2, BEST, 0.0), (2, 0.4, BEST, 1.0), (3, 0.7, BEST, 1e-7), (4, 0.9, BEST, 0.0),
]  # fmt: skip


def of_inference() -> dict:
    stub = SimpleNamespace(edge_tables_=FOUND, objective_=BEST, trace_=TRACE, value_=0.3)
    few = [m for m in tasks.FlowInference.MEASURES if m not in ("map_error", "mean_error")]  # below, of fewer persons
    return measured(tasks.FlowInference, stub, truth_of_flows(), few)


def of_inference_by_hand() -> dict:
    """Half a person is below zero, so the result itself has no objective and no gap."""
    found = {
        ("tuned_value", None, None): 0.3,
        ("negative", None, None): 0.5 / 10,
        ("edge_error", None, None): (0.5 + 0.5 + 2.5 + 1.5) / 10,
        ("node_error", None, None): (1 + 1 + 2 + 2) / 20,
        ("violation", None, None): 0.5 / 10,
        ("converged", None, None): 1.0,
        ("time_to_convergence", None, None): 0.7,
        ("flow", THERE, None): 1.5,
        ("true_flow", BACK, None): 2.0,
        ("true_flow", THERE, None): 1.0,
    }
    for step, seconds, objective, off in TRACE:
        found["relative_gap", None, step] = max(abs(objective - BEST) / abs(BEST), 1e-12)
        found["violation", None, step] = max(off / 10, 1e-14)
        found["seconds", None, step] = seconds
    return found


def test_relative_gap_of_the_result():
    stub = SimpleNamespace(edge_tables_=[TRUE[0]], objective_=1.0, trace_=[])
    found = measured(tasks.FlowInference, stub, truth_of_flows(), ["relative_gap"])
    assert found["relative_gap", None, None] == pytest.approx((free_energy(TRUE[0]) - BEST) / abs(BEST), rel=1e-6)
    assert found["relative_gap", None, None] > 1e-3
    stub.objective_ = np.nan  # of a method that minimises something else
    assert ("relative_gap", None, None) not in measured(tasks.FlowInference, stub, truth_of_flows(), ["relative_gap"])


def test_what_never_stays_good_has_no_time_of_convergence():
    stub = SimpleNamespace(edge_tables_=FOUND, objective_=BEST, trace_=TRACE[:3])
    found = measured(tasks.FlowInference, stub, truth_of_flows(), ["time_to_convergence"])
    assert found["converged", None, None] == 0
    assert ("time_to_convergence", None, None) not in found


def test_exact_tables_of_two_persons():
    """MAP and mean of the integer tables, by adding up all pairs of persons."""
    counts, law = np.array([[1.0, 0.5], [0.5, 2.0]]), {}
    for persons in itertools.product(itertools.product((0, 1), repeat=2), repeat=2):
        table = np.zeros((2, 2))
        for path in persons:
            table[path] += 1
        likely = np.exp(-0.5 * np.sum((np.stack([table.sum(1), table.sum(0)]) - counts) ** 2) / 4)
        law.setdefault(tuple(table.ravel()), 0.0)
        law[tuple(table.ravel())] += float(np.exp((table * LOG_PHI[0]).sum())) * likely
    best, total = max(law, key=law.get), sum(law.values())
    exact = {"map_error": np.array(best), "mean_error": sum(p / total * np.array(t) for t, p in law.items())}
    truth = truth_of_flows(np.array([[[1.0, 0], [0, 1]]]), counts, 2)
    found = np.array([[0.5, 0.5], [0.25, 0.75]])
    measures = measured(tasks.FlowInference, SimpleNamespace(edge_tables_=[found]), truth, list(exact))
    for name, table in exact.items():
        assert measures[name, None, None] == pytest.approx(np.abs(found.ravel() - table).sum() / 2, rel=1e-9)


GIBBS = {
    "map_seconds": 0.5, "map_error": 0.25, "gibbs_seconds": 2.0, "gibbs_error": 0.125, "gibbs_reached": 1.0,
    "gibbs_moves": 300.0, "reference_error": 0.01,
}  # fmt: skip


def of_gibbs() -> dict:
    names = {name if name != "gibbs_reached" else "reached": value for name, value in GIBBS.items()}
    stub = SimpleNamespace(**{f"{name}_": value for name, value in names.items()})
    return measured(tasks.FlowInference, stub, None)


def of_gibbs_by_hand() -> dict:
    return {(name, None, None): value for name, value in GIBBS.items()}


LEARNED = ChainModel(np.log(np.array([[[0.25, 0.25], [0.25, 0.25]]])))


def learned() -> dict:
    stub = SimpleNamespace(
        theta_=np.array([1.0, -2.0]), trace_=[(0, 0.0, np.array([0.0, 0.0])), (5, 0.25, np.array([1.0, -3.0]))],
        models=lambda: [LEARNED], edge_tables_=[[np.array([[1900.0, 1.5], [2.0, 4.0]])]],
    )  # fmt: skip
    true = np.array([[[2000.0, 1.0], [2.0, 4.0]]])
    return measured(tasks.FlowLearning, stub, truth_of_flows(true, theta=np.array([1.0, -1.0])))


def learned_by_hand() -> dict:
    found = {
        ("theta_error", None, None): 1 / 2,
        ("theta_error", None, 0): 2 / 2, ("theta_error", None, 5): 2 / 2,
        ("seconds", None, 0): 0.0, ("seconds", None, 5): 0.25,
        ("pairwise_mae", None, None): mean([0.15, 0.15, 0.05, 0.05]),
        ("node_mae", None, None): mean([0.0, 0.0, 0.1, 0.1]),
        ("edge_error", None, None): 100.5 / 2007,
        ("small_edge_error", None, None): 0.5 / 7,
        ("flow", THERE, None): 1.5, ("flow", BACK, None): 2.0,
        ("true_flow", THERE, None): 1.0, ("true_flow", BACK, None): 2.0,
    }  # fmt: skip
    cells = {(0, 0): (1900.0, 2000.0), (0, 1): (1.5, 1.0), (1, 0): (2.0, 2.0), (1, 1): (4.0, 4.0)}
    for (i, j), (count, true) in cells.items():
        keys = about(time=0, **{"from": i, "to": j})
        found["count", keys, None], found["true_count", keys, None] = count, true
    return found


# -- all of them ------------------------------------------------------------------------------------------------------

CASES = {
    tasks.Classification: [(classified, classified_by_hand)],
    tasks.SubsetClassification: [(of_subsets, of_subsets_by_hand)],
    tasks.BagClassification: [(of_bags, of_bags_by_hand), (of_votes, of_votes_by_hand)],
    tasks.Compression: [(compressed, compressed_by_hand)],
    tasks.DistributionRegression: [(regressed, regressed_by_hand), (of_classes, of_classes_by_hand)],
    tasks.FlowInference: [(of_inference, of_inference_by_hand), (of_gibbs, of_gibbs_by_hand)],
    tasks.FlowLearning: [(learned, learned_by_hand)],
}
ELSEWHERE = {  # measures that a test of their own has
    tasks.BagClassification: {"state_correlation"},
    tasks.FlowInference: {"map_error", "mean_error"},
}


@pytest.mark.parametrize(("task", "found", "by_hand"), [(t, *c) for t, cases in CASES.items() for c in cases])
def test_measures(task, found, by_hand):
    got, expected = found(), by_hand()
    assert set(got) == set(expected)
    for key, value in expected.items():
        assert got[key] == pytest.approx(value, rel=1e-6, abs=1e-12), key


@pytest.mark.parametrize("task", KINDS)
def test_every_measure_has_a_value_by_hand(task):
    known = {measure for _, by_hand in CASES[task] for measure, *_ in by_hand()} | ELSEWHERE.get(task, set())
    for name in task.MEASURES:
        assert set(SWITCHES.get(name, [name])) <= known, name


def test_a_learner_without_stages_has_no_best_one():
    def none(frame):
        raise NotAvailable("stages were not kept")

    truth = classification.HeldOutRows(pd.DataFrame({"few": ["u", "v"]}), np.array([0, 1], np.int8))
    stub = SimpleNamespace(predict_proba=lambda frame: np.full((2, 2), 0.5), staged_predict_proba=none)
    asked = ["curve", "nllh_best_on_test", "nllh_best_on_validation"]
    assert not {m for m, *_ in measured(tasks.Classification, stub, truth, asked)} & {*asked, "seconds"}


def test_settings_of_a_real_regressor_are_measured():
    ridge = LinearRidge([0.1, 1.0, 10.0]).fit(np.arange(12.0)[:, None], np.arange(12.0))
    assert ridge.edges_ == ["strength"]
    held = distribution.HeldOutBags(Bags(np.zeros((2, 1)), np.arange(3), target=np.array([0.0, 1.0])))
    stub = SimpleNamespace(predict=lambda b: np.array([0.0, 1.0]), edges_=ridge.edges_)
    assert measured(tasks.DistributionRegression, stub, held, ["edges"])["edges", None, None] == 1


def test_names_of_targets_are_saved_as_they_are(tmp_path):
    held = distribution.HeldOutBags(Bags(np.zeros((2, 1)), np.arange(3), target=np.eye(2)), ("year 2016", "2020"))
    held.save(tmp_path)
    assert distribution.HeldOutBags.load(tmp_path).columns == ("year 2016", "2020")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("label", [0, 1])
def test_one_label_has_no_area_under_the_curve(label):
    assert np.isnan(auc(np.full(3, label), np.array([0.1, 0.5, 0.9])))


def test_predictions_are_shown_for_features_of_up_to_five_values():
    frame = pd.DataFrame({"few": list("abcde") * 6, "many": list("abcdef") * 5})
    shown = {m.keys["feature"] for m in classification._predictions(frame, np.linspace(0, 1, 30))}
    assert shown == {"few"}
