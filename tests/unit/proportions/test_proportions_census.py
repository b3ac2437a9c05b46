"""Census records: regions, persons kept, sampling, hidden attributes, votes, scores against exit polls."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from census_sample import ENTRY, LINKS, persons, prepared_census

from agglearn.datasets import Census
from agglearn.datasets.census import MISSING, read_crosswalk, read_persons, read_polls, regions_of
from agglearn.errors import ConfigError, DataError
from agglearn.observations import Bags
from agglearn.tasks import BagClassification, TaskInput, census_design
from agglearn.tasks import bags as polls


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return prepared_census(tmp_path_factory.mktemp("census"))


VOTES = {"election": 2016, "bag_size": 20, "holdout": 0.5, "components": 3, "columns": "shared"}


def by_keys(measured) -> dict:
    return {(m.measure, *m.keys.values()): m.value for m in measured}


def observed(store, kind=Bags, seed=0, params=None, **given):
    return BagClassification().observe(TaskInput("acs", ENTRY, given, store), kind, params or {}, seed)


def test_regions_are_components(store, tmp_path):
    (tmp_path / "links.csv").write_text(LINKS)
    links = read_crosswalk(tmp_path / "links.csv", "puma22", "county")
    region, components = regions_of(links)
    assert components == 5  # two of Alabama, Iowa, and Alaska's two, which become one
    assert region.tolist() == [0, 0, 0, 1, 2, 2, 3]
    regions = pd.read_parquet(store.folder / "regions.parquet")
    assert regions["state"].tolist() == ["AL", "AL", "AK", "IA"]
    assert regions["D_2016"].tolist() == [300, 50, 70, 500]  # Alaska's total stands on both of its rows
    assert regions["R_2016"].tolist() == [400, 60, 80, 400]
    assert regions[["x", "y", "z"]].iloc[0].tolist() == [2, 3, 4]


def test_adult_citizens_only(store):
    assert store.n == 3 * 298
    frame = store.features()
    assert (np.diff(frame["region"]) >= 0).all()
    assert frame["AGEP"].min() >= 18
    assert not (frame["CIT"] == 5).any()
    assert (frame.loc[frame["region"] == 2, "PINCP"] == MISSING).all()
    assert store.header["partial_states"] == {"p_02": ["PINCP", "HICOV", "PRIVCOV", "PUBCOV"]}
    weight = frame.groupby("region")["weight"].sum()
    assert pd.read_parquet(store.folder / "regions.parquet")["citizens"].tolist() == weight.tolist()


def test_older_files_in_the_upstream_format(tmp_path):
    """CSV with ST and PUMA10; records of 2010 and 2011 have −9 there and are left out."""
    frame = persons(50, "1", ["100", "00200"], 0).rename(columns={"STATE": "ST", "PUMA": "PUMA10"})
    frame["ST"] = 1
    frame.loc[10:19, "PUMA10"] = "-9"
    frame["SOCP12"] = "4739XX"
    frame.to_csv(tmp_path / "ss14pal.csv", index=False)
    table = read_persons(tmp_path / "ss14pal.csv", {"0100100": 0, "0100200": 1}, 1.25)
    assert table.num_rows == 38
    assert sum(table["weight"].to_pylist()) == 1.25 * frame.drop([0, 1, *range(10, 20)])["PWGTP"].sum()
    assert set(table["region"].to_pylist()) == {0, 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.drop(columns="PWGTP"), "no column 'PWGTP'"),
        (lambda f: f.assign(PUMA="99999"), "PUMA 0199999 is not in the crosswalk"),
    ],
)
def test_other_files_are_refused(tmp_path, change, said):
    change(persons(20, "01", ["00100"], 0)).to_parquet(tmp_path / "p_01.parquet")
    with pytest.raises(DataError, match=said):
        read_persons(tmp_path / "p_01.parquet", {"0100100": 0})


def poll_of(answers, name="EDUC10"):
    """An exit poll's text: answer → size, percent of D, percent of R."""
    candidates = [{"id": 7, "party": "D"}, {"id": 8, "party": "R"}, {"id": 0, "party": ""}]
    rows = []
    for answer, (size, d, r) in answers.items():
        votes = [{"id": 8, "pct": r}, {"id": 7, "pct": d}, {"id": 0, "pct": "1"}]
        rows.append({"answer": answer, "pct": size, "candidateanswers": votes})
    return json.dumps({"polls": [{"pollname": name, "candidates": candidates, "answers": rows}]})


