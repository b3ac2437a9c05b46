"""Configuration: files read, laid over each other, ablations expanded, all checked against models and against the code, before
anything runs. Every error names the file, the key and what is allowed there."""

import copy
import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from agglearn.errors import ConfigError
from agglearn.settings import meant, scalar
from agglearn_workflow import digests
from agglearn_workflow.config.checks import check_claim, check_dataset, check_experiment, names_in
from agglearn_workflow.config.entries import expand_entry
from agglearn_workflow.config.forms import check_name, validate
from agglearn_workflow.config.models import Configuration, Experiment, References
from agglearn_workflow.config.scales import SCALES

# Folders of the project that nothing is written into
OWN = ("config", "docs", "profiles", "rules", "src", "tests", "workflow")
LAYERS = ("datasets", "experiments", "claims")  # that overrides may hold beside the keys of `config/config.yaml`
# Rules of the workflow
RULES = {"all", "prepare", "fit", "render", "track", "site", "page", "conclude"}
SETTINGS, DATASETS, EXPERIMENTS = "config/config.yaml", "config/datasets", "config/experiments"
# Keys of the experiment on how its own methods are shown. They mean nothing for the changes of one of them.
SHOWN = ("table", "figure", "reported", "agreement", "ablate")
Faults = dict[tuple[str, str], ConfigError]  # (folder of config/, name) → what is wrong with an entry


def load(
    base: Path | str,
    overrides: dict | None = None,
    folder: Path | str | None = None,
    targets: Collection[str] | None = None,
) -> dict:
    """Project, folder and overrides, laid over one another. Wrong entries that no target needs are in `left_out`, with
    whether the target `all` needs them. Without targets every entry is needed."""
    base = Path(base)
    folder = base if folder is None else Path(folder)
    roots = [base] if folder.resolve() == base.resolve() else [base, folder]
    overrides = _with_settings(dict(overrides or {}), roots)
    layered = {key: overrides.pop(key, {}) for key in LAYERS}
    for key, value in layered.items():
        if not isinstance(value, dict):
            raise ConfigError(f"the command line: {key}: {value!r} is not allowed; it must be a mapping (name: value)")
    config = deep_merge(_settings(roots, SETTINGS), overrides, SETTINGS)
    validate(config, Configuration, SETTINGS)
    _check_folders(config, folder)
    faults: Faults = {}
    _each(faults, "code", config["code"], lambda name: _follow_code(name, folder, config))
    config["datasets"] = _datasets(roots, layered["datasets"], faults)
    config["references"] = _settings(roots, "config/references.yaml")
    validate(config["references"], References, "config/references.yaml")
    names = _experiments(config, roots, layered["experiments"], faults)
    gone = {name for kind, name in faults if kind == "experiments"}
    everything = gone if config["run"] == "all" else gone & {*config["run"]}
    needed = {word for target in targets or () for word in re.split(r"[/.]", target)}
    needed |= everything if "all" in (targets or ()) else set()
    for (_, name), error in faults.items():
        if targets is None or {name, getattr(error, "source", None)} & needed:
            raise error
    if targets is not None:
        config["left_out"] = [(str(error), name in everything) for (_, name), error in faults.items()]
    claims = {name: claim for mapping in _mappings(roots, "config/claims.yaml") for name, claim in mapping.items()}
    claims = deep_merge(claims, layered["claims"], "config/claims.yaml")
    config["claims"] = {
        k: v for k, v in claims.items() if v is not None and not (isinstance(v, dict) and v.get("experiment") in gone)
    }
    tests = {*_entry_files(roots, "config/ablations"), *config["experiments"], *gone}
    for name, claim in config["claims"].items():
        check_claim(claim, name, config, names, tests)
    for key in ("run", "show"):
        if config[key] != "all":
            for name in config[key]:
                check_name(name, {*config["experiments"], *gone}, SETTINGS, key)
            config[key] = [name for name in config[key] if name not in gone]
    return config


def _each(faults: Faults, kind: str, names: Iterable[str], build: Callable[[str], Any]) -> dict:
    """`build(name)` of each name. An error stands in `faults` in the place of the entry."""
    built = {}
    for name in names:
        try:
            built[name] = build(name)
        except ConfigError as error:
            faults.setdefault((kind, name), error)
    return built


def _with_settings(overrides: dict, roots: list[Path]) -> dict:
    value = overrides.pop("set", [])
    texts = [value] if isinstance(value, str) else value
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise ConfigError(
            f"the command line: set: {value!r} is not allowed; it must be a text path.to.setting=value, or a list"
        )
    experiments = {*_entry_files(roots, EXPERIMENTS), *(overrides.get("experiments") or ())}
    keys = [*_settings(roots, SETTINGS), *LAYERS]
    return stack(overrides, read_settings(texts, sorted(experiments), keys)) if texts else overrides


def assign(mapping: dict, keys: list[str], value: object) -> None:
    for key in keys[:-1]:
        mapping = mapping.setdefault(key, {})
    mapping[keys[-1]] = value


def read_settings(texts: Iterable[str], experiments: Collection[str], settings: Collection[str]) -> dict:
    """An overlay from texts such as `maxent_table5.methods.maxent.params.n_sweeps=2`."""
    overlay: dict[str, Any] = {}
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


def _check_folders(config: dict, base: Path) -> None:
    root = base.resolve()
    for key in ("results", "cache", "archive"):
        folder = (root / config[key]).resolve()
        inside = any(folder.is_relative_to(root / name) for name in OWN)
        if ".." in Path(config[key]).parts or folder in (root, *root.parents, Path.home()) or inside:
            rule = "give a folder of its own, below the project or by its absolute path"
            raise ConfigError(f"{SETTINGS}: {key}: {config[key]!r} is not allowed; {rule}")
    if config["from"] == "archive" and not any((root / config["archive"]).glob("*/*.parquet")):
        rule = "`make archive` computes one, or leave out from: archive"
        raise ConfigError(f"{SETTINGS}: archive: {config['archive']!r} holds no archive; {rule}")


def _follow_code(name: str, base: Path, config: dict) -> None:
    folder = (base / name).resolve()
    digests.add_root(folder)
    if not folder.is_dir():
        key = f"code.{config['code'].index(name)}"
        raise ConfigError(f"{SETTINGS}: {key}: there is no folder {name!r}; make it, or leave it out")


def _datasets(roots: list[Path], over: dict, faults: Faults) -> dict:
    each, paths = functools.partial(_each, faults, "datasets"), _entry_files(roots, DATASETS)
    files = each(paths, lambda name: expand_entry(read_yaml(paths[name]), f"{DATASETS}/{name}.yaml"))
    over = {name: expand_entry(entry, f"{DATASETS}/{name}.yaml") for name, entry in over.items()}
    raw = deep_merge(files, over, DATASETS)

    def resolve(name: str) -> Any:
        _check_free(name, DATASETS)
        return resolve_extends(name, raw, DATASETS)

    entries = each(raw, resolve)
    return each(entries, lambda name: check_dataset(entries[name], name, entries))


def _experiments(config: dict, roots: list[Path], over: dict, faults: Faults) -> dict[str, dict]:
    """Put the checked experiments into the configuration, and return the names in the results of each."""
    each, paths = functools.partial(_each, faults, "experiments"), _entry_files(roots, EXPERIMENTS)
    files = each(paths, lambda name: read_yaml(paths[name]))
    raw = deep_merge(files, over, EXPERIMENTS)

    def add_code(name: str) -> None:
        for code in raw[name]["code"]:
            root = next((root for root in reversed(roots) if (root / str(code)).is_dir()), None)
            if root is None:
                rule = "make it, or leave it out"
                raise ConfigError(f"{EXPERIMENTS}/{name}.yaml: code: there is no folder {code!r}; {rule}")
            digests.add_root(root / code)
            path = code if root == roots[-1] else str(root / code)
            config["code"] = list(dict.fromkeys([*config["code"], path]))

    each((n for n, e in raw.items() if isinstance(e, dict) and isinstance(e.get("code"), list)), add_code)
    shipped = each(files, lambda name: _ablate(resolve_extends(name, files, EXPERIMENTS), name))
    # what is laid over a parent may have removed already what its children remove
    laid = each(raw, lambda name: _ablate(resolve_extends(name, raw, EXPERIMENTS, strict=False), name))
    changed = {n: e for n, e in shipped.items() if n in laid and laid[n] != e}

    def check(name: str) -> dict:
        if name in changed:
            validate(changed[name], Experiment, f"{EXPERIMENTS}/{name}.yaml")
        try:
            return check_experiment(laid[name], name, config["datasets"], changed.get(name))
        except ConfigError as error:
            e = laid[name] if isinstance(laid[name], dict) else {}
            of_data = [faults[key] for d in e.get("datasets") or () if (key := ("datasets", d)) in faults]
            error = ConfigError(str(of_data[0] if of_data else error))
            error.source = e.get("source")  # type: ignore[attr-defined]  # which then lacks the experiment
            raise error from None

    checked = each(laid, check)
    sources = {e["source"] for e in checked.values()}
    each(checked, lambda name: _check_free(name, EXPERIMENTS, RULES | sources))
    config["experiments"] = {n: e for n, e in checked.items() if ("experiments", n) not in faults}
    return {n: names_in(e, changed.get(n, e)) for n, e in config["experiments"].items()}


