"""One model of tables and a sample: its fixed point by enumeration, and its two ends."""

from dataclasses import replace

import numpy as np
import pytest
from test_maxent_noisy import LONG, every_state

from agglearn.errors import DataError
from agglearn.maxent import JointMaxEntClassifier, NoiseAwareMaxEntClassifier
from agglearn.maxent.exact import Enumeration
from agglearn.maxent.noise_aware import gains, posterior_means, variances
from agglearn.observations import ContingencyTables, Records, TablesAndSample, hide_cells, with_gaussian_noise


def sample_of(tables: ContingencyTables, n: int, seed: int = 0) -> Records:
    """Records of another law: the label is that of the first feature's first value."""
    rng = np.random.default_rng(seed)
    frame = every_state(tables).sample(n, replace=True, random_state=seed, ignore_index=True)
    first = frame[tables.names[0]] == tables.encoder.features[0].values[0]
    return Records(tables.encoder, frame, (rng.random(n) < 0.2 + 0.6 * first).astype(np.int8))


def together(tables: ContingencyTables, sample: Records) -> ContingencyTables:
    counted = ContingencyTables.from_codes(tables.encoder, sample.codes, sample.y)
    total, positives = tables.total + len(sample.y), tables.positives + sample.y.sum()
    sums = {key: table + counted.tables[key] for key, table in tables.tables.items()}
    return replace(tables, total=total, positives=positives, tables=sums)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [7.0, 40.0])
def test_training_reaches_the_fixed_point_of_both(scale, small):
    """The E step takes the latent counts of the tables alone; the sample's are added as they are."""
    noisy, frame, sample = with_gaussian_noise(small, scale, 0), every_state(small), sample_of(small, 300)
    both, weights = together(noisy, sample), np.zeros((2, len(Enumeration.from_tables(noisy).d)))
    model, noise = Enumeration.from_tables(both), variances(noisy)
    seen = Enumeration.from_tables(noisy)
    counted, share = np.stack([model.d - seen.d, model.c - seen.c]), noisy.total / both.total
    for _ in range(100):
        latent = share * np.stack(model.compute_expectations(*weights))
        model.d, model.c = np.stack(posterior_means(seen.d, seen.c, *latent, gains(*latent, *noise))) + counted
        weights = np.stack(model.optimum(1.0, 4.0, weights))
    exact, long = model.label_probability(weights[1]), LONG | {"max_iter": 1500}
    trained = JointMaxEntClassifier(1000, **long).fit(TablesAndSample(noisy, sample))
    added = NoiseAwareMaxEntClassifier(1000, **long).fit(both)
    gap, of_sums = (np.abs(m.predict_proba(frame)[:, 1] - exact).max() for m in (trained, added))
    assert gap < 0.02
    assert gap < of_sums / 2


def test_without_noise_it_is_the_model_of_the_sums(tables):
    sample, settings = sample_of(tables, 50), {"max_iter": 20, "random_state": 3}
    joint = JointMaxEntClassifier(200, **settings).fit(TablesAndSample(tables, sample))
    added = NoiseAwareMaxEntClassifier(200, **settings).fit(together(tables, sample))
    assert (joint.theta_ == added.theta_).all()
    assert joint.intercept_ == added.intercept_


def test_what_cannot_be_counted_together_is_refused(tables):
    sample = sample_of(tables, 50)
    hashed = ContingencyTables.from_codes(tables.encoder, sample.codes, sample.y, cross_buckets=2)
    for observed, said in ((hashed, "hashed pairs"), (hide_cells(tables, 3), "hidden")):
        with pytest.raises(DataError, match=said):
            JointMaxEntClassifier(200).fit(TablesAndSample(observed, sample))
    with pytest.raises(DataError, match="posterior: 'apart' has no likelihood"):
        JointMaxEntClassifier(200, posterior="apart").fit(TablesAndSample(tables, sample))
