"""Tables of many records beside a small sample of others: what a challenge or a consenting few may add to aggregates."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from agglearn.encoding.columns import as_frame, present
from agglearn.encoding.labels import binary_label
from agglearn.errors import DataError
from agglearn.observations.base import NoiseSpec, Observation
from agglearn.observations.records import Records
from agglearn.observations.tables import ContingencyTables
from agglearn.text import count_text


@dataclass(frozen=True, eq=False)
class TablesAndSample(Observation):
    """Contingency tables, and a sample of records that they do not count. A guarantee of the tables covers no sample.

    Parameters
    ----------
    tables, sample : ContingencyTables, Records
        Over the same features and values.
    """

    tables: ContingencyTables
    sample: Records

    def __post_init__(self) -> None:
        if self.sample.encoder != self.tables.encoder:
            raise DataError("sample: of other features or values than the tables; make it with their encoder")
        if len(self.sample.y) < 2:
            raise DataError(f"sample: has {count_text(len(self.sample.y), 'record')}; a sample needs two or more")

    @classmethod
    def from_records(
        cls, tables: ContingencyTables, sample: pd.DataFrame | np.ndarray, label: str | None = None,
        positive: object = None,
    ) -> Self:  # fmt: skip
        """Tables and raw records. DataError for an absent column, or a label without two values.

        Parameters
        ----------
        tables, sample : ContingencyTables, DataFrame
            The records have the columns behind the tables, and the label.
        label, positive : str or None, object
            The label's column, by default that of the tables, and the value that counts as 1, where it is not 0/1.
        """
        frame, label = as_frame(sample), label or tables.label
        present([label, *tables.encoder.names], frame.columns)
        y = binary_label(frame[label], positive)
        return cls(tables, Records(tables.encoder, frame[tables.encoder.names], y, tables.label))

    @property
    def noise(self) -> NoiseSpec | None:
        return self.tables.noise
