"""Rules that make our extracts: on small files in the publishers' formats."""

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fetched_places import tarred
from scipy.optimize import linprog

from agglearn.datasets import StateFlows
from agglearn.datasets.builds import first_lines, occupancy_grids, pack_tar, person_columns, puma_counties
from agglearn.datasets.builds.grids import mark_triangles, occupancy
from agglearn.datasets.census import read_crosswalk, regions_of
from agglearn.datasets.content import content_digest
from agglearn.datasets.point_clouds import PointClouds, read_off
from agglearn.errors import DataError

# -- persons ----------------------------------------------------------------------------------------------------------

PERSONS = """RT,SERIALNO,DIVISION,SPORDER,PUMA,REGION,STATE,ADJINC,PWGTP,AGEP,ENG,OCCP,PINCP,SOCP,PWGTP1
P,2024GQ0000060,6,01,00402,3,01,1014190,00025,19,,0420,-7800,11-2030,24
P,2024HU0000001,6,02,02100,3,01,1014190,7,0,1,,,,9
"""
COLUMNS = ["SERIALNO", "SPORDER", "STATE", "PUMA", "PWGTP", "AGEP", "ENG", "OCCP", "PINCP"]


@pytest.mark.parametrize(
    "text", [PERSONS, PERSONS.replace(",01,1014190", ",1,1014190"), PERSONS.replace("0420", '"0420"')]
)
def test_person_columns_keep_codes_as_text_and_numbers_as_numbers(tmp_path, text):
    (tmp_path / "psam_p01.csv").write_text(text)
    for source in (tmp_path / "psam_p01.csv", io.BytesIO(text.encode())):  # a file, a stream
        person_columns({"persons": source}, tmp_path / "p_01.parquet", COLUMNS)
        table = pq.read_table(tmp_path / "p_01.parquet")
        texts = {"SERIALNO", "STATE", "PUMA"}
        assert table.schema == pa.schema([(c, pa.string() if c in texts else pa.int64()) for c in COLUMNS])
        assert [[*row.values()] for row in table.to_pylist()] == [
            ["2024GQ0000060", 1, "01", "00402", 25, 19, None, 420, -7800],
            ["2024HU0000001", 2, "01", "02100", 7, 0, 1, None, None],
        ]


@pytest.mark.parametrize(
    ("text", "columns", "told"),
    [(PERSONS, ["ANC"], "ANC"), (PERSONS, ["SOCP"], "11-2030"), ("<html>\n", ["AGEP"], "AGEP")],
)
def test_person_columns_refuse_other_files(tmp_path, text, columns, told):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(DataError, match=f"no such person records.*{told}"):
        person_columns({"persons": tmp_path / "p.csv"}, tmp_path / "out.parquet", columns)


# -- PUMAs and counties -----------------------------------------------------------------------------------------------

TRACTS = """\ufeffSTATEFP,COUNTYFP,TRACTCE,PUMA5CE
01,033,020100,00100
01,033,020200,00100
01,059,972900,00100
01,083,020101,00200
02,013,000100,00400
02,016,000100,00400
11,001,000101,00101
"""
COUNTIES = """STATE|STATEFP|COUNTYFP|COUNTYNS|COUNTYNAME|CLASSFP|FUNCSTAT
AL|01|033|00161542|Colbert County|H1|A
AL|01|059|00161555|Franklin County|H1|A
AL|01|083|00161567|Limestone County|H1|A
AK|02|016|01419965|Doña Ana Area|H5|S
DC|11|001|01702382|District of Columbia|H6|F
"""


def test_tracts_make_a_crosswalk_that_the_loader_reads(tmp_path):
    inputs = {"tracts": io.BytesIO(TRACTS.encode()), "counties": io.BytesIO(COUNTIES.encode())}
    puma_counties(inputs, tmp_path / "pairs.csv", puma="puma22", county="county")
    links = read_crosswalk(tmp_path / "pairs.csv", "puma22", "county")
    assert links[["letters", "puma", "county", "name"]].values.tolist() == [
        ["AL", "00100", "01033", "Colbert County AL"],
        ["AL", "00100", "01059", "Franklin County AL"],
        ["AL", "00200", "01083", "Limestone County AL"],
        ["AK", "00400", "02013", "02013"],
        ["AK", "00400", "02016", "Doña Ana Area AK"],
        ["DC", "00101", "11001", "District of Columbia DC"],
    ]
    assert regions_of(links)[0].tolist() == [0, 0, 1, 2, 2, 3]


