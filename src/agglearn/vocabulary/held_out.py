"""Information that clusters of values have about the labels of records that did not make the clusters."""

from collections.abc import Iterable

import numpy as np
from scipy.sparse import eye_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from agglearn.evaluation.information import predictive_information
from agglearn.observations import ContingencyTables
from agglearn.observations.consistency import noise_variances, thin_table
from agglearn.seeds import RandomState, derive_generator, draw_seed
from agglearn.vocabulary.quantizer import Quantizer, estimate_counts
from agglearn.vocabulary.rate_order import Counts, pool_rare

REPEATS = 5
TRAINING = 0.8  # of the records
FEWEST = 10  # records of each label: with fewer, one part may have a single label


def held_out_information(quantizer: Quantizer, tables: ContingencyTables, random_state: RandomState = None) -> float:
    """Nats by which clusters predict a held-out record's label better than the base rate does, added up over features.

    It is the mean over five splits. Each thins the counts: 80 % make clusters and, for each feature, a logistic
    regression on the clusters, which predicts the others. For noisy counts it is an estimate, which errs downwards
    where most values have fewer records than the noise, above all in clipped tables. NaN below ten records of a label.

    Parameters
    ----------
    quantizer, tables, random_state : Quantizer, ContingencyTables, int or Generator or None
        The quantiser gives parameters and stays as it is. Tables of single features are used. Seed of the splits.
    """
    if min(tables.positives, tables.total - tables.positives) < FEWEST:
        return float("nan")
    rng = derive_generator("held out", draw_seed(random_state))
    return float(np.mean([_split_gain(quantizer, tables, rng) for _ in range(REPEATS)]))


def _split_gain(quantizer: Quantizer, tables: ContingencyTables, rng: np.random.Generator) -> float:
    variances, noisy = noise_variances(tables), tables.noise is not None
    training, held_out = dict[str, Counts](), dict[str, Counts]()
    for i, name in enumerate(tables.names):
        thinned, remainder = thin_table(tables.tables[i,], variances[i,], tables.noise, rng, TRAINING)
        training[name] = estimate_counts(tables, thinned, variances[i,], TRAINING)
        held_out[name] = remainder.dense()
    fitted = clone(quantizer).set_params(budget=_budget(quantizer, training.values()), noisy=noisy)
    fitted.fit({n: t[0] for n, t in training.items()}, {n: t[1] for n, t in training.items()})
    gain = 0.0
    for name, counts in training.items():
        totals = tuple(float(v.sum()) for v in held_out[name])
        if noisy:  # a sum of many noisy counts has more noise than the total
            totals = (1 - TRAINING) * tables.total, (1 - TRAINING) * tables.positives
        labels, unseen = fitted.labels_[name], fitted.unseen_[name]
        n, c = sum_clusters(labels, unseen, counts)
        tested = sum_clusters(labels, unseen, held_out[name], totals)
        gain += predictive_information(*tested, regress(n, c), float(c.sum() / n.sum()))
    return gain


def _budget(quantizer: Quantizer, counts: Iterable[Counts]) -> int:
    units = [len(pool_rare(n, c, quantizer.min_count)[1]) for n, c in counts]
    clusters = quantizer.budget * sum(units) if quantizer.budget < 1 else quantizer.budget
    return int(np.clip(round(clusters), len(units), sum(units)))


def sum_clusters(labels: np.ndarray, unseen: int, counts: Counts, totals: tuple[float, ...] = ()) -> Counts:
    """(Z,) records and label sums of clusters. What `totals` has beyond the values (V,) goes to `unseen`."""
    size = max(int(labels.max()), unseen) + 1
    n, c = (np.bincount(labels, values, size) for values in counts)
    for sums, total in zip((n, c), totals, strict=False):
        sums[unseen] += total - sums.sum()
    return n, c


def regress(counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
    x = eye_array(len(counts), format="csr")
    rows, weights = np.tile(np.arange(len(counts)), 2), np.concatenate([sums, counts - sums])
    y, occupied = np.repeat([1, 0], len(counts)), weights > 0
    model = LogisticRegression(max_iter=1000).fit(x[rows[occupied]], y[occupied], sample_weight=weights[occupied])
    return model.predict_proba(x)[:, 1]
