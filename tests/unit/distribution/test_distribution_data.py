"""Bags with a target: closed forms against Monte Carlo, simulated bags, clouds of points, and the task."""

import io
import itertools
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from census_sample import ENTRY, prepared_census
from scipy.spatial import ConvexHull
from scipy.stats import multivariate_normal

from agglearn.datasets import DigitClouds, GaussianBags, PointClouds, RecordStore, point_clouds
from agglearn.datasets.census import county_means
from agglearn.datasets.gaussian_bags import COVARIANCE_FAMILIES, block_information, marginal_entropy, total_correlation
from agglearn.datasets.point_clouds import points_on, read_off, surface, unit_sphere
from agglearn.distribution import (
    BagOfWordsEmbedding,
    EmbeddingClassifier,
    EmbeddingRegressor,
    LinearRidge,
    MomentEmbedding,
    MultinomialLogistic,
)
from agglearn.errors import ConfigError, DataError
from agglearn.observations import Bags, Records
from agglearn.tasks import DistributionRegression, TaskInput, census_design

# -- closed forms -----------------------------------------------------------------------------------------------------


def covariance(d, seed=0):
    a = np.random.default_rng(seed).normal(size=(d, d))
    return a @ a.T + 0.3 * np.eye(d)


def entropy(c) -> float:
    """Of a normal law, by SciPy."""
    return float(multivariate_normal(np.zeros(len(c)), c).entropy())


def test_entropy_and_mutual_information_by_scipy():
    c, sigma, alpha = covariance(4), covariance(3), 0.6
    alone = [entropy(c[k : k + 1, k : k + 1]) for k in range(4)]
    assert marginal_entropy(c) == pytest.approx(alone[0])
    assert total_correlation(c) == pytest.approx(sum(alone) - entropy(c))
    both = np.kron([[1, alpha], [alpha, 1]], sigma)
    assert block_information(alpha, 3) == pytest.approx(2 * entropy(sigma) - entropy(both))


# -- simulated bags ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", list(COVARIANCE_FAMILIES))
def test_bags_have_the_statistic_that_they_are_given(statistic):
    """Whitened by the law, instances are standard normal: checked through targets computed from samples."""
    dimension = {"rotation": 2}.get(statistic, 4)
    drawn = GaussianBags(statistic, dimension, n_bags=6, n_validation=2, n_test=3, bag_size=40_000).draw(1)
    assert len(drawn.train) == 8
    for k in range(3):
        c = np.cov(drawn.test.X[40_000 * k : 40_000 * (k + 1)].astype(float).T)
        of_halves = total_correlation(c) - total_correlation(c[:2, :2]) - total_correlation(c[2:, 2:])
        found = {"rotation": marginal_entropy(c), "correlation": of_halves}
        by_sample = found.get(statistic, total_correlation(c))
        assert by_sample == pytest.approx(drawn.test.target[k], abs=0.03)
    assert not np.allclose(drawn.train.target[2:], drawn.train.target[2])


def test_same_seed_same_bags_and_validation_apart():
    one, two, other = (GaussianBags(n_bags=4, n_validation=3, n_test=2, bag_size=5).draw(s) for s in (0, 0, 1))
    assert one.train.digest == two.train.digest != other.train.digest
    assert len(one.train) == 7
    for wrong in ({"statistic": "x"}, {"size": 3}, {"dimension": 3}):
        statistic = "correlation" if "dimension" in wrong else "rotation"
        with pytest.raises((ConfigError, DataError), match=r"(?i)gaussian_?bags"):
            GaussianBags.from_entry({"params": {"statistic": statistic}}, wrong).draw(0)


@pytest.mark.slow
def test_digits_are_inked_pixels():
    drawn = DigitClouds(n_bags=100).draw(0)
    assert len(drawn.train) == 100
    assert len(drawn.train) + len(drawn.test) < 1797
    assert (drawn.train.weights > 0).all()
    assert abs(drawn.train.X).max() == 1
    model = EmbeddingClassifier(MomentEmbedding(), MultinomialLogistic(), random_state=0).fit(drawn.train)
    assert (model.predict(drawn.test) == drawn.test.target).mean() > 0.4
    with pytest.raises(ConfigError, match="DigitClouds takes no"):
        DigitClouds.from_entry({}, {"points": 3})


