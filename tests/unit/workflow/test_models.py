"""Schemas that editors check YAML with, as they are written from the models."""

import runpy

import jsonschema
import pytest
import yaml
from samples import ROOT, shipped_config

from agglearn_workflow.config import models
from agglearn_workflow.config.forms import validate
from agglearn_workflow.config.loading import read_yaml

TEXT_OF = runpy.run_path(str(ROOT / "workflow/scripts/schemas.py"))["text_of"]


@pytest.mark.parametrize("name", models.FILES)
def test_schemas_are_those_of_the_models(name):
    path = ROOT / f"workflow/schemas/{name}.schema.yaml"
    assert path.read_text() == TEXT_OF(name), "python workflow/scripts/schemas.py writes it"


def test_every_schema_has_a_model():
    assert {path.name.partition(".")[0] for path in (ROOT / "workflow/schemas").iterdir()} == set(models.FILES)


def entries() -> dict[str, list]:
    """Shipped content by the name of its model."""
    config = shipped_config()
    return {
        "config": [read_yaml(ROOT / "config/config.yaml")],
        "references": [config["references"]],
        "claim": [*config["claims"].values()],
        "dataset": [*config["datasets"].values()],
        "experiment": [*config["experiments"].values()],
    }


@pytest.mark.parametrize("name", models.FILES)
def test_what_is_shipped_agrees_with_its_schema(name):
    validator = jsonschema.Draft202012Validator(yaml.safe_load(TEXT_OF(name)))
    for content in entries()[name]:
        if name == "experiment":
            content = {k: v for k, v in content.items() if v != []}  # a default that no file may write
        assert [error.message for error in validator.iter_errors(content)] == []
        validate(content, models.FILES[name], "file")


def test_schemas_have_the_conditions_of_the_models():
    """What a kind makes no use of, and what it needs, is refused by the schema as it is by the model."""
    schema = yaml.safe_load(TEXT_OF("experiment"))
    validator = jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": "#/$defs/Figure"})
    for kind, (needed, unused) in models.Figure.USES.items():
        assert kind in ("line", "scatter") or validator.is_valid({"kind": kind, "y": "nllh"})
        for key in needed.split():
            assert not validator.is_valid({"kind": kind, "y": "nllh"}), key
        for key in unused.split():
            assert any(
                "False schema" in e.message for e in validator.iter_errors({"kind": kind, "y": "nllh", key: "x"})
            ), key
