"""The noisy tables of the AdKDD'21 challenge, from files of the same layout that the tests write."""

import gzip
import itertools
import math

import numpy as np
import pandas as pd
import pytest

from agglearn.datasets import PublishedTables, RecordStore
from agglearn.datasets.published_tables import hash_pairs, read_tables
from agglearn.errors import DataError
from agglearn.evaluation import normalized_log_likelihood
from agglearn.maxent import NoiseAwareMaxEntClassifier
from agglearn.observations import ContingencyTables, Records
from agglearn.observations.counting import buckets_of
from agglearn.tasks import Classification, TaskInput

FEATURES = ["hash_10", "hash_0", "hash_3"]  # not in the order of the file
COLUMNS = [f"hash_{i}" for i in (0, 3, 7, 10)]
ENTRY = {"label": {"column": "click"}, "features": {"categorical": FEATURES}}
ONE = ["feature_1_value", "feature_1_id", "count", "nb_clicks", "nb_sales"]
TWO = ["feature_1_value", "feature_2_value", "feature_1_id", "feature_2_id", "count", "nb_clicks", "nb_sales"]


def draw(n: int, seed: int) -> pd.DataFrame:
    """Records whose clicks depend on hash_0 and hash_10. Values are large integers of either sign, as in the file."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, [4, 3, 2, 5], (n, 4))
    click = rng.random(n) < 1 / (1 + np.exp(-(2.0 * (codes[:, 0] == codes[:, 3]) - 1.0 + 0.8 * codes[:, 0] - 1.2)))
    frame = pd.DataFrame(codes * 1_000_003 - 1_500_000_000, columns=COLUMNS)
    return frame.assign(click=click.astype(int), sale=0)


def aggregate(records: pd.DataFrame, names: list[str], sigma: float, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of a file of the challenge, made like the publisher's notebook."""
    grouped = records.assign(count=1).groupby(names)[["count", "click", "sale"]].sum()
    noisy = (grouped + rng.normal(0, sigma, grouped.shape)).reset_index()
    columns = {name: f"feature_{k}_value" for k, name in enumerate(names, start=1)}
    ids = {f"feature_{k}_id": int(name.removeprefix("hash_")) for k, name in enumerate(names, start=1)}
    return noisy.rename(columns=columns | {"click": "nb_clicks", "sale": "nb_sales"}).assign(**ids)


def write(folder, records: pd.DataFrame, sigma: float = 0.0, least: float = -math.inf) -> tuple:
    rng = np.random.default_rng(1)
    singles = pd.concat([aggregate(records, [c], sigma, rng) for c in COLUMNS])
    pairs = pd.concat([aggregate(records, list(p), sigma, rng) for p in itertools.combinations(COLUMNS, 2)])
    paths = folder / "aggregated_noisy_data_singles.csv.gz", folder / "aggregated_noisy_data_pairs.csv.gz"
    singles[ONE].to_csv(paths[0], index=False)
    pairs[pairs["count"] > least][TWO].to_csv(paths[1], index=False)
    return paths


def read(paths, features=FEATURES) -> ContingencyTables:
    return read_tables(*paths, features, "click", 17.0)


def test_tables_are_those_of_the_records(tmp_path):
    records = draw(2000, 0)
    published = read(write(tmp_path, records))
    counted = ContingencyTables.from_records(records[[*FEATURES, "click"]], label="click", categorical=FEATURES)
    assert published.names == FEATURES
    assert published.encoder == counted.encoder
    assert list(published.tables) == list(counted.tables)
    for key in counted.tables:
        np.testing.assert_allclose(published.dense(*key), counted.dense(*key), atol=1e-9)
    assert (published.total, published.positives) == (2000, counted.positives)


def test_the_noise_is_stated(tmp_path):
    records = draw(2000, 0)
    noisy, exact = read(write(tmp_path, records, sigma=17.0)), read(write(tmp_path, records))
    difference = np.concatenate([np.ravel(np.subtract(noisy.dense(*k), exact.dense(*k))) for k in exact.tables])
    assert abs(difference.std() - 17) < 5 * 17 / math.sqrt(2 * len(difference))
    assert (noisy.noise.mechanism, noisy.noise.scale, noisy.noise.private) == ("gaussian", 17.0, False)
    assert "left out cells" in noisy.noise.meaning
    assert noisy.noise.epsilon > 0
    medians = [np.median([noisy.dense(k)[i].sum() for k in range(3)]) for i in (0, 1)]
    assert [noisy.total, noisy.positives] == pytest.approx(medians)


def test_cells_that_were_left_out_count_nothing(tmp_path):
    records = draw(300, 0)
    published, exact = read(write(tmp_path, records, least=20)), read(write(tmp_path, records))
    for key in exact.pairs:
        counts, whole = published.dense(*key)[0], exact.dense(*key)[0]
        np.testing.assert_allclose(counts, np.where(whole > 20, whole, 0), atol=1e-9)
    assert any((published.dense(*key)[0] == 0).any() for key in exact.pairs)


