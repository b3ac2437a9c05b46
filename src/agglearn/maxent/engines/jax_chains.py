"""Lines 2–7 of Algorithm 1 (Gilotte et al. 2022) in JAX, all chains at once. On one device a seed gives one result."""

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from agglearn.maxent.engines.numba_chains import proposals, starting_positions, wide_features
from agglearn.maxent.weight_index import WeightIndex
from agglearn.networks import start_jax
from agglearn.optional import require

if TYPE_CHECKING:
    from jax import Array

jax = require("jax", "networks")
jnp = require("jax.numpy", "networks")

LARGEST_ARRAY = 1 << 26  # numbers in the largest intermediate array
UNIT = 1 << 23  # probabilities are counted in multiples of 2^-23, whose sums do not depend on their order
HALF = 1 << 12  # they are added in two halves, each below 2^12, so that sums over `MAX_CHAINS` chains stay below 2^32
MAX_CHAINS = 1 << 20


class Shape(NamedTuple):
    offsets: tuple[int, ...]  # of each feature, as in `WeightIndex`
    sizes: tuple[int, ...]
    wide: tuple[bool, ...]  # whether Metropolis–Hastings moves a feature
    tables: tuple[tuple[int, int, int], ...]  # (feature, feature, first cell) of each table
    n_cells: int
    n_proposals: int  # per feature and sweep


class Weights(NamedTuple):
    theta: "Array"  # (K, K), of pairs with the label, symmetric, and of single features on the diagonal
    leading: "list[Array]"  # per feature (2(K + 1), size): rows of y = 0, its single weights, the same of y = 1
    threshold: "Array"  # (K,), as are the next two, see `numba_chains.proposals`
    alias: "Array"
    log_q: "Array"


