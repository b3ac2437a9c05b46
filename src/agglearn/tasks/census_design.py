"""Bags of persons drawn from census records: one attribute hidden and counted per region, or votes per region."""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from agglearn.datasets import RecordStore
from agglearn.datasets.census import MISSING
from agglearn.encoding.dense import DenseEncoder
from agglearn.errors import ConfigError
from agglearn.observations import Bags
from agglearn.observations.bags import apportioned
from agglearn.seeds import derive_generator

FITTED_ON = 50_000  # persons that scales, correlations and components are computed from
CHUNK = 200_000


@dataclass(frozen=True, eq=False)
class Persons:
    """Persons, region after region.

    Attributes
    ----------
    frame : their columns, int32. categorical : which of them are names.
    region : (n,) number of the region. weight : (n,) survey weight.
    regions : name, state, centroid and votes of every region. polls : exit polls by state, or None.
    """

    frame: pd.DataFrame
    categorical: tuple[str, ...]
    region: np.ndarray
    weight: np.ndarray
    regions: pd.DataFrame
    polls: pd.DataFrame | None

    def take(self, rows: np.ndarray, columns=None) -> pd.DataFrame:
        """Covariates of some persons, numbers as floats with gaps, with their region's centroid."""
        part = self.frame.iloc[rows] if columns is None else self.frame[columns].iloc[rows]
        numbers = [c for c in part if c not in self.categorical]
        part = part.assign(**{c: part[c].astype(float).where(part[c] != MISSING) for c in numbers})
        centre = self.regions[[c for c in ("x", "y", "z") if c in self.regions]]
        return part.assign(**{c: centre[c].to_numpy()[self.region[rows]] for c in centre}).reset_index(drop=True)


@functools.lru_cache(maxsize=1)
def persons_of(folder: Path, columns: str) -> Persons:
    """All persons, with the columns that every state has (`shared`), or without the states that lack some (`full`)."""
    store = RecordStore.open(folder)
    regions = pd.read_parquet(folder / "regions.parquet")
    partial = store.header["partial_states"]
    names = store.header["columns"]
    if columns == "shared":
        gone = {c for lacking in partial.values() for c in lacking}
        names = [c for c in names if c not in gone]
    elif columns != "full":
        raise ConfigError(f"columns: {columns!r} is not known; shared or full")
    table = pq.read_table(folder / "features.parquet", columns=["region", "weight", *names])
    region = table["region"].to_numpy()
    if columns == "full" and partial:
        left = regions["partial"].to_numpy()
        print(f"left out, as they have fewer columns: {', '.join(regions['state'][left].unique())}")
        kept = ~left[region]
        table, regions = table.filter(kept), regions[~left].reset_index(drop=True)
        region = np.unique(region[kept], return_inverse=True)[1]
    frame = pd.DataFrame({c: table[c].to_numpy() for c in names})
    polls = folder / "polls.parquet"
    return Persons(
        frame,
        tuple(c for c in store.header["categorical"] if c in names),
        region,
        table["weight"].to_numpy().astype(float),
        regions,
        pd.read_parquet(polls) if polls.exists() else None,
    )


# -- drawing ----------------------------------------------------------------------------------------------------------


def drawn_once(weight: np.ndarray, n: int, rng) -> np.ndarray:
    """n different rows by weight, sorted (Efraimidis and Spirakis 2006)."""
    with np.errstate(divide="ignore"):
        keys = np.log(rng.random(len(weight))) / weight
    return np.sort(np.argpartition(-keys, n)[:n])


def drawn_per_region(persons: Persons, weight: np.ndarray, size: int, order: np.ndarray, rng) -> np.ndarray:
    """`size` rows of every region in `order`, with replacement by weight; (regions · size,)."""
    total = np.append(0.0, np.cumsum(weight))
    ends = np.append(0, np.cumsum(np.bincount(persons.region, minlength=len(persons.regions))))
    low, high = total[ends[:-1]][order], total[ends[1:]][order]
    u = low[:, None] + rng.random((len(order), size)) * (high - low)[:, None]
    rows = np.searchsorted(total, u, side="right") - 1
    return np.clip(rows, ends[:-1][order][:, None], ends[1:][order][:, None] - 1).ravel()


# -- hidden attributes ------------------------------------------------------------------------------------------------


def race(frame: pd.DataFrame) -> np.ndarray:
    """0 Hispanic of any race, 1 White, 2 Black, 3 Asian, 4 other."""
    one = frame["RAC1P"].map({1: 1, 2: 2, 6: 3}).fillna(4).astype(int)
    return np.where(frame["HISP"] > 1, 0, one)


def education(frame: pd.DataFrame) -> np.ndarray:
    """0 high school or less, 1 some college, 2 college graduate, 3 postgraduate (SCHL 17, 20, 21)."""
    return np.searchsorted([18, 21, 22], frame["SCHL"].to_numpy(), side="right")