# -- clouds -----------------------------------------------------------------------------------------------------------


def test_surface_of_a_cube():
    grid = np.zeros((6, 6, 6), np.uint8)
    grid[1:5, 1:5, 1:5] = 1
    assert len(surface(grid)) == 4**3 - 2**3
    assert len(surface(np.ones((3, 3, 3)))) == 26  # the border is free
    cloud = unit_sphere(surface(grid))
    np.testing.assert_allclose(cloud.mean(axis=0), 0, atol=1e-12)
    assert np.linalg.norm(cloud, axis=1).max() == pytest.approx(1)


def voxels(path, n=6):
    rng = np.random.default_rng(0)
    grids = (rng.random((n, 30, 30, 30)) < 0.05).astype(np.uint8)
    grids[2] = 0
    y = np.arange(n) % 2
    np.savez(path, X_train=grids, y_train=y, X_test=grids[:4], y_test=y[:4])


def stored(tmp_path, name="shapes.npz") -> RecordStore:
    if name.endswith("npz"):
        voxels(tmp_path / name)
    (tmp_path / "out").mkdir()
    dataset = PointClouds.from_entry({"title": "t", "class": "agglearn.datasets.PointClouds", "params": {"points": 50}})
    dataset.parse({name: tmp_path / name}, tmp_path / "out")
    return RecordStore.open(tmp_path / "out")


def test_clouds_from_voxels(tmp_path):
    store = stored(tmp_path)
    assert store.header["parts"] == {"train": [0, 5], "test": [5, 8]}  # the empty grid is left out
    with np.load(store.folder / "clouds.npz") as arrays:
        np.testing.assert_array_equal(arrays["classes"], [0, 1, 1, 0, 1, 0, 1, 1])


CORNERS = list(itertools.product((0, 1), repeat=3))
ROWS = [*CORNERS, *([3, *face] for face in ConvexHull(CORNERS).simplices)]  # eight corners and twelve triangles
CUBE = "\n".join(["OFF", "8 12 0", *(" ".join(map(str, row)) for row in ROWS)]) + "\n"


def test_clouds_from_meshes(tmp_path):
    with zipfile.ZipFile(tmp_path / "shapes.zip", "w") as pack:
        for kind, part, k in (("chair", "train", 1), ("bed", "train", 1), ("bed", "test", 2), ("chair", "test", 2)):
            mesh = CUBE.replace("OFF\n8", "OFF8") if k == 2 else CUBE
            pack.writestr(f"Shapes/{kind}/{part}/{kind}_{k}.off", mesh)
        pack.writestr("__MACOSX/Shapes/bed/train/bed_1.off", b"\x00")
    store = stored(tmp_path, "shapes.zip")
    with np.load(store.folder / "clouds.npz") as arrays:
        np.testing.assert_array_equal(arrays["classes"], [0, 1, 0, 1])
        np.testing.assert_array_equal(np.diff(arrays["offsets"]), 50)


def test_points_lie_evenly_on_the_mesh():
    points = points_on(*read_off(CUBE, "cube"), 12_000, np.random.default_rng(0))
    on = np.isclose(points, 0) | np.isclose(points, 1)
    assert on.any(axis=1).all()
    sides = [np.isclose(points[:, j], v).sum() for j in range(3) for v in (0, 1)]
    assert abs(np.array(sides) - 2000).max() < 5 * np.sqrt(2000)
    np.testing.assert_allclose(points.mean(axis=0), 0.5, atol=0.02)
    for wrong in ("PLY\n", "OFF\n8 12 0\n0 0", CUBE.replace("\n3 ", "\n4 ", 1)):
        with pytest.raises(DataError, match="cube"):
            read_off(wrong, "cube")


# -- the task ---------------------------------------------------------------------------------------------------------


def test_task_on_clouds(tmp_path):
    store = stored(tmp_path)
    inputs = TaskInput("shapes", {}, {"points": 20, "n_clouds": 4}, store)
    seen, truth = DistributionRegression().observe(inputs, Bags, {}, 0)
    assert len(seen) == 4
    assert (seen.sizes == 20).all()
    assert len(truth.bags) == 3
    truth.save(tmp_path)
    assert type(truth).load(tmp_path).bags.digest == truth.bags.digest
    points = np.load(store.folder / "points.npy")
    for bags in (seen, truth.bags):  # none of them is turned or moved
        assert {tuple(x) for x in bags.X} <= {tuple(x) for x in points}