def test_exit_polls_of_two_years(tmp_path):
    """Two answers of one group count by their sizes; an answer without votes is none."""
    schools = {"No High School": ("3", "60", "30"), "High School Graduate": ("21", "40", "50")}
    texts = {
        "2012/OH": poll_of(schools | {"Postgraduate": ("9", "N/A", "N/A")}),
        "2016/All": poll_of({"Male": ("47", "40", "60"), "Female": ("53", "54", "36")}, "SEX"),
    }
    paths = {f"polls/{name}.json": tmp_path / name.replace("/", "_") for name in texts}
    for path, text in zip(paths.values(), texts.values(), strict=True):
        path.write_text(text)
    found = read_polls(paths).set_index(["year", "area", "covariate", "group"])
    assert found["share"].to_dict() == {
        (2012, "OH", "education", "high school or less"): pytest.approx((180 + 840) / (180 + 840 + 90 + 1050)),
        (2016, "US", "sex", "female"): pytest.approx(0.6),
        (2016, "US", "sex", "male"): pytest.approx(0.4),
    }
    assert found["size"].tolist() == [24, 53, 47]


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"polls": [{"pollname": "SEX"}]}'])
def test_a_file_that_is_no_exit_poll(tmp_path, text):
    (tmp_path / "IA.json").write_text(text)
    with pytest.raises(DataError, match=r"IA.json: is no exit poll of a state"):
        read_polls({"polls/2016/IA.json": tmp_path / "IA.json"})


NUMBERED = """state,puma22,county,stab,CountyName
State code,PUMA,County code,State abbr.,County name
01,00100,01001,AL,A AL
01,00200,01003,AL,B AL
01,00300,01005,AL,C AL
01,00100,01007,AL,D AL
01,00300,01007,AL,D AL
19,00100,19001,IA,E IA
"""


