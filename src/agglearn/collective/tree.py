"""A tree with tables on its edges in the layout of the kernels: rooted, with tables of one size."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agglearn.errors import DataError

Tables = Sequence[np.ndarray] | np.ndarray  # one (L_i, L_j) array per edge


@dataclass(frozen=True)
class Rooted:
    """A tree's nodes from the root down.

    order : (N,) nodes, parents first. parent, edge : (N,) of each node, −1 at the root. children : nodes by parent.
    bounds : (N + 1,) children of node p are `children[bounds[p]:bounds[p + 1]]`. flipped : (N,) whether the edge was given
    child first.
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
    n_nodes, sizes : number of nodes, and of the states of each. rooted : the tree with root 0.
    log_tables : (K, L, L) distinct tables, parent's state first. tables : (K, L, L) their exponentials, with maximum 1.
    table_index : (N,) the table of the edge above each node. log_scales : (K,) logarithm of the maximum of each table.
    log_scale : sum of `log_scales` over the edges.

    Raises
    ------
    DataError : the edges form no tree, or tables do not fit together.
    """

    def __init__(self, edges: Sequence[tuple[int, int]], log_potentials: Sequence[np.ndarray]) -> None:
        self.edges = [(int(i), int(j)) for i, j in edges]
        arrays = {id(t): np.asarray(t, float) for t in log_potentials}
        self.log_potentials = [arrays[id(t)] for t in log_potentials]
        self.sizes = _count_states(self.edges, self.log_potentials)
        self.n_nodes = len(self.sizes)
        self.rooted = _root(self.n_nodes, self.edges)
        self._stack_tables()

    def _stack_tables(self) -> None:
        """Set `log_tables`, `tables` and what belongs to them. Equal tables are stored once."""
        size = self.size
        indices: dict[tuple[int, bool], int] = {}
        self.table_index = np.zeros(self.n_nodes, np.int64)
        tables: list[np.ndarray] = []
        for node in self.rooted.order[1:]:
            table, flipped = self.log_potentials[self.rooted.edge[node]], bool(self.rooted.flipped[node])
            key = (id(table), flipped)
            if key not in indices:
                indices[key] = len(tables)
                padded = np.full((size, size), -np.inf)
                parent_first = table.T if flipped else table
                padded[: parent_first.shape[0], : parent_first.shape[1]] = parent_first
                tables.append(padded)
            self.table_index[node] = indices[key]
        self.log_tables = np.array(tables)
        self.log_scales = self.log_tables.max(axis=(1, 2))
        self.tables = np.exp(self.log_tables - self.log_scales[:, None, None])
        self.log_scale = float(self.log_scales[self.table_index[self.rooted.order[1:]]].sum())

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
        """One array per node from a padded (N, L) array."""
        return [row[:size] for row, size in zip(padded, self.sizes, strict=True)]

    def split_edges(self, padded: np.ndarray) -> list[np.ndarray]:
        """One array per edge, as the edge was given, from a padded (N, L, L) array by child, parent's state first."""
        nodes = {self.rooted.edge[node]: node for node in self.rooted.order[1:]}
        tables = [
            padded[nodes[e]].T if self.rooted.flipped[nodes[e]] else padded[nodes[e]] for e in range(len(self.edges))
        ]
        return [t[: self.sizes[i], : self.sizes[j]] for t, (i, j) in zip(tables, self.edges, strict=True)]

    def pad_edges(self, tables: Tables, fill: float = 0.0) -> np.ndarray:
        """Padded (N, L, L) array by child, parent's state first, from one array per edge."""
        padded = np.full((self.n_nodes, self.size, self.size), fill)
        for node in self.rooted.order[1:]:
            table = tables[self.rooted.edge[node]]
            table = table.T if self.rooted.flipped[node] else table
            padded[node, : table.shape[0], : table.shape[1]] = table
        return padded

    # -- names for messages -------------------------------------------------------------------------------------

    def node_name(self, node: int) -> str:
        """Name of a node for messages."""
        return f"node {node}"

    def node_cell_name(self, cell: int) -> str:
        """Name of a flat cell of an (N, L) array."""
        return f"{self.node_name(cell // self.size)}, state {cell % self.size}"

    def edge_cell_name(self, cell: int) -> str:
        """Name of a flat cell of an (N, L, L) array of edges by child."""
        node, i, j = np.unravel_index(cell, (self.n_nodes, self.size, self.size))
        a, b = self.edges[self.rooted.edge[node]]
        return f"edge {a}–{b}, states {j}, {i}" if self.rooted.flipped[node] else f"edge {a}–{b}, states {i}, {j}"


def _count_states(edges: list[tuple[int, int]], tables: list[np.ndarray]) -> np.ndarray:
    """(N,) states per node. Raises DataError where tables disagree or are not numeric."""
    if not edges:
        raise DataError("a model needs at least one edge")
    if len(edges) != len(tables):
        raise DataError(f"{len(edges)} edges but {len(tables)} tables of log-potentials; give one for each")
    sizes: dict[int, int] = {}
    for (i, j), table in zip(edges, tables, strict=True):
        if table.ndim != 2 or np.isnan(table).any() or (table == np.inf).any():
            raise DataError(f"edge {i}–{j}: log-potentials must be a table of numbers or −inf, got shape {table.shape}")
        for node, size in ((i, table.shape[0]), (j, table.shape[1])):
            if sizes.setdefault(node, size) != size:
                raise DataError(f"edge {i}–{j}: node {node} has {size} states here and {sizes[node]} at another edge")
    n = max(sizes) + 1
    if missing := sorted(set(range(n)) - set(sizes)):
        raise DataError(f"node {missing[0]} has no edge: the graph must be one tree over nodes 0 to {n - 1}")
    return np.array([sizes[i] for i in range(n)])


def _root(n: int, edges: list[tuple[int, int]]) -> Rooted:
    """The tree with root 0. Raises DataError with the edge that closes a cycle or a node that is cut off."""
    neighbours: list[list[tuple[int, int, bool]]] = [[] for _ in range(n)]  # (edge, node, whether the edge is reversed)
    group = list(range(n))

    def find(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    for e, (i, j) in enumerate(edges):
        if find(i) == find(j):
            raise DataError(f"edge {i}–{j} closes a cycle; a tree is required (or use a junction tree: from_cliques)")
        group[find(i)] = find(j)
        neighbours[i].append((e, j, False))
        neighbours[j].append((e, i, True))
    order, parent, edge, flipped = [0], np.full(n, -1), np.full(n, -1), np.zeros(n, bool)
    for node in order:
        for e, other, reverse in neighbours[node]:
            if e != edge[node]:
                parent[other], edge[other], flipped[other] = node, e, reverse
                order.append(other)
    if len(order) < n:
        cut = sorted(set(range(n)) - set(order))[0]
        raise DataError(f"node {cut} is not connected with node 0; a tree is required")
    children = [[c for c in order if parent[c] == p] for p in range(n)]
    bounds = np.concatenate([[0], np.cumsum([len(c) for c in children])])
    flat = np.array([c for siblings in children for c in siblings], np.int64)
    return Rooted(np.array(order), parent, edge, flat, bounds.astype(np.int64), flipped)
