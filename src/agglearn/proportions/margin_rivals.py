"""Simpler ways from margins to tables: independence, constrained least squares, a linear programme."""

import numpy as np
from scipy.optimize import linprog, nnls
from scipy.sparse import bmat, eye_array, kron

from agglearn.errors import NotAvailable
from agglearn.proportions.ecological import MarginEstimator, unit_sum

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
    """Voting probabilities with the smallest sum of absolute errors of votes (lphom), then a table for each unit.

    The probabilities reproduce the district's votes. A unit's table is the one with its margins that is nearest to
    them in relative entropy. nslphom takes a second linear programme there.

    Parameters
    ----------
    random_state : int or None
        Unused: the result is deterministic.
    """

    def _infer(self, groups: np.ndarray, votes: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
        (n_units, n_rows), n_options = groups.shape, votes.shape[1]
        options, errors = eye_array(n_options), eye_array(n_units * n_options)
        votes_of_units = [kron(groups, options), -errors, errors]
        sums = [kron(eye_array(n_rows), np.ones((1, n_options))), None, None]
        votes_in_all = [kron(groups.sum(axis=0)[None], options), None, None]
        equations = bmat([votes_of_units, sums, votes_in_all])
        target = np.concatenate([votes.ravel(), np.ones(n_rows), votes.sum(axis=0)])
        cost = np.concatenate([np.zeros(n_rows * n_options), np.tile(np.repeat(weights, n_options), 2)])
        solution = linprog(cost, A_eq=equations.tocsr(), b_eq=target, method="highs")
        if solution.x is None:
            raise NotAvailable(f"the linear programme has no solution: {solution.message}")
        p = solution.x[: n_rows * n_options].reshape(n_rows, n_options)
        return {"tables_": unit_sum(groups, votes, p)}
