"""The maximum-entropy classifier against the exact optimum, and its manners."""

import itertools
import math
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import people, printed_with_threads

from agglearn.datasets.simulated import LogLinear
from agglearn.encoding import CategoricalEncoder, FrameEncoder
from agglearn.errors import ConfigError, DataError, NotAvailable
from agglearn.estimator import Estimator
from agglearn.maxent import MaxEntClassifier, pcd_step, weight_index
from agglearn.maxent.engines.numba_chains import Chains
from agglearn.maxent.exact import Enumeration
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables


def state_probabilities(model, exact):
    """(S,) P(Y=1|X) of the model at every state of the enumeration."""
    features = model.encoder_.features
    columns = {f.name: [f.labels[c] for c in exact.states[:, i]] for i, f in enumerate(features)}
    return model.predict_proba(pd.DataFrame(columns))[:, 1]


def distance(model, tables, l2_theta=4.0) -> float:
    """Mean |P(Y=1|X) − optimum's| under the law of X at the exact optimum."""
    exact = Enumeration.from_tables(tables)
    mu, theta = exact.optimum(model.l2_mu, exact.index.spread(*np.broadcast_to(l2_theta, 2)))
    law = np.exp(exact.log_joint(mu, theta)).sum(axis=1)
    return float(law @ np.abs(state_probabilities(model, exact) - exact.label_probability(theta)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {}, {"gradient": "exact"}, {"clip_ratio": False},
        {"preconditioner": "predicted", "step_mu": 0.1, "step_theta": 0.1}, {"marginalize_label": False},
        {"sampler": "mh"}, {"n_sweeps": 2, "initial_chains": "uniform"},
    ],
    ids=str,
)  # fmt: skip
def test_every_option_reaches_the_exact_optimum(tables, options, good):
    model = MaxEntClassifier(**{**good, **options}).fit(tables)
    assert distance(model, tables) < 0.006


@pytest.mark.slow
def test_a_large_penalty_on_mu_parts_rescaling_from_the_optimum(tables, good):
    """d̂ stays away from d, so that eq. 6 and lemma 2 have different solutions; see docs/maxent.md."""
    penalised, exact = {**good, "l2_mu": 100.0}, Enumeration.from_tables(tables)
    right = np.linalg.norm(exact.optimum(100.0, 4.0)[0])
    layout = WeightIndex.from_tables(tables)
    models = (MaxEntClassifier(**penalised, gradient=how).fit(tables) for how in ("exact", "rescaled"))
    exact, rescaled = (np.linalg.norm(model.mu_[layout.rows, layout.columns]) for model in models)
    assert exact == pytest.approx(right, rel=0.01)
    assert rescaled > 1.1 * right


@pytest.mark.slow
@pytest.mark.parametrize("kept", [[(0,), (1,), (2,)], [(0,), (1,), (2,), (0, 2)], [(0, 1), (0, 2), (1, 2)]])
def test_some_or_no_pair_tables_and_no_single_ones(tables, kept, good):
    some = replace(tables, tables={k: tables.tables[k] for k in kept})
    model = MaxEntClassifier(**good).fit(some)
    assert distance(model, some) < 0.006
    assert np.count_nonzero(np.triu(model.theta_)) <= len(WeightIndex.from_tables(some).rows)


def test_missing_pair_tables_are_named_or_refused(records, tables):
    some = ContingencyTables.from_records(records, "label", pairs=[("f0", "f2")])
    model = MaxEntClassifier(n_chains=100, max_iter=2).fit(some)
    assert model.missing_ == [("f0", "f1"), ("f1", "f2")]
    with pytest.raises(DataError, match=r"2 pairs.*'f0' × 'f1'"):
        MaxEntClassifier(missing="refuse").fit(some)
    assert MaxEntClassifier(n_chains=100, max_iter=2, missing="refuse").fit(tables).missing_ == []
    with pytest.raises(DataError, match="no tables"):
        MaxEntClassifier().fit(replace(tables, tables={}))


