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
from agglearn.observations.tables import Pairs, encode_records
from agglearn.observations.units import SINGLE, Unit
from agglearn.privacy import draw_seeded
from agglearn.seeds import derive_generator, derive_seed

__all__ = ["measure_cost", "summarise"]

TESTED = 0.2  # share of the records that judge
OVERLAP = TESTED / (1 - TESTED)  # of the splits, for `agglearn.evaluation.intervals`
RECORDS = "all records"
PAIRS: dict[str, Pairs] = {"single tables": "none", "tables of pairs": "all"}
# What is released, and what is protected: labels alone where features are public, else records, or units where they are known.
RELEASES = (
    ("single tables", "record"),
    ("tables of pairs", "record"),
    ("tables of pairs", "label"),
    ("label sums", "label"),
)


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
    owners = np.arange(len(y)) if not unit.column else pd.factorize(frame[unit.column].iloc[x.index])[0]
    records, rows = Records(encoder, x.reset_index(drop=True), y, label), []
    for split in range(splits):
        rng = derive_generator("cost", random_state, split)
        test = (rng.random(owners.max() + 1) < TESTED)[owners]
        if min(len(np.unique(y[test])), len(np.unique(y[~test]))) < 2:
            raise DataError(f"label {label!r}: too few records have one of its values; cost needs more of them")
        training, judging = (replace(records, frame=records.frame[m], y=y[m]) for m in (~test, test))
        for release, epsilon, learner, noisy in _observe(training, unit, [*epsilons, np.inf], delta, split):
            p = learner.fit(noisy).predict_proba(judging.frame)[:, 1]
            rows.append([release, epsilon, split, normalized_log_likelihood(judging.y, p), auc(judging.y, p)])
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
    codes, delta = encoder.encode(x), delta or 1 / (10 * len(y))
    sums = LabelSums.from_map(FeatureMap.fit("onehot", encoder, x), x, y)
    exact: dict[str, Any] = {"label sums": replace(sums, unit=unit)}
    learners: dict[str, Any] = {"label sums": WALRClassifier(l2="moments", tol=1e-2, max_iter=200)}
    for name, pairs in PAIRS.items():
        exact[name] = replace(ContingencyTables.from_codes(encoder, codes, y, pairs=pairs), unit=unit)
        learners[name] = NoiseAwareMaxEntClassifier(n_chains=1000, max_iter=80, l2_theta="moments", random_state=seed)
    for name, protected in RELEASES:
        protected = "unit" if protected == "record" and unit.column else protected
        tables: dict[str, Any] = {} if name == "label sums" else {"adjacency": protected, "postprocessing": "project"}
        for epsilon in epsilons:
            draw = draw_seeded(derive_seed("cost", name, protected, epsilon, seed))
            noisy = exact[name].private(epsilon, delta, draw=draw, **tables) if epsilon < np.inf else exact[name]
            yield f"{name}, {protected} protected", epsilon, learners[name], noisy
    yield RECORDS, np.inf, LogisticSkyline(quadratic=False, random_state=seed), records
