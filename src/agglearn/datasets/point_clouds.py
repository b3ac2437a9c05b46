"""Clouds of points with a class: from voxels, from meshes, from digits."""

import io
import logging
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.ndimage import binary_erosion

from agglearn.datasets.base import BagPopulation, Simulated, Stored, write_header
from agglearn.errors import DataError
from agglearn.observations import Bags
from agglearn.seeds import derive_generator
from agglearn.settings import Count, Part

logger = logging.getLogger(__name__)

Shapes = Iterator[tuple[np.ndarray, str | int]]  # points and class


class PointClouds(Stored):
    """Shapes of several classes as clouds of points, centred and scaled to the unit sphere, in their official parts.

    Files are `.npz` with occupancy grids `X_train`, `y_train`, `X_test`, `y_test` (centres of occupied voxels with a
    free neighbour), or `.zip` with meshes `<name>/<class>/<train|test>/<shape>.off` (`points` are drawn from the
    surface by area). Clouds of fewer than two points are left out. `points.npy` (n, 3) float32 is in random order
    within a cloud.

    Parameters
    ----------
    points : int
    """

    KEYS = ("mirror", "files")
    PEAK: ClassVar = {"bytes": 20, "points": 5000, "clouds": 4899}

    points: Count = 5000

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        clouds: list[np.ndarray] = []
        classes: list[str | int] = []
        train = empty = 0
        for subset in ("train", "test"):
            train = len(clouds)  # those before the last subset
            for path in files.values():
                shapes = _voxels(path, subset) if path.suffix == ".npz" else _meshes(path, subset, self.points)
                for k, (points, label) in enumerate(shapes):
                    if len(points) < 2:
                        empty += 1
                        continue
                    rng = derive_generator("points", subset, k)
                    clouds.append(unit_sphere(points)[rng.permutation(len(points))])
                    classes.append(label)
        if not 0 < train < len(clouds):
            raise DataError(f"{', '.join(files)}: no shapes of both parts, train and test")
        np.save(out / "points.npy", np.concatenate(clouds).astype(np.float32))
        labels = np.array(classes)
        if labels.dtype.kind == "U":
            labels = np.unique(labels, return_inverse=True)[1]
        sizes = [len(c) for c in clouds]
        np.savez(out / "clouds.npz", offsets=np.append(0, np.cumsum(sizes)), classes=labels)
        write_header(out, len(clouds), "class", ranges={"train": [0, train], "test": [train, len(clouds)]})
        n_test, median = len(clouds) - train, np.median(sizes)
        logger.info(f"{train} and {n_test} clouds, {empty} empty left out; median {median:.0f} points")
        return {"clouds": len(clouds), "points": int(np.sum(sizes)), "classes": int(labels.max()) + 1, "empty": empty}


def unit_sphere(points: np.ndarray) -> np.ndarray:
    points = points - points.mean(axis=0)
    return points / max(np.linalg.norm(points, axis=1).max(), 1e-12)


def surface(grid: np.ndarray) -> np.ndarray:
    """(n, 3) centres of the occupied voxels of a 0/1 grid of which one of the six neighbours is free or outside."""
    occupied = grid.astype(bool)
    return np.argwhere(occupied & ~binary_erosion(occupied)) + 0.5


def _voxels(path: Path, subset: str) -> Shapes:
    with np.load(path) as arrays:
        grids, labels = arrays[f"X_{subset}"], arrays[f"y_{subset}"]
    for grid, label in zip(grids, labels, strict=True):
        yield surface(np.squeeze(grid)), int(label)


def _meshes(path: Path, subset: str, points: int) -> Shapes:
    with zipfile.ZipFile(path) as pack:
        for member, label, _ in mesh_members(pack, subset):
            mesh = read_off(pack.read(member).decode(), member)
            yield points_on(*mesh, points, derive_generator("mesh", member)), label


def mesh_members(pack: zipfile.ZipFile, subset: str) -> list[tuple[str, str, str]]:
    """(member, class, shape) of the meshes of one subset, sorted by member, without hidden files."""
    names = sorted(n for n in pack.namelist() if not n.startswith("__MACOSX/"))
    matches = [(n, re.search(rf"([^/]+)/{subset}/([^/.][^/]*)\.off$", n)) for n in names]
    return [(n, match[1], match[2]) for n, match in matches if match]


def read_off(text: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(vertices (V, 3), triangles (F, 3)) of an OFF file. Files of ModelNet may have the counts on the first line."""
    head = text.lstrip()
    if not head.startswith("OFF"):
        raise DataError(f"{name}: no OFF file")
    values = np.loadtxt(io.StringIO(head[3:].replace("\n", " ")), ndmin=1, comments="#")
    vertices, faces = int(values[0]), int(values[1])
    body = values[3:]
    if len(body) < 3 * vertices + 4 * faces:
        raise DataError(f"{name}: ends early")
    triangles = body[3 * vertices : 3 * vertices + 4 * faces].reshape(faces, 4)
    if (triangles[:, 0] != 3).any():
        raise DataError(f"{name}: has faces that are no triangles")
    return body[: 3 * vertices].reshape(vertices, 3), triangles[:, 1:].astype(int)


def points_on(vertices: np.ndarray, triangles: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    if not area.sum() > 0:
        return np.zeros((0, 3))
    drawn = rng.choice(len(area), n, p=area / area.sum())
    u, v = rng.random((2, n, 1))
    over = u + v > 1
    u, v = np.where(over, 1 - u, u), np.where(over, 1 - v, v)
    return a[drawn] + u * (b - a)[drawn] + v * (c - a)[drawn]


class DigitClouds(Simulated):
    """Handwritten digits (8 × 8 pixels, in scikit-learn) as bags of their inked pixels, weighted by intensity.

    Parameters
    ----------
    test, n_bags : float, int or None
        Random fraction of the digits that is held out, and random training bags, or None for all of the others.
    """

    KEYS = ()
    PACKAGE = "scikit-learn"

    test: Part = 0.3
    n_bags: Count | None = None

    def draw(self, seed: int) -> BagPopulation:
        from sklearn.datasets import load_digits

        digits = load_digits()
        order = derive_generator("digits", seed).permutation(len(digits.target))
        n_test = round(self.test * len(order))
        train = order[n_test:][: self.n_bags]
        train_bags, test_bags = (_inked_pixels(digits.images[r], digits.target[r]) for r in (train, order[:n_test]))
        return BagPopulation(train_bags, test_bags)


def _inked_pixels(images: np.ndarray, labels: np.ndarray) -> Bags:
    bag, row, column = np.nonzero(images)
    x = np.stack([column, images.shape[1] - 1 - row], axis=1) / (images.shape[1] - 1) * 2 - 1
    offsets = np.append(0, np.cumsum(np.bincount(bag, minlength=len(images))))
    return Bags(x.astype(np.float32), offsets, weights=images[bag, row, column] / images.max(), target=labels)
