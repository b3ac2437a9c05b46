"""Features of the steps of birds on a map (Sun 2019, section 2.6.1). The thesis leaves the formulas open, so they are ours.

Cells are numbered row by row, and their centres are one apart. Row 0 is the bottom, column 0 the left.
"""

import numpy as np


def centres(rows: int, columns: int) -> np.ndarray:
    """(L, 2) column (x) and row (y) of each cell."""
    y, x = np.divmod(np.arange(rows * columns), columns)
    return np.stack([x, y], axis=1).astype(float)


def migration_features(rows: int, columns: int, wind: np.ndarray) -> np.ndarray:
    """(T−1, L, L, 4) features of a step from cell i to cell j.

    They are −distance in cells, the cosine between the step and the wind (T−1, 2) at that time, the cosine between the step and
    the way to the top-right cell, and one for a step that leaves the cell. The cosine with a vector of zeros is zero. With this
    sign of the distance all four true parameters are positive, as printed.
    """
    xy = centres(rows, columns)
    step = xy[None, :] - xy[:, None]
    distance = np.linalg.norm(step, axis=2)
    goal = xy[-1] - xy
    features = np.empty((len(wind), *distance.shape, 4))
    features[..., 0] = -distance
    for t, w in enumerate(wind):
        features[t, ..., 1] = _cosine(step, np.broadcast_to(w, step.shape))
    features[..., 2] = _cosine(step, np.broadcast_to(goal[:, None], step.shape))
    features[..., 3] = distance > 0
    return features


def _cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine between vectors on the last axis, 0 if one is zero."""
    size = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.divide((a * b).sum(axis=-1), size, out=np.zeros(size.shape), where=size > 0)
