"""Cross tables of districts from the margins of polling places."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from agglearn.datasets import CrossTabulatedElection, Dataset
from agglearn.errors import ConfigError
from agglearn.estimator import Estimator
from agglearn.observations import Margins, Observation
from agglearn.tasks.base import Kind, Task, TaskInput, Truth
from agglearn.tasks.keys import MarginKeys, NoKeys
from agglearn.tasks.measures import Measurement, Measurements, lower, neither, select

LARGE = 50  # votes of a cell that is counted as a large one


@dataclass(frozen=True)
class CrossTables(Truth):
    tables: np.ndarray  # (D, R, C) votes, NaN where a district lacks the group or the option

    def units(self) -> list[np.ndarray]:
        return [self.tables]


class EcologicalTables(Task[CrossTables]):
    """Observe the margins of all units of an election, and judge the tables of its districts.

    Records are an election of one district, whose options are the label's values. Parameters of a data set are the
    columns that tell the group and the unit of a record: `group`, `unit`.

    * `index`: 50 Σ|T̂ − T| / ΣT, the percentage of people in a wrong cell, mean over districts.
      `index_of_part`, `coverage_of_part`: of each district.
    * `coverage`, `large_coverage`: share of true cells inside their intervals, and of those with at least 50 votes.
    * `width`: half the widths of all intervals together, in per cent of the district's people.
    * `inside_bounds`: share of true cells within the Duncan–Davis bounds. `estimated`, `true`: votes of an election.
    """

    OBSERVATIONS: ClassVar = (
        (CrossTabulatedElection, Margins, NoKeys, NoKeys),
        (Dataset, Margins, MarginKeys, NoKeys),
    )
    MEASURES: ClassVar = lower("index", "index_of_part", "width") | neither(
        "coverage", "coverage_of_part", "large_coverage", "inside_bounds", "estimated", "true"
    )
    KEYS: ClassVar[tuple[str, ...]] = ("district", "group", "option")
    truth: ClassVar = CrossTables

    def observe(self, inputs: TaskInput, kind: Kind, params: dict, seed: int) -> tuple[Observation, CrossTables]:
        self.check_observation(inputs, kind, params)
        if inputs.params:
            return self._observe_records(inputs)
        long = inputs.data.features()
        if "margin" not in long:
            raise ConfigError(
                f"datasets.{inputs.name}: records need the columns of their group and unit (group:, unit:)"
            )
        sides = []
        for margin in ("group", "option"):
            counts = long[long["margin"] == margin]
            sides.append(counts.pivot(index=["district", "unit"], columns="name", values="votes"))
        groups, votes = sides
        margins = Margins.from_frames(groups, votes, groups.index.get_level_values("district"))
        cells = pd.read_parquet(inputs.data.folder / "labels.parquet").set_index(["district", "group", "option"])
        axes = margins.district_names, margins.group_names, margins.vote_names
        table = cells["votes"].reindex(pd.MultiIndex.from_product(axes)).to_numpy()
        return margins, CrossTables(table.reshape([len(names) for names in axes]))

    def _observe_records(self, inputs: TaskInput) -> tuple[Observation, CrossTables]:
        by_group, by_unit = (inputs.data.column(inputs.params[key]) for key in ("group", "unit"))
        labels = inputs.data.labels()
        margins = Margins.from_frames(pd.crosstab(by_unit, by_group), pd.crosstab(by_unit, labels))
        return margins, CrossTables(pd.crosstab(by_group, labels).to_numpy(float)[None])

    def measure(self, estimator: Estimator, truth: CrossTables, measures: list[str]) -> Measurements:
        rows = [_judge(estimator, number, table) for number, table in enumerate(truth.tables)]
        for name, row in zip(estimator.district_names_, rows, strict=True):
            in_district = {f"{measure}_of_part": value for measure, value in row.items()}
            yield from select(measures, in_district, {"district": name})
        yield from select(measures, pd.DataFrame(rows).mean().to_dict())
        if {"estimated", "true"} & set(measures):
            yield from _cells(estimator, truth)


def _judge(estimator: Estimator, number: int, table: np.ndarray) -> dict[str, float]:
    """Measures of one district."""
    cells = ~np.isnan(table)
    true, estimated = table[cells], estimator.tables_[number][cells]
    row = {"index": 50 * float(abs(estimated - true).sum() / true.sum())}
    if hasattr(estimator, "low_"):
        low, high = estimator.low_[number][cells], estimator.high_[number][cells]
        covered = (low <= true) & (true <= high)
        row |= {"coverage": float(covered.mean()), "width": 50 * float((high - low).sum() / true.sum())}
        if (true >= LARGE).any():
            row["large_coverage"] = float(covered[true >= LARGE].mean())
        bounds = estimator.minimum_[number][cells], estimator.maximum_[number][cells]
        row["inside_bounds"] = float(((bounds[0] <= true) & (true <= bounds[1])).mean())
    return row


def _cells(estimator: Estimator, truth: CrossTables) -> Measurements:
    """Votes of each group for each option, summed over districts."""
    for measure, tables in (("estimated", estimator.tables_), ("true", truth.tables)):
        total = np.nansum(tables, axis=0)
        for r, group in enumerate(estimator.group_names_):
            for c, option in enumerate(estimator.vote_names_):
                yield Measurement(measure, float(total[r, c]), {"group": group, "option": option})
