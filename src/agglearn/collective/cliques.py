"""Junction trees as tree models: cliques and separators are nodes whose states are assignments of their variables.

A separator's state follows from the clique's, so the table of the edge between them holds nothing that the clique's table
does not, and the Bethe entropy of this tree is that of the junction tree (Sun 2019, section 2.1.2.4).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from agglearn.collective.model import TreeModel
from agglearn.errors import DataError


def from_cliques(
    sizes: Mapping[str, int], cliques: Sequence[Sequence[str]], log_factors: Sequence[np.ndarray]
) -> tuple[TreeModel, dict[tuple[str, ...], int]]:
    """A model with potentials over small sets of variables.

    Parameters
    ----------
    sizes : states of each variable. cliques : its sets of variables, which must form a junction tree. log_factors : per
        clique the log-potential, an array with one axis per variable.

    Returns
    -------
    The tree model, and the node of each clique and separator; states count assignments in C order of the variables. To
    observe a variable alone, name it as a clique with log-factor zero.

    Raises
    ------
    DataError : the cliques make no junction tree, or a factor does not fit.
    """
    names = [tuple(c) for c in cliques]
    for name, factor in zip(names, log_factors, strict=True):
        if np.shape(factor) != tuple(sizes[v] for v in name):
            raise DataError(f"clique {name}: log-factor of shape {np.shape(factor)} does not fit the variables' sizes")
    nodes, edges, tables = {n: k for k, n in enumerate(names)}, [], []
    done = np.zeros(len(names), bool)
    for a, b, shared in _links(names):
        if shared not in nodes:
            nodes[shared] = len(nodes)
        for clique in (a, b):
            if names[clique] == shared or (clique, nodes[shared]) in edges:
                continue
            edges.append((clique, nodes[shared]))
            tables.append(_projection(sizes, names[clique], shared, None if done[clique] else log_factors[clique]))
            done[clique] = True
    for k in np.flatnonzero(~done):
        e = next(i for i, (_, s) in enumerate(edges) if s == k)
        tables[e] = tables[e] + np.asarray(log_factors[k], float).reshape(1, -1)
    return TreeModel(edges, tables), nodes


def _links(names) -> list[tuple[int, int, tuple[str, ...]]]:
    """A maximum spanning tree over shared variables, checked for the running intersection property."""
    pairs = [(len(set(a) & set(b)), i, j) for i, a in enumerate(names) for j, b in enumerate(names) if i < j]
    group, links = list(range(len(names))), []
    for shared, i, j in sorted(pairs, reverse=True):
        if shared and group[i] != group[j]:
            old = group[j]
            group = [group[i] if g == old else g for g in group]
            links.append((i, j, tuple(v for v in names[i] if v in names[j])))
    if len(links) < len(names) - 1:
        raise DataError("the cliques are not connected: some share no variable with the others")
    for v in {v for n in names for v in n}:
        having = sum(v in n for n in names)
        if sum(v in s for _, _, s in links) != having - 1:
            raise DataError(f"the cliques make no junction tree: those with {v!r} are not connected among themselves")
    return links


def _projection(sizes, clique, part, factor) -> np.ndarray:
    """(states of clique, states of part): log-factor where the part is the clique's, −inf elsewhere."""
    shape = [sizes[v] for v in clique]
    states = np.indices(shape).reshape(len(shape), -1)
    target = np.ravel_multi_index([states[clique.index(v)] for v in part], [sizes[v] for v in part])
    table = np.full((states.shape[1], int(np.prod([sizes[v] for v in part]))), -np.inf)
    table[np.arange(len(target)), target] = 0.0 if factor is None else np.asarray(factor, float).reshape(-1)
    return table
