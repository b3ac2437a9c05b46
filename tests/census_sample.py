"""A tiny country in the formats of the real files: two states with PUMAs that overlap counties, votes, exit polls."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from agglearn.datasets import Census, RecordStore

YEAR = {"county": "fips", "democratic": "dem", "republican": "gop"}
PARAMS = {
    "persons": "acs", "crosswalk": "links.csv", "polls": "polls", "centroids": "centroids.csv",
    "votes": {2016: YEAR | {"file": "v16.csv", "repeated": ["02"]}},
    "covariates": {"file": "counties.csv", "county": "CensusId", "population": "TotalPop", "totals": ["Men"]},
}  # fmt: skip
ENTRY = {"title": "t", "class": "agglearn.datasets.Census", "params": PARAMS}
LINKS = """state,puma22,county,stab,CountyName
State code,PUMA,County code,State abbr.,County name
01,00100,01001,AL,Autauga AL
01,00100,01003,AL,Baldwin AL
01,00200,01003,AL,Baldwin AL
01,00300,01005,AL,Barbour AL
02,00100,02020,AK,Anchorage AK
02,00200,02013,AK,Aleutians AK
19,00100,19001,IA,Adair IA
72,00100,72001,PR,Adjuntas PR
"""
VOTES = """fips,dem,gop
1001,100,300
1003,200,100
1005,50,60
2020,70,80
2013,70,80
19001,500,400
"""
POLLS = """{"polls": [
 {"pollname": "SEX", "candidates": [{"id": 1, "party": "D"}, {"id": 2, "party": "R"}, {"id": 0, "party": ""}],
  "answers": [
   {"answer": "Male", "pct": "48", "candidateanswers":
    [{"id": 1, "pct": "40"}, {"id": 2, "pct": "50"}, {"id": 0, "pct": "10"}]},
   {"answer": "Female", "pct": "52", "candidateanswers":
    [{"id": 1, "pct": "60"}, {"id": 2, "pct": "30"}, {"id": 0, "pct": "10"}]}]},
 {"pollname": "RACE", "candidates": [{"id": 1, "party": "D"}, {"id": 2, "party": "R"}],
  "answers": [{"answer": "Asian", "pct": "1", "candidateanswers": [{"id": 1, "pct": "N/A"}, {"id": 2, "pct": "N/A"}]}]},
 {"pollname": "AGE", "candidates": [{"id": 1, "party": "D"}, {"id": 2, "party": "R"}],
  "answers": [{"answer": "18-29", "pct": "20", "candidateanswers": [{"id": 1, "pct": "50"}, {"id": 2, "pct": "50"}]}]}
]}
"""
COUNTIES = """CensusId,State,County,TotalPop,Men,Income,Poverty
1001,Alabama,Autauga,100,40,10,1
1003,Alabama,Baldwin,300,160,30,
1005,Alabama,Barbour,50,20,7,3
2020,Alaska,Anchorage,10,5,2,4
2013,Alaska,Aleutians,30,15,6,8
99999,Nowhere,Nowhere,10,5,900,900
"""
CENTROIDS = "region,x,y,z\nAL_10_01,1,2,3\nAL_10_02,3,4,5\nAK_10_01,7,8,9\nIA_10_01,0,0,1\n"
SHARED = {"polls/2016/IA.json": POLLS, "centroids.csv": CENTROIDS}  # files of both countries below


def persons(n: int, state: str, pumas: list[str], seed: int, few: bool = False) -> pd.DataFrame:
    """Records of one state; an age of 17 and a foreigner are among them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "SERIALNO": [f"2024{i}" for i in range(n)], "STATE": state, "PUMA": rng.choice(pumas, n),
        "PWGTP": rng.integers(5, 60, n), "AGEP": rng.integers(18, 90, n), "SEX": rng.integers(1, 3, n),
        "RAC1P": rng.choice([1, 1, 1, 2, 6, 9], n), "HISP": rng.choice([1, 1, 1, 2], n), "CIT": rng.choice([1, 4], n),
        "SCHL": rng.integers(15, 25, n), "DIS": rng.integers(1, 3, n),
    })  # fmt: skip
    frame.loc[0, "AGEP"], frame.loc[1, "CIT"] = 17, 5
    if not few:
        frame["PINCP"] = pd.array(rng.integers(-100, 90_000, n), dtype="Int64")
        frame.loc[2, "PINCP"] = pd.NA
        frame["HICOV"] = np.where(frame["AGEP"] > 40, 1, 2)
        frame["PRIVCOV"] = np.where((frame["AGEP"] > 60) & (frame["HICOV"] == 1), 1, 2)
        frame["PUBCOV"] = np.where((frame["HICOV"] == 1) & (frame["PRIVCOV"] == 2), 1, 2)
    return frame


def prepared_census(folder: Path, few: bool = True) -> RecordStore:
    """The country, prepared. With `few`, Alaska's file lacks columns."""
    files = {"links.csv": LINKS, "v16.csv": VOTES, "counties.csv": COUNTIES} | SHARED
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "acs").mkdir()
    found = {n: folder / n for n in files}
    states = (("01", ["00100", "00200", "00300"]), ("02", ["00100", "00200"]), ("19", ["00100"]))
    for seed, (state, pumas) in enumerate(states):
        path = folder / f"acs/p_{state}.parquet"
        table = pa.Table.from_pandas(persons(300, state, pumas, seed, few and state == "02"), preserve_index=False)
        pq.write_table(table, path)
        found[f"acs/p_{state}.parquet"] = path
    out = folder / "records"
    out.mkdir()
    Census.from_entry(ENTRY).parse(found, out)
    return RecordStore.open(out)


def country_for_experiments(mirror: Path, files) -> dict:
    """What to lay over the entry `acs_2024` so that a country of twelve Iowan regions stands in for its `files`; the
    files are written into the mirror."""
    pumas = [f"{k:05d}" for k in range(100, 112)]
    links = [f"19,{p},19{k:03d},IA,County {k} IA" for k, p in enumerate(pumas)]
    text = "\n".join([*LINKS.splitlines()[:2], *links]) + "\n"
    votes = "fips,dem,gop\n" + "".join(f"19{k:03d},{1000 + 90 * k},{2000 - 70 * k}\n" for k in range(12))
    counties = "CensusId,TotalPop,Men,Income\n" + "".join(f"19{k:03d},{100 + k},{50 + k},{50 - k}\n" for k in range(12))
    written = {"links.csv": text, "votes.csv": votes, "counties.csv": counties} | SHARED
    (mirror / "acs").mkdir(parents=True)
    for name, content in written.items():
        (mirror / name).parent.mkdir(parents=True, exist_ok=True)
        (mirror / name).write_text(content)
    persons(3000, "19", pumas, 0).to_parquet(mirror / "acs/p_19.parquet")
    found = {n: {"sha256": "unknown"} for n in (*written, "acs/p_19.parquet")}
    year = YEAR | {"file": "votes.csv"}
    params = PARAMS | {"crosswalk": "links.csv", "votes": dict.fromkeys((2012, 2016, 2020, 2024), year)}
    return {"files": dict.fromkeys(files) | found, "params": params}
