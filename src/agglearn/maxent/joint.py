"""Maximum entropy from noisy tables and the exact counts of a sample of further records."""

from dataclasses import replace

import numpy as np

from agglearn.errors import DataError
from agglearn.maxent.cell_noise import gains
from agglearn.maxent.model import MaxEntClassifier, Pair
from agglearn.maxent.noise_aware import SHARE, SMOOTH, NoiseAwareMaxEntClassifier, posterior_means
from agglearn.maxent.pcd_step import SMALLEST_CURVATURE
from agglearn.maxent.weight_index import WeightIndex
from agglearn.observations import ContingencyTables, TablesAndSample


class JointMaxEntClassifier(NoiseAwareMaxEntClassifier):
    """`NoiseAwareMaxEntClassifier` of tables and a sample of further records, by one likelihood of both.

    Counts of the N records behind noisy tables are latent, with expectations N/(N + n) of those of all records. Counts of
    the n records of the sample are known. Without noise it learns from the sums of both. It has no intervals. DataError for
    hashed pairs, for cells that a threshold hides, and for `posterior="apart"`.

    Parameters
    ----------
    n_chains, l2_mu, l2_theta, max_iter, step_mu, step_theta, momentum, n_sweeps, sampler, n_proposals
    gradient, clip_ratio, preconditioner, clip, marginalize_label, average, initial_chains, missing
    rare_cells, trace_every, tol, engine, posterior, random_state
        As in `NoiseAwareMaxEntClassifier`, and so are the attributes.
    """

    observes = TablesAndSample  # type: ignore[assignment]  # more than tables

    def _fit(self, observation: TablesAndSample) -> None:  # type: ignore[override]
        if reason := why_apart(observation.tables):
            raise DataError(f"tables: {reason}; learn from tables and sample apart")
        if self.posterior != "joint":
            raise DataError(f"posterior: {self.posterior!r} has no likelihood of tables and sample; take 'joint'")
        tables, counted = observation.tables, _count(observation)
        self._fraction = tables.total / (tables.total + counted.total)
        self._counted = np.hstack([np.reshape(counted.dense(*key), (2, -1)) for key in tables.tables])
        super()._fit(
            replace(
                tables,
                total=tables.total + counted.total,
                positives=tables.positives + counted.positives,
                tables={key: table + counted.tables[key] for key, table in tables.tables.items()},
            )
        )
        self._evidence = "tables and sample have noise of their own"

    def warm_up(self) -> None:
        NoiseAwareMaxEntClassifier(**self.get_params(deep=False)).warm_up()

    def _gradients(self, index: WeightIndex, weights: Pair, expected: Pair, out: np.ndarray) -> np.ndarray:
        if self._noise is None:
            return super()._gradients(index, weights, expected, out)
        d_hat, c_hat = latent = self._fraction * np.stack(expected)
        self._expected = latent if self._expected is None else self._expected + SMOOTH * (latent - self._expected)
        gain, (d, c) = gains(self._expected[0], self._expected[1], *self._noise), self._counted
        d_star, c_star = posterior_means(index.d - d, index.c - c, d_hat, c_hat, gain)
        MaxEntClassifier._gradients(self, replace(index, d=d_star + d, c=c_star + c), weights, expected, out)
        penalties: tuple[float | np.ndarray, ...] = (self.l2_mu, self._l2_theta)
        for h, follows, l2 in zip(out[1], (gain.dd, gain.cc), penalties, strict=True):
            information = (h - 2 * l2) * np.maximum(self._fraction * follows + 1 - self._fraction, SHARE)
            h[:] = np.maximum(information + 2 * l2, SMALLEST_CURVATURE)
        return out


def why_apart(tables: ContingencyTables) -> str | None:
    """Why these tables and a sample cannot be counted together, or None."""
    if tables.hashed_pairs:
        return "hashed pairs have no cells for the records of a sample"
    if tables.noise is not None and tables.noise.threshold:
        return "cells below a threshold are hidden"
    return None


def _count(observation: TablesAndSample) -> ContingencyTables:
    tables, sample, names = observation.tables, observation.sample, observation.tables.names
    pairs = [(names[i], names[j]) for i, j in tables.pairs]
    return ContingencyTables.from_codes(tables.encoder, sample.codes, np.asarray(sample.y), tables.label, pairs)
