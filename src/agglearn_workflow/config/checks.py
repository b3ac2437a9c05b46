"""Configuration against its models and the code: forms, classes, functions, keys and types of all that an entry names.
The classes that an entry names are imported, and no others."""

import inspect
import reprlib
import sys
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agglearn import settings
from agglearn.errors import ConfigError
from agglearn.settings import Fault, Parameter, keys_at_fault, meant
from agglearn_workflow import classes, digests
from agglearn_workflow.config import models
from agglearn_workflow.config.entries import SIMULATED
from agglearn_workflow.config.scales import SCALES
from agglearn_workflow.config.validation import validate

DATASET = "agglearn.datasets.base.Dataset"
ESTIMATOR = "agglearn.estimator.Estimator"
OBSERVATION = "agglearn.observations.base.Observation"
TASK = "agglearn.tasks.base.Task"
RULES = "agglearn.datasets.builds"
UNIVERSAL_MEASURES = {"seconds"}
FOR_READERS = ("title", "licence", "citation", "doi", "homepage", "note")  # in a data set's entry
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
        if wrong := class_fault(dotted, None if is_any else classes.name_of(hint)):
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
        declared = settings.parameters(classes.find(dotted))
    except (TypeError, ValueError):
        return None  # its signature cannot be read
    is_ours = digests.is_followed(dotted)
    return declared if is_ours else declared and {k: Parameter(default=p.default) for k, p in declared.items()}


def class_fault(dotted: object, base: str | None = None) -> str | None:
    """What is wrong with the name of a class, or of a subclass of `base`. It is None where nothing is."""
    kind = f"a subclass of {base}" if base else "a class"
    if not isinstance(dotted, str):
        return f"{reprlib.repr(dotted)} is not allowed; give the dotted path of {kind}"
    try:
        target = classes.find(dotted) if digests.is_followed(dotted) or not base else None
    except Exception as error:
        return f"{dotted!r} cannot be imported: {type(error).__name__}: {error}; mend its module"
    if not inspect.isclass(target):
        return f"there is no class {dotted!r}{_describe_place(dotted)}; give the dotted path of {kind}"
    if base and not classes.is_subclass(dotted, base):
        return f"{dotted!r} is not a subclass of {base.rpartition('.')[2]} ({base})"
    return None


def _describe_place(dotted: str) -> str:
    """Where a class that is not found should be: code of one's own lies in a folder under `code:`."""
    if dotted.startswith("agglearn."):
        return ""
    module = dotted.rpartition(".")[0]
    file = digests.find_file(module)
    return f" in {file}" if file else f": no folder under code: (config/config.yaml) has a module {module!r}"


def _misplaced(dotted: object, base: str, path: str) -> Iterator[Fault]:
    if wrong := class_fault(dotted, base):
        yield path, wrong


def _keys(name: str, declared: dict[str, Parameter] | None, value: Any, path: str) -> Iterator[Fault]:
    for item_path, item in READING.variants(value, path):
        yield from keys_at_fault(name, declared, item, item_path, READING)


