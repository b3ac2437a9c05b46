"""Models of marginals by the package mbi: what is measured, what a model says of the label, and rows that it draws."""

import itertools
import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from agglearn.encoding import FrameEncoder
from agglearn.encoding.frame import CodesEncoder
from agglearn.estimator import RecordClassifier, predict_codes
from agglearn.labelsums import BoostedTreesSkyline
from agglearn.maxent import LogisticSkyline
from agglearn.observations import Records
from agglearn.optional import require
from agglearn.privacy import analytic_gaussian_scale
from agglearn.seeds import RandomState, draw_generator
from agglearn.settings import Count
from arena.records import PrivateRecords, choose_by_public

LABEL = "the label"
SHRINKAGE = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)
Clique = tuple[str, ...]


class Marginals:
    """Exact tables of the private records, over features and the label."""

    def __init__(self, observation: PrivateRecords) -> None:
        encoder = observation.encoder
        self.names = [*encoder.names, LABEL]
        self.sizes = dict(zip(self.names, [*map(int, encoder.sizes), 2], strict=True))
        self.columns = dict(zip(self.names, np.column_stack([observation.codes, observation.y]).T, strict=True))

    def count(self, clique: Clique) -> np.ndarray:
        """Records in each cell of a table, flat."""
        shape = [self.sizes[name] for name in clique]
        flat = np.ravel_multi_index([self.columns[name] for name in clique], shape)
        return np.bincount(flat, minlength=math.prod(shape)).astype(float)

    def measure(self, mbi: ModuleType, cliques: Sequence[Clique], sigma: float, rng: np.random.Generator) -> list:
        """Tables with Gaussian noise, as mbi takes them."""
        counts = [(clique, self.count(clique)) for clique in cliques]
        return [mbi.LinearMeasurement(y + rng.normal(0, sigma, y.size), clique, sigma) for clique, y in counts]

    def pairs(self) -> list[Clique]:
        return list(itertools.combinations(self.names, 2))

    def recode(self, codes: Mapping[str, np.ndarray]) -> "Marginals":
        """The tables after {feature: new code of each code}."""
        recoded = object.__new__(Marginals)
        recoded.names = self.names
        recoded.sizes = self.sizes | {name: int(new.max()) + 1 for name, new in codes.items()}
        recoded.columns = self.columns | {name: new[self.columns[name]] for name, new in codes.items()}
        return recoded


class LabelLaw(RecordClassifier):
    """P(Y=1|X) of a model, its log-odds drawn towards those of the base rate by `shrinkage`."""

    def __init__(self, encoder: FrameEncoder, log_odds: Any, prior: float, shrinkage: float = 1.0) -> None:
        self._set_encoder(encoder)
        self.log_odds, self.prior, self.shrinkage = log_odds, prior, shrinkage

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        z = self.log_odds(self.encoder_.encode(X))
        return expit(np.clip(self.prior + self.shrinkage * (z - self.prior), -30, 30))

    def shrink(self, observation: PrivateRecords) -> "LabelLaw":
        """The law with the shrinkage that makes public labels most likely."""
        laws = [LabelLaw(self.encoder_, self.log_odds, self.prior, a) for a in SHRINKAGE]
        return choose_by_public(observation, laws, lambda law, frame: law._predict_positive(frame))


def field_log_odds(model: Any, names: Sequence[str], codes: Mapping[str, np.ndarray] | None = None) -> Any:
    """Log-odds of the label given codes of all features, under a Markov random field: a sum over cliques."""
    tables = []
    for factor in model.potentials.tables.values():
        attributes = factor.domain.attributes
        if LABEL in attributes:
            values = np.moveaxis(np.asarray(factor.values, float), attributes.index(LABEL), -1)
            tables.append(([names.index(a) for a in attributes if a != LABEL], values[..., 1] - values[..., 0]))

    def log_odds(rows: np.ndarray) -> np.ndarray:
        if codes:
            rows = np.column_stack([codes[n][rows[:, k]] if n in codes else rows[:, k] for k, n in enumerate(names)])
        return sum((table[tuple(rows[:, k] for k in index)] for index, table in tables), np.zeros(len(rows)))

    return log_odds


