"""Meshes, grids and progress of downloads."""

import io

import numpy as np

from agglearn.datasets.builds.grids import occupancy
from agglearn.datasets.fetching import LARGE, _Lines
from agglearn.datasets.point_clouds import read_off


def test_text_after_the_faces_of_a_mesh_is_left():
    text = "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n0.5 0.5 0.5\n"
    vertices, triangles = read_off(text, "a.off")
    assert vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert triangles.tolist() == [[0, 1, 2]]


def test_the_end_of_a_large_file_is_shown_at_once_and_no_part_of_it():
    terminal = io.StringIO()
    lines = _Lines(terminal)
    lines("small", LARGE, LARGE)
    lines("large", LARGE, 3 * LARGE)
    lines("unknown", LARGE, 0)
    assert terminal.getvalue() == ""
    lines("large", 3 * LARGE, 3 * LARGE)
    assert terminal.getvalue().startswith("fetching large: 100 % of")


def test_a_cube_fills_a_grid_of_an_odd_size():
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = np.array([t for a, b, c, d in faces for t in ((a, b, c), (a, c, d))])
    grid = occupancy(corners, triangles, 9, 1)
    assert grid[1:8, 1:8, 1:8].all()
    assert grid.sum() == 7**3
