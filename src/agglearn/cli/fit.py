"""Learn P(label = 1 | features) from the tables of `agglearn aggregate`. No record is read.

example:
  agglearn fit tables/ --method maxent --set n_chains=20000 --seed 1 --out model/

methods
  maxent       pairwise model of features and label, trained by Gibbs sampling: uses all tables, the most accurate
  naive_bayes  features independent given the label: uses the tables of single features, immediate
  best_pair    the two most informative features together: uses the table of one pair, fast

Tables of `agglearn private` have noise, those of `agglearn import` may have noise or a threshold. maxent then treats the true counts
as latent variables: cells with mostly noise have little weight, and a hidden cell is a number below the threshold. The other methods
treat such tables as exact, and hidden cells as zeros, which may end far below the base rate. They refuse such tables, unless
--ignore-noise is given. With it, maxent treats them as exact, too.

maxent has an L2 penalty on its weights. The tables suggest its strength (the weaker the label's dependence on the features, the
stronger). --tune tries five strengths around it and chooses by held-out parts of the tables. --set l2_theta=32 sets it.

--sample rows.csv gives some records with their label, which the tables do not count. The prediction is then a mean over the model of
the tables, its corrections by logistic regressions on the sample, a model of both together (maxent), and boosted trees. Cross-validation
on the sample weights them. The model shows facts on the records of the sample, whatever the tables protect. It needs the extra
`workflow`, which saves trees.

reads   the folder TABLES, and the records of --sample, like the aggregated ones (separator, missing marks).
writes  the folder OUT: model.json and model.npz (parameters and weights, no code in them). It appears when complete,
        or not at all.
"""

import argparse
import time
from typing import TYPE_CHECKING, Any

from agglearn import settings
from agglearn.cli.common import MODEL, copy_reading, output_folder, reading_of, whole_seed
from agglearn.errors import ConfigError
from agglearn.text import count_text

if TYPE_CHECKING:
    from agglearn.estimator import Estimator
    from agglearn.observations import ContingencyTables, TablesAndSample

HELP = "learn a model from tables"
METHODS = {
    "maxent": "MaxEntClassifier",
    "naive_bayes": "NaiveBayesClassifier",
    "best_pair": "BestPairClassifier",
}
FACTORS = (0.1, 0.3, 1, 3, 10)  # of the penalty from moments: candidates of --tune


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("tables", help="folder written by `agglearn aggregate`")
    command.add_argument("--method", default="maxent", choices=list(METHODS), help="default: maxent")
    command.add_argument("--ignore-noise", action="store_true", help="treat noisy tables as exact")
    command.add_argument(
        "--tune",
        action="store_true",
        help="choose l2_theta by held-out parts of the tables (maxent; takes about 6 times as long)",
    )
    command.add_argument(
        "--sample", metavar="ROWS", help="CSV or Parquet file with some records that the tables do not count"
    )
    command.add_argument(
        "--positive", metavar="VALUE", help="value of the sample's label that counts as 1 (default: that of the tables)"
    )
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                   help="parameter of the method, as in its class's constructor, null for None; may be repeated")  # fmt: skip
    command.add_argument(
        "--seed", type=whole_seed, default=0, help="of the random numbers (default: 0); same seed, same model"
    )


