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


def depth(node: yaml.Node) -> int:
    """Mappings within mappings of a YAML node."""
    if isinstance(node, yaml.MappingNode):
        return 1 + max((depth(value) for _, value in node.value), default=0)
    return max((depth(item) for item in node.value), default=0) if isinstance(node, yaml.SequenceNode) else 0


def deep_flow(node: yaml.Node) -> list[int]:
    """Lines of the flow mappings that hold another mapping."""
    if isinstance(node, yaml.ScalarNode):
        return []
    if node.flow_style and depth(node) > 1:
        return [node.start_mark.line + 1]
    children = [v for _, v in node.value] if isinstance(node, yaml.MappingNode) else node.value
    return [line for child in children for line in deep_flow(child)]


def test_deep_flow_mappings_are_found():
    text = "a: {b: {c: 1}}\nd: [{e: 1}, {f: {}}]\ng: {h: [1, 2]}\ni:\n  j: {k: 1}\n"
    assert deep_flow(yaml.compose(text)) == [1, 2]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT / "config")))
def test_layout(path):
    text = path.read_text()
    long = [n for n, line in enumerate(text.splitlines(), 1) if len(line) > 120 and "://" not in line]
    assert not long, "lines of more than 120 characters"
    assert not deep_flow(yaml.compose(text)), "flow mappings that hold another mapping"
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
