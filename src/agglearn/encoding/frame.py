"""From raw columns to codes. What no training row had is UNSEEN (in a declared schema `other`), counted in no table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from agglearn.encoding.binned import BinnedEncoder, Binning, binning
from agglearn.encoding.categorical import CategoricalEncoder
from agglearn.encoding.coded import CodedEncoder
from agglearn.encoding.codes import one_warning, warn_of_amounts, warn_of_lost_digits
from agglearn.encoding.columns import as_frame, is_continuous, present
from agglearn.encoding.hashing import HashedEncoder
from agglearn.encoding.target import TargetEncoder
from agglearn.errors import DataError
from agglearn.saving import Saved
from agglearn.text import list_some

FeatureEncoder = CategoricalEncoder | BinnedEncoder | CodedEncoder | HashedEncoder | TargetEncoder


@dataclass(frozen=True)
class FrameEncoder(Saved):
    """Encoders of all features, in order. Codes of a frame are an (n, D) int32 array.

    Parameters
    ----------
    features, schema : tuple[FeatureEncoder, ...], str
        `declared` by a person (`agglearn.encoding.schema`), or `learned` from records, on which they then show facts.
    """

    features: tuple[FeatureEncoder, ...]
    schema: str = "learned"

    def __post_init__(self) -> None:
        if self.schema not in ("declared", "learned"):
            raise ValueError(f"schema: {self.schema!r} is neither declared nor learned")

    @classmethod
    def fit(
        cls,
        frame: pd.DataFrame | np.ndarray,
        binning_: str | Binning = "deciles",
        categorical: Iterable[str] = (),
        hashed: Mapping[str, int] | None = None,
        hash_above: tuple[int, int] | None = None,
    ) -> "FrameEncoder":
        """Learn vocabularies and bins from training rows.

        Warns (`LooksLikeCodes`) of numbers that look like names, lost digits, and text that looks like amounts.

        Parameters
        ----------
        frame, binning_ : DataFrame or ndarray, str or Binning
            Features, named by text (of an array x0, x1, …), and `deciles`, `width` or an object for numeric ones.
        categorical, hashed, hash_above : Iterable[str], Mapping[str, int] or None, tuple[int, int] or None
            Columns whose numbers are names, not quantities. {column: buckets} of hashed columns. (values, buckets):
            categories with more values are hashed into so many.
        """
        frame = as_frame(frame)
        read = lambda name, _: (frame[name], None)  # noqa: E731
        return fit_features(frame.columns, read, binning_, categorical, hashed, hash_above)

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.features]

    @property
    def from_labels(self) -> bool:
        """Whether the labels of records went into the encoder of a feature."""
        return any(getattr(f, "from_labels", False) for f in self.features)

    @property
    def sizes(self) -> np.ndarray:
        """Modalities per feature, (D,) int64."""
        return np.array([f.size for f in self.features], dtype=np.int64)

    def shape(self, features: Iterable[int]) -> tuple[int, ...]:
        """Modalities of the features at these positions: the shape of their table.

        Parameters
        ----------
        features : Iterable[int]
        """
        return tuple(self.features[i].size for i in features)

    @property
    def offsets(self) -> np.ndarray:
        """First position of each feature when all modalities stand in one row, (D + 1,) int64. Last = their number."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def encode(self, frame: pd.DataFrame | np.ndarray) -> np.ndarray:
        """(n, D) int32 codes.

        Parameters
        ----------
        frame : DataFrame or ndarray
            Columns by the text of their names, or an array in order. DataError for an absent one, or text for numbers.
        """
        frame = as_frame(frame, self.names)
        present(self.names, frame.columns)
        codes = np.empty((len(frame), len(self.features)), dtype=np.int32)
        for d, feature in enumerate(self.features):
            codes[:, d] = feature.encode(frame[feature.name])
        return codes

    def select(self, names: Sequence[str]) -> "FrameEncoder":
        """The encoder of some features, in a new order.

        Parameters
        ----------
        names : Sequence[str]
        """
        by_name = {f.name: f for f in self.features}
        return FrameEncoder(tuple(by_name[n] for n in names), self.schema)


class CodesEncoder(FrameEncoder):
    """Encoder whose input are codes in place of raw values."""

    def encode(self, frame: pd.DataFrame | np.ndarray) -> np.ndarray:
        return np.asarray(frame, np.int32)


