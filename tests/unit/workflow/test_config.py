"""Layers of configuration, addresses that pages link to, and code and folders of one's own."""

import contextlib
import re

import pytest
import yaml
from samples import ROOT

from agglearn.errors import ConfigError
from agglearn_workflow import digests
from agglearn_workflow.config.loading import deep_merge, load, parse_scalars, stack


def test_layers():
    under = {"a": {"b": 1, "c": 2}, "d": [1, 2]}
    assert deep_merge(under, {"a": {"b": 3}, "d": [4]}) == {"a": {"b": 3, "c": 2}, "d": [4]}
    assert deep_merge(under, {"a": {"b": None}, "new": {"x": 1}}) == {"a": {"c": 2}, "d": [1, 2], "new": {"x": 1}}
    assert under == {"a": {"b": 1, "c": 2}, "d": [1, 2]}


def test_overlays_of_a_file_and_of_the_command_line():
    file = {"experiments": {"trial": {"methods": {"a": None, "b": {"class": "x"}}, "seeds": [0]}}, "scale": "smoke"}
    line = {"experiments": {"trial": {"methods": {"b": None, "c": {"class": "y"}}}}, "scale": "paper"}
    both = {"a": None, "b": None, "c": {"class": "y"}}
    assert stack(file, line) == {"experiments": {"trial": {"methods": both, "seeds": [0]}}, "scale": "paper"}
    assert stack({"a": None}, {"a": {"b": None}}) == {"a": {"b": None}}


def overlay(field: str, address: str) -> dict:
    """What puts an address into a field that pages link to. The `url` of a paper is no part of what is laid over the files."""
    at_file = {"adult": {"files": {"adult.data": {"homepage": address}}}}
    return {} if field == "url" else {"datasets": at_file if field == "file" else {"fair": {"homepage": address}}}


@pytest.mark.parametrize(("field", "address", "allowed"), [
    ("homepage", "https://a.org/b?c=d&e#f", True), ("file", "http://a.org", True), ("url", "http://a.org", True),
    *((field, "javascript:alert(1)", False) for field in ("homepage", "file", "url")),
    *(("homepage", address, False) for address in (
        "JavaScript:alert(1)", " javascript:alert(1)", "data:text/html,<script>x</script>", "file:///etc/passwd", "//a.org", "a.org", "",
        "https://a.org onclick=x", 'https://a.org"onclick="x', "https://", "vbscript:https://a.org")),
])  # fmt: skip
def test_a_page_links_to_the_web_alone(project, field, address, allowed):
    if field == "url":
        project.edit("references", lambda content: next(iter(content["papers"].values())).update(url=address))
    refused = pytest.raises(ConfigError, match=r"^[^\n]*(homepage|url): .* is not allowed; .*https?://[^\n]*$")
    with contextlib.nullcontext() if allowed else refused:
        load(project.base, overlay(field, address))


def test_no_other_field_of_an_entry_is_an_address():
    """A new one needs rows above. The `url` of a route is downloaded, and no page links to it."""

    def texts(schema):
        yield from schema.get("properties", {})
        for inner in schema.values():
            for one in inner if isinstance(inner, list) else [inner]:
                yield from texts(one) if isinstance(one, dict) else ()

    schemas = [yaml.safe_load(path.read_text()) for path in (ROOT / "workflow/schemas").glob("*.yaml")]
    found = [key for schema in schemas for key in texts(schema) if re.search("url|home|link|href|page$", key)]
    assert sorted(found) == ["homepage", "homepage", "url", "url"]


def test_values_of_the_command_line_have_their_types():
    texts = ["0", "-1.5", "1e-3", "width", "true", "null", "nan_share", "2016-11-08", "", "[x"]
    values = [0, -1.5, 1e-3, "width", True, None, "nan_share", "2016-11-08", None, "[x"]
    assert parse_scalars({"a": texts, "b": {"n": 3, "t": "0"}}) == {"a": values, "b": {"n": 3, "t": 0}}
    assert isinstance(parse_scalars("0"), int)


@pytest.fixture
def own_code(project, monkeypatch):
    """A function that writes a module with a class `My` into a folder, and adds it to the trial as method `mine`."""
    monkeypatch.setattr(digests, "ROOTS", list(digests.ROOTS))

    def write(folder: str, module: str) -> None:
        (project.base / folder).mkdir()
        code = "from agglearn import estimator\n\nclass My(estimator.Estimator):\n    def __init__(self, rate=1):\n        pass\n"
        (project.base / folder / f"{module}.py").write_text(code)
        mine = {"class": f"{module}.My", "observe": "tables", "params": {"rate": 2}}
        project.edit("experiments/trial", lambda content: content["methods"].update(mine=mine))

    return write


def test_code_of_ones_own(project, own_code):
    own_code("mine", "own_methods_for_test")
    with pytest.raises(ConfigError, match=r"no class 'own_methods_for_test\.My'"):
        load(project.base)
    assert load(project.base, {"code": ["mine"]})["code"] == ["mine"]
    (project.base / "mine/broken_methods_for_test.py").write_text("import agglearn\n\n1 / 0\n")
    line = r"^config/experiments/trial.yaml: methods.mine.class: 'broken_methods_for_test.My' cannot be imported: ZeroDivisionError: [^\n]*$"
    for over, words in (({"class": "broken_methods_for_test.My"}, line), ({"params": {"rat": 1}}, "takes no 'rat'")):
        with pytest.raises(ConfigError, match=words):
            load(project.base, {"code": ["mine"], "experiments": {"trial": {"methods": {"mine": over}}}})


def test_code_that_an_experiment_names(project, own_code, tmp_path):
    """It lies in the folder that the workflow runs in, or else beside the shipped configuration."""
    own_code("named", "named_methods_for_test")
    project.edit("experiments/trial", lambda content: content.update(code=["named"]))
    assert load(project.base)["code"] == ["named"]
    assert load(project.base, None, tmp_path)["code"] == [str(project.base / "named")]
    project.edit("experiments/trial", lambda content: content.update(code=["absent"]))
    with pytest.raises(
        ConfigError, match=r"^config/experiments/trial.yaml: code: there is no folder 'absent'; make it"
    ):
        load(project.base)


def test_the_folder_that_the_workflow_runs_in_has_a_configuration_of_its_own(project, tmp_path):
    shipped, folder = load(project.base), tmp_path / "here"
    entry = shipped["datasets"]["fair"] | {"title": "Mine"}
    written = {
        "config": {"scale": "smoke", "code": ["mine"]},
        "datasets/fair": entry,
        "experiments/again": {"extends": "trial", "title": "Again"},
    }
    for name, content in written.items():
        path = folder / f"config/{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content))
    (folder / "mine").mkdir()
    found = load(project.base, folder=folder)
    assert found["scale"] == "smoke"
    assert found["mirrors"] == shipped["mirrors"]  # what the folder says nothing about
    assert found["datasets"]["fair"] == entry
    assert found["datasets"].keys() == shipped["datasets"].keys()
    assert found["experiments"].keys() == shipped["experiments"].keys() | {"again"}
    with pytest.raises(ConfigError, match="there is no folder 'mine'"):
        load(project.base, {"code": ["mine"]})
