"""The bugs that `make mutants` plants stand in today's code. The tool's own tests need its extra, which few have."""

import tomllib

from samples import ROOT


def test_the_text_that_a_bug_replaces_stands_once_in_its_file():
    kinds = tomllib.loads((ROOT / "tests/mutation/kinds.toml").read_text())["kind"]
    edits = [edit for kind in kinds for edit in kind["edits"]]
    assert len(edits) > 80
    assert [e["old"] for e in edits if (ROOT / e["file"]).read_text().count(e["old"]) != 1] == []
