"""Elections of which both the margins of polling places and the cross tables of districts are published."""

import re
import warnings
from pathlib import Path

import pandas as pd

from agglearn.datasets.base import Stored, require_columns, write_header
from agglearn.errors import DataError
from agglearn.optional import require

COLUMNS = ("District", "Votes_to_parties", "Votes_to_candidates", "District_cross_votes")
TEXT_COLUMNS = (2, 2, 1)  # before those of counts: places of units, parties of the cross table
PARTY = re.compile(r"\(([^()]+)\)\s*$")  # of a candidate, behind the name


class CrossTabulatedElection(Stored):
    """An election of the R package ei.Datasets: a data frame with three tables in each row, one row for each district.

    `features.parquet` has the margins, one row for each count: district, unit, margin (`group` or `option`), name,
    votes. `labels.parquet` has the true cross tables: district, group, option, votes. An option is a candidate's party.
    """

    KEYS = ("mirror", "files")

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        frames = [_read(path) for path in files.values()]
        margins, truths, off = [], [], []
        for _, row in pd.concat(frames).iterrows():
            tables = [row[name] for name in COLUMNS[1:]]
            district, (groups, votes, truth) = str(row[COLUMNS[0]]), map(_numbers, tables, TEXT_COLUMNS)
            if truth.shape != (groups.shape[1], votes.shape[1]) or len(groups) != len(votes):
                raise DataError(f"district {district}: the tables of margins and the cross table have different sizes")
            options, names = option_names(list(truth.columns)), [str(c) for c in groups.columns]
            used = groups.sum(axis=1) > 0
            for margin, table, labels in (("group", groups, names), ("option", votes, options)):
                table.columns = labels
                margins.append(_long(table[used], district, "unit", "name").assign(margin=margin))
            truth.index, truth.columns = pd.Index(names), pd.Index(options)
            truths.append(_long(truth, district, "group", "option"))
            if abs(truth.sum(axis=1) - groups.sum()).max() or abs(truth.sum() - votes.sum()).max():
                off.append(district)
        features = pd.concat(margins, ignore_index=True)
        features.to_parquet(out / "features.parquet", index=False, compression="zstd")
        pd.concat(truths, ignore_index=True).to_parquet(out / "labels.parquet", index=False, compression="zstd")
        write_header(out, len(features), "votes")
        units = len(features[["district", "unit"]].drop_duplicates())
        return {"districts": len(truths), "units": units, "districts whose cross table has other margins": len(off)}


def option_names(candidates: list[str]) -> list[str]:
    """The party of each candidate, with a number from the second of a party on, and `Informal` for votes that are not valid."""
    names: list[str] = []
    for candidate in map(str, candidates):
        party = PARTY.search(candidate)
        name = party[1] if party else "Informal" if candidate.startswith("Informal") else candidate
        copies = sum(n == name or n.startswith(f"{name} #") for n in names)
        names.append(f"{name} #{copies + 1}" if copies else name)
    return names


def _read(path: Path) -> pd.DataFrame:
    rdata = require("rdata", "workflow")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes of R that are data frames with another name
        try:
            [frame] = rdata.read_rda(path).values()
        except Exception as error:
            raise DataError(f"{path.name}: is no R data file with one data frame ({error})") from None
    require_columns(frame, COLUMNS, path.name)
    return frame


def _numbers(table: pd.DataFrame, text_columns: int) -> pd.DataFrame:
    return table.iloc[:, text_columns:].astype(float).reset_index(drop=True)


def _long(table: pd.DataFrame, district: str, rows: str, columns: str) -> pd.DataFrame:
    long = table.rename_axis(index=rows, columns=columns).stack(future_stack=True).rename("votes").reset_index()
    return long.assign(district=district)
