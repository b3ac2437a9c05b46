"""What the ladder adds: counted bags, and trees."""

import numpy as np
import pandas as pd
import pytest
from samples import people

from agglearn.estimator import Estimator
from agglearn.evaluation import auc
from agglearn.labelsums import BoostedTreesSkyline, SklearnLogistic
from agglearn.observations import CountedBags, Records


def test_counts_are_those_of_the_bags():
    records, rng = Records.from_records(people(3000), "y", categorical=["zone"]), np.random.default_rng(0)
    bags = CountedBags.from_records(records.encoder, records.frame, records.y, 7, rng)
    assert len(bags.rows) == 3000 // 7 * 7 == len(set(bags.rows.tolist()))
    y = records.y[bags.rows].reshape(-1, 7)
    assert (bags.counts[:, 1] == y.sum(axis=1)).all()
    assert (bags.counts.sum(axis=1) == bags.sizes).all()
    x = bags.bags().X
    assert x.shape[1] == records.encoder.sizes.sum()
    assert (x.sum(axis=1) == len(records.encoder.names)).all()


@pytest.mark.slow
def test_trees_see_what_a_linear_model_cannot(tmp_path):
    rng = np.random.default_rng(0)
    frame = people(3000).assign(y=lambda f: ((f.age > 45) ^ (f.job == "cook")).astype(int))
    frame["y"] = np.where(rng.random(3000) < 0.1, 1 - frame["y"], frame["y"])
    seen = Records.from_records(frame[:2000], "y", categorical=["zone"])
    trees, linear = BoostedTreesSkyline(random_state=2**40).fit(seen), SklearnLogistic().fit(seen)
    rest = frame[2000:].assign(zone=99)  # a value never seen
    best, worst = (auc(rest["y"], m.predict_proba(rest)[:, 1]) for m in (trees, linear))
    assert best > 0.8 > worst
    trees.save(tmp_path / "m")
    Estimator.load(tmp_path / "m").save(tmp_path / "n")
    np.testing.assert_array_equal(Estimator.load(tmp_path / "n").predict_proba(rest), trees.predict_proba(rest))


def test_trees_take_a_value_without_a_code_for_missing_not_for_a_small_number():
    """Nothing was missing in training: scikit-learn then follows the larger part, in which labels are 0."""
    x = np.tile(np.arange(10.0), 60)
    frame = pd.DataFrame({"x": x, "y": (x == 0).astype(int)})
    trees = BoostedTreesSkyline(random_state=0).fit(Records.from_records(frame, "y"))
    low, high, missing = trees.predict_proba(pd.DataFrame({"x": [0.0, 9.0, np.nan]}))[:, 1]
    assert low > 0.9
    assert max(high, missing) < 0.1
