import shutil
from pathlib import Path

import pytest
from samples import PEOPLE_SCHEMA, people

from agglearn.cli import main


@pytest.fixture
def at(tmp_path, monkeypatch) -> Path:
    """A folder with data.csv, schema.yaml, tables/, declared/ (by the schema) and model/, in which commands run."""
    folder = tmp_path / "here"
    shutil.copytree(made(tmp_path), folder)
    monkeypatch.chdir(folder)
    return folder


PREPARED = {}


def made(tmp_path: Path) -> Path:
    """The same folder for all tests, made once."""
    if "folder" not in PREPARED:
        folder = PREPARED["folder"] = tmp_path / "made"
        folder.mkdir()
        frame = people(300)
        frame["y"] = frame.y.map({0: "no", 1: "yes"})
        frame.to_csv(folder / "data.csv", index=False, na_rep="?")
        how = ["--label", "y", "--positive", "yes", "--missing", "?", "--categorical", "zone"]
        assert main(["aggregate", str(folder / "data.csv"), *how, "--out", str(folder / "tables")]) == 0
        schema = PEOPLE_SCHEMA.replace("'1'", "'yes'").replace("'0'", "'no'")
        (folder / "schema.yaml").write_text(schema)
        how = ["--schema", str(folder / "schema.yaml"), "--missing", "?", "--out", str(folder / "declared")]
        assert main(["aggregate", str(folder / "data.csv"), *how]) == 0
        out = str(folder / "model")
        assert main(["fit", str(folder / "tables"), "--method", "naive_bayes", "--out", out]) == 0
    return PREPARED["folder"]
