"""Label sums: features without labels, and the one vector Σ y_i X_i, N times the "dot-product" of the note on WALR."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse

from agglearn.encoding.codes import EXACT
from agglearn.encoding.columns import as_frame
from agglearn.encoding.design import FeatureMap, declared_ranges
from agglearn.encoding.labels import check_labels
from agglearn.errors import ConfigError, DataError
from agglearn.observations.base import NoiseSpec, Observation, check_weights
from agglearn.observations.disclosure import certify, describe_learned, public_features
from agglearn.observations.release import SCHEMA_ADVICE
from agglearn.observations.units import SINGLE, Unit, rows_of
from agglearn.privacy.calibration import calibrate, check_promise
from agglearn.privacy.mechanisms import Draw, Mechanism, draw_private
from agglearn.seeds import RandomState, draw_generator

SENSITIVITIES = ("declared", "features", "coordinates")
Bounds = tuple[float, float] | Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class LabelSums(Observation):
    """Public features and their sum over records with label 1. It holds no label of a record.

    DataError for sums of another length or order than the map's, wrong weights, and a label among the features.

    Parameters
    ----------
    map, frame : FeatureMap, DataFrame
        From raw columns to k coordinates, and (n,) rows. Columns that the map does not name are left out.
    names, sums : Sequence[str], ndarray of shape (k,)
        Σ w_i y_i X_i, exact or with noise, and the names of its coordinates: those of the map, in its order.
    weights, label, noise : ndarray of shape (n,) or None, str, NoiseSpec or None
        Public weights of the records (None for 1), the name of the label, and how noise was added.
    unit : Unit
        Whose labels these are, all of which a release protects. By default each is a person's only one.
    n_records : int or None
        Records that the sums count, where the rows are a random sample of them. None where they are all of them.
    """

    map: FeatureMap
    frame: pd.DataFrame
    names: Sequence[str]
    sums: np.ndarray
    weights: np.ndarray | None = None
    label: str = "label"
    noise: NoiseSpec | None = None
    unit: Unit = SINGLE
    n_records: int | None = None

    def __post_init__(self) -> None:
        put = functools.partial(object.__setattr__, self)
        put("sums", np.asarray(self.sums, dtype=float))
        put("names", list(self.names))
        put("frame", public_features(self.frame, self.map.inputs, self.label))
        _check_names(self.map.names, self.names, self.sums)
        if (bad := np.flatnonzero(~np.isfinite(self.sums))).size:
            raise DataError(f"sums: {self.names[bad[0]]!r} is no number")
        if self.weights is not None:
            check_weights(self.weights, len(self.frame))
        if self.n_records == len(self.frame):
            put("n_records", None)
        if self.n_records is not None:
            if self.weights is not None:
                raise DataError(
                    "weights: are those of a sample's rows alone; give features of all records, or no weights"
                )
            if not 2 <= len(self.frame) < self.n_records:
                rows = f"{len(self.frame)} rows with features"
                raise DataError(
                    f"n_records: {self.n_records} records for {rows}; give 2 rows or more of all that the sums count"
                )

    # -- making -------------------------------------------------------------------------------------------------

    @classmethod
    def from_records(
        cls, X: pd.DataFrame | np.ndarray, y: np.ndarray | Sequence[int], *, bounds: Bounds | None = None,
        weights: np.ndarray | None = None, intercept: bool = True, label: str = "label",
        unit: pd.Series | np.ndarray | None = None, max_rows: int | None = None,
    ) -> Self:  # fmt: skip
        """Sums over a matrix of numbers. DataError for missing values, and values out of bounds.

        Parameters
        ----------
        X, y : DataFrame or ndarray of shape (n, k), ndarray of shape (n,) or Sequence[int]
            Numeric columns (those of an array are named x0, x1, …), and labels in {0, 1}.
        bounds : Bounds or None
            (low, high) of all columns or by column. `private` needs them, or a sensitivity from the features.
        weights : ndarray of shape (n,) or None
            Weights ≥ 0 of the records, as public as the features.
        intercept, label : bool, str
            Whether the sum of the labels is one more coordinate, and the name of the label.
        unit, max_rows : Series or ndarray of shape (n,) or None, int or None
            Whose each record is, and the most records that count of each. Others are left out, and a warning counts
            them. `private` then protects all labels of one unit.
        """
        frame = as_frame(X)
        by_name = bounds if isinstance(bounds, Mapping) else dict.fromkeys(frame.columns, bounds)
        ranges = {} if bounds is None else declared_ranges("bounds", by_name, frame.columns)
        mapped = FeatureMap("columns", None, tuple(frame.columns), ranges, intercept=intercept)
        return cls.from_map(mapped, frame, y, weights=weights, label=label, unit=unit, max_rows=max_rows)

    @classmethod
    def from_map(
        cls, mapped: FeatureMap, frame: pd.DataFrame, y: np.ndarray | Sequence[int], *,
        weights: np.ndarray | None = None, label: str = "label",
        unit: pd.Series | np.ndarray | None = None, max_rows: int | None = None,
    ) -> Self:  # fmt: skip
        """Sums over the coordinates that a map makes of (n,) rows. Other parameters as in `from_records`."""
        frame = public_features(frame, mapped.inputs, getattr(y, "name", None))
        y = check_labels(y, len(frame))
        mapped.check_ranges(frame)
        weights = None if weights is None else check_weights(weights, len(y))
        counted, whose = rows_of(unit, max_rows, len(y), label, mapped.inputs)
        frame, y, weights = frame[counted], y[counted], None if weights is None else weights[counted]
        weighted = np.asarray(y, float) if weights is None else y * weights
        x = mapped.matrix(frame)
        sums = cls(mapped, frame, mapped.names, x.T @ weighted, weights, label, unit=whose)
        sums.__dict__["matrix"] = x  # as the property keeps it
        return sums

    @classmethod
    def from_release(
        cls, X: pd.DataFrame | np.ndarray, sums: pd.Series, *, noise: NoiseSpec | None, n_records: int | None = None,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Public features, and sums by the name of their coordinate that somebody else released.

        `n_records` are those that the sums count, where X has a random sample of them.
        """
        sums, bare = pd.Series(sums, dtype=float), cls.from_records(X, np.zeros(len(X)), **options)
        return replace(bare, sums=sums.to_numpy(), names=list(sums.index), noise=noise, n_records=n_records)

    def keep_features(self, n: int, random_state: RandomState = None) -> Self:
        """The same sums of all records, beside the features of n random ones. DataError for fewer than 2, or too many.

        A release comes first: its sensitivity follows from the features of all records.

        Parameters
        ----------
        n, random_state : int, int or Generator or None
        """
        if self.n_records is not None:
            raise DataError("keep_features: the features are those of a sample already")
        if not 2 <= n <= len(self.frame):
            raise DataError(f"keep_features: must be from 2 to the {len(self.frame)} rows, got {n}")
        rows = np.sort(draw_generator(random_state).permutation(len(self.frame))[:n])
        return replace(self, frame=self.frame.iloc[rows].reset_index(drop=True), n_records=len(self.frame))

    # -- privacy ------------------------------------------------------------------------------------------------

    @property
    def exact_facts(self) -> str:
        return describe_learned(self.map.encoder, features_public=True)

    def sensitivity(self, order: int = 2, of: str | float = "declared") -> float:
        """The largest change of the sums by one label, as an L1 or L2 norm: the largest w‖X‖ of a record.

        Of all labels of one unit it is so many times larger as records of a unit count.

        ConfigError without bounds or features where they are needed, and for features of a sample. DataError for a value outside its declared bounds.

        Parameters
        ----------
        order, of : int, str or float
            Norm 1 or 2, and `declared`, by bounds alone. `features`, the largest norm of the rows, where the caller
            accepts that the result depends on them (they are public). `coordinates`, the note's √k for features from
            0 to 1. A number, not below that of the features. Without features it is the caller's statement.
        """
        if self.n_records is not None:
            advice = "release the sums (private) before `keep_features`"
            raise ConfigError(f"sensitivity: needs the features of all records that the sums count; {advice}")
        if not isinstance(of, str):
            if not 0 < of < math.inf:
                raise ConfigError(f"sensitivity: must be a number above 0, got {of}")
            least = self.sensitivity(order, "features") if len(self.frame) else 0.0
            if of < least:
                raise ConfigError(f"sensitivity: {of:g} is below {least:.4g}, which the features have; state no less")
            return float(of)
        if of not in SENSITIVITIES:
            raise ConfigError(f"sensitivity: {of!r} is not known; use {', '.join(SENSITIVITIES)}, or a number")
        heaviest = 1.0 if self.weights is None else float(np.max(self.weights))
        if of == "features":
            if self.frame.empty:
                raise ConfigError("sensitivity: there are no features; declare bounds, or state a number")
            x = abs(self.matrix) ** order
            norms = np.asarray(x.sum(axis=1)).ravel() ** (1 / order)
            heaviest = float((norms * (1.0 if self.weights is None else self.weights)).max())
            return self.unit.max_rows * heaviest + self._rounding(order)
        largest = self.map.largest(order)
        if largest is None:
            raise ConfigError(
                "sensitivity: the features have no declared bounds; declare them (bounds=…), or accept the largest norm of "
                "the features that are there (sensitivity='features')"
            )
        self.map.check_ranges(self.frame)
        if of == "coordinates":
            if any(max(map(abs, r)) > 1 for r in self.map.ranges.values()) and self.map.kind == "columns":
                raise ConfigError("sensitivity: 'coordinates' holds for features within [0, 1]; use 'declared'")
            largest = len(self.names)
        return self.unit.max_rows * heaviest * largest ** (1 / order) + self._rounding(order)

    @functools.cached_property
    def _terms(self) -> sparse.csr_array:
        terms = abs(self.matrix)
        return terms if self.weights is None else sparse.csr_array(terms * np.asarray(self.weights, float)[:, None])

    @property
    def _is_whole(self) -> bool:
        """Whether the sums are whole, whatever the labels are."""
        terms = self._terms
        return bool((terms.data == np.round(terms.data)).all() and terms.sum(axis=0).max(initial=0) < EXACT)

    def _rounding(self, order: int) -> float:
        """Bound of the distance that floating-point sums can add, 0 where all terms and sums are whole."""
        if self._is_whole:
            return 0.0
        largest = self._terms.sum(axis=0)
        return 2 * len(self.frame) * 2.0**-53 * float(np.linalg.norm(largest, order)) * (1 + 1e-9)

    def _changes(self, of: str | float) -> np.ndarray | None:
        """Largest whole changes of the sums by one label. None where only their norm is bounded."""
        x, largest, bound = self.matrix, self.map.largest(2), self.unit.max_rows
        if self.weights is not None or not isinstance(of, str) or (x.data != np.round(x.data)).any():
            return None
        if of == "features":
            return np.full(int(np.diff(x.indptr).max()), bound) if np.isin(x.data, (0, 1)).all() else None
        if self.map.kind == "columns" and of == "declared":
            return bound * np.floor([*(max(map(abs, r)) for r in self.map.ranges.values()), *[1] * self.map.intercept])
        return np.full(len(self.names) if of == "coordinates" or largest is None else int(largest), bound)

    def private(
        self, epsilon: float, delta: float | None = None, *, mechanism: str = "gaussian",
        calibration: str | None = None, sensitivity: str | float = "declared", allow_large_epsilon: bool = False,
        accept_learned_schema: bool = False, draw: Draw = draw_private,
    ) -> Self:  # fmt: skip
        """The sums with noise that protects every single label, drawn once, through OpenDP.

        The features are public: neighbours differ in one label. Training on the result spends no further budget.
        ConfigError where ε, δ or bounds give no guarantee, DataError for noisy sums. A private release also refuses
        δ from 1/N on, ε above 20, `classic` from ε = 1 on, and discrete noise for fractional features or weights.

        Parameters
        ----------
        epsilon, delta, mechanism
            `gaussian`, `laplace` (which takes no delta), or for whole sums `discrete_gaussian`, `discrete_laplace`.
        calibration, sensitivity : str or None, str or float
            See `calibrate` and `sensitivity`. `classic` is the note's, which holds for ε < 1 only.
        allow_large_epsilon, accept_learned_schema, draw : bool, bool, Draw
            Accept ε above 20. Accept features that were encoded by labels: the release is then not called private.
            `draw_seeded(seed)` is reproducible and not private.
        """
        if self.noise is not None:
            raise DataError(f"the sums have {self.noise.mechanism} noise already")
        epsilon, delta = check_promise(epsilon, delta, mechanism)
        if draw is draw_private and mechanism.startswith("discrete") and not self._is_whole:  # whatever the labels are
            raise DataError(f"{mechanism} noise needs whole features and weights; use another mechanism")
        if calibration == "classic" and epsilon >= 1 and draw is draw_private:
            raise ConfigError(f"calibration: classic promises nothing at epsilon {epsilon:g}; use analytic")
        laplace = mechanism.endswith("laplace")
        l1, l2 = self.sensitivity(1, sensitivity) if laplace else 0, 0 if laplace else self.sensitivity(2, sensitivity)
        changes = self._changes(sensitivity) if mechanism == "discrete_gaussian" else None
        noise = calibrate(mechanism, epsilon, delta, l1, l2, calibration, changes)
        stated = 0.0 if isinstance(sensitivity, str) or len(self.frame) else float(sensitivity)
        spec = NoiseSpec(
            noise.kind, float(noise.scale), epsilon, delta, "label", stated_sensitivity=stated, unit=self.unit
        )
        spec = certify(spec, self, draw, len(self.frame), accept_learned_schema, allow_large_epsilon, SCHEMA_ADVICE)
        return replace(self, sums=draw(noise, self.sums, "label sums", self.names), noise=spec)

    # -- using --------------------------------------------------------------------------------------------------

    @functools.cached_property
    def matrix(self) -> sparse.csr_array:
        """(n, k) coordinates of the records, made once."""
        return self.map.matrix(self.frame)

    @property
    def row_weights(self) -> np.ndarray:
        """(n,) weights with which rows stand for all records: their own, or those records per row of a sample."""
        if self.weights is not None:
            return np.asarray(self.weights, float)
        n = len(self.frame)
        return np.full(n, (self.n_records or n) / max(n, 1))

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the noise on each coordinate. 0 without noise."""
        if self.noise is None:
            return 0.0
        return math.sqrt(Mechanism(self.noise.mechanism, self.noise.scale).variance)

    def infeasible_coordinates(self) -> np.ndarray:
        """(k,) whether a coordinate's sum is out of reach for all labels. Then the likelihood has no maximum."""
        w, x, slack = self.row_weights, self.matrix, 1e-9 * np.maximum(abs(self.sums), 1)
        low, high = x.minimum(0).T @ w, x.maximum(0).T @ w
        return (self.sums < low - slack) | (self.sums > high + slack)


def _check_names(expected: list[str], names: Sequence[str], sums: np.ndarray) -> None:
    if not sums.shape == (len(names),) == (len(expected),):
        advice = "a release of other features?"
        raise DataError(f"sums: {sums.shape}, with {len(names)} names, for {len(expected)} coordinates; {advice}")
    if names == expected:
        return
    i = next(i for i, (a, b) in enumerate(zip(names, expected, strict=True)) if a != b)
    todo = "; bring them into one order" if sorted(names) == sorted(expected) else ""
    raise DataError(f"sums: coordinate {i + 1} of the release is {names[i]!r}, of the features {expected[i]!r}{todo}")
