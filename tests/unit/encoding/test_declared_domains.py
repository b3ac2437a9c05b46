"""Domains that an entry declares: all values have cells, whether records have them or not."""

import pandas as pd
import pytest
import yaml
from samples import ROOT

from agglearn.encoding import FrameEncoder
from agglearn.encoding.frame import with_declared_domains
from agglearn.errors import DataError
from agglearn.observations import ContingencyTables

FRAME = pd.DataFrame({"age": [0, 2, 2], "word": ["a", "b", "a"]})
ENTRIES = sorted((ROOT / "config/datasets").glob("dd_ssp_*.yaml"))


def test_a_value_without_records_has_a_cell_and_one_beyond_the_domain_has_none():
    encoder = with_declared_domains(FrameEncoder.fit(FRAME), {"age": 12})
    assert list(encoder.features[0].labels) == list(map(str, range(12)))
    assert encoder.encode(pd.DataFrame({"age": [11, 10, 2, 12], "word": "a"}))[:, 0].tolist() == [11, 10, 2, -1]
    tables = ContingencyTables.from_codes(encoder, encoder.encode(FRAME), [0, 1, 1])
    assert tables.dense(0)[0].tolist() == [1, 0, 2] + [0] * 9


@pytest.mark.parametrize(("domains", "schema"), [({"age": 3}, "learned"), ({"age": 3, "word": 2}, "declared")])
def test_domains_of_all_features_are_a_declared_schema(domains, schema):
    assert with_declared_domains(FrameEncoder.fit(FRAME), domains).schema == schema


def test_another_name_is_refused():
    with pytest.raises(DataError, match="domains: no feature 'wage'; there are age, word"):
        with_declared_domains(FrameEncoder.fit(FRAME), {"wage": 3})


@pytest.mark.parametrize("path", ENTRIES, ids=lambda p: p.stem)
def test_the_files_of_an_entry_keep_to_its_domains(path):
    entry = yaml.safe_load(path.read_text())
    for name in entry["files"]:
        if not (file := ROOT / "../shared/data/dd_ssp" / name).is_file():
            pytest.skip("no mirror of the files")
        frame, domains = pd.read_csv(file), entry["features"]["domains"]
        dropped = entry["features"].get("drop", [])
        assert [*dropped, entry["label"]["column"]] == [c for c in frame if c not in domains]
        assert all(frame[c].min() >= 0 and frame[c].max() < size for c, size in domains.items())
