"""Configuration against its models and the code: forms, classes, functions, keys and types of all that an entry names.
The classes that an entry names are imported, and no others."""

import inspect
import sys
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agglearn import registry, settings
from agglearn.errors import ConfigError
from agglearn.settings import Fault, Parameter, keys_at_fault, meant
from agglearn_workflow import digests
from agglearn_workflow.config.entries import FOR_READERS, SIMULATED
from agglearn_workflow.config.forms import class_fault, describe_unknown, validate
from agglearn_workflow.config.models import DEFAULTS, Claim, Dataset, Experiment
from agglearn_workflow.config.scales import SCALES

RULES = "agglearn.datasets.builds"
FIELDS = {"dataset", "observation", "method", "measure", "keys", "seed"}  # that a row of results has, beside parameters


class Configured(settings.Runtime):
    """How a configuration is read: scales and grids stand for several values, `{class:, params:}` for objects."""

    def variants(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        if isinstance(value, dict) and value and set(value) <= set(SCALES):
            for scale, item in value.items():
                yield from self.variants(item, f"{path}.{scale}")
        elif isinstance(value, dict) and set(value) == {"grid"}:
            for axis_path, axis in self.variants(value["grid"], f"{path}.grid"):
                for i, item in enumerate(axis if isinstance(axis, list) else ()):
                    yield from self.variants(item, f"{axis_path}.{i}")
        else:
            yield path, value

    def is_object(self, value: Any, hint: Any) -> bool:
        is_description = isinstance(value, dict) and "class" in value
        return not is_description and (hint in (Any, object) or not digests.is_followed(hint.__module__))

    def description(self, value: Any, hint: Any, path: str) -> Iterator[Fault]:
        for key in value:
            if key not in ("class", "params"):
                nearest = meant(key, ["class", "params", "grid", *SCALES])
                yield path, f"unknown key {key!r}{nearest}; allowed: class, params"
        dotted, is_any = value.get("class"), hint in (Any, object, settings.Built)
        if wrong := class_fault(dotted, None if is_any else registry.name_of(hint)):
            yield f"{path}.class", wrong
        else:
            yield from _keys(dotted, parameters(dotted), value.get("params", {}), f"{path}.params")

    def describe_misplaced(self, value: Any, words: str) -> str:
        if not isinstance(value, dict) or not value:
            return super().describe_misplaced(value, words)
        allowed = ["grid", *SCALES]
        wrong = next((k for k in value if k not in allowed), next(iter(value)))
        return (
            f"unknown key {wrong!r}{meant(wrong, allowed)}; allowed: grid, or scales ({', '.join(SCALES)}), or {words}"
        )

    def parameters(self, target: Any) -> dict[str, Parameter] | None:
        dotted = target.get("class") if isinstance(target, Mapping) else target
        return parameters(dotted) if isinstance(dotted, str) else settings.parameters(target)


READING = Configured()


def parameters(dotted: str) -> dict[str, Parameter] | None:
    """Keys that a class or a function takes. Of one outside followed code they may have any type."""
    try:
        declared = settings.parameters(registry.find(dotted))
    except (TypeError, ValueError):
        return None  # its signature cannot be read
    is_ours = digests.is_followed(dotted)
    return declared if is_ours else declared and {k: Parameter(default=p.default) for k, p in declared.items()}


def _keys(name: str, declared: dict[str, Parameter] | None, value: Any, path: str) -> Iterator[Fault]:
    for item_path, item in READING.variants(value, path):
        yield from keys_at_fault(name, declared, item, item_path, READING)


def refuse(faults: Iterator[Fault], file: str) -> None:
    for path, fault in faults:
        raise ConfigError(f"{file}: {path}: {fault}")


def check_dataset(entry: dict, name: str, datasets: dict) -> dict:
    file = f"config/datasets/{name}.yaml"
    validate(entry, Dataset, file, context={"dataset": datasets})
    refuse(_dataset(entry), file)
    return entry


def _dataset(entry: dict) -> Iterator[Fault]:
    dotted = entry["class"]
    yield from keys_at_fault(dotted, parameters(dotted), entry.get("params", {}), "params")
    yield from _unread(entry, registry.find(dotted).KEYS)
    for member, origin in entry.get("files", {}).items():
        for i, route in enumerate(origin.get("routes", [])):
            if route["kind"] == "build":
                yield from _build(route, f"files.{member}.routes.{i}")


def _unread(entry: dict, keys: tuple[str, ...]) -> Iterator[Fault]:
    """Keys of an entry that nothing reads for its class."""
    about = f"{entry['class'].rpartition('.')[2]} makes no use of it"
    for name, value in entry.items():
        keys_within = [k.partition(".")[2] for k in keys if k.startswith(f"{name}.")]
        if name in ("class", "params", *FOR_READERS, *keys):
            continue
        if not keys_within:
            yield name, f"{about}; leave it out"
        for key in value if keys_within and isinstance(value, dict) else ():
            if key not in keys_within:
                yield f"{name}.{key}", f"{about}; of {name} it reads {', '.join(keys_within)}"


def _build(route: dict, path: str) -> Iterator[Fault]:
    dotted = route["function"]
    if not (digests.is_followed(dotted) and inspect.isfunction(registry.find(dotted))):
        yield f"{path}.function", f"there is no function {dotted!r}; there are those of {RULES}"
    declared = dict(parameters(dotted) or {})
    inputs = declared.pop("inputs", Parameter()).hint
    declared.pop("out", None)
    if typing.is_typeddict(inputs):
        needed = {name: Parameter() for name in settings.parameters(inputs) or ()}
        yield from keys_at_fault(dotted, needed, route["inputs"], f"{path}.inputs")
    yield from keys_at_fault(dotted, declared, route.get("params", {}), f"{path}.params")


def check_experiment(e: dict, name: str, datasets: dict, shipped: dict | None = None) -> dict:
    """The experiment with its defaults, checked. `shipped` is the experiment before something was laid over it."""
    file, context = f"config/experiments/{name}.yaml", {"dataset": datasets}
    validate(e, Experiment, file, context=context)
    e = {**DEFAULTS, **e}
    refuse(_experiment(e, datasets), file)
    validate(e, Experiment, file, context=context | names_in(e, shipped or e))
    return e


def _experiment(e: dict, datasets: dict) -> Iterator[Fault]:
    yield from _axes(e, "")
    for name, m in e["methods"].items():
        yield from _method(m, e["observe"], f"methods.{name}")
    for dataset, varied in e["datasets"].items():
        for name, spec in e["observe"].items():
            yield from _observation(e["task"], datasets[dataset]["class"], dataset, varied or {}, name, spec)


def _axes(value: Any, path: str) -> Iterator[Fault]:
    """Grids that hold nothing, at any depth."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        inner_path = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict) and key == "grid":
            for axis_path, axis in READING.variants(inner, inner_path):
                if not isinstance(axis, list) or not axis:
                    yield axis_path, READING.describe_misplaced(axis, "a list of at least one value")
        yield from _axes(inner, inner_path)


def _method(m: dict, observe: dict, path: str) -> Iterator[Fault]:
    declared = parameters(m["class"])
    declared = declared and {k: p for k, p in declared.items() if k != "random_state"}  # comes from `seeds`
    yield from _keys(m["class"], declared, m.get("params", {}), f"{path}.params")
    tried = {*(declared or ()), *(name.rpartition(".")[2] for name in _paths(m.get("params", {})))}
    for key in m.get("tune", {}):
        if wrong := describe_unknown(key, {*tried, "by", "place"}):
            yield f"{path}.tune", wrong
    kind, learns = observe[m["observe"]]["type"], registry.constant(m["class"], "observes")
    if inspect.isclass(learns) and not registry.is_subclass(kind, registry.name_of(learns)):
        yield f"{path}.observe", f"{m['class']} learns from {registry.name_of(learns)}, not from {kind}"


def _observation(task: str, dataset_class: str, dataset: str, varied: Any, name: str, spec: dict) -> Iterator[Fault]:
    """Faults of the keys of a data set and of an observation, for the nearest of what the task makes of them."""
    data, kind = registry.find(dataset_class), registry.find(spec["type"])
    ways = [w for w in registry.find(task).OBSERVATIONS if issubclass(data, w[0])]
    ways = [w for w in ways if w[0] is ways[0][0]]
    if not (fitting := [w for w in ways if issubclass(kind, w[1])]):
        kinds = ", ".join(sorted({w[1].__name__ for w in ways})) or "nothing"
        fault = f"{task} cannot make {spec['type']} of {dataset} ({dataset_class}); it makes {kinds}"
        yield f"observe.{name}.type", fault
        return
    observed = without_type(spec)

    def faults(keys: type, options_of: Any) -> Iterator[Fault]:
        yield from _source_keys(task, dataset_class, keys, varied, f"datasets.{dataset}")
        yield from _keys(spec["type"], settings.parameters(options_of), observed, f"observe.{name}")
        yield from _together(observed, options_of.__module__, f"observe.{name}")

    yield from min((list(faults(*way[2:])) for way in fitting), key=len)


def without_type(spec: dict) -> dict:
    return {k: v for k, v in spec.items() if k != "type"}


def _together(observed: dict, module: str, path: str) -> Iterator[Fault]:
    """Keys without a key that they need, or beside one that they exclude, by `BESIDE` and `INSTEAD` of their module."""
    beside, instead = (getattr(sys.modules[module], table, {}) for table in ("BESIDE", "INSTEAD"))
    for key in observed:
        if key in beside and not set(beside[key]) & set(observed):
            yield f"{path}.{key}", f"means something beside {' or '.join(beside[key])} only; give that, or leave it out"
        for unused in instead.get(key, ()):
            if unused in observed:
                yield f"{path}.{unused}", f"is not used beside {key}; give one of them"


def _source_keys(task: str, dataset_class: str, keys: type, varied: Any, path: str) -> Iterator[Fault]:
    """Faults of an experiment's keys of a data set: a simulated one takes what its constructor does."""
    if not registry.is_subclass(dataset_class, SIMULATED):
        return _keys(task, settings.parameters(keys), varied, path)
    declared = parameters(dataset_class)
    return _keys(dataset_class, declared and {k: Parameter(p.hint, None) for k, p in declared.items()}, varied, path)


def names_in(*experiments: dict) -> dict[str, Collection[str]]:
    """The names in the rows of an experiment's results, by the kinds that models have for them."""
    tasks = [registry.find(e["task"]) for e in experiments]
    measures = {"seconds"}.union(*(task.MEASURES for task in tasks))
    paths: dict[str, set[str]] = {"keys.": set().union(*(task.KEYS for task in tasks))}
    for kind, mappings in (
        ("params.", [m.get("params") for e in experiments for m in e["methods"].values()]),
        ("observation_params.", [without_type(o) for e in experiments for o in e["observe"].values()]),
        ("dataset_params.", [varied for e in experiments for varied in e["datasets"].values()]),
    ):
        paths[kind] = {path for mapping in mappings for path in _paths(mapping)}
    fields = FIELDS | {f"{kind}{path}" for kind, inner in paths.items() for path in inner}
    baselines = [e["baseline"] for e in experiments if "baseline" in e]
    return {
        **paths,
        "field": fields,
        "run field": {field for field in fields if field.partition(".")[0] not in ("measure", "keys")},
        "measure": measures,
        "measure or difference": measures | {f"{m}_minus_{baseline}" for baseline in baselines for m in measures},
        "method": {m for e in experiments for m in e["methods"]},
        "observation": {o for e in experiments for o in e["observe"]},
    }


def _paths(value: Any) -> Iterator[str]:
    """Dotted names of all parameters in a mapping, whatever scales and grids they stand in."""
    for _, item in READING.variants(value, ""):
        for key, inner in item.items() if isinstance(item, dict) else ():
            yield str(key)
            yield from (f"{key}.{below}" for below in _paths(inner))


def check_claim(claim: Any, name: str, config: dict, names: Mapping[str, dict], tests: Collection) -> None:
    """Check a claim, and that its rows can be there. `names` has the names in each experiment's results, `tests` those of
    experiments and ablations."""
    experiments = config["experiments"]
    validate(claim, Claim, "config/claims.yaml", name, context={"experiment": experiments})
    context = {"source": {experiments[claim["experiment"]]["source"]}, "dataset": config["datasets"], "test": tests}
    validate(claim, Claim, "config/claims.yaml", name, context=context | names[claim["experiment"]])
