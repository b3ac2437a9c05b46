"""What releases of records would be worth to a learner: measured by seeded noise, on splits of these records."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from agglearn.encoding import FeatureMap
from agglearn.encoding.columns import as_frame
from agglearn.errors import DataError
from agglearn.evaluation import auc, normalized_log_likelihood
from agglearn.evaluation.intervals import mean_interval
from agglearn.labelsums import WALRClassifier
from agglearn.maxent import LogisticSkyline, NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables, LabelSums, Records
from agglearn.observations.tables import encode_records
from agglearn.observations.units import SINGLE, Unit
from agglearn.privacy import draw_seeded
from agglearn.privacy.budget import check_delta
from agglearn.seeds import derive_generator, derive_seed

__all__ = ["measure_cost", "summarise"]

TESTED = 0.2  # share of the records that judge
OVERLAP = TESTED / (1 - TESTED)  # of the splits, for `agglearn.evaluation.intervals`
RECORDS = "all records"


def measure_cost(
    frame: pd.DataFrame | np.ndarray, label: str | None = None, features: Iterable[str] | None = None, *,
    epsilons: Iterable[float], delta: float | None = None, splits: int = 5, random_state: int = 0, **options: Any,
) -> pd.DataFrame:  # fmt: skip
    """Scores of models that learn from each release at each budget, on records that were not released.

    Noise is seeded. The scores tell of the records, and are themselves not private. Bins and categories of all records
    take the place of declared ones, unless a schema is given. ConfigError and DataError as in
    `ContingencyTables.from_records`, and for too few records.

    Parameters
    ----------
    frame, label, features : DataFrame or ndarray, str or None, Iterable[str] or None
        As in `ContingencyTables.from_records`.
    epsilons, delta : Iterable[float], float or None
        Budgets. A release without noise stands beside them. δ is by default 1/(10 n) for n records to learn from.
    splits, random_state, **options : int, int, Any
        Random splits, four fifths to learn from, and their seed. Schema, unit and others of `ContingencyTables.from_records`
        but for pairs and crosses. All records of a unit are on one side of a split.

    Returns
    -------
    DataFrame
        Columns release (with what it protects), epsilon (infinite without noise), split, nllh, auc.
    """
    frame = as_frame(frame).reset_index(drop=True)
    encoder, x, y, label, units = encode_records(frame, label, features, **options)
    counted, unit = units.counted(), units.unit or SINGLE
    x, y = x[counted], y[counted]
    check_delta(delta, (1 - TESTED) * len(y))
    owners = np.arange(len(y)) if not unit.column else pd.factorize(frame[unit.column].iloc[x.index])[0]
    rows = []
    for split in range(splits):
        test = (derive_generator("cost", random_state, split).random(owners.max() + 1) < TESTED)[owners]
        if min(len(np.unique(y[test])), len(np.unique(y[~test]))) < 2:
            raise DataError(f"label {label!r}: too few records have one of its values; cost needs more of them")
        training = Records(encoder, x[~test].reset_index(drop=True), y[~test], label)
        for release, epsilon, learner, noisy in _observe(training, unit, [*epsilons, np.inf], delta, split):
            p = learner.fit(noisy).predict_proba(x[test])[:, 1]
            rows.append([release, epsilon, split, normalized_log_likelihood(y[test], p), auc(y[test], p)])
    return pd.DataFrame(rows, columns=["release", "epsilon", "split", "nllh", "auc"])


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits, and half of their 95 % intervals (`nllh_error`, `auc_error`).

    Parameters
    ----------
    scores : DataFrame
        Of `measure_cost`.
    """
    groups = scores.groupby(["release", "epsilon"], sort=False)[["nllh", "auc"]]
    halves = groups.agg(lambda values: mean_interval(values, OVERLAP)[2] - values.mean())
    return groups.mean().join(halves, rsuffix="_error").reset_index()


def _observe(records: Records, unit: Unit, epsilons: list, delta: float | None, seed: int) -> Iterator[tuple]:
    """(release, ε, learner, observation) of all that is compared."""
    encoder, x, y = records.encoder, records.frame, records.y
    codes, delta, whose = encoder.encode(x), delta or 1 / (10 * len(y)), "unit" if unit.column else "record"
    single = ContingencyTables.from_codes(encoder, codes, y, pairs="none")
    pairs = ContingencyTables.from_codes(encoder, codes, y)
    sums = LabelSums.from_map(FeatureMap.fit("onehot", encoder, x), x, y)
    maxent = NoiseAwareMaxEntClassifier(n_chains=1000, max_iter=80, l2_theta="moments", random_state=seed)
    walr = WALRClassifier(l2="moments", tol=1e-2, max_iter=200)
    compared: list[tuple[str, str, Any, Any]] = [  # features are public where labels alone are protected
        ("single tables", whose, single, maxent), ("tables of pairs", whose, pairs, maxent),
        ("tables of pairs", "label", pairs, maxent), ("label sums", "label", sums, walr),
    ]  # fmt: skip
    for name, protected, exact, learner in compared:
        options = {"adjacency": protected, "postprocessing": "project"} if learner is maxent else {}
        for epsilon in epsilons:
            draw, noisy = draw_seeded(derive_seed("cost", name, protected, epsilon, seed)), replace(exact, unit=unit)
            noisy = noisy.private(epsilon, delta, draw=draw, **options) if epsilon < np.inf else exact
            yield f"{name}, {protected} protected", epsilon, learner, noisy
    yield RECORDS, np.inf, LogisticSkyline(quadratic=False, random_state=seed), records
