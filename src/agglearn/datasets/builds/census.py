"""Files of the Census Bureau in the form in which the loaders read them."""

from pathlib import Path
from typing import TypedDict

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from agglearn.datasets.base import require_columns
from agglearn.datasets.builds.inputs import Inputs, Source, name_of, only, open_input
from agglearn.errors import DataError

CODES = {"SERIALNO": 0, "STATE": 2, "PUMA": 5}  # names of things, not numbers, with their width


def person_columns(inputs: Inputs, out: Path, columns: list[str]) -> None:
    """Write columns of a person file of the American Community Survey as Parquet, one row per person, in its order.

    Numbers become 64-bit integers, empty fields are missing. `SERIALNO`, `STATE` and `PUMA` stay text.

    Parameters
    ----------
    inputs, out, columns : Inputs, Path, list[str]
        `psam_p*.csv` of the public use microdata, the Parquet file to write, and its columns in order.
    """
    source = only(inputs)
    types = {c: pa.string() if c in CODES else pa.int64() for c in columns}
    options = pacsv.ConvertOptions(include_columns=columns, column_types=types, null_values=[""])
    try:
        with open_input(source) as stream:
            table = pacsv.read_csv(stream, convert_options=options)
    except (pa.ArrowInvalid, KeyError) as error:
        raise DataError(f"{name_of(source)}: these are no such person records: {error}") from None
    for name in {"STATE", "PUMA"} & set(columns):
        padded = pc.utf8_lpad(table[name], CODES[name], "0")
        table = table.set_column(columns.index(name), name, padded)
    pq.write_table(table, out, compression="zstd")


class TractsAndCounties(TypedDict):
    tracts: Source
    counties: Source


def puma_counties(inputs: TractsAndCounties, out: Path, puma: str, county: str) -> None:
    """Write which PUMAs and counties share a census tract, as `agglearn.datasets.census.read_crosswalk` reads it.

    Parameters
    ----------
    inputs, out, puma, county : TractsAndCounties, Path, str, str
        `tracts` (`STATEFP,COUNTYFP,TRACTCE,PUMA5CE`) and `counties` (`STATE|STATEFP|COUNTYFP|…|COUNTYNAME|…`) of the
        Bureau. A county that these lack is called by its number. CSV with two header lines, and names of two columns.
    """
    tracts = _text(inputs["tracts"], ",", ["STATEFP", "COUNTYFP", "PUMA5CE"])
    listed = _text(inputs["counties"], "|", ["STATE", "STATEFP", "COUNTYFP", "COUNTYNAME"])
    letters = dict(zip(listed["STATEFP"], listed["STATE"], strict=True))
    names = dict(zip(listed["STATEFP"] + listed["COUNTYFP"], listed["COUNTYNAME"] + " " + listed["STATE"], strict=True))
    number = tracts["STATEFP"] + tracts["COUNTYFP"]
    columns = {"state": tracts["STATEFP"], puma: tracts["PUMA5CE"], county: number}
    pairs = pd.DataFrame(columns).assign(stab=tracts["STATEFP"].map(letters))
    pairs["CountyName"] = number.map(names).fillna(number)
    if unknown := pairs.loc[pairs["stab"].isna(), "state"].tolist():
        raise DataError(f"{name_of(inputs['counties'])}: has no county of state {unknown[0]}")
    pairs = pairs.drop_duplicates().sort_values(["state", puma, county])
    head = pd.DataFrame([["State code", "PUMA", "County code", "State abbr.", "County name"]], columns=pairs.columns)
    pd.concat([head, pairs]).to_csv(out, index=False, encoding="latin1", errors="replace")


def _text(source: Source, separator: str, columns: list[str]) -> pd.DataFrame:
    with open_input(source) as stream:
        table = pd.read_csv(stream, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    require_columns(table, columns, name_of(source))
    return table[columns]