def test_votes_and_centroids_of_numbered_regions(tmp_path):
    """County D joins the PUMA of A to that of C, and the region is found anew as C's: after B."""
    (tmp_path / "acs").mkdir()
    people = {"01": ["00100", "00200", "00300"], "19": ["00100"]}
    for k, (state, pumas) in enumerate(people.items()):
        persons(100, state, pumas, k).to_parquet(tmp_path / f"acs/p_{state}.parquet")
    texts = {
        "links.csv": NUMBERED,
        "votes.csv": "region,D,R\nAL_10_02,7,3\nAL_10_01,20,10\nIA_10_01,1,2\n",
        "centroids.csv": "region,x,y,z\nAL_10_01,1,2,3\nAL_10_02,4,5,6\nIA_10_01,7,8,9\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    votes = {2012: {"file": "votes.csv", "county": "region", "democratic": "D", "republican": "R"}}
    params = {"persons": "acs", "crosswalk": "links.csv", "votes": votes, "centroids": "centroids.csv"}
    params["numbered"] = True
    names = [*texts, "acs/p_01.parquet", "acs/p_19.parquet"]
    (tmp_path / "out").mkdir()
    Census.from_entry(ENTRY | {"params": params}).parse({n: tmp_path / n for n in names}, tmp_path / "out")
    regions = pd.read_parquet(tmp_path / "out/regions.parquet").set_index("name")
    assert regions["D_2012"].to_dict() == {"AL A AL": 20, "AL B AL": 7, "IA E IA": 1}
    assert regions.loc["AL B AL", ["x", "y", "z"]].tolist() == [4, 5, 6]


def test_no_person_files():
    with pytest.raises(DataError, match="no file lies in 'acs'"):
        Census.from_entry(ENTRY)._people({"links.csv": None}, pd.DataFrame({"state": [], "puma": [], "region": []}))


# -- drawing ----------------------------------------------------------------------------------------------------------


def test_persons_are_drawn_by_weight(store):
    study = census_design.hidden_design(store.folder, "full", "SEX", 200, 4)
    inside = census_design.draw_per_region(study, 20_000, np.array([0]), np.random.default_rng(0))
    here = study.weight[study.persons.region == 0]
    assert study.weight[inside].mean() == pytest.approx(np.average(here, weights=here), rel=0.02)
    assert here[here > 0].mean() < 0.9 * np.average(here, weights=here)


def test_shared_columns_keep_every_state(store):
    seen, _ = observed(store, hidden="DIS", bag_size=5, n_test=10, components=3, columns="shared")
    assert len(seen) == 4
    with pytest.raises(ConfigError, match=r"COVERAGE.* cannot be hidden .* DIS, SEX, SCHL, RAC1P can"):
        observed(store, hidden="COVERAGE", columns="shared")


def test_hidden_attributes_are_numbered_from_zero():
    frame = pd.DataFrame(
        {
            "DIS": [1, 2, 2, 2, 2], "SEX": [1, 2, 2, 1, 1], "HICOV": [1, 1, 1, 2, 2], "PRIVCOV": [1, 2, 1, 2, 2],
            "PUBCOV": [1, 1, 2, 2, 2], "SCHL": [17, 18, 20, 21, 22], "WKL": [1, 2, 3, 1, 1], "ANC": [1, 2, 4, 1, 1],
            "RAC1P": [1, 2, 6, 9, 1], "HISP": [1, 1, 1, 1, 2],
        }
    )  # fmt: skip
    assert {name: list(of(frame)) for name, (of, _) in census_design.HIDDEN.items()} == {
        "DIS": [1, 0, 0, 0, 0], "SEX": [0, 1, 1, 0, 0], "HICOV": [1, 1, 1, 0, 0], "COVERAGE": [2, 1, 2, 0, 0],
        "SCHL": [0, 1, 1, 2, 3], "WKL": [0, 1, 2, 0, 0], "ANC": [0, 1, 3, 0, 0], "RAC1P": [1, 2, 3, 4, 0],
    }  # fmt: skip


def test_votes_are_scaled_to_persons(store):
    counts = census_design.apportion(np.array([[50.0, 30, 20], [1, 1, 1], [0, 0, 7]]), 10)
    assert counts.tolist() == [[5, 3, 2], [4, 3, 3], [0, 0, 10]]
    seen, truth = observed(store, **VOTES)
    assert (seen.counts.sum(axis=1) == 20).all()
    assert set(truth.groups["state"]) == {"IA"}  # the only state with a poll
    everybody, _ = observed(store, params={"persons": "all"}, **VOTES)
    assert everybody.X.shape == (4, 3)
    citizens = pd.read_parquet(store.folder / "regions.parquet")["citizens"]
    assert np.allclose(everybody.counts.sum(axis=1), citizens)
    study = census_design.voter_design(store.folder, "shared", 0.5, 3, 0, polled=2016)
    rows = np.flatnonzero(study.persons.region == 1)
    mean = np.average(study.vectors(rows), weights=study.weight[rows], axis=0)
    assert np.allclose(everybody.X[1], mean, atol=1e-4)


def test_states_with_a_poll_of_the_year_are_tested(store):
    """All of them where the year has none."""
    tested = {}
    for year in (2016, 2020, None):
        study = census_design.voter_design(store.folder, "shared", 0.5, 3, 0, polled=year)
        tested[year] = set(study.persons.regions["state"].to_numpy()[study.persons.region[study.test]])
    assert tested == {2016: {"IA"}, 2020: {"AL", "AK", "IA"}, None: {"AL", "AK", "IA"}}


def test_fewer_attributes(store):
    """Those that exit polls ask for are kept, with as many others as wanted; who is tested does not change."""
    design = lambda n: census_design.voter_design(store.folder, "full", 0.3, 3, 1, attributes=n)  # noqa: E731
    kept = {}
    for n in (4, 6, None):
        encoder = design(n).encoder
        kept[n] = {a for a, used in zip(encoder.attributes, encoder.mask, strict=True) if used} - {"x", "y", "z"}
    assert kept[4] == set(census_design.ASKED) < kept[6] < kept[None] == set(design(None).persons.frame)
    assert len(kept[6]) == 6
    assert np.array_equal(design(4).test, design(None).test)
    with pytest.raises(ConfigError, match="attributes: must be 4 to 11, got 3"):
        design(3)


def test_a_region_whose_votes_are_not_known_is_no_bag(store, monkeypatch):
    study = census_design.voter_design(store.folder, "shared", 0.5, 3, 0)
    regions = study.persons.regions.copy()
    regions.loc[2, ["D_2016", "R_2016"]] = 0
    study = replace(study, persons=replace(study.persons, regions=regions))
    for size in (5, None):
        bags = census_design.voter_bags(study, 2016, size, "stream")
        assert bags.bag_names == tuple(regions["name"].drop(2))
    assert np.isnan(census_design.democratic_share(study.persons, 2016)).tolist() == [False, False, True, False]


def test_places_and_counted_shares_of_states(store):
    """Of the real file: Alabama lies at 33.0° N and 86.6° W, Alaska at 64.3° N and 152.6° W (means of their regions)."""
    study = census_design.voter_design(store.folder, "shared", 0.5, 3, 0)
    real = {"AL": (207, -3470, 5340), "AK": (-5096.1, -2644.8, 2761.1)}
    regions = study.persons.regions.copy()
    for state, place in real.items():
        regions.loc[regions["state"] == state, ["x", "y", "z"]] = place
    states = census_design.states_of(replace(study.persons, regions=regions), 2016).set_index("state")
    assert states.loc["AL", ["longitude", "latitude"]].tolist() == pytest.approx([-86.6, 33.0], abs=0.1)
    assert states.loc["AK", ["longitude", "latitude"]].tolist() == pytest.approx([-152.6, 64.3], abs=0.1)
    assert states.loc["IA", "share"] == pytest.approx(500 / 900)
    assert states.loc["AL", "share"] == pytest.approx(350 / 810)
    bare = replace(study.persons, regions=regions.drop(columns=["x", "y", "z"]))
    assert census_design.states_of(bare, 2016) is None


def test_a_map_has_every_state_counted_and_the_tested_ones_expected():
    groups = pd.DataFrame({"weight": [1.0, 3.0], "state": "IA"})
    states = pd.DataFrame(
        {"state": ["AL", "IA"], "longitude": [-86.6, -93.0], "latitude": [33.0, 42.0], "share": [0.4, 0.55]}
    )
    p = np.array([[0.5, 0.25, 0.25], [0.0, 0.4, 0.6]])
    assert by_keys(polls.measure_map(p, groups, states, ["map_share", "map_counted"])) == {
        ("map_counted", "AL", -86.6, 33.0): 0.4,
        ("map_counted", "IA", -93.0, 42.0): 0.55,
        ("map_share", "IA", -93.0, 42.0): pytest.approx((0.25 + 1.8) / (0.5 + 3.0)),
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hidden": "DIS", "bags": 3}, "takes no 'bags'"),
        ({"hidden": "FOO"}, "'FOO' is not allowed"),
        ({"election": 1848, "holdout": 0.5}, "no votes of 1848; there are 2016"),
        ({"hidden": "DIS", "columns": "some"}, "one of full, shared"),
    ],
)
def test_unknown_settings(store, given, said):
    with pytest.raises(ConfigError, match=said):
        observed(store, **given)


