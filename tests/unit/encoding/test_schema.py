"""Declared schemas: their form, what belongs to `other`, drafts, and that all ways to aggregate take them alike."""

import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import yaml
from samples import PEOPLE_SCHEMA, people

from agglearn.encoding import FeatureMap, FrameEncoder, Schema, with_target_encodings
from agglearn.encoding.drafting import LEAST, draft
from agglearn.errors import ConfigError, DataError, RecordsLeftOut
from agglearn.maxent import NaiveBayesClassifier
from agglearn.observations import ContingencyTables, CountedBags, Halves, LabelSums, Records

TEXT = """
reviewed: true
label: {column: y, positive: yes, negative: no}
features:
  age: {edges: [30, 45.5], missing: true}
  job: {values: [yes, no, 01, 3.0, null]}
  mail: {buckets: 5}
  code: {buckets: 3, missing: true}
"""


def encoder(name: str):
    return next(f for f in Schema.parse(TEXT).encoder.features if f.name == name)


def codes(name: str, values: list, dtype=object) -> list[str]:
    """Names of the levels of some values."""
    feature = encoder(name)
    return [feature.labels[c] for c in feature.encode(pd.Series(values, name=name, dtype=dtype))]


def test_text_stays_as_it_is_written():
    schema = Schema.parse(TEXT)
    assert (schema.label, schema.positive, schema.negative) == ("y", "yes", "no")
    assert schema.encoder.schema == "declared"
    assert encoder("job").labels == ["yes", "no", "01", "3", "null", "other"]  # 3.0 is 3 in records, too
    assert codes("job", [3, 3.0, "3.0", "3", Decimal("3.00"), "03", True]) == [*["3"] * 5, "other", "other"]


def test_whatever_is_not_declared_has_a_level(tmp_path):
    assert codes("job", ["yes", "01", "1", 1, None, "YES"]) == ["yes", "01", "other", "other", "other", "other"]
    bins = ["(-inf, 30]", "(30, 45.5]", "(45.5, inf]"]
    assert codes("age", [30, "31", math.inf, -math.inf, 10**400, None, "x", "1_0"]) == [
        bins[0], bins[1], bins[2], bins[0], bins[2], "missing", "other", "other",
    ]  # fmt: skip
    assert codes("age", [1.5, np.nan], float) == [bins[0], "missing"]
    assert encoder("mail").labels == ["#0", "#1", "#2", "#3", "#4", "other"]
    assert codes("mail", [None, pd.NA]) == ["other", "other"]
    assert encoder("code").labels == ["#0", "#1", "#2", "missing"]
    for name in ("age", "job", "mail", "code"):
        feature = encoder(name)
        assert len(feature.labels) == feature.size
        feature.save(tmp_path)
        assert type(feature).load(tmp_path) == feature


