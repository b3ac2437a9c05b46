"""A tree with tables on its edges, as kernels want it: rooted, with tables of one size."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agglearn.errors import DataError


@dataclass(frozen=True)
class Rooted:
    """A tree's nodes from the root down, as kernels want them.

    order : (N,) parents first. parent, edge : (N,) of each node, −1 at the root. children, bounds : lists of children,
    one after the other. flipped : (N,) whether the edge was given child first.
    """

    order: np.ndarray
    parent: np.ndarray
    edge: np.ndarray
    children: np.ndarray
    bounds: np.ndarray
    flipped: np.ndarray


class PaddedTree:
    """A tree and the logarithms of its edges' tables, padded to the largest size.

    Parameters
    ----------
    edges, log_potentials : see `agglearn.collective.TreeModel`.

    Attributes
    ----------
    n_nodes, sizes : number of nodes, and of the states of each. rooted : the tree from node 0 down.
    log_tables, tables : (K, L, L) distinct tables with the parent's state first, their exponentials scaled to a maximum of 1.
    which : (N,) the table of the edge above each node. tops : (K,) what scaling took from each table. log_scale : sum of that over the edges.

    Raises
    ------
    DataError : the edges make no tree, or tables do not fit together.
    """

    def __init__(self, edges: Sequence[tuple[int, int]], log_potentials: Sequence[np.ndarray]):
        self.edges = [(int(i), int(j)) for i, j in edges]
        kept = {id(t): np.asarray(t, float) for t in log_potentials}
        self.log_potentials = [kept[id(t)] for t in log_potentials]
        self.sizes = _sizes(self.edges, self.log_potentials)
        self.n_nodes = len(self.sizes)
        self.rooted = _rooted(self.n_nodes, self.edges)
        self._stack()

    def _stack(self) -> None:
        """Log-tables with the parent's state first, padded to the largest size, equal ones once."""
        size, known = int(self.sizes.max()), {}
        self.which = np.zeros(self.n_nodes, np.int64)
        tables = []
        for node in self.rooted.order[1:]:
            table, flipped = self.log_potentials[self.rooted.edge[node]], bool(self.rooted.flipped[node])
            key = (id(table), flipped)
            if key not in known:
                known[key] = len(tables)
                padded = np.full((size, size), -np.inf)
                given = table.T if flipped else table
                padded[: given.shape[0], : given.shape[1]] = given
                tables.append(padded)
            self.which[node] = known[key]
        self.log_tables = np.array(tables)
        self.tops = self.log_tables.max(axis=(1, 2))
        self.tables = np.exp(self.log_tables - self.tops[:, None, None])
        self.log_scale = float(self.tops[self.which[self.rooted.order[1:]]].sum())

    @property
    def size(self) -> int:
        """The largest number of states of a node."""
        return int(self.sizes.max())

    @cached_property
    def degrees(self) -> np.ndarray:
        """(N,) number of edges at each node, ν."""
        return np.bincount(np.ravel(self.edges), minlength=self.n_nodes)

    @cached_property
    def states(self) -> np.ndarray:
        """(N, L) which states exist."""
        return np.arange(self.size) < self.sizes[:, None]

    @cached_property
    def single_tables(self) -> np.ndarray:
        """`tables` in single precision."""
        return self.tables.astype(np.float32)

    def split_nodes(self, padded: np.ndarray) -> list[np.ndarray]:
        return [row[:size] for row, size in zip(padded, self.sizes, strict=True)]

    def split_edges(self, padded: np.ndarray) -> list[np.ndarray]:
        """(N, L, L) by child, parent first → one array per edge as given."""
        found: list = [None] * len(self.edges)
        for node in self.rooted.order[1:]:
            e = self.rooted.edge[node]
            table = padded[node].T if self.rooted.flipped[node] else padded[node]
            i, j = self.edges[e]
            found[e] = table[: self.sizes[i], : self.sizes[j]]
        return found

    def pad_edges(self, tables, fill: float = 0.0) -> np.ndarray:
        """One array per edge as given → (N, L, L) by child, parent first."""
        padded = np.full((self.n_nodes, self.size, self.size), fill)
        for node in self.rooted.order[1:]:
            table = tables[self.rooted.edge[node]]
            table = table.T if self.rooted.flipped[node] else table
            padded[node, : table.shape[0], : table.shape[1]] = table
        return padded

    # -- names for messages -------------------------------------------------------------------------------------

    def node_name(self, node: int) -> str:
        """A node as the user numbers it."""
        return f"node {node}"

    def edge_cell_name(self, cell: int) -> str:
        """The flat cell of an (N, L, L) array of edges by child, as the user numbers it."""
        node, i, j = np.unravel_index(cell, (self.n_nodes, self.size, self.size))
        a, b = self.edges[self.rooted.edge[node]]
        return f"edge {a}–{b}, states {j}, {i}" if self.rooted.flipped[node] else f"edge {a}–{b}, states {i}, {j}"


def _sizes(edges, tables) -> np.ndarray:
    """(N,) states per node; DataError where tables disagree or are no tables."""
    if not edges:
        raise DataError("a model needs at least one edge")
    if len(edges) != len(tables):
        raise DataError(f"{len(edges)} edges but {len(tables)} tables of log-potentials; give one for each")
    known: dict[int, int] = {}
    for (i, j), table in zip(edges, tables, strict=True):
        if table.ndim != 2 or np.isnan(table).any() or (table == np.inf).any():
            raise DataError(f"edge {i}–{j}: log-potentials must be a table of numbers or −inf, got shape {table.shape}")
        for node, size in ((i, table.shape[0]), (j, table.shape[1])):
            if known.setdefault(node, size) != size:
                raise DataError(f"edge {i}–{j}: node {node} has {size} states here and {known[node]} at another edge")
    n = max(known) + 1
    if missing := sorted(set(range(n)) - set(known)):
        raise DataError(f"node {missing[0]} has no edge: the graph must be one tree over nodes 0 to {n - 1}")
    return np.array([known[i] for i in range(n)])


def _rooted(n: int, edges) -> Rooted:
    """The tree from node 0 down; DataError with the edge that closes a cycle or a node that is cut off."""
    at: list[list] = [[] for _ in range(n)]
    group = list(range(n))

    def find(i):
        while group[i] != i:
            i = group[i]
        return i

    for e, (i, j) in enumerate(edges):
        if find(i) == find(j):
            raise DataError(f"edge {i}–{j} closes a cycle; a tree is required (or use a junction tree: from_cliques)")
        group[find(i)] = find(j)
        at[i].append((e, j, False))
        at[j].append((e, i, True))
    order, parent, edge, flipped = [0], np.full(n, -1), np.full(n, -1), np.zeros(n, bool)
    for node in order:
        for e, other, reverse in at[node]:
            if e != edge[node]:
                parent[other], edge[other], flipped[other] = node, e, reverse
                order.append(other)
    if len(order) < n:
        cut = sorted(set(range(n)) - set(order))[0]
        raise DataError(f"node {cut} is not connected with node 0; a tree is required")
    children = [[c for c in order if parent[c] == p] for p in range(n)]
    bounds = np.concatenate([[0], np.cumsum([len(c) for c in children])])
    flat = np.array([c for part in children for c in part], np.int64)
    return Rooted(np.array(order), parent, edge, flat, bounds.astype(np.int64), flipped)
