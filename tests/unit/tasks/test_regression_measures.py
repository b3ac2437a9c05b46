"""Measures of what is predicted of a bag as a whole, by hand."""

from types import SimpleNamespace

import numpy as np
from measured_by_hand import about, mean, measured

from agglearn import tasks
from agglearn.distribution import LinearRidge
from agglearn.observations import Bags
from agglearn.tasks import distribution

TARGET = [0.1 * k + (0.05 if k % 3 else 0.0) for k in range(33)]
GUESS = [0.8 * t + 0.3 * (k % 2) for k, t in enumerate(TARGET)]


def slope(t, f) -> float:
    return sum((a - mean(t)) * (b - mean(f)) for a, b in zip(t, f, strict=True)) / sum((a - mean(t)) ** 2 for a in t)


def regressed() -> dict:
    held = Bags(np.zeros((33, 1)), np.arange(34), target=np.array(TARGET))
    stub = SimpleNamespace(
        predict=lambda b: np.array(GUESS), tuned_={"scale": 0.5, "words": 20}, edges_=["scale"],
        embedding_=SimpleNamespace(transform=lambda b: np.ones((len(b), 7))),
    )  # fmt: skip
    described = distribution.describe_bags(np.array([2, 10, 3, 3]), 5)
    return measured(tasks.DistributionRegression, stub, distribution.HeldOutBags(held, described=described))


def regressed_by_hand() -> dict:
    error = [(f - t) ** 2 for f, t in zip(GUESS, TARGET, strict=True)]
    variance = mean((t - mean(TARGET)) ** 2 for t in TARGET)
    single = {"mse": mean(error), "nmse": mean(error) / variance, "slope": slope(TARGET, GUESS), "edges": 1.0}
    single |= {"embedding_dimension": 7.0, "dimension": 5.0, "bags": 4.0, "bag_size": 18 / 4, "bag_size_median": 3.0}
    single |= {"bag_size_deviation": ((2.5**2 + 5.5**2 + 1.5**2 + 1.5**2) / 4) ** 0.5}
    single |= {"bag_size_least": 2.0, "bag_size_most": 10.0}
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
