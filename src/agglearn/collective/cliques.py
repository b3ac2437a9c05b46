"""Junction trees as tree models: cliques and separators are nodes, states assignments (Sun 2019, section 2.1.2.4)."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from agglearn.collective.model import TreeModel
from agglearn.errors import DataError


def from_cliques(
    sizes: Mapping[str, int], cliques: Sequence[Sequence[str]], log_factors: Sequence[np.ndarray]
) -> tuple[TreeModel, dict[tuple[str, ...], int]]:
    """Build a tree model from potentials over small sets of variables, with the node of each clique and separator.

    Its states number assignments in C order. A clique of one variable, with log-factor zero, makes it observable.

    Parameters
    ----------
    sizes : mapping of str to int
        Number of states of each variable.
    cliques, log_factors : sequence of sequences of str, sequence of ndarray
        Sets of variables that form a junction tree (else DataError), and log-potentials with one axis per variable.
    """
    names = [tuple(c) for c in cliques]
    for name, factor in zip(names, log_factors, strict=True):
        if np.shape(factor) != tuple(sizes[v] for v in name):
            raise DataError(f"clique {name}: log-factor of shape {np.shape(factor)} does not fit the variables' sizes")
    nodes = {n: k for k, n in enumerate(names)}
    edges: list[tuple[int, int]] = []
    tables: list[np.ndarray] = []
    for a, b, separator in _join(names):
        s = nodes.setdefault(separator, len(nodes))
        for clique in (a, b):
            if clique != s and (clique, s) not in edges:
                edges.append((clique, s))
                tables.append(_agreement(sizes, names[clique], separator))
    for k, factor in enumerate(log_factors):  # in the first table whose rows are this clique, else whose columns are
        e = min((i for i, edge in enumerate(edges) if k in edge), key=lambda i: edges[i][0] != k)
        tables[e] = tables[e] + np.asarray(factor, float).reshape((-1, 1) if edges[e][0] == k else (1, -1))
    return TreeModel(edges, tables), nodes


def _join(names: list[tuple[str, ...]]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Edges (clique, clique, separator) of a maximum spanning tree with the running intersection property."""
    pairs = [(len(set(a) & set(b)), i, j) for i, a in enumerate(names) for j, b in enumerate(names) if i < j]
    joined = DisjointSet(range(len(names)))
    edges: list[tuple[int, int, tuple[str, ...]]] = []
    for n_shared, i, j in sorted(pairs, reverse=True):
        if n_shared and joined.merge(i, j):
            edges.append((i, j, tuple(v for v in names[i] if v in names[j])))
    if len(edges) < len(names) - 1:
        raise DataError("the cliques are not connected: some share no variable with the others")
    for v in {v for n in names for v in n}:
        n_cliques = sum(v in n for n in names)
        if sum(v in s for _, _, s in edges) != n_cliques - 1:
            raise DataError(f"the cliques form no junction tree: those with {v!r} are not connected with each other")
    return edges


def _agreement(sizes: Mapping[str, int], clique: tuple[str, ...], separator: tuple[str, ...]) -> np.ndarray:
    """(states of clique, states of separator) 0 where both assignments agree, −inf elsewhere."""
    shape = [sizes[v] for v in clique]
    states = np.indices(shape).reshape(len(shape), -1)
    shape = [sizes[v] for v in separator]
    target = np.ravel_multi_index([states[clique.index(v)] for v in separator], shape)
    table = np.full((states.shape[1], int(np.prod(shape))), -np.inf)
    table[np.arange(len(target)), target] = 0.0
    return table
