"""Base of all vocabulary quantisers (Bateni et al. 2019)."""

import functools
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, field
from typing import Annotated, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from agglearn.encoding import BinnedEncoder, FrameEncoder
from agglearn.encoding.columns import as_frame
from agglearn.encoding.labels import binary_label
from agglearn.errors import ConfigError, DataError, LooksLikeCodes
from agglearn.estimator import Estimator
from agglearn.observations import ContingencyTables, Observation, Table
from agglearn.observations.consistency import noise_variances
from agglearn.seeds import derive_generator, draw_seed
from agglearn.settings import Count, NonNegative, Part, Positive, Range, check_parameters
from agglearn.text import count_text, list_some
from agglearn.vocabulary import kernels
from agglearn.vocabulary.rate_order import Counts, Ranking, in_threads, validate_counts
from agglearn.vocabulary.shrinkage import remove_noise, shrink_sums

Budget = Count | Part
Values = Observation | Mapping[str, ArrayLike] | ArrayLike  # see `Quantizer`
Shrinkage = Literal["beta_binomial"] | Positive | None
ONE = "x0"  # name of a feature that was given without one


class Quantizer(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Maps the values of categorical features to few clusters that are informative about a binary label.

    `fit` takes contingency tables, of which only those of single features are used. Noise on them is removed first
    (`shrinkage.remove_noise`), and the information is an estimate. It also takes counts and label sums of the values:
    two 1-D arrays for one feature, or two dicts {feature: array} for several under one budget. Values are 0, 1, …, or
    those of a Series' index. Or it takes records, a data frame or 2-D array of raw values, and binary labels.

    Parameters
    ----------
    budget : int or float
        Clusters over all features, or, below 1, a fraction of the number of values.
    random_state : int, RandomState, Generator or None
        Seed of the folds of `fit_transform`, and of the candidates of `SubmodularQuantizer`. Others have none.
    min_count : float
        Values of fewer records are joined.
    shrinkage : None, 'beta_binomial' or float
        None takes raw label rates, as the paper does. Others shrink those that rank and cluster, by a fitted prior or a
        number of records at the base rate. Attributes are in raw rates.
    noisy : bool
        Whether counts given as arrays have noise. They may then be fractional, and are clipped, with a warning.

    Attributes
    ----------
    labels_, unseen_ : ndarray of shape (V,) or dict, int or dict
        Int32 cluster of each value, or {feature: (V,)}. 0 is the cluster of the lowest label rates. Cluster for unseen
        values: that of the rare ones by `min_count`, else the one nearest to the base rate.
    n_clusters_, information_, information_loss_, relative_loss_ : int, float, float, float
        Clusters of all features. I(Z;C) and I(X;C) − I(Z;C) in nats, added up, and the latter over Σ I(X;C).
    feature_information_, borders_ : dict
        {feature: I(Z;C) in nats}, {feature: (clusters − 1,) label rates between neighbouring clusters}.
    encoder_, features_, values_ : FrameEncoder or None, list of str, dict
        None after a fit to arrays. Names of the features. {feature: names of its values} where an index names them.

    Raises
    ------
    DataError
        Label sums beyond counts, negative or fractional counts not declared noisy, NaN, one label only, no values,
        values named twice, a budget below the number of features or above that of values.
    """

    observes = ContingencyTables
    accounts_for_noise = True
    uses_labels = True
    labels_: dict[str, np.ndarray] = field(init=False)  # its only value after a fit to 1-D arrays, as `unseen_`
    unseen_: dict[str, int] = field(init=False)
    values_: dict[str, list] = field(init=False)
    encoder_: FrameEncoder | None = field(init=False)
    budget: Budget
    _: KW_ONLY
    min_count: NonNegative = 0
    shrinkage: Shrinkage = None
    noisy: bool = False

    def fit(self, X: Values, y: Values | None = None) -> Self:  # type: ignore[override]  # also arrays and records
        """Learn clusters from tables, from counts and label sums, or from records and labels.

        Parameters
        ----------
        X, y : ContingencyTables, array-like or dict
            Tables and None, counts and label sums, or records and labels, see the class.
        """
        check_parameters(self)
        if isinstance(X, Observation):
            return super().fit(X, y)  # type: ignore[arg-type]  # refused where it is not None
        if y is None:
            raise DataError(f"{type(self).__name__}.fit needs label sums, or labels, as its second argument")
        if isinstance(X, Mapping):
            return self._fit_arrays(dict(X), y)
        if np.ndim(X) == 1:
            self._fit_arrays({ONE: X}, {ONE: y})
            self.labels_, self.unseen_ = self.labels_[ONE], self.unseen_[ONE]  # type: ignore[assignment]
            return self
        return super().fit(_tables(X, y))

    def _fit(self, observation: ContingencyTables) -> None:
        self.encoder_, self.values_ = observation.encoder, {}
        self._learn(single_tables(observation), noisy=observation.noise is not None)

    def _fit_arrays(self, counts: Mapping[str, object], sums: object) -> Self:
        if not isinstance(sums, Mapping) or set(sums) != set(counts):
            raise DataError("counts and label sums must name the same features")
        if not counts:
            raise DataError("there are no features to compress")
        self.encoder_, self.values_ = None, {n: v for n, v in ((n, _values(n, c)) for n, c in counts.items()) if v}
        self._learn({n: (c, _align(n, c, sums[n])) for n, c in counts.items()}, self.noisy)
        return self

    def _learn(self, tables: Mapping[str, tuple[object, object]], noisy: bool) -> None:
        valid = [validate_counts(name, counts, sums, noisy) for name, (counts, sums) in tables.items()]
        rank = functools.partial(Ranking.from_counts, min_count=self.min_count, shrinkage=self.shrinkage)
        rankings = in_threads(rank, tables, *zip(*valid, strict=True))
        budget = budget_of(self.budget, sum(r.n_units for r in rankings), len(rankings))
        self._describe(rankings, self._quantize(rankings, budget))

    def _quantize(self, rankings: list[Ranking], budget: int) -> list[np.ndarray]:
        """(U,) int32 cluster of each unit, for every feature."""
        raise NotImplementedError

    def _describe(self, rankings: list[Ranking], clusters: list[np.ndarray]) -> None:
        self.features_, self.labels_, self.unseen_, self.borders_ = [r.name for r in rankings], {}, {}, {}
        self.feature_information_, self.n_clusters_, self.information_loss_ = {}, 0, 0.0
        for r, labels in zip(rankings, clusters, strict=True):
            k = int(labels.max()) + 1
            n, c = (np.bincount(labels, v, k) for v in (r.counts, r.label_sums))
            preserved, lost = kernels.information_of(r.counts, r.label_sums, labels, n, c)
            unseen = int(labels[-1]) if r.pooled else int(np.argmin(np.abs(c / n - c.sum() / n.sum())))
            self.borders_[r.name] = r.borders(labels) if self.uses_labels else np.empty(0)
            self.labels_[r.name] = np.append(labels, np.int32(unseen))[r.units]
            self.unseen_[r.name], self.feature_information_[r.name] = unseen, preserved / n.sum()
            self.n_clusters_, self.information_loss_ = self.n_clusters_ + k, self.information_loss_ + lost / n.sum()
        self.information_ = sum(self.feature_information_.values())
        everything = self.information_ + self.information_loss_
        self.relative_loss_ = self.information_loss_ / everything if everything else 0.0

    def transform(self, X: Values) -> np.ndarray:
        """Int32 clusters of raw values: (n, D) of records, or (n,) of one feature after a fit to 1-D arrays.

        Parameters
        ----------
        X : data frame or array-like
            Records, columns matched by name, or values.
        """
        check_is_fitted(self)
        if self.encoder_ is not None:
            return look_up(self, self.encoder_.encode(X).T)
        if not isinstance(self.labels_, dict):
            return np.append(self.labels_, np.int32(self.unseen_))[self._positions(ONE, X)]
        if not isinstance(X, Mapping | pd.DataFrame):
            raise DataError(
                f"X: must have the values of {len(self.features_)} features by name, as a dict or data frame"
            )
        return look_up(self, [self._positions(name, X[name]) for name in self.features_])

    @property
    def feature_names_in_(self) -> np.ndarray:
        """(D,) names of the features, in order."""
        return np.array(self.features_, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """D, the number of features."""
        return len(self.features_)

    def fit_transform(  # type: ignore[override]  # also arrays and records
        self, X: Values, y: Values | None = None, folds: Annotated[int, Range(2)] = 5
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Fit, and return clusters by label rates in other folds of the records (`labels_` after a fit to arrays).

        A record's own label must not choose its cluster, so that `fit(X, y).transform(X)` gives other ones.

        Parameters
        ----------
        X, y, folds
            As in `fit`, and a number of at least 2.
        """
        if folds < 2:
            raise ConfigError(f"folds: {folds!r} is not allowed; it must be a whole number of at least 2")
        self.fit(X, y)
        if self.encoder_ is None:
            return self.labels_
        if not self.uses_labels:
            return self.transform(X)
        return self._cross_fit(self.encoder_.encode(X), np.asarray(y), folds)

    def _cross_fit(self, codes: np.ndarray, y: np.ndarray, folds: int) -> np.ndarray:
        """(n, D) clusters of records by the label rates of their values in other folds."""
        labels = binary_label(pd.Series(y, name="label"))
        fold = derive_generator("folds", draw_seed(self.random_state)).permutation(np.arange(len(y)) % folds)
        columns = []
        for i, name in enumerate(self.features_):
            size = len(self.labels_[name])
            cells = fold * size + codes[:, i]
            tally = [np.bincount(cells, w, folds * size).reshape(folds, size) for w in (None, labels)]
            others = zip(*(t.sum(axis=0) - t for t in tally), strict=True)
            clusters = np.stack([self._clusters_of(name, n, c, tally[0].sum(axis=0)) for n, c in others])
            columns.append(clusters[fold, codes[:, i]])
        return np.column_stack(columns)

    def _clusters_of(self, name: str, counts: np.ndarray, sums: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """(V,) clusters of values by counts and label sums of some records. `totals` are counts of all records."""
        observed = counts > 0
        ranked = sums[observed]
        if self.shrinkage is not None:
            ranked = shrink_sums(counts[observed], ranked, self.shrinkage)
        out = np.full(len(counts), self.unseen_[name], np.int32)
        out[observed] = np.searchsorted(self.borders_[name], ranked / counts[observed])
        return np.where(totals < self.min_count, self.labels_[name], out)

    def warm_up(self) -> None:
        """Compile or load the kernels, so that the time of a fit is that of learning."""
        counts = np.array([4, 3, 2, 5, 3, 7, 8, 6])
        tiny = type(self)(**{**self.get_params(deep=False), "budget": 4, "min_count": 0, "shrinkage": None})
        tiny.fit({"a": counts, "b": counts}, {"a": counts // 2, "b": counts // 3})

    def _positions(self, name: str, values: ArrayLike) -> np.ndarray:
        """(n,) position of each value in the arrays of the fit, −1 for others."""
        if name in self.values_:
            return pd.Index(self.values_[name]).get_indexer(pd.Index(values))
        size = len(self.labels_[name] if isinstance(self.labels_, dict) else self.labels_)
        positions = np.asarray(values)
        if not np.issubdtype(positions.dtype, np.integer):
            raise DataError(f"feature {name!r} was given as an array; its values are the positions 0 … {size - 1}")
        return np.where((positions >= 0) & (positions < size), positions, -1)


def single_tables(tables: ContingencyTables) -> dict[str, Counts]:
    """Return {feature: (V,) counts and label sums of its values}, with the noise removed."""
    variances = noise_variances(tables)
    if binned := [f"{f.name!r} ({f.size})" for f in tables.encoder.features if isinstance(f, BinnedEncoder)]:
        warnings.warn(
            "features were taken for numbers, so that their bins are compressed, not their values: "
            f"{list_some(binned, 6)}; if their numbers are names, aggregate them as categories (--categorical)",
            LooksLikeCodes,
            stacklevel=3,
        )
    if absent := [name for i, name in enumerate(tables.names) if (i,) not in tables.tables]:
        raise DataError(f"there is no table of the single feature {absent[0]!r}; its values cannot be compressed")
    return {n: estimate_counts(tables, tables.tables[i,], variances[i,]) for i, n in enumerate(tables.names)}


def estimate_counts(tables: ContingencyTables, table: Table, variance: float, fraction: float = 1.0) -> Counts:
    counts, sums = table.dense()
    if tables.noise is None:
        return counts, sums
    noise = (0.0 if tables.noise.adjacency == "label" else fraction * variance, fraction * variance)
    return remove_noise(counts, sums, fraction * tables.total, fraction * tables.positives, noise)


def budget_of(budget: float, units: int, features: int) -> int:
    clusters = round(float(budget) * units) if budget < 1 else budget
    if clusters < features:
        raise DataError(
            f"budget: too few clusters, {int(clusters)} for {count_text(features, 'feature')}; each needs one"
        )
    if clusters > units:
        raise DataError(f"budget: {int(clusters)} clusters are more than the {units} values; nothing to compress")
    return int(clusters)


def _tables(X: object, y: object) -> ContingencyTables:
    frame = as_frame(X)
    if frame.empty:
        raise DataError("there are no records")
    label = pd.Series(np.asarray(y), name="label")
    if len(frame) != len(label):
        raise DataError(f"{len(frame)} records and {len(label)} labels; one label per record is needed")
    labels = binary_label(label)
    encoder = FrameEncoder.fit(frame, categorical=frame.columns)
    return ContingencyTables.from_codes(encoder, encoder.encode(frame), labels, pairs="none")


def _values(name: str, counts: object) -> list:
    if not isinstance(counts, pd.Series) or counts.index.equals(pd.RangeIndex(len(counts))):
        return []
    if not counts.index.is_unique:
        twice = counts.index[counts.index.duplicated()][0]
        raise DataError(f"feature {name!r}: value {twice!r} occurs twice; add up its counts first")
    return counts.index.tolist()


def _align(name: str, counts: object, sums: object) -> object:
    if not (isinstance(counts, pd.Series) and isinstance(sums, pd.Series)):
        return sums
    if len(counts) != len(sums) or not sums.index.isin(counts.index).all():
        raise DataError(f"feature {name!r}: counts and label sums name different values")
    return sums.reindex(counts.index)


def look_up(quantizer: Quantizer, positions: Iterable[np.ndarray]) -> np.ndarray:
    """Return (n, D) clusters of the values at (n,) positions of every feature, −1 for unseen ones."""
    labels = [np.append(quantizer.labels_[n], np.int32(quantizer.unseen_[n])) for n in quantizer.features_]
    return np.column_stack([clusters[p] for clusters, p in zip(labels, positions, strict=True)])
