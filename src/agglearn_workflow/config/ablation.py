"""Ablations by configuration: one change at a time against a base, and single settings by their dotted path."""

import copy
import re
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from agglearn.errors import ConfigError
from agglearn.settings import meant
from agglearn_workflow.config.forms import check_name
from agglearn_workflow.config.scales import SCALES

# Keys of the experiment on how its own methods are shown. They mean nothing for the changes of one of them.
SHOWN = ("table", "figure", "reported", "agreement", "ablate")


def expand_ablation(experiment: dict, file: str) -> dict:
    """The experiment with a method for the base and one for each change, in place of its own methods."""
    base, changes = experiment["ablate"]["base"], experiment["ablate"]["changes"]
    methods, observe = experiment["methods"], experiment["observe"]
    check_name(base, methods, file, "ablate.base")
    original = methods[base]
    if grid := next(_grids({"params": original.get("params", {}), "observe": observe[original["observe"]]}), None):
        raise ConfigError(
            f"{file}: ablate.base: {base}.{grid} is a grid; give it one value, or leave the axis to `changes`"
        )
    expanded = {k: v for k, v in experiment.items() if k not in SHOWN} | {"baseline": base}
    expanded |= {"methods": {base: original}, "observe": {original["observe"]: observe[original["observe"]]}}
    for path, values in changes.items():
        for value in values:
            _add_change(expanded, base, path, value, file)
    first = expanded["measures"][0]
    axes = {axis for varied in experiment["datasets"].values() for axis in _grids(varied or {})}
    columns = ["dataset", *(f"dataset_params.{axis}" for axis in sorted(axes))]
    return expanded | {"table": {"rows": ["method"], "columns": columns, "measure": [first, f"{first}_minus_{base}"]}}


def _add_change(experiment: dict, base: str, path: str, value: object, file: str) -> None:
    method = copy.deepcopy(experiment["methods"][base])
    text = value if isinstance(value, str) else yaml.safe_dump(value, default_flow_style=True).split("\n...")[0].strip()
    name = re.sub(r"[^a-z0-9]+", "_", f"{path.partition('.')[2] or path}_{text}".lower()).strip("_")
    if name in experiment["methods"]:
        raise ConfigError(
            f"{file}: ablate.changes: {path}: the change to {text} stands twice, or reads like another one"
        )
    keys = path.split(".")
    if keys[0] == "observe":
        observed = copy.deepcopy(experiment["observe"][method["observe"]])
        assign(observed, keys[1:], value)
        method["observe"] = name
        experiment["observe"] = experiment["observe"] | {name: observed}
    else:
        assign(method, keys, value)
    label = path.removeprefix("params.").removeprefix("observe.")
    method |= {
        "name": f"{label}: {text.rpartition('.')[2] if path == 'class' else text}",
        "change": f"{path} = {text}",
    }
    experiment["methods"] = experiment["methods"] | {name: method}


def _grids(value: object, path: str = "") -> Iterator[str]:
    """Dotted names of the parameters that have a grid, at whatever scale."""
    if isinstance(value, dict):
        if set(value) == {"grid"}:
            yield path
        for key, inner in value.items():
            yield from _grids(inner, path if key in SCALES else f"{path}.{key}" if path else str(key))


def assign(mapping: dict, keys: list[str], value: object) -> None:
    for key in keys[:-1]:
        mapping = mapping.setdefault(key, {})
    mapping[keys[-1]] = value


def read_settings(texts: Iterable[str], experiments: Iterable[str], settings: Iterable[str]) -> dict:
    """An overlay from texts such as `maxent_table5.methods.maxent.params.n_sweeps=2`."""
    overlay: dict[str, Any] = {}
    experiments, settings = list(experiments), list(settings)
    for text in texts:
        path, equals, value = text.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(f"the command line: set: {text!r} is not allowed; write path.to.setting=value")
        if keys[0] in experiments:
            keys = ["experiments", *keys]
        elif keys[0] not in settings:
            raise ConfigError(
                f"the command line: set: {keys[0]!r} is no experiment and no setting{meant(keys[0], [*experiments, *settings])}; "
                "begin with an experiment's name, or with a key of config/config.yaml"
            )
        try:
            assign(overlay, keys, yaml.safe_load(value))
        except yaml.YAMLError:
            raise ConfigError(f"the command line: set: {path}: {value!r} is not YAML") from None
        except (AttributeError, TypeError):
            raise ConfigError(f"the command line: set: {path}: a part of the path is set to a value already") from None
    return overlay
