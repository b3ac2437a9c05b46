"""Cleaning leaves downloads and what is not ours."""

import pytest
import yaml

from agglearn_workflow import cleaning


@pytest.mark.slow
def test_cleaning_leaves_downloads_and_what_is_not_ours(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in (
        "runs/0123456789abcdef/run.json", "smoke/observations/maxent_xor/xor/x.npy", "tables/maxent_table4.csv",
        "cache/adult/adult.data", "kernels/agglearn-0/kernel.nbi", "notes.txt", "README.md",
    ):  # fmt: skip
        path = tmp_path / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"run": ["maxent_xor"]}))
    cleaning.main(["--configfile", str(tmp_path / "mine.yaml")])
    left = [path for path in (tmp_path / "results").rglob("*") if path.is_file() and path.name != ".lock"]
    assert {path.relative_to(tmp_path / "results").as_posix() for path in left} == {
        "cache/adult/adult.data", "kernels/agglearn-0/kernel.nbi", "notes.txt", "README.md",
    }  # fmt: skip
    assert "deleted results/runs\n" in capsys.readouterr().out
