"""Geometry of the two simulated applications: birds on a square grid, commuters on a rectangular one (Sun 2019, 2.6).

The thesis leaves the formulas open, so they are ours. Cells are numbered row by row, and their centres are one apart. Row 0 is
the bottom, column 0 the left.
"""

import numpy as np


def centres(rows: int, columns: int) -> np.ndarray:
    """(L, 2) column (x) and row (y) of each cell."""
    y, x = np.divmod(np.arange(rows * columns), columns)
    return np.stack([x, y], axis=1).astype(float)


def migration_features(rows: int, columns: int, wind: np.ndarray) -> np.ndarray:
    """(T−1, L, L, 4) features of a step from cell i to cell j.

    They are −distance in cells, the cosine between the step and the wind (T−1, 2) at that time, the cosine between the step and
    the way to the top-right cell, and one for a step that leaves the cell. Both cosines are zero for a bird that stays, the
    second also at the destination. With this sign of the distance all four true parameters are positive, as printed.
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


def commuting_potentials(
    rows: int, columns: int, home_spread: float, work_spread: float, step_spread: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log φ_1 (L,), log φ_T (L,), log ψ (L, L): Gaussian home at the top right, work at the bottom left, short steps.

    Both centres are a quarter of the map away from their corners. Spreads are standard deviations in cells.
    """
    xy = centres(rows, columns)
    size = np.array([columns, rows])
    home_centre, work_centre = 0.75 * size - 0.5, 0.25 * size - 0.5
    steps = ((xy[None, :] - xy[:, None]) ** 2).sum(axis=2)
    return (
        -((xy - home_centre) ** 2).sum(axis=1) / (2 * home_spread**2),
        -((xy - work_centre) ** 2).sum(axis=1) / (2 * work_spread**2),
        -steps / (2 * step_spread**2),
    )