def test_tracts_of_an_unlisted_state_are_refused(tmp_path):
    for tracts, reason in ((TRACTS, "no county of state 11"), ("<html>", "no column 'STATEFP'")):
        inputs = {"tracts": io.BytesIO(tracts.encode()), "counties": io.BytesIO(COUNTIES.split("DC|")[0].encode())}
        with pytest.raises(DataError, match=reason):
            puma_counties(inputs, tmp_path / "pairs.csv", puma="puma22", county="county")


# -- head of a log ----------------------------------------------------------------------------------------------------


class Stream(io.RawIOBase):
    """Bytes that arrive once, in order, as from a host; `taken` counts them."""

    def __init__(self, data: bytes):
        self.data, self.taken = io.BytesIO(data), 0

    def readable(self):
        return True

    def readinto(self, buffer):
        n = self.data.readinto(buffer)
        self.taken += n
        return n


def packed_log(lines: int) -> tuple[bytes, bytes]:
    """(packed file, text) of a log of lines that do not compress."""
    words = np.random.default_rng(0).bytes(60 * lines).split(b"\n")
    text = b"".join(b"0\t%s\t\n" % word.hex().encode() for word in words)
    readme = tarfile.TarInfo("./readme.txt"), b"columns"
    return tarred("w:gz", readme, (tarfile.TarInfo("./train.txt"), text)), text


def test_the_head_of_a_log_is_read_no_further_than_needed(tmp_path):
    packed, text = packed_log(100_000)
    stream = Stream(packed)
    first_lines({"log": stream}, tmp_path / "head.txt", member="train.txt", lines=100)
    assert (tmp_path / "head.txt").read_bytes() == b"\n".join(text.split(b"\n")[:100]) + b"\n"
    assert stream.taken < len(packed) / 10


