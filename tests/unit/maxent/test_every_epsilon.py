"""Noise-aware training at every budget: it does not diverge, and is never behind the base rate of the same tables."""

import numpy as np
import pytest
from samples import people

from agglearn.evaluation import normalized_log_likelihood
from agglearn.labelsums import BaseRateClassifier
from agglearn.maxent import NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables
from agglearn.observations.consistency import project_tables
from agglearn.observations.release import release_tables
from agglearn.privacy import draw_seeded

FRAME, TEST = people(4000, 0), people(4000, 1)
TABLES = ContingencyTables.from_records(FRAME, "y")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("epsilon", [0.01, 0.03, 0.1, 0.3, 1, 10, 100])
def test_never_behind_the_base_rate_of_the_same_tables(epsilon, seed):
    noisy = project_tables(release_tables(TABLES, epsilon, 1e-5, draw=draw_seeded(seed), allow_large_epsilon=True))
    model = NoiseAwareMaxEntClassifier(n_chains=500, max_iter=80, l2_theta="moments", random_state=seed).fit(noisy)
    models = model, BaseRateClassifier().fit(noisy)
    of_model, of_base_rate = (normalized_log_likelihood(TEST["y"], m.predict_proba(TEST)[:, 1]) for m in models)
    assert np.isfinite(model.theta_).all()
    assert of_model > of_base_rate - 0.02
    assert of_model > 0.05 or epsilon < 10