def test_kept_and_read_again(store, tmp_path):
    _, truth = observed(store, polls={"sex": {"male": [0.4, 48], "female": [0.6, 52]}}, **VOTES)
    truth.save(tmp_path)
    again = type(truth).load(tmp_path)
    assert again.y is None
    assert again.groups.equals(truth.groups)
    assert again.polls["area"].tolist() == ["US", "US", "IA", "IA"]


# -- scores -----------------------------------------------------------------------------------------------------------

TABLE_3_2 = {  # exit poll, size; predictions of the mean embedding, AMM, cardinality
    "sex": ([0.44, 0.57], [48, 52], [[0.57, 0.44], [0.51, 0.47], [0.41, 0.45]]),
    "race": (
        [0.70, 0.39, 0.92, 0.71, 0.61], [11, 70, 12, 4, 3],
        [[0.63, 0.42, 0.74, 0.58, 0.77], [0.69, 0.38, 0.93, 0.91, 0.83], [0.77, 0.31, 0.99, 1.0, 0.94]],
    ),
    "education": (
        [0.47, 0.46, 0.53, 0.61], [18, 32, 32, 18],
        [[0.44, 0.34, 0.71, 0.60], [0.32, 0.34, 0.73, 0.68], [0.18, 0.26, 0.71, 0.68]],
    ),
}  # fmt: skip
TABLE_3_3 = {  # majorities, pairs, RMSE
    "sex": [(0, 0, 0.13), (0, 0, 0.09), (1, 1, 0.09)],
    "race": [(5, 0.7, 0.08), (5, 0.9, 0.06), (5, 0.8, 0.11)],
    "education": [(4, 0.83, 0.12), (4, 0.83, 0.15), (4, 0.83, 0.20)],
}


