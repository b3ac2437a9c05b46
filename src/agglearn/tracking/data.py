"""Data sets as MLflow's runs have them for inputs."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

CONTEXT = {"mlflow.data.context": "train"}  # MLflow's tag for what the data were to a run
TYPES = {"integer": "long", "number": "double", "boolean": "boolean", "text": "string"}  # ours → MLflow's


@dataclass(frozen=True)
class DataInput:
    """A data set that a run has used. `source`, `schema` and `profile` are JSON."""

    name: str
    digest: str
    source_type: str
    source: str
    schema: str | None
    profile: str

    @classmethod
    def of(cls, record: dict) -> "tuple[DataInput, ...]":
        """The data of a run, from its record. There are none where they were not available."""
        if not (data := record.get("data")):
            return ()
        entry = record["config"]["datasets"][record["dataset"]]
        columns = [{"name": name, "type": TYPES[kind], "required": True} for name, kind in data["types"].items()]
        schema = json.dumps({"mlflow_colspec": columns}) if columns else None
        profile = {"title": entry["title"], **{f"num_{name}": n for name, n in data["sizes"].items()}}
        return (cls(record["dataset"], data["digest"], *_source(entry), schema, json.dumps(profile)),)

    @property
    def columns(self) -> list[dict]:
        """Name and MLflow's type of each column. There are none where the data are no table."""
        return json.loads(self.schema)["mlflow_colspec"] if self.schema else []

    def row(self) -> dict[str, str | None]:
        """As MLflow's table of data sets has it."""
        own = {"name": self.name, "digest": self.digest}
        return own | {f"dataset_{name}": getattr(self, name) for name in ("source_type", "source", "schema", "profile")}

    def entity(self) -> "DatasetInput":
        """As MLflow's client takes it."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        dataset = Dataset(self.name, self.digest, self.source_type, self.source, self.schema, self.profile)
        return DatasetInput(dataset, [InputTag(name, value) for name, value in CONTEXT.items()])


def _source(entry: dict) -> tuple[str, str]:
    """(type, JSON) of the origin of the data: a link, or the class that makes them."""
    url = f"https://doi.org/{entry['doi']}" if "doi" in entry else entry.get("homepage")
    if url:
        return "http", json.dumps({"url": url})
    return "code", json.dumps({"class": entry["class"], "params": entry.get("params", {})})