def coverage(frame: pd.DataFrame) -> np.ndarray:
    """Health insurance: 0 none, 1 public only, 2 private."""
    return np.where(frame["PRIVCOV"] == 1, 2, np.where(frame["PUBCOV"] == 1, 1, 0))


HIDDEN = {  # name → (labels, columns that they are made of)
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
class Study:
    """What all trials share: who is tested, who may be drawn, how covariates become vectors."""

    persons: Persons
    labels: np.ndarray | None
    test: np.ndarray  # rows
    weight: np.ndarray  # (n,) 0 for those tested
    encoder: DenseEncoder

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """(n, d) float32."""
        return self.encoder.transform(self.persons.take(rows))


@functools.lru_cache(maxsize=4)
def hidden_study(folder: Path, columns: str, hidden: str, n_test: int, components: int) -> Study:
    """An attribute hidden, `n_test` persons set aside, covariates that give it away left out (section 3.5.2.1)."""
    persons = persons_of(folder, columns)
    if hidden not in HIDDEN or not set(HIDDEN[hidden][1]) <= set(persons.frame):
        known = [h for h, (_, made_of) in HIDDEN.items() if set(made_of) <= set(persons.frame)]
        raise ConfigError(f"hidden: {hidden!r} cannot be hidden in these columns; {', '.join(known)} can")
    make, own = HIDDEN[hidden]
    labels = make(persons.frame)
    test = drawn_once(persons.weight, n_test, derive_generator("test persons", hidden, columns))
    weight = persons.weight.copy()
    weight[test] = 0
    rows = drawn_once(weight, min(FITTED_ON, int((weight > 0).sum()) - 1), derive_generator("encoder", hidden, columns))
    sample = persons.take(rows)
    encoder = DenseEncoder(sample, persons.categorical)
    gone = encoder.drop_correlated(sample, labels[rows])
    encoder.kept &= ~np.isin(encoder.attributes, own)
    share = encoder.reduce(sample, components)
    print(f"{hidden}: {len(persons.regions)} regions; left out {', '.join(sorted({*gone, *own}))}; "
          f"{int(encoder.kept.sum())} columns, {components} components hold {share:.0%} of their variance")  # fmt: skip
    return Study(persons, labels, test, weight, encoder)


@functools.lru_cache(maxsize=8)  # of one election, for every seed
def voters_study(folder: Path, columns: str, holdout: float, components: int, *stream) -> Study:
    """A share of the persons of the exit polls' states set aside (section 3.5.3.1); nothing is left out. `stream` names the draw."""
    persons = persons_of(folder, columns)
    here = np.ones(len(persons.region), bool)
    if persons.polls is not None:
        here = persons.regions["state"].isin(persons.polls["area"]).to_numpy()[persons.region]
    rng = derive_generator("voters", columns, *stream)
    test = np.flatnonzero(here & (rng.random(len(here)) < holdout))
    weight = persons.weight.copy()
    weight[test] = 0
    sample = persons.take(drawn_once(weight, min(FITTED_ON, int((weight > 0).sum()) - 1), rng))
    encoder = DenseEncoder(sample, persons.categorical)
    share = encoder.reduce(sample, min(components, len(encoder.names)))
    print(
        f"{len(persons.regions)} regions, {len(test):,} persons tested; {len(encoder.names)} columns, components hold {share:.0%}"
    )
    return Study(persons, None, test, weight, encoder)


@functools.lru_cache(maxsize=1)
def everyone(study: Study) -> np.ndarray:
    """(regions, d) weighted means over all persons that are not tested."""
    encoder, persons, n = study.encoder, study.persons, len(study.persons.regions)
    total = np.zeros((n, len(encoder.names)))
    for first in range(0, len(study.weight), CHUNK):
        rows = np.arange(first, min(first + CHUNK, len(study.weight)))
        total += encoder.sums(persons.take(rows), persons.region[rows], study.weight[rows], n)
    means = total / np.bincount(persons.region, study.weight, n)[:, None]
    return means[:, encoder.kept] @ encoder.components - encoder.centre  # a vector is linear in these columns


def votes_per_region(persons: Persons, election: int) -> np.ndarray:
    """(regions, 3) votes: other and none, R, D, adding up to the adult citizens (z = (D, R, S − D − R))."""
    if f"D_{election}" not in persons.regions:
        known = [c[2:] for c in persons.regions if c.startswith("D_")]
        raise ConfigError(f"election: there are no votes of {election}; there are {', '.join(known) or 'none'}")
    votes = persons.regions[[f"R_{election}", f"D_{election}"]].to_numpy(float)
    size = persons.regions["citizens"].to_numpy(float)
    votes = votes * np.minimum(1, size / np.maximum(votes.sum(axis=1), 1))[:, None]
    return np.column_stack([size - votes.sum(axis=1), votes])


def states_of(persons: Persons, election: int) -> pd.DataFrame | None:
    """`state`, `longitude`, `latitude` (degrees) and `share` (two-party share of D) of every state. None without centroids.

    The centroids' x, y and z are those of a sphere on which the latitude has taken the place of the angle from the pole.
    """
    regions = persons.regions
    if "x" not in regions:
        return None
    votes = pd.DataFrame(votes_per_region(persons, election)[:, 1:], columns=["R", "D"]).groupby(regions["state"]).sum()
    x, y, z = regions.groupby("state")[["x", "y", "z"]].first().to_numpy().T
    longitude, latitude = np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(np.hypot(x, y), z))
    share = votes["D"] / (votes["D"] + votes["R"])
    states = pd.DataFrame({"longitude": longitude, "latitude": latitude, "share": share})
    return states.rename_axis("state").reset_index()


