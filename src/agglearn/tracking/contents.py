"""What an experiment of the workflow is in MLflow."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agglearn.storage import read_json
from agglearn.tracking import means, overview
from agglearn.tracking.entry import Entry, of_run
from agglearn.tracking.names import Names
from agglearn.workflow.plan import cell_key


@dataclass(frozen=True)
class Contents:
    """An experiment as MLflow shows it.

    Attributes
    ----------
    name : str
        Name of the experiment.
    experiment : dict
        Its configuration.
    latest : dict
        Record of its latest run.
    entries : list of Entry
        Parents come before their children.
    overview : Entry or None
        The entry with table and figure, which is the last one.
    """

    name: str
    experiment: dict
    latest: dict
    entries: list[Entry]
    overview: Entry | None

    @classmethod
    def read(
        cls,
        name: str,
        experiment: dict,
        results: Path,
        keys: list[str],
        rows: pd.DataFrame | None = None,
        rendered: Path | str | None = None,
    ) -> Self:
        """The contents of an experiment from its runs.

        Parameters
        ----------
        results : Path
            Folder with the runs.
        keys : list of str
            Keys of the runs, at least one.
        rows : DataFrame, optional
            Their measurements. By default those in the folders of the runs are read.
        rendered : path, optional
            Folder with tables and figures. By default it is `results`.
        """
        records = [read_json(results / f"runs/{key}/run.json") for key in keys]
        rows = _measurements(results, keys) if rows is None else rows
        names, latest = Names(records), max(records, key=lambda record: record["ended"])
        units = means.tag_of_units(rows)
        cells = means.of_cells(rows, records, experiment, names, units)
        runs = [of_run(r, results / "runs" / r["run"], names, cell_key(r), units) for r in records]
        last = overview.of_experiment(name, latest, Path(rendered or results))
        return cls(name, experiment, latest, [*cells, *runs, *filter(None, [last])], last)

    def tags(self, links: dict[str, str]) -> dict[str, str]:
        """Tags of the experiment. Its description has the links (text → address)."""
        return overview.experiment_tags(self.experiment, self.latest, links)


def _measurements(results: Path, keys: list[str]) -> pd.DataFrame:
    """Measurements of some runs, as a table of all."""
    return pa.concat_tables([pq.read_table(results / f"runs/{key}/measurements.parquet") for key in keys]).to_pandas()
