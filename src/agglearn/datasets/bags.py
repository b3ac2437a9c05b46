"""Bags with a target: samples of Gaussians whose statistics are known, and clouds of points with a class."""

import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np

from agglearn.datasets.base import Simulated, Stored
from agglearn.errors import DataError
from agglearn.observations import Bags
from agglearn.seeds import generator
from agglearn.settings import Count, Part, Range, Whole
from agglearn.storage import write_json


@dataclass(frozen=True, eq=False)
class BagPopulation:
    """Bags to learn from and bags to be judged on, both with their targets.

    Attributes
    ----------
    train, test : with target. parameter : (test bags,) what the test bags differ in, or None.
    """

    train: Bags
    test: Bags
    parameter: np.ndarray | None = None


class GaussianBags(Simulated):
    """Samples of Gaussians, one per bag, with a statistic of the Gaussian as target (Sun 2019, section 4.3.1; targets in
    `agglearn.datasets.gaussian_statistics`).

    * rotation: N(0, R(α) Σ R(α)ᵀ) in the plane, α in [0, π]; the entropy of the first coordinate.
    * correlation: N(0, [Σ, αΣ; αΣ, Σ]), α in (−1, 1); the mutual information of the halves.
    * rank1: N(0, I + λvvᵀ), ‖v‖ = 1, λ in (0, 1); the mutual information of all coordinates.
    * random: N(0, Σ) with a Σ of its own in every bag; the same.

    Σ = (AAᵀ + I)/Σ_ij A_ij², A of standard normals. Parameters lie evenly spaced; of the bags to learn from any first 2^k do,
    too. The first `n_validation` of them are a set of their own, for choosing among settings.

    Parameters
    ----------
    statistic : of the list above. dimension : of an instance; by default 2, 32, 32, 32.
    n_bags, n_validation, n_test, bag_size : numbers of bags, and of instances in each.
    """

    KEYS = ()
    PEAK: ClassVar = {"bytes": 12, "n_bags": 1024, "bag_size": 512, "dimension": 32}

    def __init__(
        self,
        statistic: Literal["rotation", "correlation", "rank1", "random"] = "rotation",
        dimension: Annotated[int, Range(2)] | None = None,
        n_bags: Count = 1024,
        n_validation: Whole = 512,
        n_test: Count = 512,
        bag_size: Count = 512,
    ):
        super().__init__()
        self.params = {
            "statistic": statistic, "dimension": dimension, "n_bags": n_bags, "n_validation": n_validation,
            "n_test": n_test, "bag_size": bag_size,
        }  # fmt: skip

    def draw(self, seed: int, **params) -> BagPopulation:
        p = self.laid_over(params)
        law = LAWS[p["statistic"]]
        d = p["dimension"] or (2 if p["statistic"] == "rotation" else 32)
        rng = generator("gaussian bags", p["statistic"], d, seed)
        covariances = law(d, rng)
        n, held, test, size = (int(p[k]) for k in ("n_bags", "n_validation", "n_test", "bag_size"))
        where = np.concatenate([evenly_spaced(held), halving(n)])
        train, _ = drawn(covariances, where, size, generator("gaussian bags, train", p["statistic"], d, size, seed))
        judged, parameter = drawn(
            covariances, evenly_spaced(test), size, generator("gaussian bags, test", p["statistic"], d, size, seed)
        )
        return BagPopulation(train, judged, parameter)


def evenly_spaced(n: int) -> np.ndarray:
    """(n,) middles of n equal parts of (0, 1)."""
    return (np.arange(n) + 0.5) / max(n, 1)


def halving(n: int) -> np.ndarray:
    """(n,) points of (0, 1) of which any first 2^k are evenly spaced (van der Corput), each moved by half the last spacing."""
    bits = max(1, int(np.ceil(np.log2(max(n, 2)))))
    k = np.arange(n)
    reversed_bits = sum(((k >> b) & 1) << (bits - 1 - b) for b in range(bits))
    return (reversed_bits + 0.5) / (1 << bits)


def drawn(covariances, where: np.ndarray, size: int, rng, chunk: int = 256) -> tuple[Bags, np.ndarray]:
    """(bags of `size` float32 instances for the places in (0, 1), their parameter)."""
    xs, targets, parameters = [], [], []
    for start in range(0, len(where), chunk):
        matrices, target, parameter = covariances(where[start : start + chunk], rng)
        root = np.linalg.cholesky(matrices).astype(np.float32)
        z = rng.standard_normal((len(matrices), size, matrices.shape[-1]), dtype=np.float32)
        xs.append((z @ root.transpose(0, 2, 1)).reshape(-1, matrices.shape[-1]))
        targets.append(target)
        parameters.append(parameter)
    offsets = np.arange(0, len(where) * size + 1, size)
    return Bags(np.concatenate(xs), offsets, target=np.concatenate(targets)), np.concatenate(parameters)


