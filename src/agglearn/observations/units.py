"""Whose the records are. Of each unit (a person, a household) at most so many records count, and a release protects them all."""

import hashlib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from agglearn.encoding.columns import as_text, distinct
from agglearn.encoding.schema import MaxRows, state_unit
from agglearn.errors import ConfigError, DataError, RecordsLeftOut
from agglearn.privacy.calibration import calibrate
from agglearn.privacy.mechanisms import Draw
from agglearn.saving import Saved
from agglearn.text import count_text

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # that a release chooses from
CHOICE = 0.05  # share of ε that the choice spends
NOBODY = np.iinfo(np.int64).max  # place of a record that has no unit
STATE = "state unit= and max_rows= (--unit, --max-rows), or one_row_per_person: true in the schema"


@dataclass(frozen=True)
class Unit(Saved):
    """Whose records an observation counts, and how many of each: `Unit()` where each record is a person's only one.

    Parameters
    ----------
    column, max_rows : str, int
        The column that names the unit, empty for none, and the most records of one unit.
    sizes, fewer : tuple[int, ...], dict[int, ContingencyTables]
        Of tables whose release chooses the bound, exact and in no release: the number of units with 1, 2, 3, 4, 5 to 6,
        … records, and the tables of each bound below `max_rows` that leaves records out.
    """

    column: str = ""
    max_rows: int = 1
    sizes: tuple[int, ...] = ()
    fewer: dict[int, Any] = field(default_factory=dict)

    def choose(self, epsilon: float, draw: Draw, cells: float, variance: float) -> int:
        """The bound of least variance of a rate in a cell of a table. Numbers of units have noise for ε: one changes by 1.

        Parameters
        ----------
        epsilon, draw, cells, variance : float, Draw, float, float
            `cells` of a table, and the variance of its noise at bound 1.
        """
        mechanism = calibrate("discrete_laplace", epsilon, None, 1, 1)
        units = np.maximum(draw(mechanism, np.array(self.sizes, float), "records of units"), 0)
        sizes = np.mean([BOUNDS, [1, *np.add(BOUNDS[:-1], 1)]], axis=0)
        records = np.array([units @ np.minimum(sizes, bound) for bound in BOUNDS]).clip(1) / cells
        return BOUNDS[int(np.argmin(0.25 / records + variance * (BOUNDS / records) ** 2))]


SINGLE = Unit()


def cut_unit(tables: Any, max_rows: int | None = None) -> Any:
    """Tables of at most so many records of each unit (None: as they are), without exact facts on units."""
    unit = tables.unit or SINGLE
    allowed, bound = BOUNDS if unit.sizes else (unit.max_rows,), max_rows or unit.max_rows
    if max_rows not in (None, *allowed):
        raise ConfigError(
            f"max_rows: {max_rows} does not go with these tables; they allow {', '.join(map(str, allowed))}"
        )
    return replace(unit.fewer.get(bound, tables), unit=tables.unit and Unit(unit.column, bound))


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Records by their (n,) ranks in their units, if there are units. `unit` is None where nobody stated whose they are."""

    unit: Any
    ranks: Any = None
    auto: bool = False

    def count(self, make: Callable[[Any], Any]) -> Any:
        """What `make` counts of the records that it is told to, with its unit."""
        if not self.auto:
            return replace(make(self.counted()), unit=self.unit)
        ranks = self.ranks[self.ranks < NOBODY]
        larger = np.bincount(np.minimum(ranks, BOUNDS[-1]), minlength=BOUNDS[-1])[[0, *BOUNDS[:-1]]]
        fewer = {bound: make(self.ranks < bound) for bound in BOUNDS[:-1] if bound <= ranks.max(initial=0)}
        unit = replace(self.unit, sizes=tuple((-np.diff(larger, append=0)).tolist()), fewer=fewer)
        return replace(make(replace(self, auto=False).counted()), unit=unit)

    def counted(self) -> Any:
        """Which records count. A warning counts the others. ConfigError where the release is to choose."""
        if self.auto:
            raise ConfigError("max_rows: auto is for tables alone; give a number")
        if self.ranks is None:
            return slice(None)
        counted, nobody, n = self.ranks < self.unit.max_rows, self.ranks == NOBODY, len(self.ranks)
        for reason, out in ((f"beyond {self.unit.max_rows} of each", ~counted & ~nobody), ("which have none", nobody)):
            if out.any():
                message = f"{out.sum():,} of {n:,} records are left out, {reason}"
                warnings.warn(f"unit {self.unit.column!r}: {message}", RecordsLeftOut, stacklevel=4)
        return counted


def unit_rows(owners: pd.Series | None, max_rows: MaxRows | None, single: bool = False) -> UnitRows:
    """The rows of a column of units, or of none. `single`: somebody stated that each row is a person's only one."""
    if owners is None or max_rows is None:
        return UnitRows(SINGLE if single else None)
    auto = max_rows == "auto"
    return UnitRows(Unit(str(owners.name), BOUNDS[-1] if auto else int(max_rows)), rank_rows(owners), auto)


def rows_of(unit: Any, max_rows: int | None, n: int, label: str, features: Iterable[str]) -> tuple[Any, Unit]:
    """Which of (n,) rows count whose labels are protected, and whose they are: without a unit a person's only one each."""
    owners = None if unit is None else pd.Series(unit, name=getattr(unit, "name", None) or "unit")
    state_unit(owners if owners is None else owners.name, max_rows, label, features)
    if owners is not None and len(owners) != n:
        raise DataError(f"unit {owners.name!r}: {count_text(len(owners), 'value')} for {count_text(n, 'record')}")
    rows = unit_rows(owners, max_rows, single=True)
    return rows.counted(), rows.unit


def rank_rows(owners: pd.Series) -> np.ndarray:
    """(n,) place of each row among those of its unit, from 0, in the order of a hash of the unit and the row's number in it.

    So no row of one unit changes ranks in another.
    """
    index, values = distinct(owners)
    codes: dict[str, int] = {}
    unit = np.append([codes.setdefault(text, len(codes)) for text in as_text(values)], -1).astype(int)[index]
    digests = (hashlib.blake2b(t.encode(errors="surrogatepass"), digest_size=8, salt=b"rows").digest() for t in codes)
    hashes = np.frombuffer(b"".join([*digests, bytes(8)]), "<u8")  # the last is for no unit
    number = _number_within(unit, np.argsort(unit, kind="stable")).astype("<u8")
    order = np.lexsort((pd.util.hash_array(hashes[unit] + number), unit))
    return np.where(unit < 0, NOBODY, _number_within(unit, order))


def _number_within(groups: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(n,) number of each row within its group, in an order of all rows by which groups stand together."""
    ordered, number = groups[order], np.empty(len(groups), np.int64)
    number[order] = np.arange(len(groups)) - np.searchsorted(ordered, ordered, "left")
    return number
