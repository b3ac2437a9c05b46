"""`agglearn fit`: tables to a model."""

import time

from agglearn.cli.common import keep_reading, number, whole_seed
from agglearn.cli.outputs import MODEL, output_folder
from agglearn.errors import ConfigError

HELP = "learn a model from tables"
METHODS = {
    "maxent": "agglearn.maxent.MaxEntClassifier",
    "naive_bayes": "agglearn.maxent.NaiveBayesClassifier",
    "best_pair": "agglearn.maxent.BestPairClassifier",
}
FACTORS = (0.1, 0.3, 1, 3, 10)  # of the strength that moments suggest: what --tune tries
NOISE_AWARE = {"maxent": "agglearn.maxent.NoiseAwareMaxEntClassifier"}  # where the tables have noise
ABOUT = """Learn P(label = 1 | features) from the tables of `agglearn aggregate`; no record is read.

example:
  agglearn fit tables/ --method maxent --set n_chains=20000 --seed 1 --out model/

methods
  maxent       pairwise model of features and label, trained by Gibbs sampling: uses all tables, the most accurate
  naive_bayes  features taken as independent given the label: uses the tables of single features; at once
  best_pair    the two features that together tell most: uses one table of a pair; fast

Tables of `agglearn private` have noise. maxent then learns with the true counts unknown: cells with little but noise in them
have little weight. The other methods take noisy tables for exact ones, which may end far below the base rate. They
refuse such tables, unless --ignore-noise is given; maxent then takes them for exact ones as well.

maxent has an L2 penalty on its weights. The tables suggest its strength (the weaker the label's dependence on the features, the
stronger). --tune tries five strengths around it and chooses by parts of the tables that were held out; --set l2_theta=32 sets it.

reads   the folder TABLES.
writes  the folder OUT: model.json and model.npz (parameters and weights, no code in them). It appears when complete,
        or not at all."""


def options(command) -> None:
    """Options of the command, but for --out and --force."""
    command.add_argument("tables", help="folder written by `agglearn aggregate`")
    command.add_argument("--method", default="maxent", choices=list(METHODS), help="default: maxent")
    command.add_argument("--ignore-noise", action="store_true", help="take noisy tables for exact ones")
    command.add_argument(
        "--tune",
        action="store_true",
        help="choose l2_theta by held-out parts of the tables (maxent; takes about 6 times as long)",
    )
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                   help="parameter of the method, as in its class's constructor, null for None; may be repeated")  # fmt: skip
    command.add_argument(
        "--seed", type=whole_seed, default=0, help="of the random numbers (default: 0); same seed, same model"
    )


def run(o) -> None:
    """Learn and keep a model."""
    from agglearn.cli.report import reproduction
    from agglearn.observations import ContingencyTables

    with output_folder(o.out, o.force, MODEL) as work:
        tables = ContingencyTables.load(o.tables)
        model, seconds = learn(o, tables)
        model.save(work)
        keep_reading(o.tables, work)
    what = f"{number(len(tables.names), 'feature')} and {number(len(tables.tables), 'table')}"
    aware = ", noise-aware," if tables.noise and model.accounts_for_noise else ""
    print(
        f"{o.out}: {o.method}{aware} on {what} of {tables.total:,.0f} records, {seconds:.1f} s{strength(model, o.tune)}"
    )
    print(reproduction(model, tables))


def learn(o, tables):
    """(model, seconds) of the method that the options name."""
    from agglearn.registry import resolve

    kind = resolve(learner(o.method, tables.noise is not None, o.ignore_noise))
    given = parameters(kind, o.method, o.set, o.seed)
    if o.tune and o.method != "maxent":
        raise ConfigError(f"--tune: {o.method} has no strength to choose; leave it out")
    if o.tune and "l2_theta" in given:
        raise ConfigError("--set: l2_theta is what --tune chooses; give one of them")
    model = kind(**given)
    if hasattr(model, "warm_up"):
        model.warm_up()
    begin = time.perf_counter()
    model = tuned(model, tables, o.seed) if o.tune else model.fit(tables)
    return model, time.perf_counter() - begin


def strength(model, tuned: bool) -> str:
    """The strength of L2 on θ in words, for a model that has one."""
    if not hasattr(model, "l2_theta_"):
        return ""
    chosen = "by held-out tables" if tuned else "from the tables" if model.l2_theta == "moments" else "as given"
    return f"; l2_theta {model.l2_theta_:.3g}, {chosen}"


def tuned(model, tables, seed: int):
    """The model with the strength of L2 on θ that predicts labels of held-out parts of the tables best."""
    from agglearn.labelsums import AggregateSearch
    from agglearn.maxent.penalty import moment_penalty

    strengths = [float(moment_penalty(tables) * factor) for factor in FACTORS]
    return AggregateSearch(model, values=strengths, random_state=seed).fit(tables).model_


def learner(method: str, noisy: bool, ignore_noise: bool) -> str:
    """Dotted name of the class that learns from tables with or without noise."""
    if ignore_noise and not noisy:
        raise ConfigError("--ignore-noise: the tables have no noise; leave it out")
    if not noisy or ignore_noise:
        return METHODS[method]
    if method not in NOISE_AWARE:
        raise ConfigError(
            f"--method: {method} takes noisy tables for exact ones; use {' or '.join(NOISE_AWARE)}, which accounts for the noise, "
            "or --ignore-noise"
        )
    return NOISE_AWARE[method]


def parameters(kind, method: str, given: list[str], seed: int) -> dict:
    """Constructor arguments from NAME=VALUE, checked against the constructor."""
    from agglearn import settings

    declared, found = dict(settings.parameters(kind)), {}
    seeded = {"random_state": seed} if declared.pop("random_state", None) else {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set: {text!r} is not NAME=VALUE")
        if name == "random_state":
            raise ConfigError("--set: random_state is given by --seed")
        if name in found:
            raise ConfigError(f"--set: {name!r} is given twice")
        found[name] = settings.scalar(value)
    for place, what in settings.keys_at_fault(method, declared, found):
        raise ConfigError(f"--set {place}: {what}" if place else f"--set: {what}")
    return found | seeded