def fit_features(
    columns: Sequence[str], read: Callable[[str, bool], tuple[pd.Series, np.ndarray | None]],
    binning_: str | Binning, categorical: Iterable[str], hashed: Mapping[str, int] | None,
    hash_above: tuple[int, int] | None,
) -> FrameEncoder:  # fmt: skip
    """The encoder of columns. `read(name, are its values names)` gives values, and counts where they are distinct."""
    bins, names = binning(binning_), set(map(str, categorical))
    hashed = {str(name): buckets for name, buckets in (hashed or {}).items()}
    for setting, asked in (("categorical", names), ("hashed", set(hashed))):
        if absent := asked - set(columns):
            raise DataError(f"{setting}: no column {sorted(absent)[0]!r}; there are {list_some(columns)}")
    features = []
    with one_warning():
        for name in columns:
            values, counts = read(name, name in names or name in hashed)
            features.append(fit_column(values, bins, name in names, hashed.get(name), hash_above, counts))
    return FrameEncoder(tuple(features))


def fit_column(
    column: pd.Series, bins: Binning, is_name: bool, buckets: int | None, hash_above: tuple[int, int] | None,
    counts: np.ndarray | None,
) -> FeatureEncoder:  # fmt: skip
    if buckets is None and not is_name and is_continuous(column, counts):
        return BinnedEncoder.fit(column, bins, counts)
    warn_of_lost_digits(column)
    if buckets is not None:
        return HashedEncoder.fit(column, buckets)
    encoder = CategoricalEncoder.fit(column)
    if not is_name:
        warn_of_amounts(encoder.name, encoder.values)
    if hash_above is not None and len(encoder.values) > hash_above[0]:
        return HashedEncoder.fit(column, hash_above[1])
    return encoder


def with_target_encodings(
    encoder: FrameEncoder, frame: pd.DataFrame, y: np.ndarray, above: int, modalities: int,
    fit: Callable[[pd.Series, np.ndarray, int], FeatureEncoder] = TargetEncoder.fit,
) -> FrameEncoder:  # fmt: skip
    """The encoder with target encodings in place of features of more than `above` modalities.

    Parameters
    ----------
    encoder, frame, y : FrameEncoder, DataFrame, ndarray of shape (n,)
        Records that are used for nothing else, and their labels in {0, 1}.
    above, modalities, fit : int, int, Callable[[Series, ndarray, int], FeatureEncoder]
        The new modalities are fewer than the second. `fit` gets (column, y, modalities).
    """
    frame = as_frame(frame, encoder.names)
    return FrameEncoder(tuple(fit(frame[f.name], y, modalities) if f.size > above else f for f in encoder.features))


def with_rare_values_grouped(encoder: FrameEncoder, frame: pd.DataFrame, rare: Mapping[str, int]) -> FrameEncoder:
    """The encoder with `other` in place of values that at most so many rows of `frame` have.

    Parameters
    ----------
    encoder, frame, rare : FrameEncoder, DataFrame, Mapping[str, int]
        Training rows, and {categorical feature: rows}. DataError for another feature.
    """
    by_name = {f.name: f for f in encoder.features}
    for name, limit in rare.items():
        if not isinstance(feature := by_name.get(name), CategoricalEncoder):
            raise DataError(f"rare: {name!r} is no categorical feature; leave it out")
        counts = np.bincount(feature.encode(frame[name]), minlength=feature.size)
        values = tuple(v for v, n in zip(feature.values, counts, strict=False) if n > limit)
        by_name[name] = CategoricalEncoder(name, values, feature.has_missing, has_other=True)
    return FrameEncoder(tuple(by_name.values()), encoder.schema)


def with_declared_domains(encoder: FrameEncoder, domains: Mapping[str, int]) -> FrameEncoder:
    """The encoder with the whole numbers from 0 to below a declared size as the values of some features.

    Parameters
    ----------
    encoder, domains : FrameEncoder, Mapping[str, int]
        {feature: size}. DataError for another feature. With domains of all features the encoder is `declared`.
    """
    if unknown := set(domains) - set(encoder.names):
        raise DataError(f"domains: no feature {min(unknown)!r}; there are {list_some(encoder.names)}")
    declared = {name: CategoricalEncoder(name, tuple(map(str, range(size)))) for name, size in domains.items()}
    schema = "declared" if declared.keys() == set(encoder.names) else encoder.schema
    return FrameEncoder(tuple(declared.get(f.name, f) for f in encoder.features), schema)
