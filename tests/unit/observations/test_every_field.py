"""Every field of every observation: another value is another digest, and what is saved comes back.

A digest is the key of kept results, so a field that it leaves out gives the results of other data. Sizes, counts and scales all differ, so that
fields cannot stand for one another. An observation without a row here fails.
"""

import copy
import dataclasses
import os
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from samples import people

from agglearn import observations
from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.errors import DataError
from agglearn.observations.base import Observation

FRAME = people(23)
Y, X = FRAME["y"].to_numpy(), FRAME.drop(columns="y")
ENCODER = FrameEncoder.fit(X)
NOISE = observations.NoiseSpec(
    "gaussian", 2.5, 0.75, 1e-4, "label", False, {"age": 1.25, "totals": 2.5}, "clipped", "for a reason", 3.0, 7.0
)
OFFSETS = np.array([0, 2, 3, 6])
BAGS = observations.Bags(
    X=np.arange(12.0).reshape(6, 2), offsets=OFFSETS, counts=np.array([[0.5, 1.0], [2.0, 0.0], [1.0, 3.5]]),
    weights=np.array([1.0, 0.5, 2.0, 0.5, 1.0, 3.0]), target=np.array([0.25, 2.0, -1.0]), names=("a", "b"),
    bag_names=("u", "v", "w"), noise=NOISE, class_names=("no", "yes"),
    released=np.array([1.5, -2.0, 4.0]),
)  # fmt: skip
FLOWS = observations.FlowCounts(
    np.array([[4.0, 3.0, 1.0], [2.0, np.nan, 5.0]]), np.arange(9.0).reshape(1, 3, 3), noise="poisson", rate=0.5,
    scale=3.0, population_size=9.0, context={"wind": np.array([1.0, -2.0])}, privacy=NOISE,
)  # fmt: skip
UNIT = observations.Unit("who", 3, (2, 5), {2: ENCODER})
TABLES = dataclasses.replace(observations.ContingencyTables.from_records(FRAME, "y"), noise=NOISE, unit=UNIT)
MAPPED = FeatureMap.fit("quadratic", ENCODER, X)
SUMS = dataclasses.replace(
    observations.LabelSums.from_map(MAPPED, X, Y, weights=1 + np.arange(23.0) / 7, label="bought"), noise=NOISE
)
SAMPLED = dataclasses.replace(SUMS, weights=None).keep_features(9, 0)
COUNTED = observations.CountedBags(
    ENCODER, X, np.array([7, 3, 20, 1, 0, 11]), OFFSETS, np.array([[1, 1], [1, 0], [0, 3]]), NOISE,
    released=np.array([1.0, -2.0, 5.0]),
)  # fmt: skip
MARGINS = observations.Margins(
    groups=np.array([[4.0, np.nan, 3.0], [5.0, np.nan, 1.0], [0.5, 6.0, 2.0], [7.0, 1.0, 9.0]]),
    votes=np.array([[5.0, 2.0], [2.5, 3.5], [4.25, 4.25], [8.0, 9.0]]), weights=np.array([1.0, 0.5, 2.0, 3.0]),
    districts=np.array([0, 0, 1, 1]), group_names=("old", "middle", "young"), vote_names=("yes", "no"),
    unit_names=("school", "hall", "church", "inn"), district_names=("north", "south"),
)  # fmt: skip
ROWS = [
    BAGS, FLOWS, TABLES, SUMS, SAMPLED, COUNTED, observations.FlowInstances((FLOWS, dataclasses.replace(FLOWS, rate=0.75))),
    observations.LabelledBags(BAGS, np.array([1, 0, 0, 1, 1, 0])), observations.Records(ENCODER, X, Y, "bought", 5),
    observations.Halves(TABLES, dataclasses.replace(TABLES, total=99.0)), MARGINS,
    observations.TablesAndSample(TABLES, observations.Records(TABLES.encoder, FRAME[list(TABLES.encoder.names)], Y)),
]  # fmt: skip


def others(value: object) -> Iterator[tuple[str, object]]:
    """(place, the value with another content there)."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            for place, content in others(getattr(value, field.name)):
                other = copy.copy(value)
                object.__setattr__(other, field.name, content)
                yield f"{field.name}.{place}", other
    elif isinstance(value, np.ndarray):
        for k in (0, -1):
            other = value.copy()
            other.flat[k] += 1
            yield f"[{k}]", other
    elif isinstance(value, pd.DataFrame):
        yield "a value", value.assign(age=[*value["age"][:-1], 99])
    elif isinstance(value, dict):
        for key, content in value.items():
            yield from ((f"{key}.{place}", value | {key: other}) for place, other in others(content))
    elif isinstance(value, tuple | list):
        for k, content in enumerate(value):
            yield from ((f"{k}.{p}", type(value)([*value[:k], other, *value[k + 1 :]])) for p, other in others(content))
    elif isinstance(value, bool):
        yield "", not value
    elif isinstance(value, int | float | np.number):
        yield "", value + 1
    elif isinstance(value, str):
        yield "", value + "'"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_refused(row, tmp_path):
    """Reading the one waits for ever, the other gives zeros for ever."""
    row.save(tmp_path)
    for file in sorted(p for p in tmp_path.rglob("*") if p.is_file()):
        file.rename(kept := tmp_path.with_name("kept"))
        for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
            make(file)
            with pytest.raises(DataError, match=r"is no file, but a pipe or a device|no contingency tables here"):
                type(row).load(tmp_path)
            file.unlink()
        kept.rename(file)
    type(row).load(tmp_path)


@pytest.mark.parametrize("row", [FLOWS, SUMS, COUNTED], ids=lambda row: type(row).__name__)
def test_arrays_beyond_the_memory_are_refused_packed(row, tmp_path, monkeypatch):
    row.save(tmp_path)
    monkeypatch.setattr("agglearn.saving.memory_bytes", lambda: 100)
    with pytest.raises(DataError, match=r"unpacked it has [\d,]+ bytes, more than this machine's memory$"):
        type(row).load(tmp_path)


def test_every_observation_has_a_row():
    kinds = {kind for kind in Observation.__subclasses__() if kind.__module__.startswith("agglearn")}
    assert kinds == {type(row) for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_no_field_is_empty(row):
    """Else nothing of it would be changed below."""
    places = {place.partition(".")[0] for place, _ in others(row)}
    absent = {id(SUMS): {"n_records"}, id(SAMPLED): {"weights"}}.get(id(row), set())  # one excludes the other
    assert places == {field.name for field in dataclasses.fields(row)} - absent


# What an encoder is from is not what it does. The others are set by other fields, as the constructors check: the shape of a table by
# the encoder, cells and intercept of a map by the names of the sums.
UNSEEN = re.compile(r"encoder\.schema|shape|map\.cells|map\.intercept")


def digest_of(observation: Observation) -> str | None:
    """The digest. None for tables with a cell outside their shape, which have none."""
    try:
        return observation.digest
    except ValueError:
        return None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_another_value_is_another_digest(row):
    same = [place for place, other in others(row) if digest_of(other) == row.digest]
    assert [place for place in same if not UNSEEN.search(place)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_every_field_is_kept(row, tmp_path):
    row.save(tmp_path)
    again = type(row).load(tmp_path)
    assert again.digest == row.digest
    assert type(again) is type(row)
    for file in tmp_path.rglob("*.npz"):
        file.write_bytes(b"no")
        with pytest.raises(DataError, match="damaged"):
            type(row).load(tmp_path)
