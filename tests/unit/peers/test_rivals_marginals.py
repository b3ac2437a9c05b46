"""Rivals of the arena that model marginals: laws by enumeration, budgets, errors that fall (`make peers`)."""

import math

import numpy as np
import pandas as pd
import pytest

from agglearn.encoding import FrameEncoder
from agglearn.encoding.frame import with_declared_domains
from arena import fields, selection
from arena import marginals as marginals_of
from arena.accounting import concentrated_budget
from arena.records import PrivateRecords

mbi = pytest.importorskip("mbi")
pytestmark = pytest.mark.slow  # JAX compiles every new set of marginals
SIZES = {"a": 3, "b": 4, "c": 2}


def observation(n: int = 3000, epsilon: float = 1.0) -> PrivateRecords:
    def draw(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
        rng = np.random.default_rng(seed)
        a = rng.integers(3, size=n)
        b = np.where(rng.random(n) < 0.7, a, rng.integers(4, size=n))
        frame = pd.DataFrame({"a": a, "b": b, "c": rng.integers(2, size=n)})
        return frame, (rng.random(n) < 0.2 + 0.25 * a).astype(np.int8)

    frame, y = draw(n, 0)
    encoder = with_declared_domains(FrameEncoder.fit(frame, categorical=SIZES), SIZES)
    return PrivateRecords(encoder, frame, y, *draw(500, 1), epsilon, 1e-6)


def fitted(*cliques: tuple[str, ...]):
    exact = marginals_of.Marginals(observation())
    measured = [mbi.LinearMeasurement(exact.count(c), c, 1.0) for c in cliques]
    return exact, mbi.estimation.MirrorDescent().estimate(marginals_of.domain_of(mbi, exact), measured, iters=300)


def cells() -> np.ndarray:
    return np.array([[a, b, c] for a in range(3) for b in range(4) for c in range(2)])


def test_the_law_of_the_label_is_that_of_the_joint():
    label = marginals_of.LABEL
    exact, model = fitted(("a", "b"), ("a", label), ("b", label), ("c",))
    joint = np.asarray(model.project(tuple(exact.names)).datavector(flatten=False), float).reshape(-1, 2)
    z = marginals_of.field_log_odds(model, exact.names[:-1])(cells())
    assert z == pytest.approx(np.log(joint[:, 1] / joint[:, 0]), abs=1e-3)


def test_the_law_of_a_mixture_is_that_of_its_joint():
    from mbi.extensions.mixture_of_products import MixtureOfProducts

    exact = marginals_of.Marginals(observation())
    mixture = MixtureOfProducts.random(marginals_of.domain_of(mbi, exact), 100.0, 5, seed=0, scale=2.0)
    joint = np.asarray(mixture.project(tuple(exact.names)).datavector(flatten=False), float).reshape(-1, 2)
    z = marginals_of.mixture_log_odds(mixture, exact.names[:-1])(cells())
    assert z == pytest.approx(np.log(joint[:, 1] / joint[:, 0]), abs=1e-3)


@pytest.mark.parametrize("last", [[("c",)], [(marginals_of.LABEL, "c"), ("c", "a")]], ids=["apart", "cycle"])
def test_tables_of_a_model_are_those_of_the_library(last):
    exact, model = fitted(("a", "b"), ("b", marginals_of.LABEL), *last)
    tables = fields.tables_of(model, [*exact.pairs(), ("c",)])
    for clique, table in tables.items():
        assert table == pytest.approx(np.asarray(model.project(clique).datavector()), rel=1e-3)


LABEL = marginals_of.LABEL
SHAPES = {
    "chain": [("a", "b"), ("b", "c"), ("c", LABEL)],
    "apart": [("a", "b"), ("c", LABEL)],
    "cycle": [("a", "b"), ("b", "c"), ("c", LABEL), ("a", LABEL)],
    "one": [("a", "b", "c", LABEL)],
}


def law(exact, potentials: dict) -> np.ndarray:
    """The joint table of potentials, by enumeration."""
    names = exact.names
    logs = sum(np.expand_dims(v, [k for k, x in enumerate(names) if x not in c]) for c, v in potentials.items())
    return np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()


@pytest.mark.parametrize("against", [0, 707])  # one table all but excludes the value that another one demands
@pytest.mark.parametrize("cliques", SHAPES.values(), ids=SHAPES)
def test_marginals_of_a_model_are_those_of_the_joint(cliques, against):
    exact, rng = marginals_of.Marginals(observation()), np.random.default_rng(0)
    domain = marginals_of.domain_of(mbi, exact)
    tree = fields.JunctionTree(domain, cliques)
    potentials = {c: rng.normal(0, 3, [exact.sizes[x] for x in c]) for c in cliques}
    potentials[cliques[0]][:, 1:] -= 2 * against
    potentials[cliques[min(1, len(cliques) - 1)]][0] -= against
    joint = law(exact, potentials)

    def table(names) -> np.ndarray:
        return 7 * joint.sum(axis=tuple(k for k, name in enumerate(exact.names) if name not in names))

    for clique, marginal in tree.unflatten(tree.marginals(tree.flatten(potentials), 7.0)).items():
        assert marginal == pytest.approx(table(clique), rel=1e-9, abs=1e-12)
    vector = mbi.CliqueVector(
        domain, tuple(cliques), {c: mbi.Factor(domain.project(c), potentials[c]) for c in cliques}
    )
    model = mbi.MarkovRandomField(potentials=vector, marginals=vector, total=7.0)
    for pair, flat in fields.tables_of(model, [*exact.pairs(), ("c",)]).items():
        assert flat == pytest.approx(table(pair).ravel(), rel=1e-4, abs=1e-9)  # factors of mbi have 32 bits


def noisy(exact, *cliques) -> list:
    return exact.measure(mbi, cliques, 5.0, np.random.default_rng(1))


@pytest.mark.parametrize("cliques", SHAPES.values(), ids=SHAPES)
def test_a_fit_is_that_of_the_library(cliques):
    exact = marginals_of.Marginals(observation())
    domain, measured = marginals_of.domain_of(mbi, exact), noisy(exact, *cliques, ("a",), ("b",), *cliques[:1])
    model = fields.estimate(mbi, domain, measured, 3000)
    theirs = mbi.estimation.MirrorDescent().estimate(domain, measured, iters=5000)
    loss = mbi.marginal_loss.from_linear_measurements(measured, domain)
    assert float(loss(model.marginals)) <= float(loss(theirs.marginals)) + 0.01
    for clique in cliques:
        mine, other = model.project(clique).datavector(), theirs.project(clique).datavector()
        assert np.asarray(mine) == pytest.approx(np.asarray(other), abs=3.0)  # of 3,000 records


def test_a_fit_that_begins_from_a_smaller_model_ends_where_one_from_nothing_does():
    exact = marginals_of.Marginals(observation())
    domain, measured = marginals_of.domain_of(mbi, exact), noisy(exact, ("a",), ("a", "b"), ("b", LABEL), ("a", LABEL))
    small = fields.estimate(mbi, domain, measured[:2], 1000)
    from_small, anew = (fields.estimate(mbi, domain, measured, 3000, start) for start in (small, None))
    for clique in [("a", "b"), ("b", LABEL)]:
        tables = [np.asarray(model.marginals[clique].datavector()) for model in (from_small, anew)]
        assert tables[0] == pytest.approx(tables[1], abs=1.0)


def test_the_misfit_is_that_of_the_library_where_values_became_one():
    exact = marginals_of.Marginals(observation())
    domain, codes = marginals_of.domain_of(mbi, exact), {"b": np.array([0, 1, 1, 1])}
    measured = [m.compress(codes, domain) for m in noisy(exact, ("a", "b"), ("b",), ("c",))]
    merged = exact.recode(codes)
    domain = marginals_of.domain_of(mbi, merged)
    tree = fields.JunctionTree(domain, [("a", "b"), ("c",)])
    misfit, mu = fields.Misfit(mbi, domain, measured, tree), tree.flatten({("a", "b"): merged.count(("a", "b"))})
    theirs = mbi.CliqueVector(
        domain, tuple(tree.tables), {c: mbi.Factor(domain.project(c), t) for c, t in tree.unflatten(mu).items()}
    )
    value, gradient = misfit(mu)
    assert value == pytest.approx(float(mbi.marginal_loss.from_linear_measurements(measured, domain)(theirs)), rel=1e-5)
    ahead = np.random.default_rng(2).normal(size=len(mu))
    slope = misfit(mu + 0.5 * ahead)[0] - misfit(mu - 0.5 * ahead)[0]  # exact, as the misfit is quadratic
    assert gradient @ ahead == pytest.approx(slope, rel=1e-6)


def release(kind, epsilon: float, seed: int = 0):
    exact, rho = marginals_of.Marginals(observation()), concentrated_budget(epsilon, 1e-6)
    rng = np.random.default_rng(seed)
    measured, domain, _ = kind._release(mbi, exact, rho, rng)
    return exact, fields.estimate(mbi, domain, measured, 400), [(m.clique, float(m.stddev)) for m in measured], rho


def workload_error(exact, model) -> float:
    tables = [(exact.count(c), table) for c, table in fields.tables_of(model, exact.pairs()).items()]
    return float(np.mean([np.abs(x / x.sum() - z / z.sum()).sum() / 2 for x, z in tables]))


def test_the_workload_error_of_aim_falls_with_the_budget_and_below_that_of_independence():
    aim = selection.AIM(rounds=12)
    errors = []
    for epsilon in (0.05, 20.0):
        exact, model, measured, rho = release(aim, epsilon)
        spent = sum(1 / (2 * sigma**2) for _, sigma in measured)
        assert 0.89 * rho < spent < 0.97 * rho  # the choices take a tenth, but for single attributes
        errors.append(workload_error(exact, model))
    _, independent = fitted(*[(name,) for name in exact.names])
    assert errors[1] < 0.02 < workload_error(exact, independent) < errors[0] + 0.2
    assert errors[1] < errors[0]


def test_a_model_of_aim_keeps_to_its_size():
    exact, model = fitted(("a", "b"))
    assert [c for c in exact.pairs() if selection.within_size(mbi, model, 1.0)(c)] == exact.pairs()
    assert [c for c in exact.pairs() if selection.within_size(mbi, model, 1e-6)(c)] == [("a", "b")]


def test_mst_spans_all_attributes_and_spends_its_thirds():
    exact, _, measured, rho = release(selection.MST(), 5.0)
    pairs = [c for c, _ in measured if len(c) == 2]
    assert len(pairs) == len(exact.names) - 1
    assert ("a", "b") in pairs
    assert sum(1 / (2 * sigma**2) for _, sigma in measured) == pytest.approx(2 * rho / 3)


def test_rare_values_become_one_and_come_back():
    merged = selection.merge_rare(np.array([50.0, 1.0, 40.0, -2.0]), 5.0)
    assert merged.tolist() == [0, 2, 1, 2]
    assert selection.merge_rare(np.array([50.0, 40.0]), 5.0) is None
    rows = selection.expand_rows({"a": np.repeat([0, 1, 2], 50)}, {"a": merged}, np.random.default_rng(0))["a"]
    assert [set(rows[k : k + 50]) for k in (0, 50, 100)] == [{0}, {2}, {1, 3}]


def test_the_exponential_mechanism_prefers_by_epsilon():
    rng, scores = np.random.default_rng(0), {("a",): 0.0, ("b",): 2.0}
    chosen = [selection.choose(scores, 1.0, 1.0, rng) for _ in range(4000)]
    odds = chosen.count(("b",)) / chosen.count(("a",))
    assert odds == pytest.approx(math.e, rel=0.1)


def test_what_is_not_allowed_is_never_chosen_and_changes_no_odds_of_the_others():
    rng, scores = np.random.default_rng(0), {("a",): 0.0, ("b",): 2.0, ("c",): 3.0}
    chosen = [selection.choose(scores, 1.0, 1.0, rng, lambda clique: clique != ("c",)) for _ in range(4000)]
    assert ("c",) not in chosen
    assert chosen.count(("b",)) / chosen.count(("a",)) == pytest.approx(math.e, rel=0.1)


def test_with_a_large_budget_every_head_knows_the_law():
    observed = observation(epsilon=50.0)
    truth = 0.2 + 0.25 * observed.public_frame["a"]
    for rival in (selection.AIM(rounds=12), selection.MST()):
        rival.set_params(random_state=0).fit(observed)
        for name, head in rival.heads_.items():
            p = head.predict_proba(observed.public_frame)[:, 1]
            assert np.abs(p - truth).mean() < 0.05, name
    pgm = marginals_of.PrivatePGM(components=20, iterations=[100, 200], random_state=0).fit(observed)
    assert np.abs(pgm.predict_proba(observed.public_frame)[:, 1] - truth).mean() < 0.05


def test_heads_are_fitted_to_codes_and_read_raw_numbers():
    frame = pd.DataFrame({"age": np.arange(4000) % 80.0})
    y = (frame["age"] > 40).astype(np.int8)
    encoder = FrameEncoder.fit(frame)  # bins
    rows = {"age": encoder.encode(frame)[:, 0], marginals_of.LABEL: y}
    heads = marginals_of.heads_on_rows(encoder, rows, seed=0)
    assert len(heads) == 2
    for head in heads.values():
        assert head.predict_proba(pd.DataFrame({"age": [5.0, 75.0]}))[:, 1] == pytest.approx([0, 1], abs=0.05)
