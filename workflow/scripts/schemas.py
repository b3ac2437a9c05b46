"""Write `workflow/schemas/`, which editors check YAML with, from the models of the configuration."""

from pathlib import Path

import yaml
from pydantic.json_schema import GenerateJsonSchema

from agglearn_workflow.config.models import FILES

FOLDER = Path(__file__).resolve().parents[1] / "schemas"
HEAD = "# Written by workflow/scripts/schemas.py from src/agglearn_workflow/config/models.py\n"
DIALECT = {"$schema": GenerateJsonSchema.schema_dialect}


class Plain(GenerateJsonSchema):
    """Schemas without titles of keys."""

    def field_title_should_be_set(self, schema):
        """No titles: they repeat the keys."""
        return False

    def default_schema(self, schema):
        """A key that may be left out has a default where it is not null."""
        content = super().default_schema(schema)
        return {k: v for k, v in content.items() if k != "default" or v is not None}

    def dict_schema(self, schema):
        """A mapping whose names have one pattern."""
        content = super().dict_schema(schema)
        for pattern, value in content.pop("patternProperties", {}).items():
            content |= {"propertyNames": content["propertyNames"] | {"pattern": pattern}, "additionalProperties": value}
        return content


def text_of(name: str) -> str:
    """The schema of a file of the configuration, as YAML."""
    content = DIALECT | FILES[name].model_json_schema(schema_generator=Plain)
    return HEAD + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    for name in FILES:
        (FOLDER / f"{name}.schema.yaml").write_text(text_of(name))
