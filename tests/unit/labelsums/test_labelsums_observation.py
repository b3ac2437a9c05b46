"""Label sums: what is in them, sensitivity, releases, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from samples import people
from scipy import stats

from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.errors import ConfigError, DataError
from agglearn.observations import LabelSums, NoiseSpec
from agglearn.privacy import analytic_gaussian_scale, classic_gaussian_scale, draw_seeded, zcdp_budget


@pytest.fixture(scope="module")
def records():
    frame = people(800)
    return frame.drop(columns="y"), frame["y"].to_numpy()


def mapped(kind, frame) -> FeatureMap:
    return FeatureMap.fit(kind, FrameEncoder.fit(frame, "deciles", ["zone"]), frame, "features")


@pytest.fixture(scope="module")
def sums(records):
    frame, y = records
    return LabelSums.from_map(mapped("onehot", frame), frame, y)


@pytest.mark.parametrize("kind", ["onehot", "quadratic", "scaled"])
def test_sensitivities_of_features_of_declarations_and_of_coordinates(records, kind):
    """`test_release_definitions.py` and `test_neighbours.py` try them on every record: here their norms, by the rows."""
    frame, y = records
    sums = LabelSums.from_map(mapped(kind, frame), frame, y)
    for order in (1, 2):
        allowed = sums.sensitivity(order, "features")
        assert allowed == pytest.approx(np.linalg.norm(sums.matrix.toarray(), order, axis=1).max())
        assert allowed <= sums.sensitivity(order) * (1 + 1e-9) <= sums.sensitivity(order, "coordinates") * (1 + 1e-9)
    if kind == "onehot":
        assert sums.sensitivity() == math.sqrt(frame.shape[1] + 1)
        assert sums.sensitivity(of="coordinates") == math.sqrt(len(sums.names))  # N² times the note's k/N², squared


def test_private_release(sums):
    noisy = sums.private(1.0, 1e-6)
    scale = analytic_gaussian_scale(sums.sensitivity(), 1.0, 1e-6)
    assert noisy.noise == NoiseSpec("gaussian", scale, 1.0, 1e-6, "label", True)
    z = np.array([sums.private(1.0, 1e-6).sums - sums.sums for _ in range(40)]) / scale
    assert (z != 0).all()
    assert 5e-7 < stats.chi2.cdf(np.sum(z**2), z.size) < 1 - 5e-7
    assert stats.chi2.cdf(np.sum((1.3 * z) ** 2), z.size) > 1 - 5e-7  # of a wrong scale
    assert (sums.private(1.0, 1e-6).sums != noisy.sums).any()
    assert noisy.digest != sums.digest
    with pytest.raises(DataError, match="already"):
        noisy.private(1.0, 1e-6)
    whole = sums.private(0.5, mechanism="discrete_laplace")
    assert (whole.sums == np.round(whole.sums)).all()
    laplace = sums.private(0.5, mechanism="laplace")
    assert laplace.noise_scale == pytest.approx(math.sqrt(2) * laplace.noise.scale)  # a standard deviation
    assert noisy.noise_scale == scale


@pytest.mark.parametrize("of", ["declared", "features"])
def test_discrete_noise_of_sums_that_are_not_whole(of):
    """Its promise is bounded by zCDP."""
    x = np.random.default_rng(0).integers(-3, 8, (50, 2))
    halves = LabelSums.from_records(x / 2, x[:, 0] > 2, bounds=(-9, 9))
    by_budget = halves.sensitivity(of=of) / math.sqrt(2 * zcdp_budget(1.0, 1e-6))
    noisy = halves.private(1.0, 1e-6, mechanism="discrete_gaussian", sensitivity=of, draw=draw_seeded(0))
    assert noisy.noise.scale == pytest.approx(by_budget)


def test_seeded_noise_is_not_private(sums):
    a, b, c = (sums.private(1.0, 1e-6, draw=draw_seeded(s)) for s in (0, 0, 1))
    assert a.digest == b.digest != c.digest
    assert not a.noise.private
    classic = sums.private(5.0, 1e-6, calibration="classic", draw=draw_seeded(0))
    assert classic.noise.scale == classic_gaussian_scale(sums.sensitivity(), 5.0, 1e-6)


def test_the_classic_calibration_is_never_called_private_from_one_on(sums):
    assert sums.private(0.9, 1e-6, calibration="classic").noise.private
    for epsilon in (1, 3.0):
        with pytest.raises(ConfigError, match="classic promises nothing"):
            sums.private(epsilon, 1e-6, calibration="classic")


def test_unbounded_features_are_refused_unless_looked_at_is_accepted():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    sums = LabelSums.from_records(x, y)
    with pytest.raises(ConfigError, match="no declared bounds"):
        sums.private(1.0, 1e-6)
    accepted = sums.private(1.0, 1e-6, sensitivity="features").noise.scale
    largest = np.sqrt((x**2).sum(1) + 1).max()
    assert accepted == pytest.approx(analytic_gaussian_scale(largest, 1.0, 1e-6))
    assert sums.private(1.0, 1e-6, sensitivity=9.0).noise.scale == pytest.approx(analytic_gaussian_scale(9, 1.0, 1e-6))
    wide = LabelSums.from_records(x, y, bounds=(-9, 9))
    with pytest.raises(ConfigError, match="within"):
        wide.sensitivity(of="coordinates")


def test_a_release_of_somebody_else():
    x = pd.DataFrame({"a": [0.1, 0.9, 0.4], "b": [1.0, 0.0, 0.5]})
    spec = NoiseSpec("gaussian", 0.1, 1.0, 1e-6, "label", True)
    sums = pd.Series({"a": 1.2, "b": 0.4, "intercept": 2.1})
    assert LabelSums.from_release(x, sums, noise=spec).noise == spec
    for wrong, said in (
        (sums[["b", "a", "intercept"]], r"coordinate 1 of the release is 'b', of the features 'a'; bring them"),
        (sums.rename({"b": "c"}), "coordinate 2 of the release is 'c'"),
        (sums[["a", "b"]], r"\(2,\), with 2 names, for 3 coordinates"),
        (sums.to_numpy(), "coordinate 1 of the release is 0"),
        (sums.replace(0.4, np.nan), "'b' is no number"),
    ):
        with pytest.raises(DataError, match=said):
            LabelSums.from_release(x, wrong, noise=spec)


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ({"y": [0, 1]}, DataError, "labels"), ({"y": [0, 1, 2]}, DataError, "0 or 1"),
        ({"bounds": (0, 0.5)}, DataError, "column 'a': row 2 holds 0.9, outside the declared 0 to 0.5"),
        ({"bounds": (0.2, 1)}, DataError, "column 'a': row 1 holds 0.1, outside the declared 0.2 to 1"),
        ({"bounds": {"a": (0, 1)}}, ConfigError, "none for column 'b'"),
        ({"bounds": (1, 0)}, ConfigError, "no range"), ({"weights": [1, -1, 1]}, DataError, "weights"),
        ({"X": pd.DataFrame({"a": [1, None, 2]})}, DataError, "missing values"),
        ({"X": pd.DataFrame({"a": ["x", "y", "z"]})}, DataError, "numeric but row 1"),
        ({"X": np.zeros(3)}, DataError, "shape"),
    ],
)  # fmt: skip
def test_bad_input(how, error, said):
    given_ = {"X": pd.DataFrame({"a": [0.1, 0.9, 0.4], "b": [1.0, 0.0, 0.5]}), "y": [0, 1, 1]} | how
    with pytest.raises(error, match=said):
        LabelSums.from_records(given_.pop("X"), given_.pop("y"), **given_)


@pytest.mark.parametrize(
    ("kind", "ranges", "said"),
    [("scaled", (), "range"), ("scaled", ({},), "ranges: none for column 'age'"), ("cubic", (), "not known")],
)
def test_bad_maps(records, kind, ranges, said):
    frame, _ = records
    with pytest.raises(ConfigError, match=said):
        FeatureMap.fit(kind, FrameEncoder.fit(frame, "deciles", ["zone"]), frame, *ranges)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        *(({"epsilon": e, "delta": d}, "epsilon|delta") for e, d in ((0, 0.1), (1, 0), (1, 1), (1, None))),
        ({"epsilon": 1, "delta": 1e-6, "sensitivity": "guess"}, "sensitivity"),
        ({"epsilon": 1, "delta": 1e-6, "sensitivity": -1.0}, "sensitivity"),
    ],
)
def test_bad_promises(sums, how, said):
    with pytest.raises(ConfigError, match=said):
        sums.private(**how)


def test_coordinates_are_made_once_for_sums_and_their_sensitivity(monkeypatch):
    frame = pd.DataFrame({"a": ["x", "y", "x", None], "b": [1.0, 2.0, 3.0, 4.0]})
    mapped = FeatureMap.fit("quadratic", FrameEncoder.fit(frame), frame)
    made = []
    matrix = FeatureMap.matrix
    monkeypatch.setattr(FeatureMap, "matrix", lambda self, frame: made.append(1) or matrix(self, frame))
    sums = LabelSums.from_map(mapped, frame, np.array([0, 1, 1, 0]))
    assert sums.sensitivity(2, "features") == pytest.approx(2)  # two features, their pair, the intercept
    assert made == [1]


@pytest.mark.parametrize("kind", ["onehot", "quadratic"])
@pytest.mark.parametrize("intercept", [True, False])
def test_coordinates_are_ones_where_a_record_has_the_value(kind, intercept):
    """Pairs have those that occurred, and the names of two values."""
    seen = pd.DataFrame({"a": list("xyxy"), "b": list("uuvw")})
    mapped = FeatureMap.fit(kind, FrameEncoder.fit(seen), seen, intercept=intercept)
    more = pd.DataFrame({"a": ["y", "x", "new"], "b": ["v", "u", "v"]})
    singles = [f"{c} = {v}" for c, values in (("a", "xy"), ("b", "uvw")) for v in values]
    pairs = {f"a = {a} & b = {b}" for a, b in seen.to_numpy()} if kind == "quadratic" else set()
    assert set(mapped.names) == {*singles, *pairs, *["intercept"] * intercept}
    assert len(set(mapped.names)) == len(mapped.names)
    for frame in (seen, more):
        values = [{f"{column} = {value}" for column, value in row.items()} for _, row in frame.iterrows()]
        expected = [[set(name.split(" & ")) <= has or name == "intercept" for name in mapped.names] for has in values]
        x = mapped.matrix(frame)
        assert x.has_canonical_format
        assert (x.toarray() == expected).all()
