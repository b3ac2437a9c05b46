"""Bags of persons drawn from census records: one attribute hidden and counted per region, or votes per region."""

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from agglearn.datasets import RecordStore
from agglearn.datasets.census import MISSING
from agglearn.encoding.dense import DenseEncoder
from agglearn.errors import ConfigError
from agglearn.observations import Bags
from agglearn.observations.bags import apportion
from agglearn.seeds import derive_generator, draw_by_weight
from agglearn.tasks.base import TaskInput

ASKED = ("SEX", "RAC1P", "HISP", "SCHL")  # attributes that exit polls ask for
FITTED_ON = 50_000  # persons that scales, correlations and components are computed from
CHUNK = 200_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Persons:
    frame: pd.DataFrame
    categorical: tuple[str, ...]
    region: np.ndarray
    weight: np.ndarray
    regions: pd.DataFrame
    polls: pd.DataFrame | None

    def take(self, rows: np.ndarray) -> pd.DataFrame:
        """Covariates of some persons, numbers as floats with gaps, with their region's centroid."""
        frame = self.frame.iloc[rows]
        numbers = [c for c in frame if c not in self.categorical]
        frame = frame.assign(**{c: frame[c].astype(float).where(frame[c] != MISSING) for c in numbers})
        centre = self.regions[[c for c in ("x", "y", "z") if c in self.regions]]
        return frame.assign(**{c: centre[c].to_numpy()[self.region[rows]] for c in centre}).reset_index(drop=True)

    def polls_of(self, election: int) -> pd.DataFrame | None:
        """Exit polls of a year. None where it has none."""
        some = None if self.polls is None else self.polls[self.polls["year"] == election]
        return None if some is None or some.empty else some


def has_regions(inputs: TaskInput) -> bool:
    return isinstance(inputs.data, RecordStore) and "regions" in inputs.data.header


@functools.lru_cache(maxsize=1)
def read_persons(folder: Path, columns: str) -> Persons:
    """Columns that every state has (`shared`), or all columns of the states that have them (`full`)."""
    store = RecordStore.open(folder)
    regions = pd.read_parquet(folder / "regions.parquet")
    partial = store.header["partial_states"]
    names = store.header["columns"]
    if columns == "shared":
        lacking = {c for columns_of_state in partial.values() for c in columns_of_state}
        names = [c for c in names if c not in lacking]
    table = pq.read_table(folder / "features.parquet", columns=["region", "weight", *names])
    region = table["region"].to_numpy()
    if columns == "full" and partial:
        left_out = regions["partial"].to_numpy()
        logger.info("states with fewer columns are left out: %s", ", ".join(regions["state"][left_out].unique()))
        mask = ~left_out[region]
        table, regions = table.filter(mask), regions[~left_out].reset_index(drop=True)
        region = np.unique(region[mask], return_inverse=True)[1]
    frame = pd.DataFrame({c: table[c].to_numpy() for c in names})
    polls = folder / "polls.parquet"
    polled = pd.read_parquet(polls) if polls.exists() else None
    categorical = tuple(c for c in store.header["categorical"] if c in names)
    return Persons(frame, categorical, region, table["weight"].to_numpy().astype(float), regions, polled)


def race(frame: pd.DataFrame) -> np.ndarray:
    """(n,) codes: 0 Hispanic of any race, 1 White, 2 Black, 3 Asian, 4 other."""
    races = frame["RAC1P"].map({1: 1, 2: 2, 6: 3}).fillna(4).astype(int)
    return np.where(frame["HISP"] > 1, 0, races)


def education(frame: pd.DataFrame) -> np.ndarray:
    """(n,) codes: 0 high school or less, 1 some college, 2 college graduate, 3 postgraduate (SCHL 17, 20, 21)."""
    return np.searchsorted([18, 21, 22], frame["SCHL"].to_numpy(), side="right")


def coverage(frame: pd.DataFrame) -> np.ndarray:
    """(n,) codes of health insurance: 0 none, 1 public only, 2 private."""
    return np.where(frame["PRIVCOV"] == 1, 2, np.where(frame["PUBCOV"] == 1, 1, 0))


