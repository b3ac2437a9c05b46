"""Elections with cross tables: the package's layout, and one of its files where it is at hand."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from samples import ROOT

from agglearn.datasets import CrossTabulatedElection, RecordStore
from agglearn.datasets.elections import option_names
from agglearn.errors import DataError, NotAvailable
from agglearn.observations import Margins
from agglearn.proportions import EcologicalInference, IndependentTables
from agglearn.tasks import EcologicalTables, TaskInput

FILE = ROOT.parent / "shared" / "data" / "ei_datasets" / "ei_NZ_2011.RData"


def nested(columns=("District", "Votes_to_parties", "Votes_to_candidates", "District_cross_votes")):
    """Two districts; only the second has a candidate of the Greens."""
    rows = []
    for name, candidates in (("North", ["ADAMS, A (Left)", "X, Y"]), ("South", ["BROWN, B (Left)", "C, D (Green)"])):
        truth = np.array([[8.0, 2], [3, 7]])
        places = pd.DataFrame({"City": ["a", "b", "empty"], "Address": ["1", "2", "3"]})
        parties = places.assign(Left=[4.0, 6, 0], Green=[5.0, 5, 0])
        votes = places.assign(**dict(zip(candidates, ([5.0, 6, 0], [4.0, 5, 0]), strict=True)))
        cross = pd.DataFrame({name: ["Left", "Green"]}).assign(**dict(zip(candidates, truth.T, strict=True)))
        rows.append([name, parties, votes, cross])
    return pd.DataFrame(rows, columns=list(columns))


def parse(monkeypatch, tmp_path, frame):
    reader = types.SimpleNamespace(read_rda=lambda path: {"ei": frame})
    monkeypatch.setitem(sys.modules, "rdata", reader)
    out = tmp_path / "records"
    out.mkdir(exist_ok=True)
    return CrossTabulatedElection.from_entry({}).parse({"ei.RData": tmp_path / "ei.RData"}, out), out


def test_margins_and_cross_tables_are_read_and_judged(monkeypatch, tmp_path):
    facts, out = parse(monkeypatch, tmp_path, nested())
    assert facts == {"districts": 2, "units": 4, "districts whose cross table has other margins": 0}
    inputs = TaskInput("nz", {}, {}, RecordStore.open(out))
    margins, truth = EcologicalTables().observe(inputs, Margins, {}, 0)
    assert margins.district_names == ("North", "South")
    assert set(margins.vote_names) == {"Left", "X, Y", "Green"}
    assert np.isnan(margins.votes[:2, margins.vote_names.index("Green")]).all()
    assert np.nansum(truth.tables) == 40
    model = EcologicalInference(random_state=0).fit(margins)
    names = ["index", "index_of_part", "coverage_of_part", "estimated"]
    measured = list(EcologicalTables().measure(model, truth, names))
    north = next(m for m in measured if m.measure == "index_of_part" and m.keys == {"district": "North"})
    table = model.table("North").loc[["Left", "Green"], ["Left", "X, Y"]].to_numpy()
    assert north.value == pytest.approx(50 * abs(table - [[8, 2], [3, 7]]).sum() / 20)
    assert sum(m.value for m in measured if m.measure == "estimated") == pytest.approx(40)
    assert sum(m.measure == "coverage_of_part" for m in measured) == 2
    frame = nested()
    frame["District_cross_votes"][0].iloc[0, 1] += 1
    assert parse(monkeypatch, tmp_path, frame)[0]["districts whose cross table has other margins"] == 1


def test_files_with_another_layout_are_refused(monkeypatch, tmp_path):
    with pytest.raises(DataError, match="no column 'District_cross_votes'; the columns are"):
        parse(monkeypatch, tmp_path, nested().drop(columns="District_cross_votes"))
    frame = nested()
    frame.loc[1, "District"] = "West"
    frame["Votes_to_parties"][1]["More"] = 0.0
    sizes = "district West: the tables of margins and the cross table have different sizes"
    with pytest.raises(DataError, match=sizes):
        parse(monkeypatch, tmp_path, frame)


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(NotAvailable, match="rdata is not installed"):
        CrossTabulatedElection.from_entry({}).parse({"ei.RData": tmp_path / "ei.RData"}, tmp_path)


def test_options_are_parties_of_candidates():
    names = option_names(["A (Left)", "B (Independent)", "C (Independent)", "Informals", "D"])
    assert names == ["Left", "Independent", "Independent #2", "Informal", "D"]


@pytest.mark.skipif(not FILE.exists(), reason="the mirror has no election")
def test_the_published_election_is_read(tmp_path):
    pytest.importorskip("rdata")
    facts = CrossTabulatedElection.from_entry({}).parse({FILE.name: FILE}, tmp_path)
    assert facts == {"districts": 70, "units": 6002, "districts whose cross table has other margins": 0}
    margins, truth = EcologicalTables().observe(TaskInput("nz", {}, {}, RecordStore.open(tmp_path)), Margins, {}, 0)
    assert np.nansum(margins.votes) == np.nansum(truth.tables)
    [index] = EcologicalTables().measure(IndependentTables().fit(margins), truth, ["index"])
    assert index.value == pytest.approx(35.5, abs=0.1)
