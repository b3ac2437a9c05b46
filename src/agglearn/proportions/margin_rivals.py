"""Simpler ways from margins to tables: independence, constrained least squares, a linear programme."""

from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog, nnls
from scipy.sparse import bmat, eye_array, hstack, kron, sparray, vstack

from agglearn.errors import NotAvailable
from agglearn.proportions.ecological import MarginEstimator, unit_sum
from agglearn.settings import Whole

STRONG = 1e3  # weight of the rows that make probabilities add up to 1


class IndependentTables(MarginEstimator):
    """In each unit all groups vote alike: its table is the product of its margins.

    Parameters
    ----------
    random_state : int or None
        Unused: the result is deterministic.
    """

    def _infer(self, groups: np.ndarray, votes: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
        return {"tables_": groups.T @ (votes / groups.sum(axis=1, keepdims=True))}


class LeastSquaresTables(MarginEstimator):
    """Goodman's regression with probabilities between 0 and 1, by least squares of votes / √people.

    Each unit's expected table is scaled to its margins.

    Parameters
    ----------
    random_state : int or None
        Unused: the result is deterministic.
    """

    def _infer(self, groups: np.ndarray, votes: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
        scale = np.sqrt(weights / groups.sum(axis=1))[:, None]
        n, m = groups * scale, votes * scale
        (n_rows, n_options), strong = (n.shape[1], m.shape[1]), STRONG * float(np.sqrt((n**2).mean()))
        equations = np.kron(n, np.eye(n_options))
        sums = np.kron(np.eye(n_rows), np.full((1, n_options), strong))
        target = np.concatenate([m.ravel(), np.full(n_rows, strong)])
        p, _ = nnls(np.vstack([equations, sums]), target, maxiter=100 * sums.shape[1])
        return {"tables_": unit_sum(groups, votes, p.reshape(n_rows, n_options))}


class LinearProgrammeTables(MarginEstimator):
    """Voting probabilities with the smallest sum of absolute errors of votes (lphom), then nearest tables (nslphom).

    The probabilities reproduce the district's votes. In each round, every unit gets a table with its margins whose sum
    of absolute differences from them is the smallest, and the sum of these tables gives the next probabilities (Pavía
    and Romero 2024). The round with the least such sum to its own probabilities is kept. A unit has many nearest
    tables, of which the solver (HiGHS, dual simplex) takes a corner.

    Parameters
    ----------
    n_rounds : int
        With 0 rounds (lphom) a unit's table is the one that is nearest in relative entropy.
    random_state : int or None
        Unused: the result is deterministic.
    """

    n_rounds: Whole = 10

    def _infer(self, groups: np.ndarray, votes: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
        p = homogeneous(groups, votes, weights)
        if not self.n_rounds:
            return {"tables_": unit_sum(groups, votes, p)}
        rounds = []
        for _ in range(self.n_rounds):
            tables = nearest_tables(groups, votes, p)
            counted = np.tensordot(weights, tables, 1)
            people = counted.sum(axis=1, keepdims=True)
            p = np.divide(counted, people, out=p.copy(), where=people > 0)
            distance = float(weights @ abs(tables - groups[:, :, None] * p).sum(axis=(1, 2)))
            rounds.append((distance, tables.sum(axis=0)))
        return {"tables_": min(rounds, key=itemgetter(0))[1]}


def homogeneous(groups: np.ndarray, votes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(R, C) probabilities that reproduce the votes of all units together, with the least sum of absolute errors in a unit."""
    (n_units, n_rows), n_options = groups.shape, votes.shape[1]
    options, errors = eye_array(n_options), eye_array(n_units * n_options)
    votes_of_units = [kron(groups, options), -errors, errors]
    sums = [kron(eye_array(n_rows), np.ones((1, n_options))), None, None]
    votes_in_all = [kron(groups.sum(axis=0)[None], options), None, None]
    equations = bmat([votes_of_units, sums, votes_in_all])
    target = np.concatenate([votes.ravel(), np.ones(n_rows), votes.sum(axis=0)])
    cost = np.concatenate([np.zeros(n_rows * n_options), np.tile(np.repeat(weights, n_options), 2)])
    return _solve(cost, equations, target)[: n_rows * n_options].reshape(n_rows, n_options)


def nearest_tables(groups: np.ndarray, votes: np.ndarray, p: np.ndarray) -> np.ndarray:
    """(U, R, C) tables with the margins (U, R) and (U, C) and the smallest sum of |cell − people · p|."""
    expected = groups[:, :, None] * p
    by_unit = vstack(
        [kron(eye_array(len(p)), np.ones((1, p.shape[1]))), kron(np.ones((1, len(p))), eye_array(p.shape[1]))]
    )
    margins = kron(eye_array(len(groups)), by_unit)
    lacking = np.hstack([groups - expected.sum(axis=2), votes - expected.sum(axis=1)]).ravel()
    highest = np.concatenate([np.full(expected.size, np.inf), expected.ravel()])  # of what is added and taken away
    solution = _solve(np.ones(2 * expected.size), hstack([margins, -margins]), lacking, highest)
    added, taken = np.split(solution, 2)
    return expected + (added - taken).reshape(expected.shape)


def _solve(cost: np.ndarray, equations: sparray, target: np.ndarray, highest: ArrayLike = np.inf) -> np.ndarray:
    bounds = np.stack(np.broadcast_arrays(0.0, np.broadcast_to(highest, cost.shape)), axis=1)
    solution = linprog(cost, A_eq=equations.tocsr(), b_eq=target, bounds=bounds, method="highs-ds")
    if solution.x is None:
        raise NotAvailable(f"the linear programme has no solution: {solution.message}")
    return solution.x