@pytest.fixture(scope="module")
def country(tmp_path_factory):
    return prepared_census(tmp_path_factory.mktemp("census"))


def observed(country, params=None, seed=0, **given):
    given = {"elections": [2016, 2016], "columns": "shared", "components": 4, "states": "all"} | given
    return DistributionRegression().observe(TaskInput("acs", ENTRY, given, country), Bags, params or {}, seed)


def test_task_on_elections(country):
    seen, truth = observed(country, bag_size=40)
    assert len(seen) == 3
    assert len(truth.bags) == 1
    assert (seen.sizes == 40).all()
    assert truth.columns == ("2016", "2016")
    shares = {"AL Autauga AL": 300 / 700, "AL Barbour AL": 50 / 110}
    shares |= {"AK Anchorage AK": 70 / 150, "IA Adair IA": 500 / 900}
    for bags in (seen, truth.bags):
        np.testing.assert_allclose(bags.target, [[shares[n]] * 2 for n in bags.bag_names])
    tested = [observed(country, seed=s)[1].bags.bag_names for s in range(8)]
    assert len(set(tested)) > 1
    model = EmbeddingRegressor(MomentEmbedding(order=1), LinearRidge()).fit(seen)
    found = {m.measure: m.keys for m in DistributionRegression().measure(model, truth, ["mse", "nmse"])}
    assert found == {"mse": {"target": "2016"}, "edges": None}  # one test bag has no variance


def test_regions_are_those_of_the_contiguous_states(country):
    data = TaskInput("acs", ENTRY, {"columns": "shared", "components": 4}, country)
    seen, truth = DistributionRegression().observe(data, Bags, {}, 0)
    assert sorted(seen.bag_names + truth.bags.bag_names) == ["AL Autauga AL", "AL Barbour AL", "IA Adair IA"]


def test_everybody_by_weight(country):
    seen, truth = observed(country)
    assert len(seen.X) + len(truth.bags.X) == country.n
    assert len(set(seen.weights)) > 2
    study = census_design.voter_design(country.folder, "shared", 0.0, 4)
    means = MomentEmbedding(order=1).fit(seen).transform(seen)
    wanted = census_design.region_means(study)
    names = list(study.persons.regions["name"])
    np.testing.assert_allclose(means, wanted[[names.index(n) for n in seen.bag_names]], atol=1e-4)


def test_the_error_of_one_election_is_that_of_each_region(country):
    seen, truth = observed(country, elections=[2016])
    model = EmbeddingRegressor(MomentEmbedding(order=1), LinearRidge(), random_state=0).fit(seen)
    for bags in (truth.bags, seen.take([0, 1])):  # of several regions errors are no products of one another
        wanted = np.mean((model.predict(bags) - bags.target[:, 0]) ** 2)
        found = measured(model, replace(truth, bags=bags), "mse")
        assert found["mse", "2016"] == pytest.approx(wanted, rel=1e-6)


def test_characteristics_of_a_data_set(country):
    """Of everybody in the three contiguous regions, before the four components; a vector has the words' length."""
    names = ["bags", "bag_size", "bag_size_most", "dimension", "embedding_dimension"]
    seen, truth = observed(country, states="contiguous")
    model = EmbeddingRegressor(BagOfWordsEmbedding(n_words=5), LinearRidge(), random_state=0).fit(seen)
    found = {m.measure: m.value for m in DistributionRegression().measure(model, truth, names)}
    frame = country.features()
    sizes = np.bincount(frame["region"])[[0, 1, 3]]
    numbers = ["AGEP", "x", "y", "z"]
    categories = sum(frame[c].nunique() for c in ("SEX", "RAC1P", "HISP", "CIT", "SCHL", "DIS"))
    wanted = [3, sizes.mean(), sizes.max(), len(numbers) + categories, 5]
    assert [found[n] for n in names] == pytest.approx(wanted)


