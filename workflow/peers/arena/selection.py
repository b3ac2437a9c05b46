"""Mechanisms that choose which marginals to measure: AIM and MST, on models of mbi."""

import itertools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from agglearn.estimator import RecordClassifier
from agglearn.optional import require
from agglearn.seeds import RandomState, draw_generator
from agglearn.settings import Count, Positive
from arena.accounting import concentrated_budget
from arena.fields import estimate, tables_of
from arena.linear import SufficientStatistics, assemble
from arena.marginals import (
    LABEL,
    Clique,
    LabelLaw,
    Marginals,
    domain_of,
    field_log_odds,
    heads_on_rows,
    prior_log_odds,
)
from arena.records import PrivateRecords, choose_by_public

EXPECTED = math.sqrt(2 / math.pi)  # of |noise|, in standard deviations
OF_SELECTION = 0.1  # share of AIM's budget of a round
STAGES = (25, 50, 100, 200, 400)


class Measuring(RecordClassifier):
    """A model of measured marginals, judged by its own law of the label, its statistics, and learners on its rows.

    A model that fits noisy tables too well predicts worse. Public records choose at which of the steps in `STAGES` it ends.
    """

    observes = PrivateRecords

    def _fit(self, observation: PrivateRecords) -> None:
        mbi, rng = require("mbi", "peers"), draw_generator(self.random_state)
        marginals, encoder = Marginals(observation), observation.encoder
        rho = concentrated_budget(observation.epsilon, observation.delta)
        measured, domain, codes = self._release(mbi, marginals, rho, rng)
        self._set_encoder(encoder)
        models, laws, done = [None], [], 0
        for end in STAGES:
            model = estimate(mbi, domain, measured, end - done, models[-1])
            law = LabelLaw(encoder, field_log_odds(model, encoder.names, codes), prior_log_odds(model))
            models, laws, done = [*models, model], [*laws, law.shrink(observation)], end
        law = choose_by_public(observation, laws, lambda law, frame: law._predict_positive(frame))
        self.model_ = model = models[1 + laws.index(law)]
        rows = expand_rows(model.synthetic_data(rows=max(1, round(float(model.total)))).to_dict(), codes, rng)
        self.heads_ = {"": law}  # its own law
        self.heads_ |= heads_on_rows(encoder, rows, int(rng.integers(2**31)))
        if not codes:
            self.heads_["sufficient statistics"] = statistics_of(model, observation)

    def _release(
        self, mbi: ModuleType, marginals: Marginals, rho: float, rng: np.random.Generator
    ) -> tuple[list, Any, dict]:
        """Noisy tables, their domain, and {feature: new code of each code}."""
        raise NotImplementedError

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return self.heads_[""]._predict_positive(X)


def statistics_of(model: Any, observation: PrivateRecords) -> SufficientStatistics:
    """The regression by sufficient statistics of a model (Ferrando and Sheldon 2025, with AIM)."""
    encoder = observation.encoder
    sizes = dict(zip(encoder.names, encoder.sizes, strict=True))
    pairs = itertools.combinations(encoder.names, 2)
    tables = tables_of(model, [*pairs, *((name, LABEL) for name in encoder.names)])
    blocks = {(a, b): np.zeros((sizes[a], sizes[b])) for a in sizes for b in sizes}
    for (a, b), table in tables.items():
        if b != LABEL:
            blocks[a, b] = table.reshape(sizes[a], sizes[b])
            blocks[b, a] = blocks[a, b].T
    gram = np.block([[blocks[a, b] for b in sizes] for a in sizes])
    by_label = np.vstack([tables[name, LABEL].reshape(-1, 2) for name in sizes])
    feature = np.repeat(np.arange(len(encoder.sizes)), encoder.sizes)
    regression = SufficientStatistics()
    regression._set_from_statistics(observation, *assemble(gram, by_label, feature))
    return regression


