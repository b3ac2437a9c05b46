"""What an experiment of the workflow is in MLflow."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

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
    name, experiment : its name and its configuration.
    latest : record of its latest run.
    entries : parents before their children.
    overview : the entry with table and figure, which is the last one, or None.
    """

    name: str
    experiment: dict
    latest: dict
    entries: list[Entry]
    overview: Entry | None

    @classmethod
    def read(cls, name: str, experiment: dict, results: Path, keys: list[str], rows=None, rendered=None) -> Self:
        """The contents of an experiment from its runs.

        Parameters
        ----------
        results : folder with the runs. keys : of the runs, at least one.
        rows : their measurements; default: those in the folders of the runs.
        rendered : folder with tables and figures; default: `results`.
        """
        records = [read_json(results / f"runs/{key}/run.json") for key in keys]
        rows = _measurements(results, keys) if rows is None else rows
        names, latest = Names(records), max(records, key=lambda record: record["ended"])
        cells = means.of_cells(rows, records, experiment, names)
        runs = [of_run(record, results / "runs" / record["run"], names, cell_key(record)) for record in records]
        last = overview.of_experiment(name, latest, Path(rendered or results))
        return cls(name, experiment, latest, [*cells, *runs, *filter(None, [last])], last)

    def tags(self, link: str | None = None) -> dict[str, str]:
        """Tags of the experiment; `link` leads to the overview."""
        return overview.experiment_tags(self.experiment, self.latest, link)


def _measurements(results: Path, keys: list[str]):
    """Measurements of some runs, as a table of all."""
    return pa.concat_tables([pq.read_table(results / f"runs/{key}/measurements.parquet") for key in keys]).to_pandas()