class JaxChains:
    def __init__(
        self, index: WeightIndex, n: int, intercept: float, seed: int, start: str = "marginals", sampler: str = "gibbs",
        n_proposals: int = 8,
    ) -> None:  # fmt: skip
        start_jax()
        self.index, self.n, self.intercept, self.seed = index, n, np.float32(intercept), seed
        tables = tuple((d, e, int(index.cells[d, e])) for d, e in np.argwhere(index.cells >= 0).tolist())
        self.shape = Shape(
            tuple(index.offsets.tolist()), tuple(index.sizes.tolist()), tuple(wide_features(index, sampler).tolist()),
            tables, len(index.rows), n_proposals,
        )  # fmt: skip
        width = max(*self.shape.sizes, len(tables), len(self.shape.sizes) ** 2)
        n_blocks = math.ceil(n / min(MAX_CHAINS, max(1, LARGEST_ARRAY // width)))
        positions = starting_positions(index, n, seed, start).astype(np.int32)
        self.blocks = [jnp.asarray(block) for block in np.array_split(positions, n_blocks)]
        self.cells = jnp.asarray(index.rows), jnp.asarray(index.columns)
        threshold, alias, log_q = proposals(index)
        self.proposals = jnp.asarray(threshold), jnp.asarray(alias.astype(np.int32)), jnp.asarray(log_q)

    @property
    def positions(self) -> np.ndarray:
        return np.concatenate([np.asarray(block) for block in self.blocks])

    def set_weights(self, mu: np.ndarray, theta: np.ndarray) -> None:
        mu, theta = (self.index.expand(weights).astype(np.float32) for weights in (mu, theta))
        with_label, leading = _spread(self.shape, *self.cells, mu, theta)
        self.weights = Weights(with_label, leading, *self.proposals)

    def sweep(self, iteration: int, n_sweeps: int = 1, marginalize: bool = True) -> tuple[np.ndarray, np.ndarray]:
        counts, sums = np.zeros((2, len(self.index.rows)))
        counted, total = 0, (empty := jnp.zeros((len(counts), 3), jnp.uint32))
        for number, block in enumerate(self.blocks):
            words = np.random.SeedSequence([self.seed, iteration, number]).generate_state(2)
            key = jax.random.wrap_key_data(words, impl="threefry2x32")
            self.blocks[number], total = _sweep(
                self.shape, n_sweeps, marginalize, block, self.weights, self.intercept, key, total
            )
            counted += len(block)
            if counted + len(self.blocks[0]) > MAX_CHAINS or number == len(self.blocks) - 1:
                count, added = map(np.asarray, _floats(total))
                counts += count
                sums += added
                counted, total = 0, empty
        return self.index.fold(counts), self.index.fold(sums)


@functools.partial(jax.jit, static_argnums=0)
def _spread(shape: Shape, rows: "Array", columns: "Array", mu: "Array", theta: "Array") -> "tuple[Array, list[Array]]":
    """Matrices of `Weights` from those of the cells."""
    k = sum(shape.sizes)
    with_label = jnp.zeros((k, k), jnp.float32).at[rows, columns].set(theta).at[columns, rows].set(theta)
    alone, leading = jnp.where(rows == columns, k, rows), jnp.zeros((2, k + 1, k), jnp.float32)
    for y, values in enumerate((mu, mu + theta)):
        other = jnp.where(rows == columns, k + 1, columns)  # outside: dropped
        leading = leading.at[y, alone, columns].set(values).at[y, other, rows].set(values, mode="drop")
    flat = leading.reshape(2 * (k + 1), k)
    borders = zip(shape.offsets, shape.sizes, strict=True)
    return with_label, [flat[:, offset : offset + size] for offset, size in borders]


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _sweep(
    shape: Shape, n_sweeps: int, marginalize: bool, x: "Array", weights: Weights, intercept: "Array", key: "Array",
    total: "Array",
) -> "tuple[Array, Array]":  # fmt: skip
    """Positions, and `total` (cells, 3) with the block's counts of chains and both halves of Σ P(Y=1|X) added."""
    for k in range(n_sweeps):
        label, moves = jax.random.split(jax.random.fold_in(key, k))
        y = (_uniform(label, (len(x),)) < _probability(x, weights, intercept)).astype(jnp.int32)
        x = _move(shape, x, y, weights, moves)
    p = _probability(x, weights, intercept) if marginalize else y.astype(jnp.float32)
    return x, _tally(shape, x, p, total)


@jax.jit
def _floats(total: "Array") -> "tuple[Array, Array]":
    count, low, high = total.astype(jnp.float32).T
    return count, low / UNIT + high * (HALF / UNIT)


def _uniform(key: "Array", shape: tuple[int, ...]) -> "Array":
    return jax.random.uniform(key, shape, jnp.float32)


def _probability(x: "Array", weights: Weights, intercept: "Array") -> "Array":
    z = jnp.full(len(x), intercept, jnp.float32)
    for d in range(x.shape[1]):
        z += weights.theta[x[:, d, None], x[:, d:]].sum(axis=1)
    return jax.nn.sigmoid(z)


def _move(shape: Shape, x: "Array", y: "Array", weights: Weights, key: "Array") -> "Array":
    k = len(weights.theta)
    label = (y * (k + 1))[:, None]
    for d in range(len(shape.sizes)):
        rows = jnp.concatenate([x + label, label + k], axis=1)
        step = _metropolis if shape.wide[d] else _gibbs
        x = x.at[:, d].set(step(shape, d, x[:, d], rows, weights, jax.random.fold_in(key, d)))
    return x


def _gibbs(shape: Shape, d: int, now: "Array", rows: "Array", weights: Weights, key: "Array") -> "Array":
    logits = weights.leading[d][rows].sum(axis=1)
    cumulative = jnp.cumsum(jax.nn.softmax(logits, axis=1), axis=1)
    u = _uniform(key, (len(rows), 1)) * cumulative[:, -1:]
    return shape.offsets[d] + jnp.minimum((cumulative <= u).sum(axis=1, dtype=jnp.int32), shape.sizes[d] - 1)


def _metropolis(shape: Shape, d: int, now: "Array", rows: "Array", weights: Weights, key: "Array") -> "Array":
    leading, offset, size = weights.leading[d], shape.offsets[d], shape.sizes[d]

    def log_weight(position: "Array") -> "Array":
        return leading[rows, (position - offset)[:, None]].sum(axis=1)

    def step(k: int, state: "tuple[Array, Array]") -> "tuple[Array, Array]":
        now, current = state
        u, v, w = _uniform(jax.random.fold_in(key, k), (3, len(rows)))
        new = offset + jnp.minimum((u * size).astype(jnp.int32), size - 1)
        new = jnp.where(v < weights.threshold[new], new, weights.alias[new])
        proposed = log_weight(new)
        accepted = jnp.log(w) < proposed - current + weights.log_q[now] - weights.log_q[new]
        return jnp.where(accepted, new, now), jnp.where(accepted, proposed, current)

    return jax.lax.fori_loop(0, shape.n_proposals, step, (now, log_weight(now)))[0]


def _tally(shape: Shape, x: "Array", p: "Array", total: "Array") -> "Array":
    """`total` (cells, 3) uint32 with counts of chains, and low and high halves of their p in units of 1/`UNIT`."""
    quantum = jnp.round(p * UNIT).astype(jnp.uint32)
    codes = x - jnp.array(shape.offsets, jnp.int32)
    added = jnp.stack([jnp.ones_like(quantum), quantum % HALF, quantum // HALF], axis=1)
    for d, e, first in shape.tables:
        cell = codes[:, d] if d == e else codes[:, d] * shape.sizes[e] + codes[:, e]
        total = total.at[first + cell].add(added)
    return total