def run(args: argparse.Namespace) -> None:
    from agglearn import maxent
    from agglearn.cli.report import reproduction
    from agglearn.observations import ContingencyTables

    with output_folder(args.out, args.force, MODEL) as work:
        tables = ContingencyTables.load(args.tables)
        if args.ignore_noise and tables.noise is None:
            raise ConfigError("--ignore-noise: the tables have no noise; leave it out")
        aware = tables.noise is not None and not args.ignore_noise
        if aware and args.method != "maxent":
            accounts = "use maxent, which accounts for the noise, or --ignore-noise"
            raise ConfigError(f"--method: {args.method} treats noisy tables as exact; {accounts}")
        kind = getattr(maxent, "NoiseAwareMaxEntClassifier" if aware else METHODS[args.method])
        values = parameters(kind, args.method, args.set, args.seed)
        if args.tune and args.method != "maxent":
            raise ConfigError(f"--tune: {args.method} has no strength to choose; leave it out")
        if args.tune and "l2_theta" in values:
            raise ConfigError("--set: l2_theta is what --tune chooses; give one of them")
        model: Any = kind(**values)
        observation: Any = tables
        if args.positive and not args.sample:
            raise ConfigError("--positive: is of the label of --sample; leave it out")
        if args.sample:
            model, observation = with_sample(model, tables, args)
        model.warm_up()
        started = time.perf_counter()
        if args.tune:  # the strength of L2 on θ that predicts labels of held-out parts of the tables best
            from agglearn.labelsums import AggregateSearch
            from agglearn.maxent.penalty import moment_penalty

            single, pair = moment_penalty(tables)
            strengths = [(single * factor, pair * factor) for factor in FACTORS]
            model = AggregateSearch(model, values=strengths, random_state=args.seed).fit(tables).model_
        else:
            model.fit(observation)
        took = f"{time.perf_counter() - started:.1f} s"
        model.save(work)
        copy_reading(args.tables, work)
    corrected, model = model, getattr(model, "model_", model)
    size = f"{count_text(len(tables.names), 'feature')} and {count_text(len(tables.tables), 'table')}"
    method = f"{args.method}, noise-aware," if tables.noise and model.accounts_for_noise else args.method
    if hasattr(model, "l2_theta_"):
        chosen = "by held-out tables" if args.tune else "from the tables" if model.l2_theta == "moments" else "as given"
        took += f"; l2_theta {' and '.join(f'{v:.3g}' for v in dict.fromkeys(model.l2_theta_))}, {chosen}"
    print(f"{args.out}: {method} on {size} of {count_text(round(tables.total), 'record')}, {took}")
    print(reproduction(model, tables))
    if args.sample:
        print(describe_sample(corrected, observation))


def with_sample(
    base: "Estimator", tables: "ContingencyTables", args: argparse.Namespace
) -> tuple["Estimator", "TablesAndSample"]:
    """The learner from tables and a sample, and what it learns from."""
    from agglearn.cli.tabular_input import read_like
    from agglearn.encoding.csv_files import about
    from agglearn.labelsums import TablesAndSampleClassifier
    from agglearn.maxent import JointMaxEntClassifier, NoiseAwareMaxEntClassifier
    from agglearn.maxent.joint import why_apart
    from agglearn.observations import TablesAndSample
    from agglearn.optional import require

    if args.tune:
        raise ConfigError("--tune: --sample corrects the model by records; leave one of them out")
    require("skops", "workflow")  # writes trees, should they be chosen
    frame = read_like(args.tables, args.sample)
    positive = args.positive or reading_of(args.tables)["positive"]
    with about(args.sample):
        observation = TablesAndSample.from_records(tables, frame, positive=positive)
    joins = isinstance(base, NoiseAwareMaxEntClassifier) and base.posterior == "joint" and why_apart(tables) is None
    joint = JointMaxEntClassifier(**base.get_params(deep=False)) if joins else None
    return TablesAndSampleClassifier(base, joint, random_state=args.seed), observation


def describe_sample(model: "Estimator", observation: "TablesAndSample") -> str:
    from agglearn.labelsums.with_sample import ALONE, JOINT, ON_TABLES

    n, weights = len(observation.sample.y), dict(zip(model.candidates_, model.weights_, strict=True))
    alone, together, on_tables, trees = (weights.get(name, 0.0) for name in ("tables", JOINT, ON_TABLES, ALONE))
    counted = {
        "alone": alone,
        "corrected by regressions": 1 - alone - together - on_tables - trees,
        "in one model with the sample": together,
        "as a feature of trees": on_tables,
    }
    listed = ", ".join(f"{100 * weight:.0f} % {name}" for name, weight in counted.items())
    return f"with the sample of {count_text(n, 'record')} the tables count {listed}; trees on the sample alone count {100 * trees:.0f} %"


def parameters(kind: type, method: str, texts: list[str], seed: int) -> dict:
    """Constructor arguments from NAME=VALUE, checked against the constructor."""
    declared, values = dict(settings.parameters(kind) or {}), {}
    seeded = {"random_state": seed} if declared.pop("random_state", None) else {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set: {text!r} is not NAME=VALUE")
        if name == "random_state":
            raise ConfigError("--set: random_state is given by --seed")
        if name in values:
            raise ConfigError(f"--set: {name!r} is given twice")
        values[name] = settings.scalar(value)
    for key, problem in settings.keys_at_fault(method, declared, values):
        raise ConfigError(f"--set {key}: {problem}" if key else f"--set: {problem}")
    return values | seeded