def mixture_log_odds(model: Any, names: Sequence[str]) -> Any:
    """Log-odds of the label under a mixture of products, which gives each component an equal weight."""
    logs = {name: np.log(np.maximum(np.asarray(p, float), 1e-30)) for name, p in model.products.items()}

    def log_odds(rows: np.ndarray) -> np.ndarray:
        joint = sum(logs[name][:, rows[:, k]] for k, name in enumerate(names))
        joint = np.exp(joint - joint.max(axis=0))
        of_label = np.exp(logs[LABEL])
        return np.log(joint.T @ of_label[:, 1]) - np.log(joint.T @ of_label[:, 0])

    return log_odds


def heads_on_rows(encoder: FrameEncoder, rows: Mapping[str, np.ndarray], seed: int) -> dict[str, RecordClassifier]:
    """Learners from records, fitted to drawn rows of codes."""
    frame = pd.DataFrame({name: np.asarray(rows[name], int) for name in encoder.names})
    y = np.asarray(rows[LABEL]).astype(np.int8)
    if y.min() == y.max():
        return {}
    records = Records(CodesEncoder(encoder.features), frame, y)
    logistic = LogisticSkyline(quadratic=False, random_state=seed).fit(records)
    trees = BoostedTreesSkyline(random_state=seed).fit(records)
    return {
        f"{name} on drawn rows": LabelLaw(encoder, lambda codes, model=model: logit(predict_codes(model, codes)), 0.0)
        for name, model in (("logistic", logistic), ("boosted trees", trees))
    }


def domain_of(mbi: ModuleType, marginals: Marginals) -> Any:
    return mbi.Domain(marginals.names, [marginals.sizes[name] for name in marginals.names])


def prior_log_odds(model: Any) -> float:
    negative, positive = np.maximum(np.asarray(model.project((LABEL,)).datavector(), float), 1e-9)
    return math.log(positive / negative)


class PrivatePGM(RecordClassifier):
    """A mixture of products fitted to noisy tables of all pairs (McKenna, Sheldon, Miklau 2019; mbi's relaxation).

    A junction tree over all pairs does not fit into memory. Iterations and shrinkage are chosen by public records.

    Parameters
    ----------
    components, iterations, random_state : int, list of int, int or None
        Products in the mixture, and iterations after which the fit may end.
    """

    observes = PrivateRecords
    components: Count = 100
    iterations: list[Count] | None = None
    random_state: RandomState = None

    def _fit(self, observation: PrivateRecords) -> None:
        mbi, optax = require("mbi", "peers"), require("optax", "networks")
        mixtures = require("mbi.extensions.mixture_of_products", "peers")
        marginals, rng = Marginals(observation), draw_generator(self.random_state)
        pairs = marginals.pairs()
        sigma = analytic_gaussian_scale(math.sqrt(len(pairs)), observation.epsilon, observation.delta)
        measured = marginals.measure(mbi, pairs, sigma, rng)
        fit = mixtures.MixtureOfProductsEstimator(
            optimizer=optax.adam(0.1), num_components=self.components, seed=int(rng.integers(2**31))
        )
        encoder, laws, model, done = observation.encoder, [], None, 0
        for end in self.iterations or [50, 100, 200, 400, 800]:
            model = fit.estimate(domain_of(mbi, marginals), measured, iters=end - done, warm_start=model)
            done = end
            laws.append(
                LabelLaw(encoder, mixture_log_odds(model, encoder.names), prior_log_odds(model)).shrink(observation)
            )
        self._set_encoder(encoder)
        self.law_ = choose_by_public(observation, laws, lambda law, frame: law._predict_positive(frame))
        self.iterations_ = (self.iterations or [50, 100, 200, 400, 800])[laws.index(self.law_)]

    def _predict_positive(self, X: pd.DataFrame | np.ndarray) -> np.ndarray:
        return self.law_._predict_positive(X)
