"""Patterns in entries, and what every shipped entry states."""

import re

import pytest
from samples import shipped_config

from agglearn.errors import ConfigError
from agglearn_workflow.config.entries import expand_entry

SHIPPED = shipped_config()["datasets"]
STATES = 51  # with the District of Columbia


def test_a_list_of_values():
    file = {
        "sha256": "unknown",
        "routes": [{"url": "h/{state}.zip", "member": "p{state}"}],
        "each": {"state": ["al", "ak"]},
    }
    assert expand_entry({"files": {"p{state}.csv": file, "q": {"sha256": "x"}}}, "file")["files"] == {
        "pal.csv": {"sha256": "unknown", "routes": [{"url": "h/al.zip", "member": "pal"}]},
        "pak.csv": {"sha256": "unknown", "routes": [{"url": "h/ak.zip", "member": "pak"}]},
        "q": {"sha256": "x"},
    }


def test_rows_of_values_keep_their_types():
    rows = [{"n": "01", "bytes": 3, "columns": ["a"]}, {"n": "02", "bytes": 4, "columns": []}]
    file = {"bytes": "{bytes}", "each": rows, "text": "{bytes} B", "columns": "{columns}", "other": "{else}"}
    assert expand_entry({"files": {"{n}": file}}, "file")["files"] == {
        "01": {"bytes": 3, "text": "3 B", "columns": ["a"], "other": "{else}"},
        "02": {"bytes": 4, "text": "4 B", "columns": [], "other": "{else}"},
    }


def test_inputs_of_a_build_below_a_pattern():
    inputs = {"{state}_{week}": {"each": {"week": ["1", "2"]}, "url": "{state}/{week}"}}
    file = {"each": {"state": ["al"]}, "routes": [{"kind": "build", "inputs": inputs}]}
    [route] = expand_entry({"files": {"{state}": file}}, "file")["files"]["al"]["routes"]
    assert route["inputs"] == {"al_1": {"url": "al/1"}, "al_2": {"url": "al/2"}}


def test_two_files_of_one_name():
    with pytest.raises(ConfigError, match=r"^file: .*'p' is named twice.*variable"):
        expand_entry({"files": {"p": {"each": {"state": ["al", "ak"]}, "path": "{state}"}}}, "file")


@pytest.mark.parametrize("entry", [None, 3, {}, {"files": 3}, {"files": {"a": None, "b": {"each": 3, "routes": [4]}}}])
def test_what_is_no_entry_is_left_to_the_schema(entry):
    assert expand_entry(entry, "file") == entry


FETCHED = {name: entry["files"] for name, entry in SHIPPED.items() if entry.get("files")}


@pytest.mark.parametrize("name", FETCHED)
def test_every_file_can_be_had_without_our_mirror_from_a_place_that_does_not_move(name):
    """A URL of a repository names a commit, unless a digest states what must come from it."""
    for file, origin in FETCHED[name].items():
        kinds = [r["kind"] for r in origin["routes"]]
        assert kinds[0] == "mirror", file
        assert len(kinds) > 1 or "comes from a mirror alone" in SHIPPED[name]["note"], file
        moving = [r for r in origin["routes"] if re.search(r"/(master|main)/", r.get("url", ""))]
        assert not moving or origin["sha256"] != "unknown", file


def test_states_and_weeks_are_complete():
    assert sum(f.startswith("acs_pums_2024/") for f in FETCHED["acs_2024"]) == STATES
    assert sum(f.startswith("acs_pums_2012_2015/") for f in FETCHED["acs_2012_2015"]) == 2 * STATES
    [flows] = FETCHED["us_state_flows"].values()
    assert len(flows["routes"][1]["inputs"]) == 156
    numbers = {re.search(r"psam_p(\d\d)", str(f["routes"]))[1] for n, f in FETCHED["acs_2024"].items() if "pums" in n}
    assert numbers == {n[-10:-8] for n in FETCHED["acs_2024"] if "pums" in n}
