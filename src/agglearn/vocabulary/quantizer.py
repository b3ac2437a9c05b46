"""Base of all vocabulary quantisers: what they are fitted to, and what they know afterwards.

Source: Bateni, Chen, Esfandiari, Fu, Mirrokni, Rostamizadeh 2019, *Categorical feature compression via submodular
optimization*.
"""

import warnings
from collections.abc import Mapping
from typing import Annotated, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from agglearn.encoding import BinnedEncoder, FrameEncoder
from agglearn.encoding.labels import binary_label
from agglearn.errors import ConfigError, DataError, LooksLikeCodes
from agglearn.estimator import Estimator
from agglearn.observations import ContingencyTables, Observation
from agglearn.observations.consistency import noise_variances
from agglearn.seeds import derive_generator, draw_seed
from agglearn.settings import Count, NonNegative, Part, Positive, Range, check_parameters
from agglearn.vocabulary import kernels
from agglearn.vocabulary.rate_order import Ranking, checked, in_threads
from agglearn.vocabulary.shrinkage import shrunk_sums, without_noise

Budget = Count | Part
Shrinkage = Literal["beta_binomial"] | Positive | None
ONE = "x0"  # name of a feature that was given without one


class Quantizer(TransformerMixin, Estimator):
    """Maps the values of categorical features to few clusters that still tell about a binary label.

    `fit` takes

    * contingency tables (only those of single features are used; noise on them is taken out first, see
      `shrinkage.without_noise`, and what is reported is an estimate);
    * counts and label sums of the values: two 1-D arrays for one feature, or two dicts {feature: array} for several
      under one budget. Values are 0, 1, …; a pandas Series names them by its index;
    * records: a data frame or 2-D array of raw values, one column per feature, and binary labels.

    Parameters
    ----------
    budget : clusters over all features together; or, below 1, that share of the number of values.
    min_count : values of fewer records are one value, made before anything else.
    shrinkage : None: label rates as counted, as in the paper. `beta_binomial`, or a number of records at the base rate:
        rates shrunk, for ranking and clustering. What is reported is in counted rates.
    noisy : whether counts given as arrays hold noise; they may then be fractional, and are clipped, with a warning.
        Contingency tables state their noise themselves.
    random_state : seed.

    Attributes
    ----------
    labels_ : (V,) int32 cluster of each value, or {feature: (V,)}. 0 is the cluster of the lowest label rates.
    unseen_ : cluster for values never seen, or {feature: cluster}: that of the rare values where `min_count` made one,
        else the one whose label rate is nearest to that of all records.
    n_clusters_ : clusters used, all features together.
    information_ : I(Z; C) in nats, added up over features; `feature_information_` of each.
    information_loss_ : I(X; C) − I(Z; C) in nats, added up; `relative_loss_` divided by Σ I(X; C), as in the paper.
    borders_ : {feature: (clusters − 1,) label rates between neighbouring clusters}.
    encoder_ : of the raw columns; None when fitted to arrays. features_ : names.
    values_ : {feature: names of its values}, for arrays whose index names them.

    Raises
    ------
    DataError : label sums beyond counts, negative or fractional counts not declared noisy, NaN, one label only, no
        values, values named twice, a budget below the number of features or above that of values.
    """

    observes = ContingencyTables
    accounts_for_noise = True
    uses_labels = True

    def __init__(
        self,
        budget: Budget,
        min_count: NonNegative = 0,
        shrinkage: Shrinkage = None,
        noisy: bool = False,
        random_state=None,
    ):
        self.budget = budget
        self.min_count = min_count
        self.shrinkage = shrinkage
        self.noisy = noisy
        self.random_state = random_state

    def fit(self, X, y=None) -> Self:
        """Learn clusters from tables, from counts and label sums, or from records and labels; see the class."""
        check_parameters(self)
        if isinstance(X, Observation):
            return super().fit(X, y)
        if y is None:
            raise DataError(f"{type(self).__name__}.fit needs label sums, or labels, as its second argument")
        if isinstance(X, Mapping):
            return self._fit_arrays(dict(X), y)
        if np.ndim(X) == 1:
            self._fit_arrays({ONE: X}, {ONE: y})
            self.labels_, self.unseen_ = self.labels_[ONE], self.unseen_[ONE]
            return self
        return super().fit(_tables(X, y))

    def _fit(self, observation):
        self.encoder_, self.values_ = observation.encoder, {}
        self._learn(single_tables(observation), noisy=observation.noise is not None)

    def _fit_arrays(self, counts: dict, sums) -> Self:
        if not isinstance(sums, Mapping) or set(sums) != set(counts):
            raise DataError("counts and label sums must name the same features")
        if not counts:
            raise DataError("there are no features to compress")
        self.encoder_, self.values_ = None, {n: v for n, v in ((n, _values(n, c)) for n, c in counts.items()) if v}
        self._learn({n: (c, _aligned(n, c, sums[n])) for n, c in counts.items()}, self.noisy)
        return self

    def _learn(self, tables: dict, noisy: bool) -> None:
        good = [checked(n, *t, noisy) for n, t in tables.items()]
        rankings = in_threads(lambda n, t: Ranking.of(n, *t, self.min_count, self.shrinkage), tables, good)
        found = self._quantize(rankings, whole_budget(self.budget, rankings))
        self._describe(rankings, found)

    def _quantize(self, rankings: list[Ranking], budget: int) -> list[np.ndarray]:
        """(U,) int32 cluster of each unit, for every feature."""
        raise NotImplementedError

    def _describe(self, rankings: list[Ranking], found: list[np.ndarray]) -> None:
        self.features_, self.labels_, self.unseen_, self.borders_ = [r.name for r in rankings], {}, {}, {}
        self.feature_information_, self.n_clusters_, self.information_loss_ = {}, 0, 0.0
        for r, labels in zip(rankings, found, strict=True):
            k = int(labels.max()) + 1
            n, c = (np.bincount(labels, v, k) for v in (r.counts, r.label_sums))
            kept, lost = kernels.information_of(r.counts, r.label_sums, labels, n, c)
            rest = int(labels[-1]) if r.pooled else int(np.argmin(np.abs(c / n - c.sum() / n.sum())))
            self.borders_[r.name] = r.borders(labels) if self.uses_labels else np.empty(0)
            self.labels_[r.name] = np.append(labels, np.int32(rest))[r.units]
            self.unseen_[r.name], self.feature_information_[r.name] = rest, kept / n.sum()
            self.n_clusters_, self.information_loss_ = self.n_clusters_ + k, self.information_loss_ + lost / n.sum()
        self.information_ = sum(self.feature_information_.values())
        everything = self.information_ + self.information_loss_
        self.relative_loss_ = self.information_loss_ / everything if everything else 0.0

    def transform(self, X) -> np.ndarray:
        """Clusters of raw values, int32: (n, D) for a frame, columns matched by name; (n,) for a single feature's values
        after a fit to 1-D arrays. Values never seen go to the cluster `unseen_`."""
        check_is_fitted(self)
        if self.encoder_ is not None:
            codes = self.encoder_.encode(_frame(X))
            columns = [_looked_up(self.labels_[n], codes[:, i], self.unseen_[n]) for i, n in enumerate(self.features_)]
            return np.column_stack(columns)
        if not isinstance(self.labels_, dict):
            return _looked_up(self.labels_, self._positions(ONE, X), self.unseen_)
        columns = [_looked_up(self.labels_[n], self._positions(n, X[n]), self.unseen_[n]) for n in self.features_]
        return np.column_stack(columns)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """(D,) names of the features, in order."""
        return np.array(self.features_, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """D, the number of features."""
        return len(self.features_)

    def fit_transform(self, X, y=None, folds: Annotated[int, Range(2)] = 5) -> np.ndarray:
        """`fit`, then clusters that a learner can be fitted to, or the values' own when fitted to arrays of one feature.

        A record's own label must not choose its cluster: clusters here go by label rates in the other folds of the records, so
        that `fit(X, y).transform(X)` gives other ones. scikit-learn's `TargetEncoder` does the same. `folds` are 2 at least.
        """
        if folds < 2:
            raise ConfigError(f"folds: {folds!r} is not allowed; it must be a whole number of at least 2")
        self.fit(X, y)
        if self.encoder_ is None:
            return self.labels_
        return (
            self._cross_fitted(self.encoder_.encode(_frame(X)), np.asarray(y), folds)
            if self.uses_labels
            else self.transform(X)
        )

    def _cross_fitted(self, codes: np.ndarray, y: np.ndarray, folds: int) -> np.ndarray:
        """(n, D) clusters of records by the label rates of their values in other folds."""
        labels = binary_label(pd.Series(y, name="label"))
        fold = derive_generator("folds", draw_seed(self.random_state)).permutation(np.arange(len(y)) % folds)
        columns = []
        for i, name in enumerate(self.features_):
            size = len(self.labels_[name])
            tally = [
                np.bincount(fold * size + codes[:, i], w, folds * size).reshape(folds, size) for w in (None, labels)
            ]
            others = zip(*(t.sum(axis=0) - t for t in tally), strict=True)
            clusters = np.stack([self._clusters_of(name, *counted, tally[0].sum(axis=0)) for counted in others])
            columns.append(clusters[fold, codes[:, i]])
        return np.column_stack(columns)

    def _clusters_of(self, name: str, counts, sums, everywhere) -> np.ndarray:
        """(V,) clusters of values by counts and label sums of some records; rare values are those rare `everywhere`."""
        seen = counts > 0
        ranked = sums[seen] if self.shrinkage is None else shrunk_sums(counts[seen], sums[seen], self.shrinkage)
        out = np.full(len(counts), self.unseen_[name], np.int32)
        out[seen] = np.searchsorted(self.borders_[name], ranked / counts[seen])
        return np.where(everywhere < self.min_count, self.labels_[name], out)

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """One column of clusters per feature, under its name."""
        return self.feature_names_in_

    def warm_up(self) -> None:
        """Compile, or load what was compiled, so that the time of a fit is that of learning."""
        counts = np.array([4, 3, 2, 5, 3, 7, 8, 6])
        tiny = type(self)(**{**self.get_params(deep=False), "budget": 4, "min_count": 0, "shrinkage": None})
        tiny.fit({"a": counts, "b": counts}, {"a": counts // 2, "b": counts // 3})

    def _positions(self, name: str, values) -> np.ndarray:
        """Position of each value in the arrays that were fitted, −1 for others."""
        if name in self.values_:
            return pd.Index(self.values_[name]).get_indexer(pd.Index(values))
        size = len(self.labels_[name] if isinstance(self.labels_, dict) else self.labels_)
        at = np.asarray(values)
        if not np.issubdtype(at.dtype, np.integer):
            raise DataError(f"feature {name!r} was given as an array; its values are the positions 0 … {size - 1}")
        return np.where((at >= 0) & (at < size), at, -1)


def single_tables(tables: ContingencyTables) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{feature: (V,) counts and label sums of its values}, with the noise on them taken out.

    Warns
    -----
    LooksLikeCodes : a feature was taken for numbers, so that its bins would be compressed and not its values.
    """
    found, variances = {}, noise_variances(tables)
    public = tables.noise is not None and tables.noise.adjacency == "label"
    for i, feature in enumerate(tables.encoder.features):
        if (i,) not in tables.tables:
            raise DataError(
                f"there is no table of the single feature {feature.name!r}; its values cannot be compressed"
            )
        if isinstance(feature, BinnedEncoder):
            warnings.warn(
                f"feature {feature.name!r} was taken for numbers: {feature.size} bins are compressed, not its values; if its "
                "numbers are names, aggregate them as categories (--categorical)",
                LooksLikeCodes,
                stacklevel=3,
            )
        counts, sums = tables.dense(i)
        if tables.noise is not None:
            noise = (0.0 if public else variances[i,], variances[i,])
            counts, sums = without_noise(counts, sums, tables.total, tables.positives, noise)
        found[feature.name] = counts, sums
    return found


def whole_budget(budget, rankings: list[Ranking]) -> int:
    """The budget in clusters; DataError where the features cannot use it."""
    units = sum(r.n_units for r in rankings)
    clusters = round(float(budget) * units) if budget < 1 else budget
    if clusters < len(rankings):
        raise DataError(f"budget: {int(clusters)} clusters are too few for {len(rankings)} features; each needs one")
    if clusters > units:
        raise DataError(f"budget: {int(clusters)} clusters are more than the {units} values; nothing to compress")
    return int(clusters)


def _tables(X, y) -> ContingencyTables:
    """Tables of single features of records; every column is taken as one of categories."""
    frame = _frame(X)
    if frame.empty:
        raise DataError("there are no records")
    if len(frame) != len(y):
        raise DataError(f"{len(frame)} records and {len(y)} labels; one label per record is needed")
    labels = binary_label(pd.Series(np.asarray(y), name="label"))
    encoder = FrameEncoder.fit(frame, categorical=frame.columns)
    return ContingencyTables.from_codes(encoder, encoder.encode(frame), labels, pairs="none")


def _frame(X) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X.set_axis(X.columns.astype(str), axis=1)
    X = np.asarray(X)
    if X.ndim != 2:
        raise DataError(f"records must be a data frame or a 2-D array, got {X.ndim} dimensions")
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])


def _values(name: str, counts) -> list:
    """Names of the values, where a Series gives them."""
    if not isinstance(counts, pd.Series) or counts.index.equals(pd.RangeIndex(len(counts))):
        return []
    if not counts.index.is_unique:
        twice = counts.index[counts.index.duplicated()][0]
        raise DataError(f"feature {name!r}: value {twice!r} stands twice; add its counts up first")
    return counts.index.tolist()


def _aligned(name: str, counts, sums):
    """Label sums in the order of the counts, where both are Series."""
    if not (isinstance(counts, pd.Series) and isinstance(sums, pd.Series)):
        return sums
    if len(counts) != len(sums) or not sums.index.isin(counts.index).all():
        raise DataError(f"feature {name!r}: counts and label sums name different values")
    return sums.reindex(counts.index)


def _looked_up(labels: np.ndarray, positions: np.ndarray, unseen: int) -> np.ndarray:
    return np.append(labels, np.int32(unseen))[positions]
