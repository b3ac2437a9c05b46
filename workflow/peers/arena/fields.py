"""Markov random fields of mbi, fitted and summed without JAX, which compiles anew for each set of marginals: where a selection
adds one in each round, that takes nearly all of the time."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numba import njit

from agglearn.optional import require
from arena.marginals import Clique

Spans = dict[Any, tuple[int, int]]


class JunctionTree:
    """Exact sums of a Markov random field with a potential for each of `cliques`. Attributes have the order of the domain.

    Tables of cliques lie one behind the other in a flat vector, and so do those of the tree's nodes and of its separators.
    """

    def __init__(self, domain: Any, cliques: Sequence[Clique]) -> None:
        networkx, trees = require("networkx", "peers"), require("mbi", "peers").junction_tree
        sizes = self.sizes = dict(zip(domain.attributes, domain.shape, strict=True))
        self.tree, _ = trees.make_junction_tree(domain, cliques)
        apart = [next(iter(nodes)) for nodes in networkx.connected_components(self.tree)]
        self.tree.add_edges_from(itertools.pairwise(apart))  # with empty separators
        edges = {frozenset(edge): tuple(x for x in edge[0] if x in edge[1]) for edge in self.tree.edges}
        self.nodes, self.tables = spans({c: c for c in self.tree}, sizes), spans({c: c for c in cliques}, sizes)
        separators, maps = spans(edges, sizes), Maps(sizes)

        def link(node: Clique, names: Clique, start: int) -> tuple[int, int, int]:
            return *self.nodes[node], maps.add(node, names, start)

        links, messages = [], []
        for clique, span in self.tables.items():
            node = next(node for node in self.tree if set(clique) <= set(node))
            links.append((*link(node, clique, span[0]), *span))
        for a, b in trees.message_passing_order(self.tree):
            names, span = edges[frozenset((a, b))], separators[frozenset((a, b))]
            messages.append((*link(a, names, span[0]), *link(b, names, span[0]), *span))
        self._map, self._links = maps.cells(), rows(links, 5)
        self._messages, self._nodes = rows(messages, 8), rows(self.nodes.values(), 2)
        self._beliefs = np.empty(length(self.nodes))
        self._separators, self._ratios = np.empty((2, length(separators)))

    def calibrate(self, potentials: np.ndarray) -> np.ndarray:
        """Tables of the nodes, each up to a factor, by Hugin's messages."""
        beliefs = self._beliefs
        _calibrate(
            potentials, self._map, self._links, self._nodes, self._messages, beliefs, self._separators, self._ratios
        )
        return beliefs

    def marginals(self, potentials: np.ndarray, total: float) -> np.ndarray:
        """Tables of the cliques, each of which sums to `total`."""
        marginals = np.zeros(len(potentials))
        _sum(self.calibrate(potentials), self._map, self._links, total, marginals)
        return marginals

    def flatten(self, factors: Mapping[Clique, np.ndarray]) -> np.ndarray:
        """Potentials of these cliques as the sum of factors, each of which lies in one of them."""
        flat = np.zeros(length(self.tables))
        for names, values in factors.items():
            clique = next(c for c in self.tables if set(names) <= set(c))
            span = slice(*self.tables[clique])
            flat[span] += values.ravel()[cell_of(clique, names, self.sizes)]
        return flat

    def unflatten(self, flat: np.ndarray) -> dict[Clique, np.ndarray]:
        return {c: flat[slice(*span)].reshape([self.sizes[x] for x in c]) for c, span in self.tables.items()}


class Maps:
    """Maps from the cells of tables to those of smaller ones, one behind the other."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes, self.parts, self.offsets, self.end = sizes, [], {}, 0

    def add(self, node: Clique, names: Clique, start: int) -> int:
        """Where the map from a node's cells to those of `names`, the first of which is number `start`, begins."""
        key = node, names, start
        if key not in self.offsets:
            self.parts.append(cell_of(node, names, self.sizes) + start)
            self.offsets[key], self.end = self.end, self.end + len(self.parts[-1])
        return self.offsets[key]

    def cells(self) -> np.ndarray:
        return np.concatenate(self.parts).astype(np.uint32)