def expand_rows(rows: dict, codes: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows of original codes: a code that stands for several becomes one of them at random."""
    expanded = dict(rows)
    for name, new in codes.items():
        values = np.asarray(rows[name], int)
        expanded[name] = np.empty(len(values), int)
        for code in np.unique(values):
            chosen = values == code
            expanded[name][chosen] = rng.choice(np.flatnonzero(new == code), chosen.sum())
    return expanded


def choose(
    scores: dict[Clique, float],
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
    allowed: Callable[[Clique], bool] = lambda clique: True,
) -> Clique:
    """A clique by the exponential mechanism, which is ε²/8-zCDP, among those that a public rule allows.

    One that is not allowed is drawn anew, without it. So the rule is asked about few.
    """
    cliques = list(scores)
    p = softmax(epsilon * np.array([scores[c] for c in cliques]) / (2 * sensitivity))
    clique = cliques[rng.choice(len(cliques), p=p)]
    if allowed(clique):
        return clique
    return choose({c: x for c, x in scores.items() if c != clique}, epsilon, sensitivity, rng, allowed)


class AIM(Measuring):
    """Adaptive and iterative selection of marginals (McKenna, Mullins, Sheldon, Miklau 2022), workload: all pairs.

    Parameters
    ----------
    model_size, rounds, iterations, random_state : float, int or None, int, int or None
        Megabytes of the model at the end, rounds that the budget is planned for (16 for each attribute by default), and
        steps of mirror descent in a round.
    """

    model_size: Positive = 16.0
    rounds: Count | None = None
    iterations: Count = 60
    random_state: RandomState = None

    def _release(
        self, mbi: ModuleType, marginals: Marginals, rho: float, rng: np.random.Generator
    ) -> tuple[list, Any, dict]:
        domain, pairs = domain_of(mbi, marginals), marginals.pairs()
        singles = [(name,) for name in marginals.names]
        weights = {c: float(sum(len(set(c) & set(pair)) for pair in pairs)) for c in [*singles, *pairs]}
        rounds = self.rounds or 16 * len(singles)
        sigma = math.sqrt(rounds / (2 * (1 - OF_SELECTION) * rho))
        epsilon = math.sqrt(8 * OF_SELECTION * rho / rounds)

        def fit(start: Any) -> Any:
            return estimate(mbi, domain, measured, self.iterations, start)

        exact = {c: marginals.count(c) for c in weights}
        measured = marginals.measure(mbi, singles, sigma, rng)
        model, spent = fit(None), len(singles) / (2 * sigma**2)
        while spent < rho:
            if rho - spent < 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):  # the last round takes what is left
                sigma = math.sqrt(1 / (2 * (1 - OF_SELECTION) * (rho - spent)))
                epsilon = math.sqrt(8 * OF_SELECTION * (rho - spent))
                spent = rho
            else:
                spent += 1 / (2 * sigma**2) + epsilon**2 / 8
            before = tables_of(model, weights)
            excess = {c: np.abs(exact[c] - before[c]).sum() - EXPECTED * sigma * exact[c].size for c in weights}
            scores = {c: weights[c] * excess[c] for c in weights}
            fits = within_size(mbi, model, self.model_size * spent / rho)
            clique = choose(scores, epsilon, max(weights.values()), rng, fits)
            measured += marginals.measure(mbi, [clique], sigma, rng)
            model = fit(model)
            if (
                np.abs(tables_of(model, [clique])[clique] - before[clique]).sum()
                <= EXPECTED * sigma * before[clique].size
            ):
                sigma, epsilon = sigma / 2, 2 * epsilon
        return measured, domain, {}


def within_size(mbi: ModuleType, model: Any, limit: float) -> Callable[[Clique], bool]:
    """Whether a clique is in the model, or keeps it within so many megabytes."""
    inside = [set(c) for c in model.cliques]
    size = mbi.junction_tree.hypothetical_model_size
    return lambda c: any(set(c) <= s for s in inside) or size(model.domain, [*model.cliques, c]) <= limit


class MST(Measuring):
    """A tree of pairs with the largest misfit of independence (McKenna, Miklau, Sheldon 2021).

    A third of the budget each goes to all single attributes, to the choice of pairs, and to these pairs. Values whose
    noisy count is below three standard deviations become one.
    """

    random_state: RandomState = None

    def _release(
        self, mbi: ModuleType, marginals: Marginals, rho: float, rng: np.random.Generator
    ) -> tuple[list, Any, dict]:
        singles = [(name,) for name in marginals.names]
        measured = marginals.measure(mbi, singles, math.sqrt(3 * len(singles) / (2 * rho)), rng)
        codes = {
            m.clique[0]: merged for m in measured if (merged := merge_rare(m.noisy_measurement, m.stddev)) is not None
        }
        codes.pop(LABEL, None)
        domain = domain_of(mbi, marginals)
        measured, marginals = [m.compress(codes, domain) for m in measured], marginals.recode(codes)
        domain = domain_of(mbi, marginals)
        independent = estimate(mbi, domain, measured, STAGES[-1])
        pairs = spanning_tree(marginals, independent, rho / 3, rng)
        measured += marginals.measure(mbi, pairs, math.sqrt(3 * len(pairs) / (2 * rho)), rng)
        return measured, domain, codes


def merge_rare(noisy: np.ndarray, sigma: float) -> np.ndarray | None:
    """New code of each value, the last one for all whose noisy count is below 3σ. None where there are none."""
    kept = np.asarray(noisy) >= 3 * sigma
    return None if kept.all() else np.where(kept, np.cumsum(kept) - 1, kept.sum())


def spanning_tree(marginals: Marginals, model: Any, rho: float, rng: np.random.Generator) -> list[Clique]:
    """Pairs that connect all attributes, each chosen by the exponential mechanism among those that join two parts."""
    tables = tables_of(model, marginals.pairs())
    scores = {c: float(np.abs(marginals.count(c) - table).sum()) for c, table in tables.items()}
    part, chosen = {name: k for k, name in enumerate(marginals.names)}, []
    epsilon = math.sqrt(8 * rho / (len(part) - 1))
    while len(set(part.values())) > 1:
        joining = {c: score for c, score in scores.items() if part[c[0]] != part[c[1]]}
        first, second = choose(joining, epsilon, 1.0, rng)
        chosen.append((first, second))
        part = {name: part[first] if p == part[second] else p for name, p in part.items()}
    return chosen