def test_a_log_that_is_short_missing_or_cut_is_refused(tmp_path):
    packed, text = packed_log(50)
    n = text.count(b"\n")
    for source, member, lines, told in (
        (Stream(packed), "train.txt", n + 1, f"ends after {n} of {n + 1} lines"),
        (Stream(packed), "test.txt", 1, "no member 'test.txt'"),
        (Stream(packed[: len(packed) // 2]), "train.txt", n, "packed file is damaged"),
        (Stream(b"<!doctype html>" * 100), "train.txt", n, "packed file is damaged"),
    ):
        with pytest.raises(DataError, match=told):
            first_lines({"log": source}, tmp_path / "head.txt", member=member, lines=lines)


# -- weekly flows -----------------------------------------------------------------------------------------------------


HEAD = ["geoid_o", "geoid_d", "lng_o", "lat_o", "lng_d", "lat_d", "date_range", "visitor_flows", "pop_flows"]


def test_weeks_become_a_packed_file_that_the_loader_reads(tmp_path):
    found = {}
    for week, flow in (("2019_01_14", 7), ("2019_01_07", 5)):
        row = ["01", "02", -86.8, 32.7, -151.6, 63.7, "01/07/19 - 01/13/19", flow, 10.0 * flow]
        found[f"weekly_state2state_{week}.csv"] = path = tmp_path / f"weekly_state2state_{week}.csv"
        pd.DataFrame([row], columns=HEAD).to_csv(path, index=False)
    out = tmp_path / "weekly_state2state_2019_2021.tar.gz"
    pack_tar(found, out)
    before, digest = out.read_bytes(), content_digest(out)
    (tmp_path / "records").mkdir()
    assert StateFlows().parse({out.name: out}, tmp_path / "records") == {"weeks": 2, "flows": 2}
    assert pq.read_table(tmp_path / "records/features.parquet")["flow"].to_pylist() == [5, 7]
    pack_tar(dict(reversed(found.items())), out)
    assert out.read_bytes() == before
    path.write_text("changed")
    pack_tar(found, out)
    assert content_digest(out) != digest


# -- occupancy grids --------------------------------------------------------------------------------------------------


def box(sides=(1, 1, 1), low=(0, 0, 0)) -> tuple[np.ndarray, np.ndarray]:
    """A closed box of twelve triangles."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float) * sides + low
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return corners, np.array([t for a, b, c, d in faces for t in ((a, b, c), (a, c, d))])


def off(vertices: np.ndarray, triangles: np.ndarray, head: str = "OFF\n") -> str:
    lines = [" ".join(map(str, v)) for v in vertices] + [" ".join(map(str, [3, *t])) for t in triangles]
    return f"{head}{len(vertices)} {len(triangles)} 0\n" + "\n".join(lines) + "\n"


def meet(triangle: np.ndarray, voxel: np.ndarray) -> bool:
    """Whether a convex combination of the corners lies in the voxel: a linear programme."""
    sides = np.concatenate([triangle.T, -triangle.T])
    bounds = np.concatenate([voxel + 1, -voxel])
    return linprog(np.zeros(3), sides, bounds, np.ones((1, 3)), [1.0]).status == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_exactly_the_voxels_that_a_triangle_touches_are_marked(seed):
    rng = np.random.default_rng(seed)
    triangle = rng.uniform(0, 5, (3, 3))
    if seed == 5:
        triangle[2] = (triangle[0] + triangle[1]) / 2  # a needle
    grid = np.zeros((5, 5, 5), bool)
    mark_triangles(triangle[None], grid)
    expected = [meet(triangle, np.array(v)) for v in np.ndindex(grid.shape)]
    np.testing.assert_array_equal(grid.ravel(), expected)
    assert 0 < grid.sum() < grid.size


def test_a_closed_box_is_solid_and_an_open_one_is_not():
    vertices, triangles = box((12, 6, 3), low=(100, -5, 0))
    grid = occupancy(vertices, triangles, 30, 3)
    expected = np.zeros((30, 30, 30), bool)
    expected[3:27, 9:21, 12:18] = True
    np.testing.assert_array_equal(grid, expected)
    lidless = occupancy(vertices, triangles[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]], 30, 3)
    np.testing.assert_array_equal(np.argwhere(expected & ~lidless).min(axis=0), [4, 10, 13])
    assert lidless.sum() == 24 * 12 * 6 - 22 * 10 * 5
    odd = occupancy(*box(), 9, 1)
    assert odd[1:8, 1:8, 1:8].all()
    assert odd.sum() == 7**3


def modelnet(tmp_path: Path) -> Path:
    path = tmp_path / "ModelNet10.zip"
    with zipfile.ZipFile(path, "w") as pack:
        for name, sides, head in (
            ("sofa/train/sofa_0002", (1, 1, 2), "OFF"),
            ("sofa/train/sofa_0001", (1, 2, 1), "OFF\n"),
            ("bed/train/bed_0001", (2, 1, 1), "OFF\n"),
            ("sofa/test/sofa_0681", (1, 1, 1), "OFF\n"),
            ("bed/test/bed_0516", (4, 2, 1), "OFF\n"),
        ):
            pack.writestr(f"ModelNet10/{name}.off", off(*box(sides), head))
        pack.writestr("__MACOSX/ModelNet10/bed/train/._bed_0001.off", b"\x00\x05\x16\x07")
        pack.writestr("ModelNet10/bed/train/.DS_Store", b"")
    return path


def test_meshes_become_the_grids_that_the_loader_reads(tmp_path):
    source, out = modelnet(tmp_path), tmp_path / "vox.npz"
    occupancy_grids({"meshes": source}, out)
    with np.load(out) as arrays:
        assert {k: arrays[k].shape[0] for k in arrays} == {"X_train": 3, "y_train": 3, "X_test": 2, "y_test": 2}
        assert arrays["y_train"].tolist() == [0, 1, 1]
        sides = [np.ptp(np.argwhere(g), axis=0).tolist() for g in arrays["X_train"]]
    assert sides == [[23, 11, 11], [11, 23, 11], [11, 11, 23]]
    (tmp_path / "records").mkdir()
    assert PointClouds().parse({out.name: out}, tmp_path / "records")["clouds"] == 5


def test_text_after_the_faces_of_a_mesh_is_left():
    vertices, triangles = read_off("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n0.5 0.5 0.5\n", "a.off")
    assert (vertices.tolist(), triangles.tolist()) == ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])


def test_packed_files_without_meshes_are_refused(tmp_path):
    (tmp_path / "page.zip").write_text("<!doctype html>")
    with pytest.raises(DataError, match=r"page\.zip: the packed file is damaged"):
        occupancy_grids({"meshes": tmp_path / "page.zip"}, tmp_path / "vox.npz")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as pack:
        pack.writestr("readme.txt", "")
    with pytest.raises(DataError, match=r"has no meshes <class>/train/<shape>\.off"):
        occupancy_grids({"meshes": tmp_path / "empty.zip"}, tmp_path / "vox.npz")