def test_records_with_other_labels_are_left_out():
    schema = Schema.parse(TEXT)
    with pytest.warns(
        RecordsLeftOut, match=r"^label 'y': 3 of 6 records are left out, which have neither 'yes' nor 'no'$"
    ):
        y, kept = schema.labels(pd.Series(["yes", "no", None, "maybe", "yes", 1], name="y"))
    assert y.tolist() == [1, 0, 1]
    assert kept.tolist() == [True, True, False, False, True, False]
    numbers = Schema.parse(TEXT.replace("positive: yes, negative: no", "positive: 1.0, negative: 0"))
    with pytest.warns(RecordsLeftOut, match="2 of 4 records"):
        assert numbers.labels(pd.Series([1.0, 0.0, np.nan, 2.0]))[0].tolist() == [1, 0]
    with pytest.warns(RecordsLeftOut, match="1 of 3 records"):
        assert numbers.labels(pd.Series(["1", "0", "01"]))[0].tolist() == [1, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert numbers.labels(pd.Series(["1", "0"]))[0].tolist() == [1, 0]
    for wrong in ([True, False], [0, 0], ["yes", "no"], []):
        have = f" (they have {str(sorted(set(map(str, wrong))))[1:-1]})" if wrong else ""
        with pytest.raises(DataError) as error:
            numbers.labels(pd.Series(wrong, dtype=object))
        said = f"label 'y': none of {len(wrong)} records has the positive value '1'{have}; mend it in the schema"
        assert str(error.value) == said


def test_every_way_to_aggregate_says_what_a_wrong_label_leaves_out(tmp_path):
    """Half of the records have the label `maybe`; under the wrong name of the positive one all is refused."""
    frame = people(60).assign(y=["yes", "no", "maybe", "maybe"] * 15)
    frame.to_parquet(tmp_path / "data.parquet")
    ways = [(kind.from_records, frame) for kind in (ContingencyTables, Records, Halves)]
    text = PEOPLE_SCHEMA.replace("positive: '1', negative: '0'", "positive: 'yes', negative: 'no'")
    for aggregate, data in [*ways, (ContingencyTables.from_parquet, tmp_path / "data.parquet")]:
        with pytest.warns(RecordsLeftOut, match="30 of 60 records are left out"):
            aggregate(data, schema=Schema.parse(text))
        with pytest.raises(DataError, match="none of 60 records has the positive value 'Yes'"):
            aggregate(data, schema=Schema.parse(text.replace("'yes'", "'Yes'")))


def instead(text: str, other: str) -> str:
    assert text in TEXT
    return TEXT.replace(text, other)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (instead("reviewed: true", "reviewed: false"), "reviewed: is false; a draft is made from records"),
        (instead("reviewed: true", "reviewed: yes"), "reviewed: 'yes' is neither true nor false"),
        (instead("reviewed: true\n", ""), "key 'reviewed' is missing"), ("- a", "must be a mapping"),
        ("", "must be a mapping"), (None, "cannot be read"), ("é".encode("latin-1"), "UTF-8"),
        ("a: [", "line 2: not valid YAML"),
        (TEXT + "more: 1\n", "unknown key 'more'; allowed: reviewed, label, features"),
        (TEXT + "  age: {buckets: 3}\n", "key 'age' stands twice"),
        (TEXT + "  y: {buckets: 3}\n", "features: 'y' is the label"),
        (instead("positive: yes", "positive: ''"), "label: positive is empty"),
        (instead("positive: yes", "positive: [yes]"), "label: positive is empty"),
        (instead("negative: no", "negative: yes"), "both 'yes'"),
        (instead("positive: yes, negative: no", "positive: 0, negative: 1"), "would predict 1 for 0"),
        (instead(", negative: no", ""), "label: key 'negative' is missing"),
        (instead("{buckets: 5}", "{}"), "features.mail: must be a mapping"),
        (instead("{buckets: 5}", "{missing: true}"), "needs one of values, edges, buckets"),
        (instead("{buckets: 5}", "{buckets: 5, edges: [1]}"), "needs one of values, edges, buckets"),
        (instead("{buckets: 5}", "{bucket: 5}"), "features.mail: unknown key 'bucket'"),
        (instead("{buckets: 5}", "{buckets: 0}"), "features.mail.buckets: '0'"),
        (instead("{buckets: 5}", f"{{buckets: {'9' * 5000}}}"), "99 is not a number of buckets"),
        (instead("{buckets: 5}", "{buckets: 2147483648}"), "features.mail.buckets: '2147483648' is not a number"),
        (instead("[yes, no,", "[3, no,"), "features.job.values: '3' stands twice"),
        (instead("{buckets: 5}", "{buckets: 5, missing: maybe}"), "features.mail.missing: 'maybe'"),
        (instead("[30, 45.5]", "[45.5, 30]"), "features.age.edges: must be finite numbers in ascending order"),
        (instead("[30, 45.5]", "[30, 30]"), "ascending order"), (instead("[30, 45.5]", "[30, inf]"), "finite"),
        (instead("[30, 45.5]", "[30, x]"), "finite"),
        (instead("[30, 45.5]", "30"), "features.age.edges: must be a list"),
        (instead("[yes, no,", "[no, no,"), "features.job.values: 'no' stands twice"),
        (instead("[yes, no,", "[other, no,"), "features.job.values: 'other' stands twice, or is the name of the level"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(text, said, tmp_path):
    path = tmp_path / "schema.yaml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as error:
        Schema.read(path)
    assert len(str(error.value)) < 300 + len(str(path))
    assert said in str(error.value)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


# -- aggregation --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema.parse(PEOPLE_SCHEMA)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    frame = people(500).astype({"y": object})
    frame.loc[[3, 9], "job"] = "astronaut"
    frame.loc[[4, 5, 6], "y"] = [None, "?", 2]
    frame["extra"] = 1
    return frame


def test_tables_by_a_schema(frame, schema):
    tables = ContingencyTables.from_records(frame, schema=schema)
    assert tables.names == ["age", "job", "home", "zone"]
    assert tables.label == "y"
    assert tables.total == 497
    good = frame.drop(index=[4, 5, 6])
    assert dict(zip(tables.encoder.features[1].labels, tables.dense(1)[0], strict=True)) == {
        **good.job.value_counts()[["cook", "nurse", "clerk"]].to_dict(), "missing": 0, "other": 2,
    }  # fmt: skip
    assert all(t.counts.sum() == 497 for t in tables.tables.values())  # every record is in a cell of every table
    few = ContingencyTables.from_records(frame, "y", ["zone", "job"], [("zone", "job")], schema=schema)
    assert few.names == ["zone", "job"]
    assert few.encoder.schema == "declared"
    assert few.select(["job"]).encoder.schema == "declared"


def test_a_file_needs_the_columns_of_the_schema(frame, schema, tmp_path):
    frame.drop(columns="zone").astype({"y": str}).to_parquet(tmp_path / "less.parquet")
    with pytest.raises(DataError, match="no column 'zone'"):
        ContingencyTables.from_parquet(tmp_path / "less.parquet", schema=schema)


def test_observations_by_a_schema_are_loaded_with_it(frame, schema, tmp_path):
    records = Records.from_records(frame, schema=schema)
    x, y = records.frame, records.y
    assert len(y) == 497
    tables = ContingencyTables.from_records(frame, schema=schema)
    sums = LabelSums.from_map(FeatureMap.fit("onehot", schema.encoder, x), x, y)
    bags = CountedBags.from_records(schema.encoder, x, y, 10, np.random.default_rng(0))
    for observation in (tables, records, sums, bags):
        observation.save(tmp_path / type(observation).__name__)
        again = type(observation).load(tmp_path / type(observation).__name__)
        assert (again.map.encoder if observation is sums else again.encoder) == schema.encoder


@pytest.mark.parametrize(
    "how",
    [{"label": "job"}, {"binning": "width"}, {"categorical": ["zone"]}, {"positive": 1}, {"hashed": {"job": 3}}],
    ids=str,
)
def test_what_the_schema_declares_is_not_given_beside_it(frame, schema, how, tmp_path):
    frame.astype({"y": str}).to_parquet(tmp_path / "data.parquet")
    doors = [(kind.from_records, frame) for kind in (ContingencyTables, Records, Halves)]
    for make, data in [*doors, (ContingencyTables.from_parquet, tmp_path / "data.parquet")]:
        with pytest.raises(ConfigError, match=f"{next(iter(how))}: .*schema"):
            make(data, schema=schema, **how)
        with pytest.raises((ConfigError, TypeError), match="label"):
            make(data)


def test_one_label_alone_is_aggregated_and_refused_by_learners(schema):
    """That no record is negative is a fact about records: it must not stop a release. A wrong positive value stops all."""
    frame = people(80).assign(y=1)
    tables = ContingencyTables.from_records(frame, schema=schema)
    assert tables.private(1.0, 1e-6).noise.private
    with pytest.raises(DataError, match="the same label"):
        NaiveBayesClassifier().fit(tables)
    with pytest.raises(DataError, match="two values"):
        ContingencyTables.from_records(frame, "y")
    for nobody in (frame.iloc[:0], frame.assign(y=0)):
        with pytest.raises(DataError, match=r"none of .* records has the positive value '1'"):
            ContingencyTables.from_records(nobody, schema=schema)


# -- private releases ---------------------------------------------------------------------------------------------------


def test_only_declared_schemas_are_called_private(frame, schema):
    declared = ContingencyTables.from_records(frame, schema=schema)
    learned = ContingencyTables.from_records(people(500), "y")
    assert declared.private(1.0, 1e-6).noise.private
    for adjacency in ("record", "label"):
        with pytest.raises(ConfigError, match="learned from the records, and stand beside the noisy numbers"):
            learned.private(1.0, 1e-6, adjacency=adjacency)
        spec = learned.private(1.0, 1e-6, adjacency=adjacency, accept_learned_schema=True).noise
        assert not spec.private
        assert spec.meaning.startswith(
            "Not private: bins, categories and which features have missing values were learned"
        )
        assert "at most" not in spec.meaning


def test_features_that_were_encoded_by_labels_are_not_private():
    frame = people(400)
    x, y = frame.drop(columns="y"), frame["y"].to_numpy()
    plain = FrameEncoder.fit(x)
    by_labels = with_target_encodings(plain, x[:100], y[:100], 2, 10)
    right, wrong = (LabelSums.from_map(FeatureMap.fit("onehot", e, x), x, y) for e in (plain, by_labels))
    assert right.private(1.0, 1e-6).noise.private
    with pytest.raises(ConfigError, match="target encodings were learned from labels"):
        wrong.private(1.0, 1e-6)
    assert not wrong.private(1.0, 1e-6, accept_learned_schema=True).noise.private


# -- drafts -------------------------------------------------------------------------------------------------------------


def drafted(frame, *how, **more) -> dict:
    return yaml.load(draft(frame, *how, **more), yaml.BaseLoader)


@pytest.mark.slow
def test_a_draft_lists_what_many_share():
    frame = people(1000)
    frame["mail"] = [f"person{i}@x.org" for i in range(1000)]
    frame["account"] = np.random.default_rng(0).permutation(10**7)[:1000]
    frame["income"] = np.random.default_rng(1).lognormal(10, 1, 1000)
    frame.loc[0, "income"] = 123456789.0
    frame.loc[0, "age"] = np.nan
    text, state = draft(frame, "y", 1), drafted(frame, "y", 1)
    assert "DRAFT" in text.splitlines()[0]
    assert state["label"] == {"column": "y", "positive": "1", "negative": "0"}
    features = state["features"]
    assert list(features) == ["age", "job", "home", "zone", "mail", "account", "income"]
    assert features["job"] == {"values": ["clerk", "cook", "nurse"], "missing": "false"}
    assert features["home"] == {"values": ["own", "rent"], "missing": "true"}
    assert features["age"]["missing"] == "false"  # one missing value is less than 20
    assert "buckets" in features["mail"].keys() & features["account"].keys()
    edges = [float(e) for e in features["income"]["edges"]]
    assert all(e % 1000 == 0 for e in edges)
    assert len(edges) > 5
    assert "@" not in text
    with pytest.raises(ConfigError, match="reviewed"):
        Schema.parse(text)
    schema = Schema.parse(text.replace("reviewed: false", "reviewed: true"))
    assert ContingencyTables.from_records(frame, schema=schema).total == 1000


def test_a_value_below_the_least_number_is_not_listed():
    for n, listed in ((LEAST - 1, False), (LEAST, True)):
        frame = pd.DataFrame({"c": ["many"] * 60 + ["few"] * n, "y": [0, 1] * 30 + [1] * n})
        assert ("few" in drafted(frame, "y")["features"]["c"]["values"]) == listed


def test_a_draft_leaves_the_label_to_the_person():
    frame = people(200).assign(y=np.where(people(200).y, "yes", "no"))
    assert drafted(frame)["label"] == {"column": "", "positive": "", "negative": ""}
    assert "y" in drafted(frame)["features"]
    assert drafted(frame, "y")["label"] == {"column": "y", "positive": "", "negative": ""}
    assert drafted(frame, "y", "yes")["label"] == {"column": "y", "positive": "yes", "negative": "no"}


@pytest.mark.parametrize("values", [[2001, 2003, 2010], [0.001, 0.002, 0.01], [-5e9, 0.0, 3e9]])
def test_edges_are_rounded_by_their_spread(values):
    values = np.random.default_rng(0).choice(values, 500) + np.random.default_rng(1).normal(0, 1e-9, 500)
    edges = [float(e) for e in drafted(pd.DataFrame({"x": values}))["features"]["x"]["edges"]]
    assert edges == sorted(set(edges))
    assert all(len(f"{e:g}") <= 7 for e in edges)