def _items(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        return ((f"{path}.{i}", item) for i, item in enumerate(value))
    return iter([(path, value)])


def _unknown(value: Any, allowed: Collection, path: str) -> Iterator[Fault]:
    for name_path, name in _items(value, path):
        if name not in allowed:
            choices = f"there are {', '.join(sorted(allowed))}"
            yield name_path, f"{name!r} is not known{meant(name, allowed)}; {choices}"


def check_name(name: object, allowed: Collection, file: str, path: str) -> None:
    refuse(_unknown(name, allowed, path), file)


def refuse(faults: Iterator[Fault], file: str) -> None:
    for path, fault in faults:
        raise ConfigError(f"{file}: {path}: {fault}")


def check_dataset(entry: dict, name: str, datasets: dict) -> dict:
    file = f"config/datasets/{name}.yaml"
    validate(entry, "dataset", file)
    refuse(_dataset(entry, datasets), file)
    return entry


def _dataset(entry: dict, datasets: dict) -> Iterator[Fault]:
    dotted = entry["class"]
    yield from _misplaced(dotted, DATASET, "class")
    yield from keys_at_fault(dotted, parameters(dotted), entry.get("params", {}), "params")
    yield from _unread(entry, classes.find(dotted).KEYS)
    if {"positive", "above"} <= set(entry.get("label", {})):
        yield "label.positive", "is not used beside above; give one of them"
    yield from _unknown(entry.get("split_like", []), datasets, "split_like")
    for member, origin in entry.get("files", {}).items():
        for path, route in _items(origin.get("routes", []), f"files.{member}.routes"):
            if route["kind"] == "build":
                yield from _build(route, path)


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
    if not (digests.is_followed(dotted) and inspect.isfunction(classes.find(dotted))):
        yield f"{path}.function", f"there is no function {dotted!r}; there are those of {RULES}"
    declared = dict(parameters(dotted) or {})
    inputs = declared.pop("inputs", Parameter()).hint
    declared.pop("out", None)
    if typing.is_typeddict(inputs):
        needed = {name: Parameter() for name in settings.parameters(inputs) or ()}
        yield from keys_at_fault(dotted, needed, route["inputs"], f"{path}.inputs")
    yield from keys_at_fault(dotted, declared, route.get("params", {}), f"{path}.params")
    for name, fetched in route["inputs"].items():
        routes = fetched.get("routes", ())
        is_plain = all(r["kind"] not in ("package", "build") and not {"member", "sha256"} & {*r} for r in routes)
        if fetched.get("stream") and not (is_plain and fetched["sha256"] == "unknown"):
            takes = "it takes `sha256: unknown`, and routes without member and sha256"
            yield f"{path}.inputs.{name}", f"a stream comes from a mirror or URL as it is; {takes}"


def check_experiment(e: dict, name: str, datasets: dict, shipped: dict | None = None) -> dict:
    """The experiment with its defaults, checked. `shipped` is the experiment before something was laid over it."""
    file = f"config/experiments/{name}.yaml"
    validate(e, "experiment", file)
    e = {**models.DEFAULTS, **e}
    refuse(_experiment(e, datasets, shipped or e), file)
    return e


def _experiment(e: dict, datasets: dict, shipped: dict) -> Iterator[Fault]:
    yield from _misplaced(e["task"], TASK, "task")
    for key in ("datasets", "observe", "methods"):
        for name in e[key]:
            if name in SCALES:  # a mapping with no other keys would stand for one value per scale
                scales = f"it is a scale's ({', '.join(SCALES)})"
                yield key, f"{name!r} is not allowed as a name: {scales}; choose another"
    yield from _axes(e, "")
    for name in e["datasets"]:
        yield from _unknown(name, datasets, "datasets")
    for name, spec in e["observe"].items():
        yield from _misplaced(spec["type"], OBSERVATION, f"observe.{name}.type")
    for name, m in e["methods"].items():
        yield from _method(m, e["observe"], f"methods.{name}")
    for dataset, varied in e["datasets"].items():
        for name, spec in e["observe"].items():
            yield from _observation(e["task"], datasets[dataset]["class"], dataset, varied or {}, name, spec)
    yield from _shown(e, Named(e, shipped), datasets)


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
    yield from _misplaced(m["class"], ESTIMATOR, f"{path}.class")
    yield from _unknown(m["observe"], observe, f"{path}.observe")
    declared = parameters(m["class"])
    declared = declared and {k: p for k, p in declared.items() if k != "random_state"}  # comes from `seeds`
    yield from _keys(m["class"], declared, m.get("params", {}), f"{path}.params")
    tried = {*(declared or ()), *(name.rpartition(".")[2] for name in _paths(m.get("params", {})))}
    for key in m.get("tune", {}):
        yield from _unknown(key, {*tried, "by", "place"}, f"{path}.tune")
    kind, learns = observe[m["observe"]]["type"], classes.constant(m["class"], "observes")
    if inspect.isclass(learns) and not classes.is_subclass(kind, classes.name_of(learns)):
        yield f"{path}.observe", f"{m['class']} learns from {classes.name_of(learns)}, not from {kind}"


def _observation(task: str, dataset_class: str, dataset: str, varied: Any, name: str, spec: dict) -> Iterator[Fault]:
    """Faults of the keys of a data set and of an observation, for the nearest of what the task makes of them."""
    data, kind = classes.find(dataset_class), classes.find(spec["type"])
    ways = [w for w in classes.find(task).OBSERVATIONS if issubclass(data, w[0])]
    ways = [w for w in ways if w[0] is ways[0][0]]
    if not (fitting := [w for w in ways if issubclass(kind, w[1])]):
        kinds = ", ".join(sorted({w[1].__name__ for w in ways})) or "nothing"
        fault = f"{task} cannot make {spec['type']} of {dataset} ({dataset_class}); it makes {kinds}"
        yield f"observe.{name}.type", fault
        return
    observed = without_type(spec)
    options = [
        [
            *_source_keys(task, dataset_class, keys, varied, f"datasets.{dataset}"),
            *_keys(spec["type"], settings.parameters(options_of), observed, f"observe.{name}"),
            *_together(observed, options_of.__module__, f"observe.{name}"),
        ]
        for _, _, keys, options_of in fitting
    ]
    yield from min(options, key=len)


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
    if not classes.is_subclass(dataset_class, SIMULATED):
        return _keys(task, settings.parameters(keys), varied, path)
    declared = parameters(dataset_class)
    return _keys(dataset_class, declared and {k: Parameter(p.hint, None) for k, p in declared.items()}, varied, path)


class Named:
    """The names in the rows of an experiment's results."""

    def __init__(self, *experiments: dict):
        tasks = [classes.find(e["task"]) for e in experiments]
        self.measures = UNIVERSAL_MEASURES.union(*(task.MEASURES for task in tasks))
        self.methods = {m for e in experiments for m in e["methods"]}
        self.observations = {o for e in experiments for o in e["observe"]}
        self.differences = {f"{m}_minus_{e['baseline']}" for e in experiments if "baseline" in e for m in self.measures}
        self.paths: dict[str, set[str]] = {"keys": set().union(*(task.KEYS for task in tasks))}
        for kind, mappings in (
            ("params", [m.get("params") for e in experiments for m in e["methods"].values()]),
            ("observation_params", [without_type(o) for e in experiments for o in e["observe"].values()]),
            ("dataset_params", [varied for e in experiments for varied in e["datasets"].values()]),
        ):
            self.paths[kind] = {path for mapping in mappings for path in _paths(mapping)}

    @property
    def fields(self) -> set[str]:
        """Columns of results, and `params.<name>` and `keys.<name>` for each parameter and key of the measurements."""
        return FIELDS | {f"{kind}.{path}" for kind, paths in self.paths.items() for path in paths}

    def allowed(self, datasets: Collection) -> dict[str, Collection]:
        return {"measure": self.measures, "dataset": datasets, "method": self.methods, "observation": self.observations}


def _paths(value: Any) -> Iterator[str]:
    """Dotted names of all parameters in a mapping, whatever scales and grids they stand in."""
    for _, item in READING.variants(value, ""):
        for key, inner in item.items() if isinstance(item, dict) else ():
            yield str(key)
            yield from (f"{key}.{below}" for below in _paths(inner))


def _shown(e: dict, names: Named, datasets: dict) -> Iterator[Fault]:
    """Faults of the names in measures, baseline, batches, table, figures and printed numbers."""
    allowed = names.allowed(datasets)
    of_runs = {f for f in names.fields if f.partition(".")[0] not in ("measure", "keys")}
    yield from _unknown(e["measures"], names.measures, "measures")
    for path, fields in READING.variants(e["batch_by"], "batch_by"):
        yield from _unknown(fields, of_runs, path)
    for path, entry in _items(e.get("exclude", []), "exclude"):
        for field, value in entry.items():
            yield from _unknown(field, of_runs, path)
            if field in allowed:
                yield from _unknown(value, allowed[field], f"{path}.{field}")
    yield from _unknown(e.get("baseline", []), names.methods, "baseline")
    table = e.get("table", {})
    for key in ("each", "rows", "columns"):
        yield from _unknown(table.get(key, []), names.fields, f"table.{key}")
    yield from _unknown(table.get("measure", []), names.measures | names.differences, "table.measure")
    if "beside" in table:
        measures = [measure for _, measure in _items(table["measure"], "")]
        if not {f"{table['beside']}_{measure}" for measure in measures} & set(e["measures"]):
            yield "table.beside", f"there is no measure {table['beside']}_{measures[0]} to stand beside {measures[0]}"
    for path, figure in _items(e.get("figure", []), "figure"):
        yield from _figure(figure, names, path)
    for path, row in _items(e["reported"], "reported"):
        for key in ("dataset", "method", "measure"):  # an ablation may leave a data set out
            yield from _unknown(row[key], allowed[key], f"{path}.{key}")
        for kind, paths in names.paths.items():
            for key in row.get(kind, {}):
                yield from _unknown(key, paths, f"{path}.{kind}")
    if e["reported"] and "agreement" not in e:
        yield "agreement", "is missing; printed numbers need margins, with a reason"
    for measure in e.get("agreement", {"margins": {}})["margins"]:
        yield from _unknown(measure, names.measures, "agreement.margins")


def _figure(figure: dict, names: Named, path: str) -> Iterator[Fault]:
    yield from _unknown(figure["y"], names.measures, f"{path}.y")
    for key in ("series", "panel"):
        yield from _unknown(figure.get(key, []), names.fields, f"{path}.{key}")
    abscissae = {"line": names.fields | names.measures, "scatter": names.methods | names.measures, "curve": {"seconds"}}
    yield from _unknown(figure.get("x", []), abscissae.get(figure["kind"], names.measures), f"{path}.x")


def check_claim(claim: Any, name: str, config: dict, names: Mapping[str, Named], tests: Collection) -> None:
    """Check a claim, and that its rows can be there. `names` has the names in each experiment's results, `tests` those of
    experiments and ablations."""
    validate(claim, "claim", "config/claims.yaml", name)
    refuse(_claim(claim, name, config, names, tests), "config/claims.yaml")


def _claim(claim: dict, path: str, config: dict, names: Mapping[str, Named], tests: Collection) -> Iterator[Fault]:
    experiment = claim["experiment"]
    yield from _unknown(experiment, config["experiments"], f"{path}.experiment")
    yield from _unknown(claim["source"], {config["experiments"][experiment]["source"]}, f"{path}.source")
    yield from _unknown(claim.get("tested_by", []), tests, f"{path}.tested_by")
    fields, allowed = names[experiment].fields, names[experiment].allowed(config["datasets"])
    for key in ("each", "x"):
        yield from _unknown(claim.get(key, []), fields, f"{path}.{key}")
    for side in ("value", "reference"):
        for field, value in claim.get(side, {}).items():
            yield from _unknown(field, fields, f"{path}.{side}")
            if field in allowed:
                yield from _unknown(value, allowed[field], f"{path}.{side}.{field}")