CODE = f"""
import sys, hashlib
sys.path[:0] = [{os.path.dirname(__file__)!r}]
import agglearn.maxent, numba, numba.np.ufunc.parallel
assert not numba.np.ufunc.parallel._is_initialized  # a process that has imported this is forked, without numba's threads
from conftest import draw_records
from agglearn.observations import ContingencyTables
from agglearn.maxent import MaxEntClassifier
tables = ContingencyTables.from_records(draw_records(sizes=(2, 3, 9, 17)), "label")
for sampler in ("gibbs", "mh"):
    for threads in (1, 2, 4):
        numba.set_num_threads(threads)
        model = MaxEntClassifier(n_chains=3_001, max_iter=30, sampler=sampler, random_state=2**63 - 1).fit(tables)
        print(hashlib.sha256(model.mu_.tobytes() + model.theta_.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_import_starts_no_threads_and_one_two_and_four_give_the_same_bits():
    """A process of `tests/unit/test_kernel_cache.py` compiles a kernel, another one finds it, and both have the same number."""
    gibbs, mh = np.reshape(printed_with_threads(CODE), (2, 3))
    assert len(set(gibbs)) == len(set(mh)) == 1
    assert gibbs[0] != mh[0]


@pytest.mark.parametrize("average", [0.0, 0.5, 1.0])
def test_the_last_stage_is_the_model_and_a_saved_one_has_no_others(tables, records, average, tmp_path):
    model = MaxEntClassifier(n_chains=500, max_iter=11, trace_every=4, average=average, random_state=0).fit(tables)
    stages = list(model.staged_predict_proba(records))
    assert [step for step, _, _ in stages] == [4, 8, 11]
    assert (stages[-1][2] == model.predict_proba(records)[:, 1]).all()
    assert all(a[1] <= b[1] for a, b in itertools.pairwise(stages))
    model.save(tmp_path)
    with pytest.raises(NotAvailable, match="trace_every"):
        next(Estimator.load(tmp_path).staged_predict_proba(records))


def test_training_stops_by_itself(tables):
    model = MaxEntClassifier(l2_theta=4.0, max_iter=2000, random_state=1).fit(tables)
    assert model.settled_
    assert model.n_iter_ < 300
    assert len(model.misfit_) == model.n_iter_
    assert distance(model, tables) < 0.01


@pytest.mark.slow
def test_the_trainer_finds_its_steps_and_its_end_where_the_signal_is_strong(monkeypatch):
    """Close to full training on records of a strong pairwise model, also from steps that would diverge."""
    steps = MaxEntClassifier._steps
    world = LogLinear(n_features=5, n_modalities=4, strength=0.8, n=40_000).draw(0)
    tables = ContingencyTables.from_records(world.frame.assign(label=world.y), "label")
    options = {"n_chains": 4000, "l2_theta": 4.0, "random_state": 0}

    def error(model):
        return float(np.sqrt(np.mean((model.predict_proba(world.frame)[:, 1] - world.probabilities) ** 2)))

    full = error(MaxEntClassifier(**options, tol=0, max_iter=800).fit(tables))
    for factor, most in ((1, 299), (30, 1000)):

        def larger(self, n_tables, factor=factor):
            sizes, momenta = steps(self, n_tables)
            return factor * sizes, momenta

        monkeypatch.setattr(MaxEntClassifier, "_steps", larger)
        model = MaxEntClassifier(**options).fit(tables)
        assert model.n_iter_ <= most
        assert error(model) < 1.08 * full


def test_probabilities_and_unseen_values(tables, records):
    model = MaxEntClassifier(n_chains=500, max_iter=10, random_state=0).fit(tables)
    p = model.predict_proba(records)
    assert np.allclose(p.sum(axis=1), 1)
    assert (model.predict_proba(records[["f2", "label", "f0", "f1"]]) == p).all()  # columns are matched by name
    odd = records.head(1).assign(f0="never seen", f1="nor this", f2=None)
    assert np.isclose(model.predict_proba(odd)[0, 1], 1 / (1 + np.exp(-model.intercept_)))
    with pytest.raises(DataError, match="f1"):
        model.predict_proba(records.drop(columns="f1"))


def test_features_with_one_modality_and_empty_cells():
    values = {"one": ("a",), "two": ("a", "b"), "three": ("a", "b", "c")}
    encoder = FrameEncoder(tuple(CategoricalEncoder(*item) for item in values.items()))
    codes = np.array([[0, 0, 0], [0, 1, 1], [0, 1, 0], [0, 0, 1]] * 25, dtype=np.int32)  # modality c never occurs
    y = np.array([0, 1, 1, 0] * 25)
    tables = ContingencyTables.from_codes(encoder, codes, y)
    model = MaxEntClassifier(n_chains=200, max_iter=100, random_state=0).fit(tables)
    p = model.predict_proba(pd.DataFrame({"one": ["a", "a"], "two": ["a", "b"], "three": ["c", "c"]}))[:, 1]
    assert np.isfinite(model.theta_).all()
    assert p[0] < 0.5 < p[1]


@pytest.mark.parametrize("step", [1.0, 50.0])
@pytest.mark.parametrize("preconditioner", ["both", "predicted"])
@pytest.mark.parametrize("clip", [2.0, np.inf])
def test_huge_steps_stay_finite(tables, records, step, preconditioner, clip):
    how = {"n_chains": 300, "max_iter": 60, "l2_mu": 0.0, "l2_theta": 0.0, "clip": clip}
    how |= {"step_mu": step, "step_theta": step, "preconditioner": preconditioner}
    model = MaxEntClassifier(**how).fit(tables)
    assert np.isfinite(model.mu_).all()
    assert np.isfinite(model.predict_proba(records)).all()


def test_weights_of_fifty_do_not_overflow(tables):
    layout = WeightIndex.from_tables(tables)
    chains = Chains(layout, 2000, 0.0, seed=0)
    signs = np.random.default_rng(0).choice([-50.0, 50.0], (2, len(layout.rows)))
    chains.set_weights(*signs)
    for step in range(5):
        counts, sums = chains.sweep(step)
    assert counts[layout.single].sum() == 2000 * len(layout.sizes)
    assert (sums >= 0).all()
    assert (sums <= counts).all()


@pytest.mark.parametrize("wrong", [{"gradient": "steep"}, {"max_iter": 0}, {"average": 2}])
def test_bad_parameters(tables, wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        MaxEntClassifier(**wrong).fit(tables)


def test_too_many_modalities_are_refused():
    frame = pd.DataFrame({"a": [f"v{i}" for i in range(70_000)], "b": "x", "label": np.arange(70_000) % 2})
    with pytest.raises(DataError, match=r"65,535.*'a'"):
        MaxEntClassifier().fit(ContingencyTables.from_records(frame, "label", pairs="none"))


def test_tables_too_large_for_the_memory_are_refused(tables, monkeypatch):
    monkeypatch.setattr("agglearn.maxent.weight_index.PAIR_BYTES", 1e15)
    with pytest.raises(DataError, match=r"GB.*'f2'"):
        MaxEntClassifier().fit(tables)


def test_marginal_counts_read_a_table_for_each_feature(monkeypatch):
    """One list of hashed pairs, and no pair tables where single tables have records: with D features there are D² / 2."""
    rng, read, listed = np.random.default_rng(0), [], []
    frame = pd.DataFrame(rng.integers(0, 3, (60, 6)), columns=[f"f{i}" for i in range(6)]).astype(str)
    frame["label"] = rng.integers(0, 2, 60)
    both = ContingencyTables.from_records(frame, "label", pairs="all")
    pairs = replace(both, tables={key: table for key, table in both.tables.items() if len(key) == 2})
    dense, hashed = ContingencyTables.dense, ContingencyTables.hashed_pairs.fget
    monkeypatch.setattr(ContingencyTables, "dense", lambda self, *key: read.append(key) or dense(self, *key))
    monkeypatch.setattr(ContingencyTables, "hashed_pairs", property(lambda self: listed.append(1) or hashed(self)))
    for tables in (both, pairs):
        read.clear(), listed.clear()
        counts = weight_index.marginal_counts(tables)
        assert (len(read), len(listed)) == (6, 1)
        for i, column in enumerate(counts):
            assert (column == np.bincount(frame[f"f{i}"].astype(int), minlength=3)).all()


def test_more_cells_than_their_numbers_can_tell_apart_are_refused(tables, monkeypatch):
    n_cells = int(weight_index.count_cells(tables))
    monkeypatch.setattr(weight_index, "MAX_CELLS", n_cells)
    MaxEntClassifier(10, max_iter=1).fit(tables)
    monkeypatch.setattr(weight_index, "MAX_CELLS", n_cells - 1)
    with pytest.raises(DataError, match=rf"{n_cells:,} cells, the limit is {n_cells - 1:,}; .*'f2'"):
        MaxEntClassifier(10, max_iter=1).fit(tables)


def test_misfits_are_shares_of_the_counts_and_of_the_label_sums(tables, monkeypatch):
    monkeypatch.setattr(pcd_step, "distance", lambda a, b: 1.0)
    model = MaxEntClassifier(50, max_iter=2, random_state=0).fit(tables)
    counts, sums = np.sum([[t.counts.sum(), t.label_sums.sum()] for t in tables.tables.values()], axis=0)
    np.testing.assert_allclose(model.misfit_, [[1 / counts, 1 / sums]] * 2)


@pytest.mark.parametrize("columns", [["job"], ["job", "home", "zone"]])
def test_memory_of_training_counts_all_cells_and_all_pairs_of_modalities(columns):
    tables = ContingencyTables.from_records(people()[[*columns, "y"]], "y", categorical=columns)
    k = int(tables.encoder.offsets[-1])
    cells = sum(math.prod(tables.encoder.sizes[i] for i in key) for key in tables.tables)
    expected = weight_index.CELL_BYTES * cells + weight_index.PAIR_BYTES * k * k
    assert weight_index.needed_bytes(tables) == expected


def test_the_step_of_appendix_a_is_one_over_the_tables(tables):
    how = {"n_chains": 100, "max_iter": 3, "random_state": 0}
    steps = ("1/T", 1 / len(tables.tables))
    named, given = (MaxEntClassifier(**how, step_mu=s, step_theta=s).fit(tables).theta_ for s in steps)
    np.testing.assert_array_equal(named, given)
