"""Layout of the configuration's files, which people read and copy."""

import re
import shutil
from collections.abc import Iterator

import pytest
import yaml
from samples import ROOT

from agglearn_workflow.config import loading as configuration
from agglearn_workflow.plan import Plan

FILES = sorted((ROOT / "config").rglob("*.yaml"))
SCHEMAS = {"experiments": "experiment", "datasets": "dataset"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT / "config")))
def test_layout(path):
    text = path.read_text()
    long = [n for n, line in enumerate(text.splitlines(), 1) if len(line) > 120 and "://" not in line]
    assert not long, "lines of more than 120 characters"
    if schema := SCHEMAS.get(path.parent.name):
        line = text.splitlines()[0]
        assert line == f"# yaml-language-server: $schema=../../workflow/schemas/{schema}.schema.yaml"
        assert (path.parent / line.partition("$schema=")[2]).is_file()


def test_the_template_is_no_experiment_until_it_is_copied(tmp_path):
    for name in ("config", "workflow/schemas", "workflow/peers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    assert "_template" not in configuration.load(ROOT)["experiments"]
    experiments = tmp_path / "config/experiments"
    shutil.copy(experiments / "_template.yaml", experiments / "mine.yaml")
    loaded = configuration.load(tmp_path, {"scale": "smoke", "run": ["mine"]})
    assert {run.method for run in Plan(loaded).runs("mine")} == {"maxent", "naive_bayes", "logistic"}


SIZES = {"n_bags", "n_test", "bag_size", "n_words", "n_components", "n_iter"}


def sizes_of_scales(entry: object) -> Iterator[dict[str, object]]:
    """Sizes that depend on the scale: scale → size. Scale smoke only shows that everything runs."""
    for key, value in entry.items() if isinstance(entry, dict) else ():
        if key in SIZES and isinstance(value, dict) and "default" in value:
            yield {scale: size for scale, size in value.items() if scale != "smoke"}
        else:
            yield from sizes_of_scales(value)


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name == "experiments"], ids=lambda p: p.stem)
def test_a_caption_is_true_at_every_scale(path):
    entry = yaml.safe_load(path.read_text())
    scales = [s for s in sizes_of_scales(entry) if len(set(map(str, s.values()))) > 1]
    sizes = {str(size) for scale in scales for size in scale.values()}
    for sentence in re.split(r"(?<=\.) ", entry.get("caption") or ""):
        numbers = set(re.findall(r"(?<![\d.,])\d+(?![\d.,³]*\d)", sentence))
        assert "scale" in sentence or not numbers & sizes, f"{sentence!r} holds at one scale"


def test_texts_for_people_have_no_markup():
    """Captions and claims stand on the site, in LaTeX and in MLflow as they are."""
    config = configuration.load(ROOT)
    texts = [e.get(key) for e in config["experiments"].values() for key in ("title", "caption")]
    texts += [c.get(key) for c in config["claims"].values() for key in ("claim", "place", "note", "weak", "why")]
    assert not [text for text in texts if text and "`" in text]
