"""Where the results of a scale lie."""

import json
import re

import pytest
from samples import rule_texts

from agglearn.errors import ConfigError
from agglearn_workflow.config.scales import SCALES, note_scale, scale_folder


def test_an_empty_folder_takes_any_scale(tmp_path):
    assert {scale_folder(str(tmp_path), scale) for scale in SCALES} == {str(tmp_path)}


def test_smaller_scales_work_below_a_larger_one(tmp_path):
    results = str(tmp_path)
    note_scale(results, "default")
    folders = [scale_folder(results, scale) for scale in SCALES]
    assert folders == [f"{results}/smoke", f"{results}/quick", results, results]


def test_logs_lie_beside_the_products_of_their_scale():
    text = re.sub(r"(pages|verdicts|outcome)\(", "{S}/", "".join(rule_texts()))  # functions of `rules/common.smk`
    folders = re.compile(r"\{([RS])\}/")
    for rule in text.split("\nrule ")[1:]:
        products, log = re.search(r"output:(.*?)log:(.*?\n)    \w", rule, re.S).groups()
        assert set(folders.findall(products)) == set(folders.findall(log)), rule[:60]


def test_the_archive_only_grows(tmp_path):
    for scale, recorded in [("smoke", "smoke"), ("paper", "paper"), ("default", "paper")]:
        note_scale(str(tmp_path), scale)
        assert json.loads((tmp_path / "scale.json").read_text()) == {"scale": recorded}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"scale": "big"}', '{"scale": ["smoke"]}'])
def test_an_archive_without_a_scale_is_one_line(tmp_path, text):
    (tmp_path / "scale.json").write_text(text)
    with pytest.raises(ConfigError, match=r"scale\.json: names no scale; write .* or delete it") as error:
        scale_folder(str(tmp_path), "smoke")
    assert "\n" not in str(error.value)