def test_counties_are_averaged_by_population(country):
    regions = pd.read_parquet(country.folder / "regions.parquet")
    np.testing.assert_allclose(regions["county_Income"], [25, 7, 5, (10 + 30 + 7 + 2 + 6) / 5])
    np.testing.assert_allclose(regions["county_Poverty"], [(1 + 3 * 4) / 4, 3, 7, 4])  # Baldwin's gap: the mean of all
    np.testing.assert_allclose(regions["county_Men"], np.log1p([200, 20, 20, 0]))
    seen, truth = observed(country, {"persons": "counties"})
    assert (seen.sizes == 1).all()
    assert seen.names == ("county_TotalPop", "county_Men", "county_Income", "county_Poverty")
    x = np.concatenate([seen.X, truth.bags.X])
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-6)


def test_county_tables_of_another_year(tmp_path):
    """Columns are named in the entry; one that is missing is named."""
    (tmp_path / "counties.csv").write_text("geo_id,pop2020,workers,income\n1001,100,40,10\n1003,300,60,30\n")
    spec = {"file": "counties.csv", "county": "geo_id", "population": "pop2020", "totals": ["workers"]}
    found = county_means(tmp_path / "counties.csv", spec, {"01001": 0, "01003": 0}, 1)
    expected = {"county_pop2020": np.log1p(400), "county_workers": np.log1p(100), "county_income": 25}
    assert found.iloc[0].to_dict() == pytest.approx(expected)
    with pytest.raises(DataError, match="no column 'CensusId'; the columns are geo_id, pop2020"):
        county_means(tmp_path / "counties.csv", spec | {"county": "CensusId"}, {}, 1)


def simulated(n_test: int, bag_size: int):
    drawn = GaussianBags(n_bags=64, n_validation=0, n_test=n_test, bag_size=bag_size).draw(0)
    return DistributionRegression().observe(TaskInput("gaussian_bags", {}, {}, drawn), Bags, {}, 0)


def measured(model, truth, *measures) -> dict:
    """Values by measure and the values of its keys."""
    found = DistributionRegression().measure(model, truth, list(measures))
    return {(m.measure, *(m.keys or {}).values()): m.value for m in found}


class Named(MomentEmbedding):
    """An embedding with a parameter that has no order."""

    def __init__(self, kind=None, random_state=None):
        super().__init__(1, random_state=random_state)
        self.kind = kind


def test_a_setting_that_is_no_number_has_no_end_of_a_grid_and_no_measure():
    seen, truth = simulated(20, 20)
    embedding = EmbeddingRegressor(Named(), LinearRidge([0.1]), tune={"kind": ["mean", None, "square"]}, random_state=0)
    model = embedding.fit(seen)
    assert model.edges_ == []
    found = [name for name, *_ in measured(model, truth, "tuned", "slope_of_part")]
    assert "tuned" not in found
    # parts of a single bag have no slope: 20 bags in 16 parts leave four of two bags
    assert found.count("slope_of_part") == 4


def test_task_refuses(tmp_path):
    drawn = GaussianBags(n_bags=2, n_validation=0, n_test=2, bag_size=3).draw(0)
    task = DistributionRegression()
    for inputs, kind, params, said in (
        (TaskInput("g", {}, {}, drawn), Records, {}, "cannot make Records"),
        (TaskInput("g", {}, {}, drawn), Bags, {"persons": "all"}, "persons: 'all' is not allowed"),
        (TaskInput("g", {}, {}, io.StringIO()), Bags, {}, "no bags for this task"),
        (TaskInput("shapes", {}, {"size": 3}, stored(tmp_path)), Bags, {}, "takes no 'size'"),
    ):
        with pytest.raises(ConfigError, match=said):
            task.observe(inputs, kind, params, 0)


def test_the_corners_of_an_image_are_the_corners_of_a_square():
    image = np.zeros((1, 8, 8))
    image[0, 0, 0], image[0, 7, 7], image[0, 0, 7] = 1, 2, 4  # row 0 is the top
    bags = point_clouds._inked_pixels(image, np.array([3]))
    np.testing.assert_allclose(bags.X, [[-1, 1], [1, 1], [1, -1]])
    np.testing.assert_allclose(bags.weights, [0.25, 1, 0.5])