class Misfit:
    """½ Σ ‖(a_c μ_c − y_c)/σ_c‖² over measured tables c, and its gradient in the tables that a tree has.

    Factors a of cells are 1, but where values became one after they had been measured.
    """

    def __init__(self, mbi: ModuleType, domain: Any, measured: list, tree: JunctionTree) -> None:
        noisy = spans({k: m.clique for k, m in enumerate(measured)}, tree.sizes)
        maps, terms, ones = Maps(tree.sizes), [], mbi.Factor.ones
        for m, (start, end) in zip(measured, noisy.values(), strict=True):
            clique = next(c for c in tree.tables if set(m.clique) <= set(c))
            terms.append((*tree.tables[clique], maps.add(clique, m.clique, start), start, end))
        self._map, self._terms = maps.cells(), rows(terms, 5)
        factors = [np.ravel(m.query(ones(domain.project(m.clique)))).astype(float) for m in measured]
        self._negative = -np.concatenate(
            [np.ravel(m.noisy_measurement) / a for m, a in zip(measured, factors, strict=True)]
        )
        self._weights = np.concatenate([(a / float(m.stddev)) ** 2 for m, a in zip(measured, factors, strict=True)])

    def __call__(self, marginals: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = np.zeros(len(marginals))
        value = _misfit(marginals, self._map, self._terms, self._weights, self._negative.copy(), gradient)
        return value, gradient


def spans(names_of: Mapping[Any, Clique], sizes: Mapping[str, int]) -> Spans:
    """First cell and end of each table in a flat vector."""
    ends = [*itertools.accumulate((math.prod(sizes[x] for x in names) for names in names_of.values()), initial=0)]
    return dict(zip(names_of, itertools.pairwise(ends), strict=True))


def length(of: Spans) -> int:
    return max((end for _, end in of.values()), default=0)


def rows(of: Iterable[tuple[int, ...]], width: int) -> np.ndarray:
    return np.array([*of], np.int64).reshape(-1, width)


def cell_of(node: Clique, names: Clique, sizes: Mapping[str, int]) -> np.ndarray:
    """The cell of the table of `names` to which each cell of a node's table belongs."""
    stride = dict(zip(names, [math.prod(sizes[x] for x in names[k + 1 :]) for k in range(len(names))], strict=True))
    axes = np.ix_(*(np.arange(sizes[x]) * stride.get(x, 0) for x in node))
    return np.asarray(sum(axes)).ravel()


@njit(cache=True)
def _calibrate(potentials, maps, links, nodes, messages, beliefs, separators, ratios):
    beliefs[:] = 0
    for start, end, offset, _, _ in links:
        table, cells = beliefs[start:end], maps[offset : offset + end - start]
        for i in range(len(table)):
            table[i] += potentials[cells[i]]
    for start, end in nodes:
        table = beliefs[start:end]
        table[:] = np.exp(table - table.max())
    separators[:] = 1
    for start, end, offset, to_start, to_end, to_offset, first, last in messages:
        table, cells = beliefs[start:end], maps[offset : offset + end - start]
        ratios[first:last] = 0
        for i in range(len(table)):
            ratios[cells[i]] += table[i]
        top = 0.0
        for s in range(first, last):
            message = ratios[s]
            ratios[s] = message / separators[s] if separators[s] > 0 else 0.0
            separators[s] = message
            top = max(top, ratios[s])
        ratios[first:last] /= top
        table, cells = beliefs[to_start:to_end], maps[to_offset : to_offset + to_end - to_start]
        for i in range(len(table)):
            table[i] *= ratios[cells[i]]
        table /= table.max()  # products of many messages would underflow


@njit(cache=True)
def _sum(beliefs, maps, links, total, marginals):
    for start, end, offset, first, last in links:
        table, cells = beliefs[start:end], maps[offset : offset + end - start]
        for i in range(len(table)):
            marginals[cells[i]] += table[i]
        marginals[first:last] *= total / marginals[first:last].sum()


@njit(cache=True)
def _misfit(marginals, maps, terms, weights, rest, gradient):
    value = 0.0
    for start, end, offset, first, last in terms:
        table, slope, cells = marginals[start:end], gradient[start:end], maps[offset : offset + end - start]
        for i in range(len(table)):
            rest[cells[i]] += table[i]
        for s in range(first, last):
            value += 0.5 * weights[s] * rest[s] ** 2
        for i in range(len(table)):
            slope[i] += weights[cells[i]] * rest[cells[i]]
    return value


def estimate(mbi: ModuleType, domain: Any, measured: list, iterations: int, start: Any = None) -> Any:
    """Fit a Markov random field by mirror descent (McKenna, Sheldon, Miklau 2019, algorithm 1) with momentum.

    Momentum starts anew where the loss would rise (O'Donoghue and Candès 2015). A hundred such steps come about as far as
    700 of mbi's. Where 50 lower the loss by less than 10⁻⁴ of it, the fit ends.
    """
    total = mbi.estimation.minimum_variance_unbiased_total(measured)
    known = mbi.marginal_loss.from_linear_measurements(measured, domain)
    tree = JunctionTree(domain, tuple(known.cliques))
    misfit, step = Misfit(mbi, domain, measured, tree), 2 / (float(known.lipschitz) * total)
    theta = tree.flatten(factors_of(start) if start else {})
    mu, moved, moves = tree.marginals(theta, total), np.zeros(len(theta)), 0
    (loss, gradient), before = misfit(mu), np.inf
    for k in range(1, iterations + 1):
        ahead = theta - step * gradient + moves / (moves + 3) * moved
        mu_ahead = tree.marginals(ahead, total)
        loss_ahead, gradient_ahead = misfit(mu_ahead)
        if loss_ahead <= loss:
            moved, moves = ahead - theta, moves + 1
            theta, mu, loss, gradient = ahead, mu_ahead, loss_ahead, gradient_ahead
        elif moves:
            moves = 0
        else:
            step /= 2
        if k % 50 == 0:
            if before - loss <= 1e-4 * loss:
                break
            before = loss

    def vector(flat: np.ndarray) -> Any:
        factors = {c: mbi.Factor(domain.project(c), table) for c, table in tree.unflatten(flat).items()}
        return mbi.CliqueVector(domain, tuple(factors), factors)

    return mbi.MarkovRandomField(potentials=vector(theta), marginals=vector(mu), total=total)


def factors_of(model: Any) -> dict[Clique, np.ndarray]:
    """Logarithms of the factors of a Markov random field."""
    return {f.domain.attributes: np.asarray(f.values, float) for f in model.potentials.tables.values()}


def tables_of(model: Any, cliques: Iterable[Clique]) -> dict[Clique, np.ndarray]:
    """Flat tables of one or two attributes of a Markov random field."""
    cliques, tree = set(cliques), JunctionTree(model.domain, tuple(model.cliques))
    beliefs, tables = tree.calibrate(tree.flatten(factors_of(model))), {}
    beliefs = {node: beliefs[slice(*span)].reshape([tree.sizes[x] for x in node]) for node, span in tree.nodes.items()}
    for first in {clique[0] for clique in cliques}:
        joint = joint_tables(first, tree.tree, beliefs)
        tables |= {(first, name): table for name, table in joint.items()} | {(first,): joint[first].sum(axis=1)}
    return {c: tables[c].ravel() * (float(model.total) / tables[c].sum()) for c in cliques}


def joint_tables(first: str, tree: Any, beliefs: dict[Clique, np.ndarray]) -> dict[str, np.ndarray]:
    """Attribute → its table with `first`, up to a factor.

    A node that has `first` begins. Each node passes the table of `first` and a separator on to the node behind it.
    """
    root, tables = next(node for node in tree if first in node), {}
    # The axis "" is a copy of `first`, which may be in a separator itself.
    ahead = [(root, None, (first,), np.diag(contract((first,), (beliefs[root], root))))]
    while ahead:
        node, before, separator, joint = ahead.pop()
        given = contract(separator, (beliefs[node], node))
        joint = joint / np.where(given > 0, given, 1)
        after = {other: tuple(x for x in node if x in other) for other in tree.neighbors(node) if other != before}
        for names in {*after.values(), *((name,) for name in node)}:
            axes = tuple(dict.fromkeys((*separator, *names)))
            near = contract(axes, (beliefs[node], node)), axes
            tables[names] = contract(("", *names), (joint, ("", *separator)), near)
        ahead += [(other, node, names, tables[names]) for other, names in after.items()]
    return {names[0]: table for names, table in tables.items() if len(names) == 1}


def contract(out: Clique, *factors: tuple[np.ndarray, Clique]) -> np.ndarray:
    """The product of tables, summed over the axes that `out` does not name."""
    number = {name: k for k, name in enumerate(dict.fromkeys(name for _, names in factors for name in names))}
    operands = [x for table, names in factors for x in (table, [number[name] for name in names])]
    return np.einsum(*operands, [number[name] for name in out])
