import shutil
from pathlib import Path

import pytest
from cli_calls import call
from samples import PEOPLE_SCHEMA, people


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    """A folder with data.csv, schema.yaml, tables/, declared/ (by the schema) and model/."""
    folder = tmp_path_factory.mktemp("made")
    people(300).assign(y=lambda f: f.y.map({0: "no", 1: "yes"})).to_csv(folder / "data.csv", index=False, na_rep="?")
    (folder / "schema.yaml").write_text(PEOPLE_SCHEMA.replace("'1'", "'yes'").replace("'0'", "'no'"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        how = "--label y --positive yes --missing ? --categorical zone"
        assert call(f"aggregate data.csv {how} --out tables") == 0
        assert call("aggregate data.csv --schema schema.yaml --missing ? --out declared") == 0
        assert call("fit tables --method naive_bayes --out model") == 0
    return folder


@pytest.fixture
def at(made, tmp_path, monkeypatch) -> Path:
    """A copy of it, in which commands run."""
    folder = tmp_path / "here"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder
