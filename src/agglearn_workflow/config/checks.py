"""Configuration against the code: classes, functions, keys and types of everything that an entry names, before anything runs.

The classes that an entry names are imported, and no others.
"""

import inspect
import itertools
import reprlib
import sys
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agglearn import settings
from agglearn.errors import ConfigError
from agglearn.settings import Fault, Parameter, keys_at_fault, meant
from agglearn_workflow import classes, digests
from agglearn_workflow.config.entries import SIMULATED
from agglearn_workflow.config.scales import SCALES

DATASET = "agglearn.datasets.base.Dataset"
ESTIMATOR = "agglearn.estimator.Estimator"
OBSERVATION = "agglearn.observations.base.Observation"
TASK = "agglearn.tasks.base.Task"
RULES = "agglearn.datasets.builds"
UNIVERSAL_MEASURES = {"seconds"}
FOR_READERS = ("title", "licence", "citation", "doi", "homepage", "note")  # in a data set's entry
FIELDS = {"dataset", "observation", "method", "measure", "keys", "seed"}  # that a row of results has, beside parameters
PARAMETERS = ("params", "observation_params", "dataset_params")


class Configured(settings.Runtime):
    """How values of a configuration are read: scales and grids stand for several values, `{class:, params:}` for objects."""

    def variants(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        if isinstance(value, dict) and value and set(value) <= set(SCALES):
            for scale, one in value.items():
                yield from self.variants(one, f"{path}.{scale}")
        elif isinstance(value, dict) and set(value) == {"grid"}:
            for here, axis in self.variants(value["grid"], f"{path}.grid"):
                for i, one in enumerate(axis if isinstance(axis, list) else ()):
                    yield from self.variants(one, f"{here}.{i}")
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
        dotted = value.get("class")
        if wrong := class_fault(dotted, classes.name_of(hint) if hint not in (Any, object, settings.Built) else None):
            yield f"{path}.class", wrong
            return
        for here, params in self.variants(value.get("params", {}), f"{path}.params"):
            yield from keys_at_fault(dotted, self.parameters(dotted), params, here, self)

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


def parameters(dotted: str) -> dict[str, Parameter] | None:
    """Keys that a class or a function takes. Of one outside followed code they may have any type."""
    try:
        declared = settings.parameters(classes.find(dotted))
    except (TypeError, ValueError):
        return None  # its signature cannot be read
    is_ours = digests.is_followed(dotted)
    return declared if is_ours else declared and {k: Parameter(default=p.default) for k, p in declared.items()}


def refuse(faults: Iterator[Fault], file: str) -> None:
    """Raise ConfigError with the first fault, if there is one."""
    for path, fault in faults:
        raise ConfigError(f"{file}: {path}: {fault}")


def check_class(dotted: object, base: str, file: str, path: str) -> None:
    """Raise ConfigError where a name is not that of a followed subclass of `base`."""
    if wrong := class_fault(dotted, base):
        raise ConfigError(f"{file}: {path}: {wrong}")


def check_name(name: object, allowed: Collection, file: str, path: str) -> None:
    """Raise ConfigError, with the closest of the allowed names, where a name is none of them."""
    if name not in allowed:
        raise ConfigError(
            f"{file}: {path}: {name!r} is not known{meant(name, allowed)}; there are {', '.join(sorted(allowed))}"
        )


# -- data sets --------------------------------------------------------------------------------------------------------


def check_dataset(entry: dict, file: str, datasets: dict) -> None:
    """Check an entry's class, what it is constructed with, and the functions that build its files."""
    check_class(entry["class"], DATASET, file, "class")
    refuse(keys_at_fault(entry["class"], parameters(entry["class"]), entry.get("params", {}), "params"), file)
    refuse(_unread(entry, classes.constant(entry["class"], "KEYS")), file)
    if {"positive", "above"} <= set(entry.get("label", {})):
        raise ConfigError(f"{file}: label.positive: is not used beside above; give one of them")
    if "split_like" in entry:
        check_name(entry["split_like"], datasets, file, "split_like")
    for member, origin in entry.get("files", {}).items():
        for i, route in enumerate(origin.get("routes", [])):
            if route["kind"] == "build":
                _check_build(route, file, f"files.{member}.routes.{i}")


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


def _check_build(route: dict, file: str, path: str) -> None:
    """The function of a build exists and takes the parameters."""
    dotted = route["function"]
    if not (digests.is_followed(dotted) and inspect.isfunction(classes.find(dotted))):
        raise ConfigError(f"{file}: {path}.function: there is no function {dotted!r}; there are those of {RULES}")
    declared = dict(parameters(dotted) or {})
    inputs = declared.pop("inputs", Parameter()).hint
    declared.pop("out", None)
    if typing.is_typeddict(inputs):
        needed = {name: Parameter() for name in settings.parameters(inputs) or ()}
        refuse(keys_at_fault(dotted, needed, route["inputs"], f"{path}.inputs"), file)
    refuse(keys_at_fault(dotted, declared, route.get("params", {}), f"{path}.params"), file)
    for name, given in route["inputs"].items():
        sources = [
            r for r in given.get("routes", ()) if r["kind"] in ("package", "build") or {"member", "sha256"} & {*r}
        ]
        if given.get("stream") and (sources or given["sha256"] != "unknown"):
            raise ConfigError(
                f"{file}: {path}.inputs.{name}: a stream comes from a mirror or URL as it is; "
                f"it takes `sha256: unknown`, and routes without member and sha256"
            )


# -- experiments ------------------------------------------------------------------------------------------------------


def check_experiment(e: dict, file: str, datasets: dict, shipped: dict | None = None) -> None:
    """Check everything that an experiment names."""
    check_class(e["task"], TASK, file, "task")
    for key in ("datasets", "observe", "methods"):
        _check_names(e[key], file, key)
    refuse(_axes(e, ""), file)
    for name in e["datasets"]:
        check_name(name, datasets, file, "datasets")
    for name, spec in e["observe"].items():
        check_class(spec["type"], OBSERVATION, file, f"observe.{name}.type")
    for name, m in e["methods"].items():
        _check_method(m, e, file, f"methods.{name}")
    for dataset, given in e["datasets"].items():
        for name, spec in e["observe"].items():
            refuse(_observation(e["task"], datasets[dataset]["class"], dataset, given or {}, name, spec), file)
    _check_shown(e, file, Named(e, shipped or e), datasets)


def _check_names(named: dict, file: str, path: str) -> None:
    """Refuse names that are those of scales: a mapping with no other keys would stand for one value per scale."""
    for name in named:
        if name in SCALES:
            raise ConfigError(
                f"{file}: {path}: {name!r} is not allowed as a name: it is a scale's ({', '.join(SCALES)}); choose another"
            )


def _axes(value: Any, path: str) -> Iterator[Fault]:
    """Grids that hold nothing, at any depth."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict) and key == "grid":
            for axis_path, axis in READING.variants(inner, here):
                if not isinstance(axis, list) or not axis:
                    yield axis_path, READING.describe_misplaced(axis, "a list of at least one value")
        yield from _axes(inner, here)


def _check_method(m: dict, e: dict, file: str, path: str) -> None:
    check_class(m["class"], ESTIMATOR, file, f"{path}.class")
    check_name(m["observe"], e["observe"], file, f"{path}.observe")
    declared = parameters(m["class"])
    declared = declared and {k: p for k, p in declared.items() if k != "random_state"}  # comes from `seeds`
    for here, params in READING.variants(m.get("params", {}), f"{path}.params"):
        refuse(keys_at_fault(m["class"], declared, params, here, READING), file)
    kind, learns = e["observe"][m["observe"]]["type"], classes.constant(m["class"], "observes")
    if inspect.isclass(learns) and not classes.is_subclass(kind, classes.name_of(learns)):
        learns_from = classes.name_of(learns)
        raise ConfigError(f"{file}: {path}.observe: {m['class']} learns from {learns_from}, not from {kind}")


def _observation(task: str, dataset_class: str, dataset: str, given: Any, name: str, spec: dict) -> Iterator[Fault]:
    """Faults of the keys of a data set and of an observation, for the nearest of what the task makes of them."""
    data, kind = classes.find(dataset_class), classes.find(spec["type"])
    ways = [w for w in classes.find(task).OBSERVATIONS if issubclass(data, w[0])]
    ways = [w for w in ways if w[0] is ways[0][0]]
    if not (fitting := [w for w in ways if issubclass(kind, w[1])]):
        kinds = ", ".join(sorted({w[1].__name__ for w in ways})) or "nothing"
        fault = f"{task} cannot make {spec['type']} of {dataset} ({dataset_class}); it makes {kinds}"
        yield f"observe.{name}.type", fault
        return
    observed = {k: v for k, v in spec.items() if k != "type"}
    options = [
        [
            *_source_keys(task, dataset_class, keys, given, f"datasets.{dataset}"),
            *_keys(spec["type"], settings.parameters(options_of), observed, f"observe.{name}"),
            *_together(observed, options_of.__module__, f"observe.{name}"),
        ]
        for _, _, keys, options_of in fitting
    ]
    yield from min(options, key=len)


def _together(observed: dict, module: str, path: str) -> Iterator[Fault]:
    """Keys that mean nothing without another one, or beside it, by `BESIDE` and `INSTEAD` of the module that declares them."""
    beside, instead = (getattr(sys.modules[module], table, {}) for table in ("BESIDE", "INSTEAD"))
    for key, others in beside.items():
        if key in observed and not set(others) & set(observed):
            yield f"{path}.{key}", f"means something beside {' or '.join(others)} only; give that, or leave it out"
    for key, others in instead.items():
        for other in others if key in observed else ():
            if other in observed:
                yield f"{path}.{other}", f"is not used beside {key}; give one of them"


def _source_keys(task: str, dataset_class: str, keys: type, given: Any, path: str) -> Iterator[Fault]:
    """Faults of an experiment's keys of a data set: a simulated one takes what its constructor does."""
    if not classes.is_subclass(dataset_class, SIMULATED):
        return _keys(task, settings.parameters(keys), given, path)
    declared = parameters(dataset_class)
    return _keys(dataset_class, declared and {k: Parameter(p.hint, None) for k, p in declared.items()}, given, path)


def _keys(name: str, declared: dict[str, Parameter] | None, given: Any, path: str) -> Iterator[Fault]:
    for here, one in READING.variants(given, path):
        yield from keys_at_fault(name, declared, one, here, READING)


class Named:
    """The names in the rows of an experiment's results."""

    def __init__(self, *experiments: dict):
        tasks = [e["task"] for e in experiments]
        self.measures = {*UNIVERSAL_MEASURES}.union(*(classes.constant(t, "MEASURES") or () for t in tasks))
        self.methods = {m for e in experiments for m in e["methods"]}
        self.observations = {o for e in experiments for o in e["observe"]}
        self.differences = {f"{m}_minus_{e['baseline']}" for e in experiments if "baseline" in e for m in self.measures}
        self.paths: dict[str, set[str]] = {kind: set() for kind in PARAMETERS}
        self.paths["keys"] = set().union(*(classes.constant(t, "KEYS") or () for t in tasks))
        for e in experiments:
            for m in e["methods"].values():
                self.paths["params"] |= set(_paths(m.get("params", {})))
            for o in e["observe"].values():
                self.paths["observation_params"] |= set(_paths({k: v for k, v in o.items() if k != "type"}))
            for given in e["datasets"].values():
                self.paths["dataset_params"] |= set(_paths(given or {}))

    @property
    def fields(self) -> set[str]:
        """Columns of results, `params.<name>` for every parameter that the experiment sets, and `keys.<name>` for every key of its measurements."""
        return FIELDS | {f"{kind}.{path}" for kind, paths in self.paths.items() for path in paths}

    def allowed(self, datasets: Collection) -> dict[str, Collection]:
        """Names that a field of results may hold."""
        return {"measure": self.measures, "dataset": datasets, "method": self.methods, "observation": self.observations}


def _paths(value: Any) -> Iterator[str]:
    """Dotted names of all parameters in a mapping, whatever scales and grids they stand in."""
    for _, one in READING.variants(value, ""):
        for key, inner in one.items() if isinstance(one, dict) else ():
            yield str(key)
            yield from (f"{key}.{rest}" for rest in _paths(inner))


def _check_shown(e: dict, file: str, named: Named, datasets: dict) -> None:
    """Measures, baseline, batches, table, figures and printed numbers name what there is."""
    shown = named.measures | named.differences
    for i, name in enumerate(e["measures"]):
        check_name(name, named.measures, file, f"measures.{i}")
    allowed = named.allowed(datasets)
    of_runs = {f for f in named.fields if f.partition(".")[0] not in ("measure", "keys")}
    batch_by = e["batch_by"]
    for field in itertools.chain(*(batch_by.values() if isinstance(batch_by, dict) else [batch_by])):
        check_name(field, of_runs, file, "batch_by")
    for i, entry in enumerate(e.get("exclude", [])):
        for field, value in entry.items():
            check_name(field, of_runs, file, f"exclude.{i}")
            if field in allowed:
                check_name(value, allowed[field], file, f"exclude.{i}.{field}")
    if "baseline" in e:
        check_name(e["baseline"], named.methods, file, "baseline")
    if "table" in e:
        t = e["table"]
        for key in ("each", "rows", "columns"):
            _check_fields(t.get(key, []), named, file, f"table.{key}")
        names = t["measure"] if isinstance(t["measure"], list) else [t["measure"]]
        for name in names:
            check_name(name, shown, file, "table.measure")
        if "beside" in t and not {f"{t['beside']}_{name}" for name in names} & set(e["measures"]):
            raise ConfigError(
                f"{file}: table.beside: there is no measure {t['beside']}_{names[0]} to stand beside {names[0]}"
            )
    figures = e.get("figure", [])
    for i, figure in enumerate(figures if isinstance(figures, list) else [figures]):
        _check_figure(figure, named, file, f"figure.{i}" if isinstance(figures, list) else "figure")
    for i, row in enumerate(e["reported"]):
        check_name(row["dataset"], datasets, file, f"reported.{i}.dataset")  # an ablation may leave a data set out
        check_name(row["method"], named.methods, file, f"reported.{i}.method")
        check_name(row["measure"], named.measures, file, f"reported.{i}.measure")
        for kind, paths in named.paths.items():
            for key in row.get(kind, {}):
                check_name(key, paths, file, f"reported.{i}.{kind}")
    if e["reported"] and "agreement" not in e:
        raise ConfigError(f"{file}: agreement: is missing; printed numbers need margins, with a reason")
    for measure in e.get("agreement", {"margins": {}})["margins"]:
        check_name(measure, named.measures, file, "agreement.margins")


def _check_fields(given: Any, named: Named, file: str, path: str) -> None:
    for i, field in enumerate(given if isinstance(given, list) else [given]):
        check_name(field, named.fields, file, f"{path}.{i}" if isinstance(given, list) else path)


def _check_figure(figure: dict, named: Named, file: str, path: str) -> None:
    check_name(figure["y"], named.measures, file, f"{path}.y")
    for key in ("series", "panel"):
        _check_fields(figure.get(key, []), named, file, f"{path}.{key}")
    if figure["kind"] == "line":
        _check_fields(figure["x"], named, file, f"{path}.x")
    if figure["kind"] == "scatter":
        check_name(figure["x"], named.methods | named.measures, file, f"{path}.x")
    if figure["kind"] == "curve":
        check_name(figure.get("x", "seconds"), {"seconds"}, file, f"{path}.x")
    if figure["kind"] in ("flows", "map") and "x" in figure:
        check_name(figure["x"], named.measures, file, f"{path}.x")


# -- claims -----------------------------------------------------------------------------------------------------------


def check_claim(name: str, claim: dict, file: str, source_name: str, named: Named, datasets: dict) -> None:
    """Check that the rows that a claim selects can be there."""
    check_name(claim["source"], {source_name}, file, f"{name}.source")
    for key in ("each", "x"):
        _check_fields(claim.get(key, []), named, file, f"{name}.{key}")
    allowed = named.allowed(datasets)
    for side in ("value", "reference"):
        for field, value in claim.get(side, {}).items():
            check_name(field, named.fields, file, f"{name}.{side}")
            for one in value if isinstance(value, list) else [value]:
                if field in allowed:
                    check_name(one, allowed[field], file, f"{name}.{side}.{field}")