def _covariance(d: int, rng, shape=()) -> np.ndarray:
    a = rng.standard_normal((*shape, d, d))
    total = np.square(a).sum(axis=(-2, -1))[..., None, None]
    return (a @ a.swapaxes(-2, -1) + np.eye(d)) / total


def _rotation(d: int, rng):
    from agglearn.datasets.gaussian_statistics import marginal_entropy

    if d != 2:
        raise DataError(f"gaussian_bags: rotation is for 2 dimensions, not {d}")
    sigma = _covariance(2, rng)

    def covariances(where, rng):
        alpha = np.pi * where
        r = np.stack([np.cos(alpha), -np.sin(alpha), np.sin(alpha), np.cos(alpha)], axis=-1).reshape(-1, 2, 2)
        turned = r @ sigma @ r.swapaxes(-2, -1)
        return turned, marginal_entropy(turned), alpha

    return covariances


def _correlation(d: int, rng):
    from agglearn.datasets.gaussian_statistics import block_information

    if d % 2:
        raise DataError(f"gaussian_bags: correlation needs an even dimension, not {d}")
    sigma = _covariance(d // 2, rng)

    def covariances(where, rng):
        alpha = 2 * where - 1
        blocks = np.ones((len(where), 2, 2)) * alpha[:, None, None]
        blocks[:, [0, 1], [0, 1]] = 1
        matrices = np.einsum("bij,kl->bikjl", blocks, sigma).reshape(len(where), d, d)
        return matrices, block_information(alpha, d // 2), alpha

    return covariances


def _rank1(d: int, rng):
    from agglearn.datasets.gaussian_statistics import total_correlation

    v = rng.standard_normal(d)
    v /= np.linalg.norm(v)

    def covariances(where, rng):
        matrices = np.eye(d) + where[:, None, None] * np.outer(v, v)
        return matrices, total_correlation(matrices), where

    return covariances


def _random(d: int, rng):
    from agglearn.datasets.gaussian_statistics import total_correlation

    def covariances(where, rng):
        matrices = _covariance(d, rng, (len(where),))
        target = total_correlation(matrices)
        return matrices, target, target

    return covariances


LAWS = {"rotation": _rotation, "correlation": _correlation, "rank1": _rank1, "random": _random}


# -- clouds -----------------------------------------------------------------------------------------------------------


class PointClouds(Stored):
    """Shapes of several classes as clouds of points, centred and scaled to the unit sphere, in their official parts.

    Files are either `.npz` with occupancy grids `X_train`, `y_train`, `X_test`, `y_test` (the points are the centres of the
    occupied voxels that have a free neighbour; empty grids are left out), or `.zip` with meshes
    `<name>/<class>/<train|test>/<shape>.off` (points are drawn from the surface by area).

    Writes `points.npy` (n, 3) float32, in random order within a cloud, and `clouds.npz` (offsets, classes, names).

    Parameters
    ----------
    points : of a mesh.
    """

    KEYS = ("mirror", "files")
    PEAK: ClassVar = {"bytes": 20, "points": 5000, "clouds": 4899}

    def __init__(self, points: Count = 5000):
        super().__init__()
        self.points = points

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        clouds, classes, names, train, empty = [], [], [], 0, 0
        for part in ("train", "test"):
            for path in files.values():
                reader = _voxels if path.suffix == ".npz" else _meshes
                for k, (points, label, name) in enumerate(reader(path, part, self.points)):
                    if len(points) < 2:
                        empty += 1
                        continue
                    rng = generator("points", part, k)
                    clouds.append(unit_sphere(points)[rng.permutation(len(points))])
                    classes.append(label)
                    names.append(name)
            if part == "train":
                train = len(clouds)
        if not 0 < train < len(clouds):
            raise DataError(f"{', '.join(files)}: no shapes of both parts, train and test")
        np.save(out / "points.npy", np.concatenate(clouds).astype(np.float32))
        labels = np.unique(classes, return_inverse=True)[1] if isinstance(classes[0], str) else np.array(classes)
        sizes = [len(c) for c in clouds]
        np.savez(out / "clouds.npz", offsets=np.append(0, np.cumsum(sizes)), classes=labels)
        parts = {"train": [0, train], "test": [train, len(clouds)]}
        write_json(out / "records.json", {"n": len(clouds), "label": "class", "categorical": [], "parts": parts})
        print(f"{train} and {len(clouds) - train} clouds, {empty} empty left out; median {np.median(sizes):.0f} points")
        return {"clouds": len(clouds), "points": int(np.sum(sizes)), "classes": int(labels.max()) + 1, "empty": empty}


def unit_sphere(points: np.ndarray) -> np.ndarray:
    """Points moved to mean 0 and scaled to a largest norm of 1."""
    points = points - points.mean(axis=0)
    return points / max(np.linalg.norm(points, axis=1).max(), 1e-12)


def surface(grid: np.ndarray) -> np.ndarray:
    """(n, 3) centres of the occupied voxels of a 0/1 grid of which one of the six neighbours is free or outside."""
    padded = np.pad(grid.astype(bool), 1)
    inner = padded.copy()
    for axis in range(3):
        for step in (1, -1):
            inner &= np.roll(padded, step, axis)
    return np.argwhere((padded & ~inner)[1:-1, 1:-1, 1:-1]) + 0.5


def _voxels(path: Path, part: str, _):
    with np.load(path) as arrays:
        grids, labels = arrays[f"X_{part}"], arrays[f"y_{part}"]
    for grid, label in zip(grids, labels, strict=True):
        yield surface(np.squeeze(grid)), int(label), ""


def _meshes(path: Path, part: str, points: int):
    with zipfile.ZipFile(path) as archive:
        for member, label, name in mesh_members(archive, part):
            mesh = read_off(archive.read(member).decode(), member)
            yield points_on(*mesh, points, generator("mesh", member)), label, name


def mesh_members(archive: zipfile.ZipFile, part: str) -> list[tuple[str, str, str]]:
    """(member, class, shape) of the meshes of one part, sorted by member; hidden files, as some systems add them, left out."""
    names = sorted(n for n in archive.namelist() if not n.startswith("__MACOSX/"))
    found = [(n, re.search(rf"([^/]+)/{part}/([^/.][^/]*)\.off$", n)) for n in names]
    return [(n, match[1], match[2]) for n, match in found if match]


def read_off(text: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(vertices (V, 3), triangles (F, 3)) of an OFF file; files of ModelNet may have the counts on the first line."""
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


def points_on(vertices: np.ndarray, triangles: np.ndarray, n: int, rng) -> np.ndarray:
    """(n, 3) points drawn evenly from the surface of a mesh."""
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    if not area.sum() > 0:
        return np.zeros((0, 3))
    which = rng.choice(len(area), n, p=area / area.sum())
    u, v = rng.random((2, n, 1))
    over = u + v > 1
    u, v = np.where(over, 1 - u, u), np.where(over, 1 - v, v)
    return a[which] + u * (b - a)[which] + v * (c - a)[which]


class DigitClouds(Simulated):
    """Handwritten digits (8 × 8 pixels, inside scikit-learn) as bags of the places (x, y) of their inked pixels, weighted by
    intensity; a random part is held out.

    Parameters
    ----------
    test : share held out. n_bags : to learn from, at random; None for all of the others.
    """

    KEYS = ()
    PACKAGE = "scikit-learn"

    def __init__(self, test: Part = 0.3, n_bags: Count | None = None):
        super().__init__()
        self.params = {"test": test, "n_bags": n_bags}

    def draw(self, seed: int, **params) -> BagPopulation:
        from sklearn.datasets import load_digits

        p = self.laid_over(params)
        digits = load_digits()
        order = generator("digits", seed).permutation(len(digits.target))
        n_test = round(p["test"] * len(order))
        train = order[n_test:][: p["n_bags"]]
        return BagPopulation(*(_inked(digits.images[rows], digits.target[rows]) for rows in (train, order[:n_test])))


def _inked(images: np.ndarray, labels: np.ndarray) -> Bags:
    bag, row, column = np.nonzero(images)
    x = np.stack([column, images.shape[1] - 1 - row], axis=1) / (images.shape[1] - 1) * 2 - 1
    offsets = np.append(0, np.cumsum(np.bincount(bag, minlength=len(images))))
    return Bags(x.astype(np.float32), offsets, weights=images[bag, row, column] / images.max(), target=labels)
