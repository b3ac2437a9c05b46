"""Settings that nobody would make use of, or that cannot be: each is refused in one line before anything runs."""

import math

import pytest
from test_config import TRIAL, put

from agglearn.collective import FlowReconstruction, infer
from agglearn.datasets import BirdMigration, LogLinear
from agglearn.distribution import EmbeddingRegressor, LinearRidge, MomentEmbedding
from agglearn.errors import ConfigError
from agglearn.labelsums import WALRClassifier
from agglearn.maxent import LogisticSkyline, MaxEntClassifier, NaiveBayesClassifier
from agglearn.maxent.warming import TINY
from agglearn.tasks import bags as polls
from agglearn.tasks import census_design, keys
from agglearn.vocabulary import SubmodularQuantizer
from agglearn_workflow.config.loading import load

OBSERVE = "agglearn.observations."
CLAIM = {
    "source": "maxent", "claim": "x", "place": "y", "experiment": "trial", "predicate": "at_least",
    "value": {"measure": "nllh", "method": "maxent"}, "bound": 0,
}  # fmt: skip
BASE = {"class": "agglearn.maxent.MaxEntClassifier", "params": {"n_chains": 100}}


def method(dotted: str, **params):
    """A change that adds a method on tables."""
    return put("methods", "new", {"class": dotted, "observe": "tables", "params": params})


def selected(base: dict, **params):
    """A change that adds a method with a learner inside."""
    return method("agglearn.labelsums.AggregateSearch", base=base, **params)


