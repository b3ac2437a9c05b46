"""Occupancy grids of meshes: every voxel that the surface touches, and what the surface encloses."""

import zipfile
from pathlib import Path

import numpy as np
from numba import njit
from scipy.ndimage import binary_fill_holes

from agglearn.datasets.builds.inputs import Inputs, name_of, only, open_input
from agglearn.datasets.point_clouds import mesh_members, read_off
from agglearn.errors import DataError

SHRINK = 1e-6  # a side that ends on the border of two voxels takes the inner one


def occupancy_grids(inputs: Inputs, out: Path, size: int = 30, padding: int = 3) -> None:
    """Write the grids of all meshes as `X_train`, `y_train`, `X_test`, `y_test` (uint8, int64 classes) into an NPZ.

    Parameters
    ----------
    inputs, out, size, padding : Inputs, Path, int, int
        A zip with `<name>/<class>/<train|test>/<shape>.off`, the NPZ, voxels along an edge, free ones at each side.
        Classes, and shapes within a class, are in alphabetical order.
    """
    source, arrays = only(inputs), dict[str, np.ndarray]()
    try:
        with open_input(source) as stream, zipfile.ZipFile(stream) as pack:
            members = {subset: mesh_members(pack, subset) for subset in ("train", "test")}
            classes = sorted({label for meshes in members.values() for _, label, _ in meshes})
            for subset, listed in members.items():
                if not listed:
                    raise DataError(f"{name_of(source)}: has no meshes <class>/{subset}/<shape>.off")
                meshes = (read_off(pack.read(member).decode(), member) for member, _, _ in listed)
                arrays[f"X_{subset}"] = np.stack([occupancy(*mesh, size, padding) for mesh in meshes]).astype(np.uint8)
                arrays[f"y_{subset}"] = np.array([classes.index(label) for _, label, _ in listed], np.int64)
    except zipfile.BadZipFile as error:
        raise DataError(f"{name_of(source)}: the packed file is damaged: {error}") from None
    with open(out, "wb") as stream:  # a path would get the suffix .npz
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]


def occupancy(vertices: np.ndarray, triangles: np.ndarray, size: int, padding: int) -> np.ndarray:
    """Grid of the voxels that a mesh touches or encloses. Its longest side spans `size` − 2 `padding` voxels."""
    inner = size - 2 * padding
    grid = np.zeros((size, size, size), bool)
    if len(triangles):
        corners = vertices[triangles].astype(np.float64)
        low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
        scale = (1 - SHRINK) * inner / max((high - low).max(), 1e-300)
        corners = (corners - (low + high) / 2) * scale + inner / 2
        inside = slice(padding, size - padding)
        mark_triangles(corners, grid[inside, inside, inside])
    return binary_fill_holes(grid)


@njit(cache=True)
def mark_triangles(corners, grid):
    last = len(grid) - 1
    first, end = np.empty(3, np.int64), np.empty(3, np.int64)
    for f in range(len(corners)):
        triangle = corners[f]
        for axis in range(3):
            values = triangle[:, axis]
            first[axis] = min(max(int(np.floor(values.min())), 0), last)
            end[axis] = min(max(int(np.floor(values.max())), 0), last) + 1
        for x in range(first[0], end[0]):
            for y in range(first[1], end[1]):
                for z in range(first[2], end[2]):
                    if not grid[x, y, z] and touches(triangle, x + 0.5, y + 0.5, z + 0.5):
                        grid[x, y, z] = True


@njit(cache=True)
def touches(triangle, x, y, z):
    """Whether no plane separates a triangle and a unit cube (Akenine-Möller 2001), if their bounding boxes meet."""
    a, b, c = triangle[0], triangle[1], triangle[2]
    u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    v0, v1, v2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    if apart(triangle, x, y, z, u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0):
        return False
    for k in range(3):
        p, q = triangle[k], triangle[(k + 1) % 3]
        e0, e1, e2 = q[0] - p[0], q[1] - p[1], q[2] - p[2]
        if (
            apart(triangle, x, y, z, 0.0, e2, -e1)
            or apart(triangle, x, y, z, -e2, 0.0, e0)
            or apart(triangle, x, y, z, e1, -e0, 0.0)
        ):
            return False
    return True


@njit(cache=True, inline="always")
def apart(triangle, x, y, z, n0, n1, n2):
    s = triangle[0, 0] * n0 + triangle[0, 1] * n1 + triangle[0, 2] * n2
    low = high = s
    for k in range(1, 3):
        s = triangle[k, 0] * n0 + triangle[k, 1] * n1 + triangle[k, 2] * n2
        low, high = min(low, s), max(high, s)
    centre = x * n0 + y * n1 + z * n2
    half = 0.5 * (abs(n0) + abs(n1) + abs(n2))
    slack = 1e-9 * (abs(centre) + half)  # rounding must not open a closed surface
    return low > centre + half + slack or high < centre - half - slack
