"""Steps of birds on a map, whose cells are numbered row by row from the bottom left. The formulas are ours."""

import numpy as np


def centres(rows: int, columns: int) -> np.ndarray:
    """(L, 2) column (x) and row (y) of each cell."""
    y, x = np.divmod(np.arange(rows * columns), columns)
    return np.stack([x, y], axis=1).astype(float)


def migration_features(rows: int, columns: int, wind: np.ndarray) -> np.ndarray:
    """(T−1, L, L, 4): −distance, cosines with the wind (T−1, 2) and with the top-right cell, 1 if the cell is left."""
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