HIDDEN: dict[str, tuple[Callable[[pd.DataFrame], np.ndarray], tuple[str, ...]]] = {  # name → (labels, their columns)
    "DIS": (lambda f: (f["DIS"] == 1).to_numpy().astype(int), ("DIS",)),
    "SEX": (lambda f: (f["SEX"] == 2).to_numpy().astype(int), ("SEX",)),
    "HICOV": (lambda f: (f["HICOV"] == 1).to_numpy().astype(int), ("HICOV",)),
    "COVERAGE": (coverage, ("HICOV", "PRIVCOV", "PUBCOV")),
    "SCHL": (education, ("SCHL",)),
    "WKL": (lambda f: f["WKL"].to_numpy().astype(int) - 1, ("WKL",)),
    "ANC": (lambda f: f["ANC"].to_numpy().astype(int) - 1, ("ANC",)),
    "RAC1P": (race, ("RAC1P", "HISP")),
}


@dataclass(frozen=True, eq=False)
class CensusDesign:
    persons: Persons
    test: np.ndarray  # rows
    weight: np.ndarray  # (n,) 0 for tested persons
    encoder: DenseEncoder
    labels: np.ndarray  # (n,) of the hidden attribute, (0,) of voters

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        return self.encoder.transform(self.persons.take(rows))

    @property
    def n_classes(self) -> int:
        return int(self.labels.max()) + 1


