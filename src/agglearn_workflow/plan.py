"""From configuration to runs: what is compared, in which batch, under which identity. Imports nothing heavy."""

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agglearn.errors import ConfigError
from agglearn.storage import digest
from agglearn_workflow.config.scales import FROM_ARCHIVE, SCALES
from agglearn_workflow.digests import code_digest

IDENTITY = ("experiment", "dataset", "dataset_params", "observation", "observation_params", "method", "params", "seed")


def canonical(value: object) -> str:
    """One spelling per value: the form of parameters in keys and in tables."""
    return json.dumps(value, sort_keys=True, separators=(", ", ": "), ensure_ascii=False)


def cell_key(fields: Mapping[str, str]) -> str:
    """Key of a cell, from the fields of one of its runs: of all that the runs of its seeds have in common."""
    return digest([fields[f] for f in IDENTITY if f != "seed"])


@dataclass(frozen=True)
class Run:
    """One cell of a comparison under one seed, before its data are there. Parameters and `spec` are canonical JSON."""

    experiment: str
    dataset: str
    dataset_params: str
    observation: str
    observation_params: str
    method: str
    params: str
    seed: int
    spec: str  # how it is computed besides its identity, see `Plan._expand`

    @cached_property
    def slot(self) -> str:
        """Name of the folder with what the run learns from (an observation) and is measured on (its truth)."""
        return digest([self.dataset, self.dataset_params, self.observation, self.observation_params, self.seed])

    @cached_property
    def identity(self) -> dict[str, str]:
        return {field: getattr(self, field) for field in IDENTITY}

    @cached_property
    def key(self) -> str:
        """Digest of the identity. It stays through edits of code and data, and MLflow has the run under it."""
        return digest([*self.identity.values()])

    @cached_property
    def recipe(self) -> str:
        """Digest of all that the run would be computed with, but for its data."""
        return digest([self.key, self.spec, code_digest(*self.code)])

    @cached_property
    def settings(self) -> dict[str, Any]:
        return json.loads(self.spec)

    @property
    def keeps_model(self) -> bool:
        keep_model = self.settings["keep_model"]
        return keep_model == "all" or (keep_model == "first_seed" and self.seed == 0)

    @property
    def code(self) -> list[str]:
        """Dotted names of the classes that compute the run: method, task, observation, then those in its parameters."""
        return [*(self.settings[key] for key in ("class", "task", "type")), *classes_in(json.loads(self.params))]


def select_scale(value: object, scale: str) -> Any:
    """Replace every `{smoke:, quick:, default:, paper:}` by the value for the scale (default where it names none)."""
    if isinstance(value, dict):
        if value and set(value) <= set(SCALES):
            if scale not in value and "default" not in value:
                raise ConfigError(f"{canonical(value)}: no value for scale {scale!r} and no default")
            return select_scale(value.get(scale, value.get("default")), scale)
        return {k: select_scale(v, scale) for k, v in value.items()}
    return [select_scale(v, scale) for v in value] if isinstance(value, list) else value


def expand_grid(value: object) -> list:
    """All values that `value` stands for: `{grid: [...]}` anywhere in it is an axis, and axes are multiplied."""
    if isinstance(value, dict):
        if set(value) == {"grid"}:
            return [p for v in value["grid"] for p in expand_grid(v)]
        axes = [[(k, p) for p in expand_grid(v)] for k, v in sorted(value.items())]
        return [dict(p) for p in itertools.product(*axes)]
    if isinstance(value, list):
        return [list(p) for p in itertools.product(*map(expand_grid, value))]
    return [value]


def classes_in(value: object) -> list[str]:
    """Dotted names of the classes that nested parameters build."""
    if isinstance(value, dict):
        built = [value["class"]] if "class" in value and set(value) <= {"class", "params"} else []
        return built + [c for v in value.values() for c in classes_in(v)]
    return [c for v in value for c in classes_in(v)] if isinstance(value, list) else []


def value_of(run: Run, field: str) -> Any:
    """A run's `dataset`, `method`, … or a parameter, such as `params.budget`. None without the parameter."""
    column, *keys = field.split(".")
    return nested(getattr(run, column), keys) if keys else getattr(run, column)


def nested(text: str | None, keys: Iterable[str]) -> Any:
    """Value at a path of keys in JSON text, None without it."""
    value = json.loads(text) if isinstance(text, str) else None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _has(run: Run, values: Mapping[str, str]) -> bool:
    """Whether a run has values, in their canonical spelling."""
    return all(canonical(value_of(run, field)) == value for field, value in values.items())


