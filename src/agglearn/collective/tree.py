"""A rooted tree with tables of one size on its edges, as kernels take it."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from agglearn.errors import DataError

Tables = Sequence[np.ndarray] | np.ndarray  # one (L_i, L_j) array per edge


class Rooted(NamedTuple):
    order: np.ndarray  # (N,) nodes, parents first
    parent: np.ndarray  # (N,) −1 at the root
    edge: np.ndarray  # (N,) index of the edge to the parent, −1 at the root
    children: np.ndarray  # nodes by parent
    bounds: np.ndarray  # (N + 1,) children of node p are `children[bounds[p]:bounds[p + 1]]`
    flipped: np.ndarray  # (N,) whether the edge was given child first


class PaddedTree:
    """A tree with root 0. `tables` (K, L, L) are distinct, padded, parent's state first, scaled to a maximum of 1."""

    def __init__(self, edges: Sequence[tuple[int, int]], log_potentials: Sequence[np.ndarray]) -> None:
        self.edges = [(int(i), int(j)) for i, j in edges]
        arrays = {id(t): np.asarray(t, float) for t in log_potentials}
        self.log_potentials = [arrays[id(t)] for t in log_potentials]
        self.sizes = _count_states(self.edges, self.log_potentials)
        self.n_nodes, self.size = len(self.sizes), int(self.sizes.max())
        self.rooted = _root(self.n_nodes, self.edges)
        below = self.rooted.order[1:]
        keys = [(id(self.log_potentials[self.rooted.edge[c]]), bool(self.rooted.flipped[c])) for c in below]
        index = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        self.table_index = np.zeros(self.n_nodes, np.int64)
        self.table_index[below] = [index[key] for key in keys]
        _, first = np.unique(self.table_index[below], return_index=True)
        self.log_tables = self.pad_edges(self.log_potentials, -np.inf)[below[first]]
        self.log_scales = self.log_tables.max(axis=(1, 2))
        self.tables = np.exp(self.log_tables - self.log_scales[:, None, None])
        self.log_scale = float(self.log_scales[self.table_index[below]].sum())

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
        return self.tables.astype(np.float32)

    def split_nodes(self, padded: np.ndarray) -> list[np.ndarray]:
        return [row[:size] for row, size in zip(padded, self.sizes, strict=True)]

    def split_edges(self, padded: np.ndarray) -> list[np.ndarray]:
        """One array per edge, as the edge was given, from a padded (N, L, L) array by child, parent's state first."""
        tables = [np.empty(0)] * len(self.edges)
        for node in self.rooted.order[1:]:
            table = padded[node].T if self.rooted.flipped[node] else padded[node]
            i, j = self.edges[self.rooted.edge[node]]
            tables[self.rooted.edge[node]] = table[: self.sizes[i], : self.sizes[j]]
        return tables

    def pad_nodes(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        padded = np.zeros((self.n_nodes, self.size))
        for node, row in enumerate(rows):
            padded[node, : len(row)] = row
        return padded

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
        """Name of a node in messages."""
        return f"node {node}"

    def edge_name(self, node: int) -> str:
        i, j = self.edges[self.rooted.edge[node]]
        return f"edge {i}–{j}"

    def cell_name(self, cell: int) -> str:
        """Name of a flat cell: those of an (N, L) array of nodes, then of an (N, L, L) array of edges by child."""
        if cell < self.n_nodes * self.size:
            return f"{self.node_name(cell // self.size)}, state {cell % self.size}"
        node, *pair = np.unravel_index(cell - self.n_nodes * self.size, (self.n_nodes, self.size, self.size))
        i, j = pair[::-1] if self.rooted.flipped[node] else pair
        return f"{self.edge_name(int(node))}, states {i}, {j}"


def _count_states(edges: list[tuple[int, int]], tables: list[np.ndarray]) -> np.ndarray:
    """(N,) states per node. Raises DataError where tables disagree or are not numeric."""
    if not edges:
        raise DataError("a model needs at least one edge")
    if len(edges) != len(tables):
        raise DataError(f"{len(edges)} edges but {len(tables)} tables of log-potentials; give one for each")
    sizes: dict[int, int] = {}
    for (i, j), table in zip(edges, tables, strict=True):
        if min(i, j) < 0:
            raise DataError(f"node {min(i, j)}: nodes are numbered from 0")
        if table.ndim != 2 or np.isnan(table).any() or (table == np.inf).any():
            raise DataError(f"edge {i}–{j}: log-potentials must be a table of numbers or −inf, got shape {table.shape}")
        for node, size in zip((i, j), table.shape, strict=True):
            if sizes.setdefault(node, size) != size:
                raise DataError(f"edge {i}–{j}: node {node} has {size} states here and {sizes[node]} at another edge")
    n = max(sizes) + 1
    if missing := sorted(set(range(n)) - set(sizes)):
        raise DataError(f"node {missing[0]} has no edge: the graph must be one tree over nodes 0 to {n - 1}")
    return np.array([sizes[i] for i in range(n)])


def _root(n: int, edges: list[tuple[int, int]]) -> Rooted:
    """The tree with root 0. Raises DataError with the edge that closes a cycle or a node that is cut off."""
    neighbours: list[list[tuple[int, int, bool]]] = [[] for _ in range(n)]  # (edge, node, whether the edge is reversed)
    connected = DisjointSet(range(n))
    for e, (i, j) in enumerate(edges):
        if not connected.merge(i, j):
            raise DataError(f"edge {i}–{j} closes a cycle; a tree is required (or use a junction tree: from_cliques)")
        neighbours[i].append((e, j, False))
        neighbours[j].append((e, i, True))
    order, parent, edge, flipped = [0], np.full(n, -1), np.full(n, -1), np.zeros(n, bool)
    for node in order:
        for e, neighbour, reverse in neighbours[node]:
            if e != edge[node]:
                parent[neighbour], edge[neighbour], flipped[neighbour] = node, e, reverse
                order.append(neighbour)
    if len(order) < n:
        cut = sorted(set(range(n)) - set(order))[0]
        raise DataError(f"node {cut} is not connected with node 0; a tree is required")
    below = np.array(order[1:])
    children = below[np.argsort(parent[below], kind="stable")]
    return Rooted(np.array(order), parent, edge, children, np.searchsorted(parent[children], np.arange(n + 1)), flipped)