def draw_per_region(design: CensusDesign, size: int, order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(regions · size,) rows: `size` of every region in `order`, with replacement by weight."""
    total = np.append(0.0, np.cumsum(design.weight))
    ends = np.append(0, np.cumsum(np.bincount(design.persons.region, minlength=len(design.persons.regions))))
    low, high = total[ends[:-1]][order], total[ends[1:]][order]
    u = low[:, None] + rng.random((len(order), size)) * (high - low)[:, None]
    rows = np.searchsorted(total, u, side="right") - 1
    return np.clip(rows, ends[:-1][order][:, None], ends[1:][order][:, None] - 1).ravel()


def count_bags(
    x: np.ndarray, offsets: np.ndarray, y: np.ndarray, n_classes: int = 2, names: tuple[str, ...] = ()
) -> Bags:
    bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    counts = np.bincount(bag * n_classes + y, minlength=(len(offsets) - 1) * n_classes)
    return Bags(x, offsets, counts.reshape(-1, n_classes), bag_names=names)


@functools.lru_cache(maxsize=4)
def hidden_design(folder: Path, columns: str, hidden: str, n_test: int, components: int) -> CensusDesign:
    """Design without covariates that are correlated with the hidden attribute (Sun 2019, 3.5.2.1)."""
    persons = read_persons(folder, columns)
    if hidden not in HIDDEN or not set(HIDDEN[hidden][1]) <= set(persons.frame):
        allowed = [name for name, (_, needed) in HIDDEN.items() if set(needed) <= set(persons.frame)]
        raise ConfigError(f"hidden: {hidden!r} cannot be hidden in these columns; {', '.join(allowed)} can")
    label, sources = HIDDEN[hidden]
    labels = label(persons.frame)
    test = draw_by_weight(persons.weight, n_test, derive_generator("test persons", hidden, columns))
    weight, rows, sample, encoder = _fit_encoder(persons, test, derive_generator("encoder", hidden, columns))
    correlated = encoder.drop_correlated(sample, labels[rows])
    encoder.mask &= ~np.isin(encoder.attributes, sources)
    explained = encoder.reduce(sample, components)
    logger.info(
        "%s: %d regions; left out %s; %d columns, %d components explain %.0f %% of their variance",
        hidden, len(persons.regions), ", ".join(sorted({*correlated, *sources})), encoder.mask.sum(), components, 100 * explained,
    )  # fmt: skip
    return CensusDesign(persons, test, weight, encoder, labels)


def _fit_encoder(
    persons: Persons, test: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, pd.DataFrame, DenseEncoder]:
    """(weights with 0 for tested persons, rows and covariates that the encoder was fitted to, the encoder)."""
    weight = persons.weight.copy()
    weight[test] = 0
    rows = draw_by_weight(weight, min(FITTED_ON, int((weight > 0).sum()) - 1), rng)
    sample = persons.take(rows)
    return weight, rows, sample, DenseEncoder(sample, persons.categorical)


@functools.lru_cache(maxsize=8)  # of one election, for every seed
def voter_design(
    folder: Path,
    columns: str,
    holdout: float,
    components: int,
    *stream: object,
    polled: int | None = None,
    attributes: int | None = None,
) -> CensusDesign:
    """Design that tests a fraction of the persons in the states with an exit poll of a year (Sun 2019, 3.5.3.1).

    All states are tested where there is none. Of the covariates `ASKED` and some others, at random, may be kept.
    """
    persons = read_persons(folder, columns)
    polls, state = None if polled is None else persons.polls_of(polled), persons.regions["state"]
    tested = state.notna() if polls is None else state.isin(polls["area"])
    rng = derive_generator("voters", columns, *stream)
    test = np.flatnonzero(tested.to_numpy()[persons.region] & (rng.random(len(persons.region)) < holdout))
    weight, _, sample, encoder = _fit_encoder(persons, test, rng)
    if attributes is not None:
        optional = [c for c in persons.frame if c not in ASKED]
        if not 0 <= attributes - len(ASKED) <= len(optional):
            raise ConfigError(f"attributes: must be {len(ASKED)} to {len(ASKED) + len(optional)}, got {attributes}")
        left_out = rng.permutation(optional)[attributes - len(ASKED) :]
        encoder.mask &= ~np.isin(encoder.attributes, left_out)
    explained = encoder.reduce(sample, min(components, int(encoder.mask.sum())))
    logger.info(
        "%d regions, %d tested persons; %d columns, components explain %.0f %% of their variance",
        len(persons.regions), len(test), encoder.mask.sum(), 100 * explained,
    )  # fmt: skip
    return CensusDesign(persons, test, weight, encoder, np.empty(0, int))


@functools.lru_cache(maxsize=1)
def region_means(design: CensusDesign) -> np.ndarray:
    """(regions, d) weighted means over all persons that are not tested."""
    encoder, persons, n = design.encoder, design.persons, len(design.persons.regions)
    total = np.zeros((n, len(encoder.names)))
    for first in range(0, len(design.weight), CHUNK):
        rows = np.arange(first, min(first + CHUNK, len(design.weight)))
        total += encoder.sums(persons.take(rows), persons.region[rows], design.weight[rows], n)
    means = total / np.bincount(persons.region, design.weight, n)[:, None]
    assert encoder.components is not None
    return means[:, encoder.mask] @ encoder.components - encoder.centre  # a vector is linear in these columns


def votes_per_region(persons: Persons, election: int) -> np.ndarray:
    """(regions, 3) votes: other and none, R, D. They add up to the adult citizens (z = (D, R, S − D − R))."""
    if f"D_{election}" not in persons.regions:
        elections = [c[2:] for c in persons.regions if c.startswith("D_")]
        raise ConfigError(f"election: there are no votes of {election}; there are {', '.join(elections) or 'none'}")
    votes = persons.regions[[f"R_{election}", f"D_{election}"]].to_numpy(float)
    size = persons.regions["citizens"].to_numpy(float)
    votes = votes * np.minimum(1, size / np.maximum(votes.sum(axis=1), 1))[:, None]
    return np.column_stack([size - votes.sum(axis=1), votes])


def states_of(persons: Persons, election: int) -> pd.DataFrame | None:
    """`state`, `longitude`, `latitude` (degrees) and `share` (two-party share of D). None without centroids."""
    regions = persons.regions
    if "x" not in regions:
        return None
    votes = pd.DataFrame(votes_per_region(persons, election)[:, 1:], columns=["R", "D"]).groupby(regions["state"]).sum()
    x, y, z = regions.groupby("state")[["x", "y", "z"]].first().to_numpy().T
    longitude = np.degrees(np.arctan2(y, x))
    latitude = np.degrees(np.arctan2(np.hypot(x, y), z))  # the file has the latitude in place of the polar angle
    democratic = votes["D"] / (votes["D"] + votes["R"])
    states = pd.DataFrame({"longitude": longitude, "latitude": latitude, "share": democratic})
    return states.rename_axis("state").reset_index()


@functools.lru_cache(maxsize=16)
def hidden_bags(design: CensusDesign, size: int, *stream: object) -> tuple[Bags, np.ndarray]:
    rng = derive_generator(*stream)
    order = rng.permutation(len(design.persons.regions))
    rows = draw_per_region(design, size, order, rng)
    y, names = design.labels[rows], tuple(design.persons.regions["name"].to_numpy()[order])
    return count_bags(design.vectors(rows), np.arange(0, len(rows) + 1, size), y, design.n_classes, names), y


@functools.lru_cache(maxsize=4)
def held_out_bags(design: CensusDesign, election: int | None = None) -> Bags:
    """Tested persons by region, with the counts of the hidden labels.

    Of an election the target is the region's two-party share of D, and the weights are the survey's.
    """
    region, x = design.persons.region[design.test], design.vectors(design.test)
    first = np.flatnonzero(np.diff(region, prepend=-1))
    offsets = np.append(first, len(region))
    if election is None:
        return count_bags(x, offsets, design.labels[design.test], design.n_classes)
    target = democratic_share(design.persons, election)[region[first]]
    return Bags(x, offsets, weights=design.persons.weight[design.test], target=target)


def voter_bags(design: CensusDesign, election: int, size: int | None, *stream: object) -> Bags:
    """Bags of `size` persons per region with votes scaled to them, or the mean of all where `size` is None.

    Regions whose votes are not known are left out.
    """
    votes, names = votes_per_region(design.persons, election), tuple(design.persons.regions["name"])
    counted = np.flatnonzero(votes[:, 1:].any(axis=1))
    if size is None:
        means = region_means(design)
        offsets = np.arange(len(means) + 1)
        bags = Bags(means.astype(np.float32), offsets, votes, weights=votes.sum(axis=1), bag_names=names)
    else:
        bags = replace(region_bags(design, size, *stream), counts=apportion(votes, size))
    return bags if len(counted) == len(bags) else bags.take(counted)


def democratic_share(persons: Persons, election: int) -> np.ndarray:
    """(regions,) two-party share of D, NaN where no votes are known."""
    votes = votes_per_region(persons, election)
    total = votes[:, 1] + votes[:, 2]
    return votes[:, 2] / np.where(total > 0, total, np.nan)


@functools.lru_cache(maxsize=1)
def region_bags(design: CensusDesign, size: int | None, *stream: object) -> Bags:
    """Bags of `size` persons per region by survey weight, or of all with their weights where `size` is None."""
    names = tuple(design.persons.regions["name"])
    if size is not None:
        rng, order = derive_generator(*stream), np.arange(len(names))
        x = design.vectors(draw_per_region(design, size, order, rng))
        return Bags(x, np.arange(0, len(x) + 1, size), bag_names=names)
    n = len(design.weight)
    x = np.concatenate([design.vectors(np.arange(a, min(a + CHUNK, n))) for a in range(0, n, CHUNK)])
    offsets = np.append(0, np.cumsum(np.bincount(design.persons.region, minlength=len(names))))
    return Bags(x, offsets, weights=design.weight, bag_names=names)


def county_bags(persons: Persons) -> Bags:
    """Bags of one instance: the region's county covariates, standardised over the regions."""
    frame = persons.regions[[c for c in persons.regions if c.startswith("county_")]]
    if frame.empty:
        raise ConfigError("persons: counties: the data set's entry names no county covariates")
    x = ((frame - frame.mean()) / frame.std().replace(0, 1)).to_numpy(np.float32)
    return Bags(x, np.arange(len(x) + 1), names=tuple(frame), bag_names=tuple(persons.regions["name"]))
