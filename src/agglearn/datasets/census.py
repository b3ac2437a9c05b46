"""Person records of the American Community Survey with their regions, and votes by region."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from agglearn.datasets.base import Stored, require_columns, write_header
from agglearn.errors import DataError
from agglearn.settings import Positive

logger = logging.getLogger(__name__)

NUMBERS = ("AGEP", "WKHP", "WKWN", "JWMNP", "PINCP", "WAGP", "POVPIP")
CATEGORIES = (
    "SEX", "RAC1P", "HISP", "CIT", "NATIVITY", "LANX", "ENG", "SCHL", "FOD1P", "MAR", "FER", "ESR", "INDP", "OCCP", "COW",
    "JWTRNS", "MIGSP", "HICOV", "PRIVCOV", "PUBCOV", "DIS", "DEAR", "DEYE", "DREM", "DPHY", "MIL", "WKL", "ANC",
)  # fmt: skip
MISSING = -1_000_000  # in place of a missing number or category
NAMES = {"ST": "STATE", "PUMA10": "PUMA"}  # as older files spell them
WHOLE_STATES = ("02", "11")  # votes of Alaska and the District are known for the whole only
PUERTO_RICO = "72"


class VoteColumns(TypedDict):
    """Names of columns, of a county or a numbered region, and in `repeated` states with a total on every row."""

    file: str
    county: str
    democratic: str
    republican: str
    repeated: NotRequired[list[str]]


class CountyColumns(TypedDict):
    file: str
    county: str
    population: str
    totals: NotRequired[list[str]]


class Census(Stored):
    """Adult citizens (AGEP ≥ 18, CIT ≠ 5) of ACS microdata, by region.

    A region is a connected component of the graph in which a PUMA and a county are joined where they overlap (Sun 2019,
    section 3.5.1. Flaxman et al. 2015). Alaska is one region. Writes `features.parquet` (a row per person, by region:
    `region`, `weight`, numbers, categories), `regions.parquet` (state, centroid, votes by year) and `polls.parquet`.

    Parameters
    ----------
    persons, crosswalk, puma, county : str
        Folder of person files, Parquet or CSV. File with two header lines and a column `state`, and its other columns.
    votes, polls, centroids : dict[int, VoteColumns] or None, str or None, str or None
        Year → results by county, or by region where `numbered`. Folder of exit polls, `<year>/<state's letters>.json`.
        File with `region` (first the state's letters), x, y, z.
    numbered : bool
        Whether regions have the numbers of Flaxman et al. 2016, as those files have. Else a centroid is the state's
        mean.
    scales, covariates : dict[str, float] or None, CountyColumns or None
        Start of a person file's name → factor of its weights, where years are merged. Counties' numbers become the
        regions' means by population.
    """

    KEYS = ("mirror", "files")

    persons: str
    crosswalk: str
    puma: str = "puma22"
    county: str = "county"
    votes: dict[int, VoteColumns] | None = None
    polls: str | None = None
    centroids: str | None = None
    numbered: bool = False
    scales: dict[str, Positive] | None = None
    covariates: CountyColumns | None = None

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        links = read_crosswalk(files[self.crosswalk], self.puma, self.county)
        region, components = regions_of(links)
        links = links.assign(region=region)
        table, partial, partial_regions = self._people(files, links)
        pq.write_table(table, out / "features.parquet", compression="zstd", compression_level=1, row_group_size=1 << 18)
        regions = self._regions(files, links, table)
        regions["partial"] = regions.index.isin(partial_regions)
        regions.to_parquet(out / "regions.parquet", index=False)
        if self.polls:
            polls = {n: p for n, p in files.items() if n.startswith(f"{self.polls}/")}
            read_polls(polls).to_parquet(out / "polls.parquet", index=False)
        present = [c for c in (*NUMBERS, *CATEGORIES) if c in table.column_names]
        n, categories = table.num_rows, [c for c in present if c in CATEGORIES]
        write_header(out, n, "", categories, regions=len(regions), partial_states=partial, columns=present)
        logger.info(f"{len(regions)} regions ({components} components), {n:,} adult citizens")
        fewer = ", ".join(f"{s} (no {len(c)} of them)" for s, c in partial.items())
        logger.info(f"states with fewer columns: {fewer or 'none'}")
        return {"rows": n, "columns": len(present), "regions": len(regions)}

    def _people(self, files: dict[str, Path], links: pd.DataFrame) -> tuple[pa.Table, dict[str, list[str]], set[int]]:
        """(all persons, file → columns that it lacks, regions of the persons in such files)."""
        region_of, scales = dict(zip(links["state"] + links["puma"], links["region"], strict=True)), self.scales or {}
        paths = {n: p for n, p in sorted(files.items()) if n.startswith(f"{self.persons}/")}
        for start in scales:
            if not any(Path(n).name.startswith(start) for n in paths):
                there = ", ".join(paths)[:200]
                raise DataError(f"scales: the name of no person file starts with {start!r}; there are {there}")
        if not paths:
            raise DataError(f"persons: no file lies in {self.persons!r}; there are {', '.join(sorted(files))[:200]}")
        tables = {}
        for name, path in paths.items():
            scale = next((v for start, v in scales.items() if Path(name).name.startswith(start)), 1.0)
            tables[name] = read_persons(path, region_of, scale)
        present = {c for t in tables.values() for c in t.column_names}
        names = ["region", "weight", *(c for c in (*NUMBERS, *CATEGORIES) if c in present)]
        partial, partial_regions = {}, set[int]()
        for name, table in tables.items():
            if lacking := [c for c in names if c not in table.column_names]:
                partial[Path(name).stem] = lacking
                partial_regions |= set(np.unique(table["region"].to_numpy()).tolist())
        joined = pa.concat_tables(tables.values(), promote_options="default").select(names)
        joined = pa.table([pc.fill_null(column, MISSING) for column in joined.columns], names).combine_chunks()
        order = np.argsort(joined["region"].to_numpy(), kind="stable")
        return joined.take(pa.array(order)), partial, partial_regions

    def _regions(self, files: dict[str, Path], links: pd.DataFrame, table: pa.Table) -> pd.DataFrame:
        first = links.drop_duplicates("region").set_index("region").sort_index()
        regions = pd.DataFrame({"name": first["letters"] + " " + first["name"], "state": first["letters"]})
        region = table["region"].to_numpy()
        empty = np.bincount(region, minlength=len(regions)) == 0
        if n := int(empty.sum()):
            raise DataError(f"{n} regions have no person, the first {regions['name'][empty].iloc[0]!r}")
        regions["citizens"] = np.bincount(region, table["weight"].to_numpy(), len(regions))
        numbers = number_regions(links) if self.numbered else None
        if self.centroids:
            centre = pd.read_csv(files[self.centroids])
            area = centre["region"].str[:2] if numbers is None else centre["region"]
            mean = centre.groupby(area)[["x", "y", "z"]].mean()
            regions[["x", "y", "z"]] = mean.reindex(regions["state"] if numbers is None else numbers).to_numpy()
        region_of = dict(zip(links["county"], links["region"], strict=True))
        region_of |= {} if numbers is None else dict(zip(numbers, numbers.index, strict=True))
        region_of_state = links[links["state"].isin(WHOLE_STATES)].groupby("state")["region"].first().to_dict()
        for year, spec in (self.votes or {}).items():
            for party, counts in votes_of(files[spec["file"]], spec, region_of, region_of_state, len(regions)).items():
                regions[f"{party}_{year}"] = counts
        if self.covariates:
            means = county_means(files[self.covariates["file"]], self.covariates, region_of, len(regions))
            regions = regions.join(means)
        return regions.reset_index(drop=True)


def read_crosswalk(path: Path, puma: str, county: str) -> pd.DataFrame:
    """Pairs of PUMA and county that overlap: state (FIPS), letters, puma, county, name. Puerto Rico is left out."""
    raw = pd.read_csv(path, dtype=str, skiprows=[1], encoding="latin1")
    name = next(c for c in raw if c.lower().startswith(("countyname", "cntyname")))
    columns = {"state": raw["state"], "letters": raw["stab"], "puma": raw[puma].str.strip().str.zfill(5),
               "county": raw[county].str.strip(), "name": raw[name].str.strip()}  # fmt: skip
    return pd.DataFrame(columns)[raw["state"] != PUERTO_RICO].reset_index(drop=True)


def county_means(path: Path, spec: CountyColumns, region_of: dict[str, int], regions: int) -> pd.DataFrame:
    """(regions, columns `county_…`) means by population. Population and totals are log(1 + sum)."""
    raw, county, people = pd.read_csv(path), spec["county"], spec["population"]
    totals = [people, *spec.get("totals", [])]
    require_columns(raw, [county, *totals], path)
    region = raw[county].astype(str).str.zfill(5).map(region_of)
    raw, region = raw[region.notna()], region[region.notna()].astype(int)
    numbers = raw.drop(columns=county).select_dtypes("number")
    numbers = numbers.fillna(numbers.mean())
    sums = lambda column: column.groupby(region).sum().reindex(range(regions), fill_value=0)  # noqa: E731
    population, out = sums(numbers[people]), {}
    for name in numbers:
        if name in totals:
            out[f"county_{name}"] = np.log1p(sums(numbers[name]))
        else:
            mean = sums(numbers[name] * numbers[people]) / population
            out[f"county_{name}"] = mean.fillna(numbers[name].mean())
    return pd.DataFrame(out)


def regions_of(links: pd.DataFrame) -> tuple[np.ndarray, int]:
    """(region of every pair, numbered by first county, and number of components before Alaska is made one)."""
    pumas, _ = pd.factorize(links["state"] + links["puma"])
    counties, _ = pd.factorize(links["county"])
    n = pumas.max() + counties.max() + 2
    graph = coo_matrix((np.ones(len(links)), (pumas, counties + pumas.max() + 1)), shape=(n, n))
    components, label = connected_components(graph, directed=False)
    region = pd.Series(label[pumas].astype(object))
    region = region.where(~links["state"].isin(WHOLE_STATES), links["state"])
    order = links.assign(r=region).groupby("r", sort=False)["county"].min().sort_values()
    return region.map({r: i for i, r in enumerate(order.index)}).to_numpy(np.int64), components


def number_regions(links: pd.DataFrame) -> pd.Series:
    """Region → name, such as AL_10_02, by the order in which the regions file of Flaxman et al. 2016 found it.

    It reads pairs by county. A new county joins the component of its PUMA, any other one gives the PUMA its own.
    """
    pairs = links.sort_values(["county", "puma"])
    county, puma = pd.factorize(pairs["county"])[0], pd.factorize(pairs["state"] + pairs["puma"])[0]
    of_county, of_puma = np.full(county.max() + 1, -1), np.full(puma.max() + 1, -1)
    for c, p in zip(county, puma, strict=True):
        has_label = of_puma[p] >= 0
        if of_county[c] < 0:
            of_county[c] = of_puma[p] if has_label else c
        for label in (of_county, of_puma) if has_label else ():
            label[label == of_puma[p]] = of_county[c]
        of_puma[p] = of_county[c]
    first = pairs.assign(found=of_county[county]).groupby("region")[["letters", "found"]].first()
    number = first.groupby("letters")["found"].rank(method="first").astype(int)
    return first["letters"] + "_10_" + number.map("{:02d}".format)


def read_persons(path: Path, region_of: dict[str, int], scale: float = 1.0) -> pa.Table:
    columns = {"PWGTP", "STATE", "ST", "PUMA", "PUMA10", *NUMBERS, *CATEGORIES}
    if path.suffix == ".parquet":
        table = pq.read_table(path, columns=[c for c in pq.read_schema(path).names if c in columns])
    else:
        text = {c: pa.string() for c in ("ST", "PUMA", "PUMA10")}
        table = pacsv.read_csv(path, convert_options=pacsv.ConvertOptions(column_types=text))
        table = table.select([c for c in table.column_names if c in columns])
    table = table.rename_columns([NAMES.get(c, c) for c in table.column_names])
    if absent := [c for c in ("STATE", "PUMA", "PWGTP", "AGEP", "CIT") if c not in table.column_names]:
        raise DataError(f"{path}: no column {absent[0]!r}; these are no ACS person records")
    table = table.filter(pc.and_(pc.greater_equal(table["AGEP"], 18), pc.not_equal(table["CIT"], 5)))
    puma = table["PUMA"].to_pandas().astype(str).str.strip()
    has_puma = ~puma.isin(("-9", "-09", "-0009", "")).to_numpy()  # older records have no PUMA of this definition
    table, puma = table.filter(pa.array(has_puma)), puma[has_puma].str.zfill(5)
    area = table["STATE"].to_pandas().astype(str).str.zfill(2).to_numpy() + puma.to_numpy()
    region = pd.Series(area).map(region_of)
    if unknown := area[region.isna().to_numpy()].tolist():
        raise DataError(f"{path}: PUMA {unknown[0]} is not in the crosswalk; use the crosswalk of its year")
    arrays = {"region": region.to_numpy(np.int32), "weight": integers(table["PWGTP"]) * scale}
    arrays |= {c: integers(table[c]) for c in table.column_names if c in NUMBERS + CATEGORIES}
    return pa.table(arrays)


def integers(column: pa.ChunkedArray) -> np.ndarray:
    """Numbers as int32, codes of letters as numbers, missing as `MISSING`."""
    if pa.types.is_string(column.type):  # SOC and NAICS codes: 4739XX
        column = pa.chunked_array([pa.array(pd.to_numeric(column.to_pandas(), errors="coerce"))])
    return pc.fill_null(column.cast(pa.float64()), MISSING).to_numpy().astype(np.int32)


def votes_of(
    path: Path, spec: VoteColumns, region_of: dict[str, int], region_of_state: dict[str, int], n_regions: int
) -> dict[str, np.ndarray]:
    """{D, R: (regions,) votes} of county results. Counties that no region has are logged."""
    raw = pd.read_csv(path)
    county = raw[spec["county"]].astype(str).str.zfill(5)
    county = county.map(lambda c: c if c in region_of else RENAMED.get(c, c))
    region = county.map(lambda c: region_of_state.get(c[:2], region_of.get(c, np.nan)))
    if counties := ", ".join(county[region.isna()]):
        lost = raw.loc[region.isna(), spec["democratic"]].sum()
        logger.info(f"{path.name}: no region has the counties {counties} ({lost:,.0f} votes for D)")
    has_region, out = region.notna().to_numpy(), {}
    for party, column in (("D", spec["democratic"]), ("R", spec["republican"])):
        votes = raw[column].to_numpy(float)
        if spec.get("repeated"):  # a total stands on every row of these states
            state = county.str[:2]
            first = ~(state.isin(spec["repeated"]) & state.duplicated())
            votes = np.where(first, votes, 0)
        out[party] = np.bincount(region[has_region].astype(int), votes[has_region], n_regions)
    return out


# Counties that changed their number between elections and censuses, and Connecticut's planning regions (one region).
RENAMED = {"46113": "46102", "46102": "46113", "51515": "51019"} | {f"09{k}0": "09009" for k in range(11, 20)}


def read_polls(paths: dict[str, Path]) -> pd.DataFrame:
    """Two-party shares: year, area (a state's letters, or US), covariate, group, share, size.

    An answer without votes is left out. Answers of one group are added up by their sizes.
    """
    rows: list[tuple] = []
    for name, path in sorted(paths.items()):
        try:
            rows += list(_poll_rows(json.loads(path.read_text()), Path(name)))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: is no exit poll of a state ({type(error).__name__}: {error})") from None
    keys = ["year", "area", "covariate", "group"]
    polls = pd.DataFrame(rows, columns=[*keys, "size", "D", "R"])
    polls[["size", "D", "R"]] = polls[["size", "D", "R"]].apply(pd.to_numeric, errors="coerce")
    polls = polls.dropna()
    polls = polls.assign(D=polls["D"] * polls["size"], R=polls["R"] * polls["size"]).groupby(keys).sum().reset_index()
    return polls.assign(share=polls["D"] / (polls["D"] + polls["R"]))[[*keys, "share", "size"]]


def _poll_rows(state: dict, name: Path) -> Iterator[tuple]:
    for poll in state["polls"]:
        party = {candidate["id"]: candidate["party"] for candidate in poll["candidates"]}
        for answer in poll["answers"] if poll["pollname"] in QUESTIONS else ():
            votes = {party[vote["id"]]: vote["pct"] for vote in answer["candidateanswers"]}
            group = GROUPS.get(answer["answer"].lower(), answer["answer"].lower())
            key = (int(name.parent.name), name.stem.replace("All", "US"), QUESTIONS[poll["pollname"]], group)
            yield (*key, answer["pct"], votes.get("D"), votes.get("R"))


QUESTIONS = {"SEX": "sex", "RACE": "race", "EDUC10": "education", "EDUC12R": "education"}
GROUPS = {
    "men": "male", "women": "female", "latino": "hispanic", "african-american": "black", "other race": "other",
    "no high school": "high school or less", "high school graduate": "high school or less",
}  # fmt: skip
