"""Labelled records as the observation that a learner takes."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from agglearn.encoding import FeatureMap
from agglearn.encoding.columns import as_frame
from agglearn.errors import DataError
from agglearn.observations.base import Observation
from agglearn.observations.label_sums import LabelSums
from agglearn.observations.records import Records
from agglearn.observations.tables import ContingencyTables
from agglearn.text import list_some


def observe_records(
    kind: type[Observation], X: pd.DataFrame | np.ndarray, y: ArrayLike
) -> tuple[Observation, np.ndarray]:
    """The tables, label sums or records of labelled records, and the two labels in ascending order."""
    frame, labels, name = as_frame(X), np.asarray(y), "label"
    if labels.shape != (len(frame),):
        raise DataError(f"y: has shape {labels.shape} for {len(frame)} records; give one label for each")
    if (absent := pd.isna(labels)).any():
        raise DataError(f"y: record {int(np.argmax(absent)) + 1} has no label; leave it out")
    classes, codes = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)
    if len(classes) != 2:
        raise DataError(f"y: must have two classes, it has {len(classes)}: {list_some(classes)}")
    while name in frame.columns:
        name += "_"
    labelled = frame.assign(**{name: codes})
    if issubclass(kind, ContingencyTables):
        return ContingencyTables.from_records(labelled, name), classes
    records = Records.from_records(labelled, name)
    if issubclass(kind, LabelSums):
        mapped = FeatureMap.fit("onehot", records.encoder, records.frame)
        return LabelSums.from_map(mapped, records.frame, records.y, label=name), classes
    if issubclass(kind, Records):
        return records, classes
    raise DataError(f"records with labels cannot be made {kind.__name__}; make these, and call fit with them alone")