@pytest.mark.parametrize("covariate", list(TABLE_3_2))
@pytest.mark.parametrize("method", [0, 1, 2])
def test_table_3_3_follows_from_table_3_2(covariate, method):
    """With pairs of polls within .01 counted as right; strictly, two of the printed values do not."""
    share, size, found = TABLE_3_2[covariate]
    poll = pd.DataFrame({"share": share, "size": size})
    wanted = ["majority", "pair_auc", "pair_auc_close", "poll_rmse"]
    said = {m.measure: m.value for m in polls.measure_nation(covariate, np.array(found[method]), poll, wanted)}
    majority, pairs, rmse = TABLE_3_3[covariate][method]
    assert said["majority"] == majority
    assert said["pair_auc_close"] == pytest.approx(pairs, abs=0.005)
    assert said["poll_rmse"] == pytest.approx(rmse, abs=0.0101)
    strict = {("race", 0): 0.6, ("education", 1): 2 / 3, ("education", 2): 2 / 3}.get((covariate, method), pairs)
    assert said["pair_auc"] == pytest.approx(strict, abs=0.005)


def test_shares_are_weighted():
    groups = pd.DataFrame({"weight": [1.0, 3, 5, 7], "sex": ["male", "male", "male", "female"]})
    found = polls.two_party_shares(np.eye(3)[[2, 1, 0, 0]], groups, ["sex"])
    assert found["male"] == 0.25
    assert np.isnan(found["female"])


def test_expected_votes_beside_hard_ones():
    """Two men who both lean to D by a little: all votes for D, or half of them."""
    groups = pd.DataFrame({"weight": [1.0, 1, 2], "state": "IA", "sex": ["male", "male", "female"]})
    groups = groups.assign(race="white", education="postgraduate")
    p = np.array([[0.1, 0.4, 0.5], [0.0, 0.45, 0.55], [0.2, 0.6, 0.2]])
    poll = pd.DataFrame(
        {"area": "US", "covariate": "sex", "group": ["male", "female"], "share": [0.5, 0.3], "size": [1, 3]}
    )
    wanted = ["share", "expected_share", "poll_rmse", "expected_poll_rmse"]
    measured = list(polls.measure_groups(p, groups, poll, wanted))
    found = by_keys(measured)
    assert found["share", "sex", "male", 0.5] == 1
    assert found["share", "sex", "female", 0.3] == 0
    assert found["expected_share", "sex", "male", 0.5] == pytest.approx(1.05 / 1.9)
    assert found["expected_share", "sex", "female", 0.3] == pytest.approx(0.25)
    assert list(measured[0].keys) == ["covariate", "group", "exit_poll"]
    assert found["poll_rmse", "sex"] == pytest.approx(np.sqrt((0.5**2 + 3 * 0.3**2) / 4))
    assert found["expected_poll_rmse", "sex"] == pytest.approx(np.sqrt(((1.05 / 1.9 - 0.5) ** 2 + 3 * 0.05**2) / 4))


def test_scores_by_state():
    """Six states with men alone: shares that are the polls' less .1 are perfectly correlated, and .1 off."""
    share, states = np.linspace(0.3, 0.7, 6), [f"S{k}" for k in range(6)]
    rows = [(s, w) for s, x in zip(states, share - 0.1, strict=True) for w in (x, 1 - x)]
    groups = pd.DataFrame(rows, columns=["state", "weight"]).assign(sex="male", race="white", education="postgraduate")
    poll = pd.DataFrame({"area": states, "covariate": "sex", "group": "male", "share": share, "size": 48.0})
    p = np.tile([[0, 0.0, 1], [0, 1, 0.0]], (6, 1))
    assert by_keys(polls.measure_states(p, groups, poll, ["state_rmse", "state_correlation"])) == {
        ("state_rmse", "sex"): pytest.approx(0.1),
        ("state_correlation", "sex", "male"): pytest.approx(1.0),
    }
    few = poll.iloc[:4]
    assert not list(polls.measure_states(p, groups, few, ["state_correlation"]))  # too few states
