"""The bugs that `make mutants` plants stand in today's code. The tool's own tests need its extra, which few have."""

import tomllib

from samples import ROOT


def test_there_are_forty_kinds_whose_text_stands_once_in_its_file_and_whose_edits_leave_a_program():
    listed = tomllib.loads((ROOT / "tests/mutation/kinds.toml").read_text())["kind"]
    assert len({kind["name"] for kind in listed}) == len(listed) >= 40
    assert all(kind.keys() == {"name", "wrong", "where", "edits"} and kind["edits"] for kind in listed)
    edits = [edit for kind in listed for edit in kind["edits"]]
    assert len(edits) > 80
    for edit in edits:
        text = (ROOT / edit["file"]).read_text()
        assert text.count(edit["old"]) == 1, edit
        assert edit["new"] != edit["old"]
        compile(text.replace(edit["old"], edit["new"]), edit["file"], "exec")