class Plan:
    """All runs of a configuration, as loaded by `agglearn_workflow.config.loading`."""

    def __init__(self, config: dict):
        self.config = config
        chosen = config["experiments"] if config["run"] == "all" else config["run"]
        chosen = sorted(chosen, key=lambda n: (config["experiments"][n].get("order", 100), n))
        self.experiments = {n: select_scale(config["experiments"][n], config["scale"]) for n in chosen}
        self._runs = {n: self._included(n, e) for n, e in self.experiments.items()}
        self._batches: dict[str, dict[str, list[Run]]] = {n: {} for n in self._runs}
        for run in itertools.chain(*self._runs.values()):
            self._batches[run.experiment].setdefault(self.batch_of(run), []).append(run)

    def _included(self, name: str, e: dict) -> list[Run]:
        """Runs that are not excluded. An entry that excludes none at any scale is refused, if its data set is here."""
        entries = e.get("exclude", [])
        excluded = [{field: canonical(value) for field, value in entry.items()} for entry in entries]
        if entries:
            scaled = (select_scale(self.config["experiments"][name], scale) for scale in SCALES)
            planned = [run for at_scale in scaled for run in self._expand(name, at_scale)]
            for i, (entry, values) in enumerate(zip(entries, excluded, strict=True)):
                is_here = entry.get("dataset", next(iter(e["datasets"]))) in e["datasets"]
                if is_here and not any(_has(run, values) for run in planned):
                    fault = f"exclude.{i}: no run at any scale has {canonical(entry)}; remove it"
                    raise ConfigError(f"config/experiments/{name}.yaml: {fault}")
        runs = [run for run in self._expand(name, e) if not any(_has(run, values) for values in excluded)]
        keys = [run.key for run in runs]
        if len(set(keys)) < len(keys):
            twice = next(run for run in runs if keys.count(run.key) > 1)
            raise ConfigError(
                f"config/experiments/{name}.yaml: the same run stands twice: "
                f"{twice.dataset}, {twice.method} {twice.params}, seed {twice.seed}"
            )
        return runs

    def _expand(self, name: str, e: dict) -> list[Run]:
        runs = []
        for dataset, varied in e["datasets"].items():
            for dataset_params in expand_grid(varied or {}):
                for method, m in e["methods"].items():
                    observed = dict(e["observe"][m["observe"]])
                    settings = {key: e[key] for key in ("task", "measures", "keep_model")}
                    settings |= {"class": m["class"], "type": observed.pop("type")}
                    spec = canonical(settings | {"ignore_noise": m.get("ignore_noise", False)})
                    params_of_all = expand_grid(observed), expand_grid(m.get("params", {}))
                    for observation_params, params in itertools.product(*params_of_all):
                        observation = m["observe"], canonical(observation_params)
                        cell = name, dataset, canonical(dataset_params), *observation, method, canonical(params)
                        runs += [Run(*cell, seed, spec) for seed in e["seeds"]]
        return runs

    def runs(self, experiment: str, batch: str | None = None) -> list[Run]:
        return list(self._runs[experiment] if batch is None else self._batches[experiment].get(batch, ()))

    def code(self, experiment: str, batch: str) -> list[str]:
        """Dotted names of the classes that compute a batch, those of its data sets among them."""
        runs = self.runs(experiment, batch)
        data = {self.config["datasets"][run.dataset]["class"] for run in runs}
        return sorted(data.union(*(run.code for run in runs)))

    def batch_of(self, run: Run) -> str:
        """Name of the job that a run belongs to. Nothing is computed from the archive, so one job reads an experiment."""
        fields = [] if self.config["from"] == FROM_ARCHIVE else self.experiments[run.experiment]["batch_by"]
        values = [value_of(run, field) for field in fields]
        return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(map(str, values)) or "all")

    def batches(self, experiment: str) -> list[str]:
        return sorted(self._batches[experiment])

    def datasets(self, experiment: str, batch: str | None = None) -> list[str]:
        return sorted({r.dataset for r in self.runs(experiment, batch)})

    def varied(self, experiment: str, dataset: str) -> list[dict]:
        return [json.loads(text) for text in {r.dataset_params for r in self._runs[experiment] if r.dataset == dataset}]

    def named(self, target: str) -> list[str]:
        """Experiments that a target of the workflow stands for: `all`, a source, or one experiment."""
        return [n for n, e in self.experiments.items() if target in ("all", n, e["source"])]

    def sources(self) -> list[str]:
        names = {e["source"] for e in self.experiments.values()}
        papers = self.config["references"].get("papers", {})
        return [n for n in papers if n in names] + sorted(names - set(papers))
