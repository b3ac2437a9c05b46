"""References of a results folder: of what its successful runs used, with the versions that they recorded."""

import pandas as pd
import pytest
from samples import shipped_config

from agglearn import __version__
from agglearn.errors import DataError
from agglearn.storage import write_json
from agglearn_workflow.archive.store import MEASURED as COLUMNS
from agglearn_workflow.site.inventory import citations, kind_of, references

PAPERS = {
    "maxent": {"title": "M", "short": "A 2022", "citation": "A (2022). Maxima.", "url": "https://a.org/"},
    "collective": {"title": "C", "short": "B 2019", "citation": "B (2019). Birds."},
    "proportions": {"title": "P", "short": "B 2019", "citation": "B (2019). Birds."},
}
TABULAR = "agglearn.datasets.Tabular"
DATASETS = {
    "census": {"title": "Census", "class": TABULAR, "files": {"a": {}}, "citation": "C (1996). Adults.", "doi": "10.1/x",
               "licence": "CC BY 4.0"},
    "census_raw": {"title": "Raw", "class": TABULAR, "files": {"a": {}}, "citation": "C (1996). Adults.", "doi": "10.1/x",
                   "licence": "CC BY 4.0"},
    "votes": {"title": "Votes", "class": TABULAR, "homepage": "https://v.org",
              "files": {"a": {}, "polls": {"citation": "D (2016). Polls.", "licence": "research"}, "map.csv": {"licence": "MIT"}}},
    "fair": {"title": "Affairs", "class": "agglearn.datasets.Packaged", "citation": "F (1978). Affairs.",
             "params": {"loader": "statsmodels.datasets.fair.load_pandas"}},
    "digits": {"title": "Digits", "class": "agglearn.datasets.DigitClouds"},
    "xor": {"title": "Xor", "class": "agglearn.datasets.Xor"},
    "birds": {"title": "Birds", "class": "agglearn.datasets.BirdMigration"},
    "unused": {"title": "Unused", "class": TABULAR, "files": {"a": {}}},
}  # fmt: skip
CONFIG = {"datasets": DATASETS, "references": {"papers": PAPERS, "software": {"numpy": "N (2020). Arrays."}}}


@pytest.fixture
def results(tmp_path):
    """A results folder with a run per data set, of which the last has failed."""
    sources = {"census": "maxent", "census_raw": "maxent", "votes": "collective", "fair": "proportions"}
    sources |= {"digits": "other", "xor": "maxent", "birds": "collective", "mine": "maxent", "unused": "labelsums"}
    numpy = {"census_raw": "2.3.5", "unused": "9.9.9"}
    for name, source in sources.items():
        record = {
            "config": {"experiment": {"source": source}},
            "python": "3.12.1" if name == "birds" else "3.11.7",
            "commit": None if name == "xor" else "abc",
            "versions": {"numpy": numpy.get(name, "2.4.0")} | ({"Zipp": "1.0"} if name == "mine" else {}),
        }
        write_json(tmp_path / f"runs/{name}/run.json", record)
    runs = pd.DataFrame({"run": list(sources), "dataset": list(sources), "status": "ok"}, index=list(sources))
    runs = runs.reindex(columns=COLUMNS, fill_value="")
    runs.loc["unused", "status"] = "failed"
    for name, part in (("e/first", runs[:2]), ("e/second", runs[2:5]), ("f/all", runs[5:])):
        (tmp_path / f"measurements/{name}").parent.mkdir(parents=True, exist_ok=True)
        part.to_parquet(tmp_path / f"measurements/{name}.parquet")
    return tmp_path


def test_references_name_what_successful_runs_used(results):
    papers, datasets, software = "\n".join(references(CONFIG, results)).split("\n\n")
    assert papers.split("\n") == [
        "Papers",
        "  collective, proportions: B (2019). Birds.",
        "  maxent: A (2022). Maxima. https://a.org/",
        "  other: no reference in config/references.yaml",
    ]
    assert datasets.split("\n") == [
        "Data sets",
        "  census, census_raw: C (1996). Adults. doi:10.1/x (licence: CC BY 4.0)",
        "  digits: Digits inside scikit-learn",
        "  fair: F (1978). Affairs. inside statsmodels",
        "  mine: no entry in config/datasets/",
        "  votes: Votes https://v.org",
        "  votes: D (2016). Polls. (licence: research)",
        "  votes: map.csv (licence: MIT)",
        "  birds, xor: simulated, nothing to cite",
    ]
    assert software.split("\n") == [
        "Software",
        f"  agglearn {__version__}, {__version__} at abc",
        "  numpy 2.3.5, 2.4.0: N (2020). Arrays.",
        "  Python 3.11.7, 3.12.1",
        "  Zipp 1.0",
    ]


def test_a_folder_without_results_is_one_line(results, tmp_path):
    with pytest.raises(DataError, match="no measurements"):
        references(CONFIG, tmp_path / "nothing")
    for path in results.glob("measurements/*/*.parquet"):
        pd.read_parquet(path).assign(status="failed").to_parquet(path)
    with pytest.raises(DataError, match="no run has succeeded"):
        references(CONFIG, results)


def test_every_source_and_data_set_of_the_project_can_be_cited():
    config = shipped_config()
    sources = {e["source"] for e in config["experiments"].values()}
    assert sources <= set(config["references"]["papers"])
    for name, entry in config["datasets"].items():
        assert kind_of(entry) == "simulated" or (entry["licence"] and entry["citation"]), name
        if kind_of(entry) == "files":
            assert all(c["text"] and c["licence"] for c in citations(entry)[:1]), name
            assert entry.get("doi") or entry.get("homepage"), name