def test_a_pair_may_stand_in_both_orders(tmp_path):
    paths = write(tmp_path, draw(500, 0))
    pairs = pd.read_csv(paths[1])
    turned = pairs.rename(columns=lambda c: c.translate(str.maketrans("12", "21")) if c.startswith("feature") else c)
    half = np.arange(len(pairs)) % 2 == 0
    pd.concat([pairs[half], turned[~half][TWO]]).to_csv(tmp_path / "turned.csv.gz", index=False)
    expected, found = read(paths), read((paths[0], tmp_path / "turned.csv.gz"))
    for key in expected.tables:
        np.testing.assert_allclose(found.dense(*key), expected.dense(*key))


def test_a_value_without_a_count_is_left_out(tmp_path, caplog):
    paths = write(tmp_path, draw(500, 0))
    singles = pd.read_csv(paths[0])
    lost = singles[singles["feature_1_id"] == 3].index[0]
    singles.drop(index=lost).to_csv(tmp_path / "fewer.csv.gz", index=False)
    with caplog.at_level("INFO"):
        tables = read((tmp_path / "fewer.csv.gz", paths[1]))
    assert tables.encoder.sizes.tolist() == [5, 4, 2]
    assert "['hash_0', 'hash_3']: left out: 4 cells" in caplog.text


def test_hashed_pairs_sum_cells_and_their_noise(tmp_path):
    tables = read(write(tmp_path, draw(2000, 0), sigma=17.0))
    hashed = hash_pairs(tables, 12)
    assert hashed.hashed_pairs == {(0, 1): 12, (0, 2): 12}  # 20 and 15 cells; the third pair has 12
    table = tables.tables[0, 1]
    sums = np.bincount(buckets_of(table.cells, 12), table.counts, 12)
    np.testing.assert_allclose(hashed.dense(0, 1)[0], sums)
    assert hashed.tables[1, 2] is tables.tables[1, 2]
    assert hashed.noise.scales["hash_10 × hash_0"] == pytest.approx(17 * math.sqrt(20 / np.count_nonzero(sums)))
    assert hashed.noise.scales["hash_0 × hash_3"] == 17
    assert hashed.noise.scale == max(hashed.noise.scales.values())
    assert hash_pairs(tables, 20) is not tables
    assert hash_pairs(tables, 20).hashed_pairs == {}


@pytest.fixture
def files(tmp_path):
    """All files of the archive, by name."""
    records, test = draw(20_000, 0), draw(2000, 1)
    write(tmp_path, records, sigma=17.0, least=10)
    for part, frame in (("train", records[:400]), ("test", test)):
        frame[COLUMNS].to_csv(tmp_path / f"X_{part}.csv.gz", index=False)
        frame[["click", "sale"]].to_csv(tmp_path / f"y_{part}.csv.gz", index=False)
    return {p.name: p for p in tmp_path.glob("*.csv.gz")}


def parsed(files, out) -> tuple[TaskInput, dict]:
    out.mkdir()
    facts = PublishedTables.from_entry(ENTRY).parse(files, out)
    return TaskInput("adkdd21_published", ENTRY, {}, RecordStore.open(out)), facts


def test_learners_get_the_tables_and_are_judged_on_the_test_records(files, tmp_path):
    inputs, facts = parsed(files, tmp_path / "out")
    assert (facts["rows"], facts["columns"]) == (2400, 3)
    tables, truth = Classification().observe(inputs, ContingencyTables, {}, 0)
    assert tables.total == pytest.approx(20_000, rel=0.05)
    assert len(truth.y) == 2000
    records, same = Classification().observe(inputs, Records, {}, 0)
    assert len(records.y) == 400
    assert truth.tested == same.tested
    hashed, _ = Classification().observe(inputs, ContingencyTables, {"cross_buckets": 12}, 0)
    assert set(hashed.hashed_pairs) == {(0, 1), (0, 2)}
    model = NoiseAwareMaxEntClassifier(n_chains=1000, max_iter=100, random_state=0).fit(tables)
    score = normalized_log_likelihood(truth.y, model.predict_proba(truth.frame)[:, 1])
    assert score > 0.1  # the planted dependence is found: 400 records alone would do, noise would not


def test_what_is_wrong_is_named(files, tmp_path):
    with pytest.raises(DataError, match=r"singles.*'hash_5' has no row"):
        read([files[f"aggregated_noisy_data_{k}.csv.gz"] for k in ("singles", "pairs")], [*FEATURES, "hash_5"])
    with gzip.open(files["y_test.csv.gz"], "at") as file:
        file.write("1,0\n")
    with pytest.raises(DataError, match=r"X_test.*y_test.* another number of rows"):
        parsed(files, tmp_path / "long")
    for name, text, reason in (
        ("X_test", b"hash_0\n1\n", r"X_test.*no column 'hash_10'"),
        ("aggregated_noisy_data_pairs", b"feature_1_id,count\n1,2\n", "aggregated_noisy_data_pairs"),
    ):
        files[f"{name}.csv.gz"].write_bytes(gzip.compress(text))
        with pytest.raises(DataError, match=reason):
            parsed(files, tmp_path / name)