def _ablate(e: Any, name: str) -> Any:
    file = f"{EXPERIMENTS}/{name}.yaml"
    if not isinstance(e, dict) or "ablate" not in e:
        return e
    validate(e, Experiment, file)
    return expand_ablation(e, file)


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
    short = text.rpartition(".")[2] if path == "class" else text
    method |= {"name": f"{label}: {short}", "change": f"{path} = {text}"}
    experiment["methods"] = experiment["methods"] | {name: method}


def _grids(value: object, path: str = "") -> Iterator[str]:
    """Dotted names of the parameters that have a grid, at whatever scale."""
    if isinstance(value, dict):
        if set(value) == {"grid"}:
            yield path
        for key, inner in value.items():
            yield from _grids(inner, path if key in SCALES else f"{path}.{key}" if path else str(key))


def resolve_extends(name: str, raw: dict, folder: str, strict: bool = True, visited: tuple[str, ...] = ()) -> Any:
    """An experiment or data set laid over the one that it `extends`. `strict`: a key that it removes must be there."""
    e = raw[name]
    if not isinstance(e, dict) or "extends" not in e:
        return e
    file = f"{folder}/{name}.yaml"
    check_name(e["extends"], raw, file, "extends")
    if name in visited:
        raise ConfigError(f"{file}: extends: goes in a circle: {' → '.join([*visited, name])}")
    under = resolve_extends(e["extends"], raw, folder, strict, (*visited, name))
    return deep_merge(under, {k: v for k, v in e.items() if k != "extends"}, file if strict else None)


def _check_free(name: object, folder: str, taken: Collection[str] = ()) -> None:
    if not isinstance(name, str) or not re.fullmatch("[a-z0-9_]+", name):
        raise ConfigError(f"{folder}: {name!r} is not allowed as a name; use small letters, digits and _")
    if name in taken:
        raise ConfigError(f"{folder}: {name!r} is a target of the workflow already; choose another name")


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C library's is the same safe subset, faster
    """YAML in which no key stands twice. The standard leaves open which of the two counts."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict:
        span, keys = range(node.start_mark.index, node.end_mark.index), set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.start_mark.index in span:  # another one is merged, by <<
                if (key.tag, key.value) in keys:
                    problem = f"the key {key.value!r} stands twice"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                keys.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """Content of a YAML file. An error of syntax is one line with its position."""
    try:
        return yaml.load(path.read_text(encoding="utf-8-sig"), Loader)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; restore it from the repository") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start + 1} is not UTF-8; save the file as UTF-8 text") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply, or an alias within its own anchor") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not valid YAML: {' '.join(str(reason).split())}") from None


def read_mapping(path: Path) -> dict:
    content = read_yaml(path)
    if content is not None and not isinstance(content, dict):
        raise ConfigError(f"{path}: top level: must be a mapping (name: value), not a {type(content).__name__}")
    return content or {}


def _entry_files(roots: list[Path], folder: str) -> dict[str, Path]:
    """Name → file of each entry, sorted. A name with `_` in front is a template to copy."""
    files = {p.stem: p for root in roots for p in (root / folder).glob("*.yaml") if not p.name.startswith("_")}
    return dict(sorted(files.items()))


def _mappings(roots: list[Path], file: str) -> list[dict]:
    first, *further = (root / file for root in roots)
    return [read_mapping(first), *(read_mapping(path) for path in further if path.is_file())]


def _settings(roots: list[Path], file: str) -> dict:
    return functools.reduce(lambda under, over: deep_merge(under, over, file), _mappings(roots, file))


def parse_scalars(value: Any) -> Any:
    """Values of `--config` with numbers, booleans and nulls in them. Snakemake hands nested ones over as text."""
    if isinstance(value, dict):
        return {k: parse_scalars(v) for k, v in value.items()}
    if isinstance(value, list):
        return [parse_scalars(v) for v in value]
    return scalar(value) if isinstance(value, str) else value


def deep_merge(under: Any, over: Any, file: str | None = None, prefix: str = "") -> Any:
    """`over` laid over `under`, mapping by mapping. A null in `over` removes the key."""
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return over
    out = {k: v for k, v in under.items() if not (k in over and over[k] is None)}
    for key, value in over.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        if value is not None:
            out[key] = deep_merge(out[key], value, file, path) if key in out else value
        elif file and key not in under:
            raise ConfigError(
                f"{file}: {path}: there is no {key!r} to remove{meant(key, under)}; there are {', '.join(under)}"
            )
    return out


def stack(under: Any, over: Any) -> Any:
    """Two overlays as one: `over` counts where both have a key. A null stays, for it removes a key below both."""
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return over
    return {**under, **{k: stack(under[k], v) if k in under else v for k, v in over.items()}}
