"""Measures of predicted labels, by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from measured_by_hand import about, mean, measured, nllh

from agglearn import tasks
from agglearn.errors import NotAvailable
from agglearn.evaluation.metrics import auc
from agglearn.tasks import classification

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
    # every record is a part: 1 − (its loss − (loss / entropy) · (its loss at the base rate − entropy)) / entropy
    entropy = math.log(3) / 3 + math.log(1.5) * 2 / 3
    for k, (right, rate) in enumerate(zip((0.8, 0.8, 0.5, 0.5, 0.8, 0.9), (3, 1.5, 1.5, 3, 1.5, 1.5), strict=True)):
        control = single["log_loss"] / entropy * (math.log(rate) - entropy)
        found["nllh_of_part", about(part=k), None] = 1 - (-math.log(right) - control) / entropy
    assert mean(v for (name, *_), v in found.items() if name == "nllh_of_part") == pytest.approx(single["nllh"])
    # from low to high predictions, by the row at which each group begins: 0, 1, 3 and 5 of 6
    for tenth, prediction, rate in [(1, 0.1, 0.0), (2, 0.2, 0.0), (6, 0.5, 0.5), (9, 0.8, 1.0)]:
        found["prediction_of_tenth", about(tenth=tenth), None] = prediction
        found["rate_of_tenth", about(tenth=tenth), None] = rate
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
    found = measured(tasks.Classification, stub, truth, ["nllh", "log_loss", "brier", "calibration_error"])
    assert math.isnan(found["nllh", None, None])
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


def test_a_learner_without_stages_has_no_best_one():
    def none(frame):
        raise NotAvailable("stages were not kept")

    truth = classification.HeldOutRows(pd.DataFrame({"few": ["u", "v"]}), np.array([0, 1], np.int8))
    stub = SimpleNamespace(predict_proba=lambda frame: np.full((2, 2), 0.5), staged_predict_proba=none)
    asked = ["curve", "nllh_best_on_test", "nllh_best_on_validation"]
    assert not {m for m, *_ in measured(tasks.Classification, stub, truth, asked)} & {*asked, "seconds"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("label", [0, 1])
def test_one_label_has_no_area_under_the_curve(label):
    assert np.isnan(auc(np.full(3, label), np.array([0.1, 0.5, 0.9])))


def test_predictions_are_shown_for_features_of_up_to_five_values():
    frame = pd.DataFrame({"few": list("abcde") * 6, "many": list("abcdef") * 5})
    shown = {m.keys["feature"] for m in classification._predictions(frame, np.linspace(0, 1, 30))}
    assert shown == {"few"}