@functools.lru_cache(maxsize=16)
def hidden_bags(study: Study, size: int, *stream) -> tuple[Bags, np.ndarray]:
    """(bags of `size` persons per region, regions in random order, with their labels counted; the labels)."""
    rng = derive_generator(*stream)
    order = rng.permutation(len(study.persons.regions))
    rows = drawn_per_region(study.persons, study.weight, size, order, rng)
    y, names = study.labels[rows], tuple(study.persons.regions["name"].to_numpy()[order])
    offsets = np.arange(0, len(rows) + 1, size)
    bag = np.repeat(np.arange(len(order)), size)
    counts = np.bincount(bag * study.classes + y, minlength=len(order) * study.classes).reshape(len(order), -1)
    return Bags(study.vectors(rows), offsets, counts, bag_names=names), y


@functools.lru_cache(maxsize=4)
def persons_tested(study: Study, election: int | None = None) -> Bags:
    """The persons set aside, in bags by region, with their labels counted; in an election with the region's two-party
    share of D as target and survey weights."""
    region = study.persons.region[study.test]
    offsets = np.append(np.flatnonzero(np.diff(region, prepend=-1)), len(region))
    if election is not None:
        votes = votes_per_region(study.persons, election)[region[offsets[:-1]]]
        share = votes[:, 2] / (votes[:, 1] + votes[:, 2])
        weights = study.persons.weight[study.test]
        return Bags(study.vectors(study.test), offsets, weights=weights, target=share)
    bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    codes = bag * study.classes + study.labels[study.test]
    counts = np.bincount(codes, minlength=(len(offsets) - 1) * study.classes).reshape(-1, study.classes)
    return Bags(study.vectors(study.test), offsets, counts)


def voter_bags(study: Study, election: int, size: int | None, *stream) -> Bags:
    """Bags of `size` persons per region with the votes scaled to them, or the mean of everybody where `size` is None."""
    votes, names = votes_per_region(study.persons, election), tuple(study.persons.regions["name"])
    if size is None:
        means = everyone(study)
        offsets = np.arange(len(means) + 1)
        return Bags(means.astype(np.float32), offsets, votes, weights=votes.sum(axis=1), bag_names=names)
    x = voters_drawn(study, size, *stream)
    return Bags(x, np.arange(0, len(x) + 1, size), apportioned(votes, size), bag_names=names)


@functools.lru_cache(maxsize=1)
def voters_drawn(study: Study, size: int, *stream) -> np.ndarray:
    """(regions · size, d) vectors of persons drawn per region."""
    order = np.arange(len(study.persons.regions))
    return study.vectors(drawn_per_region(study.persons, study.weight, size, order, derive_generator(*stream)))


# -- regions as bags with a target -------------------------------------------------------------------------------------


def democratic_share(persons: Persons, election: int) -> np.ndarray:
    """(regions,) two-party share of D."""
    votes = votes_per_region(persons, election)
    return votes[:, 2] / (votes[:, 1] + votes[:, 2])


@functools.lru_cache(maxsize=1)
def region_bags(study: Study, size: int | None, *stream) -> Bags:
    """Bags of `size` persons per region drawn by survey weight, or of everybody, with weights, where `size` is None."""
    names = tuple(study.persons.regions["name"])
    if size is not None:
        x = voters_drawn(study, size, *stream)
        return Bags(x, np.arange(0, len(x) + 1, size), bag_names=names)
    n = len(study.weight)
    x = np.concatenate([study.vectors(np.arange(a, min(a + CHUNK, n))) for a in range(0, n, CHUNK)])
    offsets = np.append(0, np.cumsum(np.bincount(study.persons.region, minlength=len(names))))
    return Bags(x, offsets, weights=study.weight, bag_names=names)


def county_bags(persons: Persons) -> Bags:
    """Bags of one instance: the region's county covariates, standardised over the regions."""
    frame = persons.regions[[c for c in persons.regions if c.startswith("county_")]]
    if frame.empty:
        raise ConfigError("persons: counties: the data set's entry names no county covariates")
    x = ((frame - frame.mean()) / frame.std().replace(0, 1)).to_numpy(np.float32)
    return Bags(x, np.arange(len(x) + 1), names=tuple(frame), bag_names=tuple(persons.regions["name"]))