PLANTED = {
    # file to edit, change, what the line must name
    "noise of records": ("experiments/trial", put("observe", "records", "epsilon", 1.0), ["observe.records", "'epsilon'", "binning"]),
    "pairs of label sums": (
        "experiments/trial",
        put("observe", "records", {"type": OBSERVE + "LabelSums", "pairs": "all"}),
        ["observe", "learns from", "Records"],
    ),
    "pairs of unused label sums": (
        "experiments/trial",
        put("observe", "sums", {"type": OBSERVE + "LabelSums", "pairs": "all"}),
        ["observe.sums", "LabelSums takes no 'pairs'"],
    ),
    "bag size of tables": ("experiments/trial", put("observe", "tables", "bag_size", 10), ["observe.tables", "'bag_size'"]),
    "key of a stored data set": ("experiments/trial", put("datasets", "fair", {"rwos": 100}), ["datasets.fair", "'rwos'", "did you mean 'rows'?"]),
    "key of a simulated data set": ("experiments/trial", put("datasets", "loglinear", {"nn": 100}), ["datasets.loglinear", "'nn'", "n_features"]),
    "negative size": ("experiments/trial", put("datasets", "loglinear", "n", -16), ["datasets.loglinear.n: -16", "at least 1"]),
    "key of an observation": ("experiments/trial", put("observe", "tables", "binnig", "width"), ["observe.tables", "'binnig'", "did you mean 'binning'?"]),
    "value of an observation": ("experiments/trial", put("observe", "tables", "binning", "widths"), ["observe.tables.binning: 'widths'", "deciles, width"]),
    "what no task makes": (
        "experiments/trial",
        put("observe", "bags", {"type": OBSERVE + "Bags"}),
        ["observe.bags.type", "cannot make agglearn.observations.Bags", "it makes ContingencyTables"],
    ),
    "rows of a table": (
        "experiments/trial",
        put("table", {"rows": ["methd"], "columns": ["dataset"], "measure": "nllh"}),
        ["table.rows.0", "'methd'", "did you mean 'method'?"],
    ),
    "parameter in a table": (
        "experiments/trial",
        put("table", {"rows": ["params.l2_thet"], "columns": ["dataset"], "measure": "nllh"}),
        ["table.rows.0", "'params.l2_thet'", "did you mean 'params.l2_theta'?"],
    ),
    "measure of a table": (
        "experiments/trial",
        put("table", {"rows": ["method"], "columns": ["dataset"], "measure": ["nlh"]}),
        ["table.measure", "'nlh'", "did you mean 'nllh'?"],
    ),
    "y of a figure": ("experiments/trial", put("figure", {"kind": "dots", "y": "nlh"}), ["figure.y", "'nlh'", "did you mean 'nllh'?"]),
    "x of a line": ("experiments/trial", put("figure", {"kind": "line", "x": "params.l2", "y": "nllh"}), ["figure.x", "'params.l2'"]),
    "x of a curve": ("experiments/trial", put("figure", {"kind": "curve", "y": "nllh", "x": "params.l2"}), ["figure.x", "'params.l2'", "seconds"]),
    "two encodings": (
        "datasets/fair",
        put("encoding", {key: {"holdout": 0.1, "above": 5, "modalities": 3} for key in ("target", "vocabulary")}),
        ["fair.yaml: encoding: ", "at most 1"],
    ),
    "half of a split": ("datasets/fair", put("split", {"train": "a"}), ["fair.yaml: split: it must be {last: share}, or {train: file, test: file}"]),
    "key that a figure ignores": ("experiments/trial", put("figure", {"kind": "dots", "y": "nllh", "x_log": True}), ["figure.x_log"]),
    "key of one of several figures": ("experiments/trial", put("figure", [{"knd": "dots", "y": "nllh"}]), ["figure.0", "'knd'", "did you mean 'kind'?"]),
    "field of a claim": ("claims", put("c", {**CLAIM, "value": {"measure": "nllh", "methd": "maxent"}}), ["claims.yaml: c.value", "'methd'", "'method'"]),
    "method of a claim": ("claims", put("c", {**CLAIM, "value": {"measure": "nllh", "method": "maxnet"}}), ["c.value.method", "'maxnet'", "'maxent'"]),
    "measure of a claim": ("claims", put("c", {**CLAIM, "value": {"measure": "nlh"}}), ["c.value.measure", "'nlh'", "'nllh'"]),
    "field that a claim is judged for": ("claims", put("c", {**CLAIM, "each": ["dataste"]}), ["c.each.0", "'dataste'", "'dataset'"]),
    "source of a claim": ("claims", put("c", {**CLAIM, "source": "maxnet"}), ["c.source", "'maxnet'", "'maxent'"]),
    "key that a predicate ignores": ("claims", put("c", {**CLAIM, "tolerance": 1}), ["c.tolerance"]),
    "printed numbers without a margin": (
        "experiments/trial",
        put("reported", [{"dataset": "fair", "method": "maxent", "measure": "nllh", "value": 0.4, "place": "Table 1"}]),
        ["trial.yaml: agreement", "printed numbers need margins"],
    ),
    "margin of another measure": (
        "experiments/trial",
        put("agreement", {"margins": {"nlh": 0.1}, "reason": "a tenth of the printed range"}),
        ["agreement.margins", "'nlh'", "did you mean 'nllh'?"],
    ),
    "margin without a reason": ("experiments/trial", put("agreement", {"margins": {"nllh": 0.1}}), ["agreement", "'reason' is missing"]),
    "neither reason nor interval": ("claims", put("c", {**CLAIM, "deterministic": "yes"}), ["c.deterministic", "'yes' is not allowed; it must have at least 20 characters"]),
    "interval of a deterministic claim": ("claims", put("c", {**CLAIM, "deterministic": "a sum over one table", "min_pairs": 5}), ["c.min_pairs", "not allowed here"]),
    "cases of a claim without any": ("claims", put("c", {**CLAIM, "cases": "most"}), ["c.cases", "not allowed here"]),
    "how cases count": ("claims", put("c", {**CLAIM, "each": ["dataset"], "cases": "some"}), ["c.cases", "'some'", "'all', 'most' or 'average'"]),
    "what is independent": ("claims", put("c", {**CLAIM, "replicates": "row"}), ["c.replicates", "'row'", "'seed' or 'part'"]),
    "one pair": ("claims", put("c", {**CLAIM, "min_pairs": 1}), ["c.min_pairs", "1"]),
    "margin of a bound": ("claims", put("c", {**CLAIM, "margin": 0.1}), ["c.margin", "not allowed here"]),
    "margin and tolerance": (
        "claims",
        put("c", {**{k: v for k, v in CLAIM.items() if k != "bound"}, "predicate": "less", "reference": CLAIM["value"], "margin": 0.1, "tolerance": 0.1}),
        ["c.margin", "not allowed here"],
    ),
    "negative tolerance": (
        "claims",
        put("c", {**{k: v for k, v in CLAIM.items() if k != "bound"}, "predicate": "less", "reference": CLAIM["value"], "tolerance": -0.1}),
        ["c.tolerance", "-0.1"],
    ),
    "bound of a predicate": ("claims", put("c", {k: v for k, v in CLAIM.items() if k != "bound"}), ["claims.yaml: c", "'bound' is missing"]),
    "nested parameter": (
        "experiments/trial",
        selected({"class": BASE["class"], "params": {"n_chain": 3}}),
        ["methods.new.params.base.params", "'n_chain'", "did you mean 'n_chains'?"],
    ),
    "nested value": ("experiments/trial", selected({"class": BASE["class"], "params": {"clip": -1}}), ["methods.new.params.base.params.clip: -1"]),
    "nested key": ("experiments/trial", selected({"clas": BASE["class"]}), ["methods.new.params.base", "'clas'", "did you mean 'class'?"]),
    "nested class": ("experiments/trial", selected({"class": "agglearn.maxent.MaxEnt"}), ["params.base.class", "'agglearn.maxent.MaxEnt'"]),
    "nested class of another kind": (
        "experiments/trial",
        selected({"class": "agglearn.tasks.Classification"}),
        ["methods.new.params.base.class", "not a subclass of Estimator"],
    ),
    "nested function": (
        "experiments/trial",
        method("agglearn.proportions.CardinalityClassifier", classifier={"class": "os.system", "params": {"command": "true"}}),
        ["methods.new.params.classifier.class", "there is no class 'os.system'"],
    ),
    "nested class outside followed code": (
        "experiments/trial",
        method("agglearn.proportions.CardinalityClassifier", classifier={"class": "sklearn.naive_bayes.GaussianNB", "params": {"smoothing": 1}}),
        ["methods.new.params.classifier.params", "sklearn.naive_bayes.GaussianNB takes no 'smoothing'", "var_smoothing"],
    ),
    "nested module that is nowhere": (
        "experiments/trial",
        method("agglearn.proportions.CardinalityClassifier", classifier={"class": "nowhere.Trees"}),
        ["methods.new.params.classifier.class", "there is no class 'nowhere.Trees'"],
    ),
    "function for a class": ("experiments/trial", put("methods", "maxent", "class", "os.system"), ["methods.maxent.class", "there is no class 'os.system'"]),
    "name of a parameter": ("experiments/trial", selected(BASE, parameter="l2_thet"), ["params.parameter", "'l2_thet'", "did you mean 'l2_theta'?"]),
    "method with the name of a scale": (
        "experiments/trial",
        put("methods", {"default": {"class": BASE["class"], "observe": "tables"}}),
        ["trial.yaml: methods: 'default'", "smoke, quick, default, paper"],
    ),
    "observation with the name of a scale": ("experiments/trial", put("observe", "paper", {"type": OBSERVE + "Records"}), ["observe: 'paper'", "a scale's"]),
    "data set with the name of a scale": ("experiments/trial", put("datasets", "smoke", {}), ["datasets: 'smoke'", "a scale's"]),
    "delta without epsilon": ("experiments/trial", put("observe", "tables", "delta", 1e-6), ["observe.tables.delta: ", "beside epsilon only"]),
    "buckets of no column": ("experiments/trial", put("observe", "tables", "buckets", 10), ["observe.tables.buckets", "max_modalities"]),
    "two sizes of noise": (
        "experiments/trial",
        put("observe", "tables", {"type": OBSERVE + "ContingencyTables", "gaussian_noise": 2, "noise_share": 0.1}),
        ["observe.tables.noise_share", "gaussian_noise"],
    ),
    "promise of a noisy encoding": (
        "experiments/trial",
        put("observe", "tables", {"type": OBSERVE + "ContingencyTables", "encode_noisy": {"above": 9, "modalities": 4}, "epsilon": 1}),
        ["observe.tables.epsilon", "encode_noisy"],
    ),
    "files of a simulator": (
        "datasets/loglinear",
        put("files", {"a.csv": {"sha256": "unknown"}}),
        ["config/datasets/loglinear.yaml: files: LogLinear makes no use of it"],
    ),
    "label of a simulator": ("datasets/loglinear", put("label", {"column": "y", "above": 3}), ["loglinear.yaml: label.above", "it reads column"]),
    "split by files that a package has not": (
        "datasets/fair",
        put("split", {"train": "a", "test": "b"}),
        ["fair.yaml: split.train: Packaged makes no use of it", "it reads last"],
    ),
    "format of a package": ("datasets/fair", put("format", {"separator": ";"}), ["fair.yaml: format: Packaged"]),
    "two rules for a label": ("datasets/fair", put("label", {"column": "affairs", "above": 0, "positive": 1}), ["fair.yaml: label.positive", "beside above"]),
    "empty grid": ("experiments/trial", put("methods", "maxent", "params", "l2_theta", {"grid": []}), ["params.l2_theta.grid", "at least one value"]),
    "grid of one scale": (
        "experiments/trial",
        put("methods", "maxent", "params", "l2_theta", {"grid": {"smoke": [], "default": [1.0]}}),
        ["params.l2_theta.grid.smoke", "at least one value"],
    ),
    "scale": (
        "experiments/trial",
        put("methods", "maxent", "params", "n_chains", {"smoke": 5, "defualt": 10}),
        ["methods.maxent.params.n_chains", "'defualt'", "did you mean 'default'?"],
    ),
    "value of one scale": (
        "experiments/trial",
        put("methods", "maxent", "params", "n_chains", {"smoke": 5, "default": 10.5}),
        ["methods.maxent.params.n_chains.default: 10.5", "a whole number"],
    ),
    "random state": ("experiments/trial", put("methods", "maxent", "params", "random_state", 3), ["methods.maxent.params", "'random_state'"]),
    "learns from something else": ("experiments/trial", put("methods", "maxent", "observe", "records"), ["methods.maxent.observe", "ContingencyTables"]),
    "time limit": ("experiments/trial", put("time_limit", math.nan), [TRIAL, "time_limit", "nan"]),
    "batches": ("experiments/trial", put("batch_by", ["params.l2_thet"]), ["batch_by", "'params.l2_thet'", "'params.l2_theta'"]),
    "parameter of a printed number": (
        "experiments/trial",
        put("reported", [{"dataset": "fair", "method": "maxent", "measure": "nllh", "value": 1, "place": "x", "params": {"l2": 1}}]),
        ["reported.0.params", "'l2'"],
    ),
    "tracking": ("config", put("tracking", "uri", "nonsense"), ["config/config.yaml: tracking.uri: 'nonsense'", "sqlite:///"]),
    "one name twice": ("config", put("run", ["trial", "trial"]), ["config/config.yaml: run", "'trial' stands twice"]),
    "results above the project": ("config", put("results", ".."), ["config/config.yaml: results: '..'"]),
    "results in the project's root": ("config", put("results", "."), ["config/config.yaml: results: '.'"]),
    "results among the code": ("config", put("results", "src/results"), ["config/config.yaml: results: 'src/results'"]),
    "results by a detour": ("config", put("results", "a/../../b"), ["config/config.yaml: results: 'a/../../b'"]),
    "cache in the root": ("config", put("cache", "/"), ["config/config.yaml: cache: '/'"]),
    "code that is not there": ("config", put("code", ["mine"]), ["config/config.yaml: code.0", "no folder 'mine'"]),
    "parameter of a data set": ("datasets/loglinear", put("params", "strength", -1), ["loglinear.yaml: params.strength: -1", "at least 0"]),
    "nested key of a data set": (
        "datasets/acs_2024",
        put("params", "votes", 2016, "conty", "x"),
        ["acs_2024.yaml: params.votes.2016", "'conty'", "did you mean 'county'?"],
    ),
    "data set to split like": ("datasets/fair", put("split_like", "fiar"), ["fair.yaml: split_like", "'fiar'", "did you mean 'fair'?"]),
    "variable of one file": (
        "datasets/adult",
        put("files", "p{state}.csv", {"sha256": "{digest}", "each": [{"state": "al", "digest": "unknown"}, {"state": "ak", "digset": "unknown"}]}),
        ["config/datasets/adult.yaml", "'digset' is used nowhere", "digest, state"],
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_one_line(project, name):
    file, change, words = PLANTED[name]
    project.edit(file, change)
    with pytest.raises(ConfigError) as caught:
        load(project.base)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("config/")
    for word in words:
        assert word in line


@pytest.mark.parametrize("value", [None, ["a"], "a", {"a": None}, {"trial": 3}, {"maxent/../../x": {"extends": "trial"}}, {"trail": {"extends": "trial", "title": 3}}])  # fmt: skip
def test_experiments_of_the_command_line(project, value):
    with pytest.raises(ConfigError) as caught:
        load(project.base, {"experiments": value})
    assert "experiments" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["maxent/../../x", "all", "fit", "maxent", "A b"])
def test_a_name_that_is_no_plain_word_or_taken(project, name):
    with pytest.raises(ConfigError) as caught:
        load(project.base, {"experiments": {name: {"extends": "trial"}}})
    assert f"config/experiments: {name!r}" in str(caught.value)


def test_what_an_override_removes_is_there(project):
    with pytest.raises(ConfigError, match=r"experiments: trial\.methods\.logistik: .*did you mean 'logistic'\?"):
        load(project.base, {"experiments": {"trial": {"methods": {"logistik": None}}}})


@pytest.mark.parametrize("file", ["config", "datasets/fair", "experiments/trial", "claims"])
def test_files_that_are_no_plain_yaml(project, file):
    path = project.path(file)
    good = path.read_bytes()
    for content, words in (
        (b"a: 1\nb: {c: 1, d: 2, c: 3}\n", f"config/{file}.yaml:2: not valid YAML: the key 'c' stands twice"),
        (b"title: caf\xe9\n", f"config/{file}.yaml: byte 11 is not UTF-8"),
        (b"a: &a [*a]\nb: *a\n", f"config/{file}.yaml"),
        (b"? [a, b]\n: 1\n", f"config/{file}.yaml"),
        (b"a: \x00\n", f"config/{file}.yaml"),
    ):
        path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load(project.base)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
    path.write_bytes(good)
    load(project.base)


WRONG = [
    (MaxEntClassifier, {"l2_mu": -1.0}, "l2_mu: -1.0"),
    (MaxEntClassifier, {"l2_theta": math.nan}, "l2_theta: nan"),
    (MaxEntClassifier, {"momentum": 2}, "momentum: 2"),
    (MaxEntClassifier, {"tol": -1e-3}, "tol: -0.001"),
    (MaxEntClassifier, {"clip": -1}, "clip: -1"),
    (MaxEntClassifier, {"n_chains": 10.5}, "n_chains: 10.5"),
    (MaxEntClassifier, {"n_chains": True}, "n_chains: True"),
    (MaxEntClassifier, {"max_iter": 0}, "max_iter: 0"),
    (MaxEntClassifier, {"average": 1.5}, "average: 1.5"),
    (MaxEntClassifier, {"gradient": "exat"}, "one of rescaled, exact"),
    (NaiveBayesClassifier, {"smoothing": math.inf}, "smoothing: inf"),
    (SubmodularQuantizer, {"budget": 2.5}, "budget: 2.5"),
    (SubmodularQuantizer, {"budget": 2, "epsilon": 1}, "epsilon: 1"),
]


@pytest.mark.parametrize(("kind", "params", "words"), WRONG)
def test_a_learner_checks_its_parameters(kind, params, words):
    with pytest.raises(ConfigError) as caught:
        kind(**params).fit(*TINY)
    assert words in str(caught.value)
    assert str(caught.value).startswith(kind.__name__)


def test_other_learners_check_theirs():
    with pytest.raises(ConfigError, match=r"LogisticSkyline: validation: 1"):
        LogisticSkyline(validation=1).fit(*TINY)
    with pytest.raises(ConfigError, match=r"WALRClassifier: l2: -1 .*'moments' or a number of at least 0"):
        WALRClassifier(l2=-1).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ConfigError, match=r"LinearRidge: strengths\.1: -1"):
        LinearRidge(strengths=[1, -1]).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ConfigError, match=r"EmbeddingRegressor: tune: 'scal' is no parameter of embedding"):
        EmbeddingRegressor(MomentEmbedding(), LinearRidge(), tune={"scal": [1]}).fit([[[0.0]], [[1.0]]], [0.0, 1.0])
    with pytest.raises(ConfigError, match=r"FlowReconstruction: options: method nlbp-feasible takes no 'dampin'"):
        FlowReconstruction("nlbp-feasible", {"dampin": 0.1}).fit(None)
    with pytest.raises(ConfigError, match=r"damping: 2 is not allowed"):
        infer(None, None, 1, method="nlbp-feasible", damping=2)


def test_what_infinity_and_numbers_of_numpy_are_good_for():
    import numpy as np

    MaxEntClassifier(n_chains=np.int64(8), max_iter=2, clip=math.inf, l2_mu=np.float32(1), tol=0, random_state=0).fit(
        *TINY
    )


def test_data_sets_check_their_arguments():
    with pytest.raises(ConfigError, match="n: -16 is not allowed"):
        LogLinear(n=-16)
    with pytest.raises(ConfigError, match=r"LogLinear: n: 2\.5 is not allowed"):
        LogLinear.from_entry({}, {"n": 2.5})
    with pytest.raises(ConfigError, match=r"theta: .* a list of 4 values"):
        BirdMigration(theta=[1, 2])


def test_names_of_the_census_are_those_of_the_code():
    assert set(keys.Hidden.__args__) == set(census_design.HIDDEN)
    groups = {k: set(h.__args__[0].__args__) for k, h in keys.PollKeys.__annotations__.items()}
    assert groups == {k: set(names) for k, (_, names) in polls.COVARIATES.items()}
