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
from agglearn.labelsums import WALRClassifier
from agglearn.maxent import LogisticSkyline, NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables, LabelSums, Records
from agglearn.observations.tables import Pairs, encode_records
from agglearn.observations.units import SINGLE, Unit
from agglearn.privacy import draw_seeded
from agglearn.seeds import derive_generator, derive_seed

__all__ = ["measure_cost"]

TESTED = 0.2  # share of the records that judge
OVERLAP = TESTED / (1 - TESTED)  # of the splits, for `agglearn.evaluation.intervals`
RECORDS = "all records"
PAIRS: dict[str, Pairs] = {"single tables": "none", "tables of pairs": "all"}
# What is released, and whether labels alone are protected. Features are public then.
RELEASES = (("single tables", False), ("tables of pairs", False), ("tables of pairs", True), ("label sums", True))


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
        Columns release, protected (`record`, `unit`, `label` or `nothing`), epsilon (infinite without noise), split,
        nllh, auc.
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
            raise DataError(
                f"label {label!r}: a part of {test.sum()} records has one value alone; cost needs more records"
            )
        training, judging = (replace(records, frame=records.frame[m], y=y[m]) for m in (~test, test))
        for name, protected, epsilon, learner, noisy in _observe(training, unit, [*epsilons, np.inf], delta, split):
            p = learner.fit(noisy).predict_proba(judging.frame)[:, 1]
            scores = normalized_log_likelihood(judging.y, p), auc(judging.y, p)
            rows.append([name, protected, epsilon, split, *scores])
    return pd.DataFrame(rows, columns=["release", "protected", "epsilon", "split", "nllh", "auc"])


def _observe(
    records: Records, unit: Unit, epsilons: list[float], delta: float | None, seed: int
) -> Iterator[tuple[str, str, float, Any, Any]]:
    """(release, protected, ε, learner, observation) of all that is compared."""
    encoder, x, y = records.encoder, records.frame, records.y
    codes, delta = encoder.encode(x), delta or 1 / (10 * len(y))
    sums = LabelSums.from_map(FeatureMap.fit("onehot", encoder, x), x, y)
    exact: dict[str, Any] = {"label sums": replace(sums, unit=unit)}
    learners: dict[str, Any] = {"label sums": WALRClassifier(l2="moments", tol=1e-2, max_iter=200)}
    for name, pairs in PAIRS.items():
        exact[name] = replace(ContingencyTables.from_codes(encoder, codes, y, pairs=pairs), unit=unit)
        learners[name] = NoiseAwareMaxEntClassifier(n_chains=1000, max_iter=80, l2_theta="moments", random_state=seed)
    for name, labels_only in RELEASES:
        protected = "label" if labels_only else "unit" if unit.column else "record"
        tables: dict[str, Any] = {} if name == "label sums" else {"adjacency": protected, "postprocessing": "project"}
        for epsilon in epsilons:
            draw = draw_seeded(derive_seed("cost", name, protected, epsilon, seed))
            noisy = exact[name].private(epsilon, delta, draw=draw, **tables) if epsilon < np.inf else exact[name]
            yield name, protected, epsilon, learners[name], noisy
    yield RECORDS, "nothing", np.inf, LogisticSkyline(quadratic=False, random_state=seed), records
