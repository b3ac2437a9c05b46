"""Configuration: files read, laid over each other, checked against models and against the code, before anything runs.

Every error names the file, the key and what is allowed there.
"""

import functools
import re
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agglearn.errors import ConfigError
from agglearn.settings import meant, scalar
from agglearn_workflow import digests
from agglearn_workflow.config import checks, models
from agglearn_workflow.config.ablation import expand_ablation, read_settings
from agglearn_workflow.config.checks import FOR_READERS, check_name
from agglearn_workflow.config.entries import expand_entry

# Folders of the project that nothing is written into
OWN = ("config", "docs", "profiles", "rules", "src", "tests", "workflow")
LAYERS = ("datasets", "experiments", "claims")  # that overrides may hold beside the keys of `config/config.yaml`
# Rules of the workflow
RULES = {"all", "prepare", "fit", "recall", "render", "track", "site", "page", "conclude"}
Faults = dict[tuple[str, str], ConfigError]  # (folder of config/, name) → what is wrong with an entry that is left out


def load(
    base: Path | str,
    overrides: dict | None = None,
    folder: Path | str | None = None,
    targets: Collection[str] | None = None,
) -> dict:
    """The effective configuration."""
    base = Path(base)
    folder = base if folder is None else Path(folder)
    roots = [base] if folder.resolve() == base.resolve() else [base, folder]
    overrides = _with_settings(dict(overrides or {}), roots)
    layered = {k: _mapping(overrides.pop(k), "the command line", k) for k in LAYERS if k in overrides}
    config = deep_merge(_settings(roots, "config/config.yaml"), overrides, "config/config.yaml")
    validate(config, "config", "config/config.yaml")
    faults: Faults | None = None if targets is None else {}
    _check_folders(config, folder, faults)
    for code in config["code"]:
        digests.add_root(folder / code)
        sys.path[:0] = {str((folder / code).resolve())} - set(sys.path)
    entries = _datasets(roots, layered.get("datasets", {}), faults)
    config["datasets"] = _each("datasets", entries, lambda name: check_dataset(entries[name], name, entries), faults)
    config["references"] = _settings(roots, "config/references.yaml")
    validate(config["references"], "references", "config/references.yaml")
    named = _experiments(config, roots, layered.get("experiments", {}), faults)
    claims = {name: claim for mapping in _mappings(roots, "config/claims.yaml") for name, claim in mapping.items()}
    claims = deep_merge(claims, layered.get("claims", {}), "config/claims.yaml")
    gone = {name for kind, name in faults or () if kind == "experiments"}
    config["claims"] = {
        k: v for k, v in claims.items() if v is not None and not (isinstance(v, dict) and v.get("experiment") in gone)
    }
    for name, claim in config["claims"].items():
        check_claim(claim, name, config, named)
    for key in ("run", "show"):
        for name in [] if config[key] == "all" else config[key]:
            check_name(name, {*config["experiments"], *gone}, "config/config.yaml", key)
    if faults:
        _refuse_needed(faults, config, targets or ())
        for key in ("run", "show"):
            config[key] = config[key] if config[key] == "all" else [n for n in config[key] if n not in gone]
    if faults is not None:
        config["left_out"] = [str(error) for error in faults.values()]
    return config


def _each(kind: str, names: Iterable[str], build: Callable[[str], Any], faults: Faults | None) -> dict:
    """`build(name)` of each name. An error is raised, or stands in `faults` in the place of the entry."""
    built = {}
    for name in names:
        try:
            built[name] = build(name)
        except ConfigError as error:
            if faults is None:
                raise
            faults.setdefault((kind, name), error)
    return built


def _refuse_needed(faults: Faults, config: dict, targets: Collection[str]) -> None:
    """Raise the first fault of an entry that a target needs: by its name, by its source, in a path, or since it is of all."""
    words = {word for target in targets for word in re.split(r"[/.]", target)}
    for (kind, name), error in faults.items():
        of_all = kind == "experiments" and "all" in targets and (config["run"] == "all" or name in config["run"])
        if of_all or name in words or getattr(error, "source", None) in words:
            raise error


def _with_settings(overrides: dict, roots: list[Path]) -> dict:
    """The overrides with the settings of `set` laid over them."""
    given = overrides.pop("set", [])
    texts = [given] if isinstance(given, str) else given
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise ConfigError(
            f"the command line: set: {given!r} is not allowed; it must be a text path.to.setting=value, or a list"
        )
    experiments = {*_entry_files(roots, "config/experiments"), *(overrides.get("experiments") or ())}
    keys = [*_settings(roots, "config/config.yaml"), *LAYERS]
    return stack(overrides, read_settings(texts, sorted(experiments), keys)) if texts else overrides


def check_dataset(entry: dict, name: str, datasets: dict) -> dict:
    """The entry, checked against its model and the code. `datasets` are all entries."""
    file = f"config/datasets/{name}.yaml"
    validate(entry, "dataset", file)
    checks.check_dataset(entry, file, datasets)
    return entry


def check_experiment(e: dict, name: str, datasets: dict, shipped: dict | None = None) -> dict:
    """The experiment with its defaults, checked against its model and the code. `shipped` is as in `agglearn_workflow.config.checks`."""
    file = f"config/experiments/{name}.yaml"
    validate(e, "experiment", file)
    e = {**models.DEFAULTS, **e}
    checks.check_experiment(e, file, datasets, shipped)
    return e


def check_claim(claim: Any, name: str, config: dict, named: dict) -> None:
    """Check a claim against its model and its experiment. `named` has the names in each experiment's results."""
    file = "config/claims.yaml"
    validate(claim, "claim", file, name)
    experiment = claim["experiment"]
    check_name(experiment, config["experiments"], file, f"{name}.experiment")
    source_name = config["experiments"][experiment]["source"]
    checks.check_claim(name, claim, file, source_name, named[experiment], config["datasets"])


def _experiments(config: dict, roots: list[Path], layered: dict, faults: Faults | None) -> dict[str, checks.Named]:
    """Put the checked experiments into the configuration, and return the names in the results of each."""
    folder = "config/experiments"

    def each(names: Iterable[str], build: Callable[[str], Any]) -> dict:
        return _each("experiments", names, build, faults)

    paths = _entry_files(roots, folder)
    files = each(paths, lambda name: read_yaml(paths[name]))
    raw = deep_merge(files, layered, folder)
    shipped = each(files, lambda name: _ablate(resolve_extends(name, files, folder), name))
    # what is laid over a parent may have removed already what its children remove
    whole = each(raw, lambda name: _ablate(resolve_extends(name, raw, folder, strict=False), name))
    changed = {n: e for n, e in shipped.items() if n in whole and whole[n] != e}

    def check(name: str) -> dict:
        if name in changed:
            validate(changed[name], "experiment", f"{folder}/{name}.yaml")
        try:
            return check_experiment(whole[name], name, config["datasets"], changed.get(name))
        except ConfigError as error:
            e = whole[name] if isinstance(whole[name], dict) else {}
            of_data = [faults[key] for d in e.get("datasets") or () if faults and (key := ("datasets", d)) in faults]
            error = ConfigError(str(of_data[0] if of_data else error))
            error.source = e.get("source")  # type: ignore[attr-defined]  # which then lacks the experiment
            raise error from None

    checked = each(whole, check)
    sources = {e["source"] for e in checked.values()}
    each(checked, lambda name: _check_free(name, folder, RULES | sources))
    config["experiments"] = {n: e for n, e in checked.items() if ("experiments", n) not in (faults or ())}
    return {n: checks.Named(e, changed.get(n, e)) for n, e in config["experiments"].items()}


def _ablate(e: Any, name: str) -> Any:
    """The experiment with its ablation as methods."""
    file = f"config/experiments/{name}.yaml"
    if isinstance(e, dict) and "ablate" in e:
        validate(e, "experiment", file)
    return expand_ablation(e, file)


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C library's is the same safe subset, faster
    """YAML in which no key stands twice. The standard leaves open which of the two counts."""

    def get_single_node(self) -> yaml.Node | None:
        """The tree of a document."""
        node = super().get_single_node()
        _refuse_repeated_keys(node, set())
        return node


def _refuse_repeated_keys(node: yaml.Node | None, visited: set[int]) -> None:
    """Raise MarkedYAMLError at the first key of a document that stands twice in its mapping."""
    if not isinstance(node, yaml.CollectionNode) or id(node) in visited:
        return
    visited.add(id(node))
    keys = set()
    for item in node.value:
        key_node, value_node = item if isinstance(item, tuple) else (None, item)
        if isinstance(key_node, yaml.ScalarNode):
            key = key_node.tag, key_node.value
            if key in keys:
                raise yaml.MarkedYAMLError(problem=f"the key {key[1]!r} stands twice", problem_mark=key_node.start_mark)
            keys.add(key)
        _refuse_repeated_keys(value_node, visited)


def read_mapping(path: Path) -> dict:
    """A YAML file that holds a mapping, or nothing."""
    content = read_yaml(path)
    if content is not None and not isinstance(content, dict):
        raise ConfigError(f"{path}: top level: must be a mapping (name: value), not a {type(content).__name__}")
    return content or {}


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
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line}: not valid YAML: {_reason(error)}") from None


def _reason(error: yaml.YAMLError) -> str:
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or error
    return " ".join(str(reason).split())


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
        here = f"{prefix}.{key}" if prefix else str(key)
        if value is not None:
            out[key] = deep_merge(out[key], value, file, here) if key in out else value
        elif file and key not in under:
            raise ConfigError(
                f"{file}: {here}: there is no {key!r} to remove{meant(key, under)}; there are {', '.join(under)}"
            )
    return out


def stack(under: Any, over: Any) -> Any:
    """Two overlays as one: `over` counts where both have a key. A null stays, for it removes a key that lies below both."""
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return over
    return {**under, **{k: stack(under[k], v) if k in under else v for k, v in over.items()}}


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


def essence(entry: dict) -> dict:
    """The fields of a data set's entry that its data depend on: all but those for readers."""
    fields = {key: value for key, value in entry.items() if key not in FOR_READERS}
    if "files" in fields:
        fields["files"] = {name: essence(spec) for name, spec in fields["files"].items()}
    return fields


def _datasets(roots: list[Path], over: dict, faults: Faults | None) -> dict:
    """Entries of `config/datasets/` with `over` laid over them. Every file stands by itself."""
    folder = "config/datasets"
    paths = _entry_files(roots, folder)
    files = _each("datasets", paths, lambda name: _expand({name: read_yaml(paths[name])}, folder)[name], faults)
    raw = deep_merge(files, _expand(over, folder), folder)

    def whole(name: str) -> Any:
        _check_free(name, folder)
        return resolve_extends(name, raw, folder)

    return _each("datasets", raw, whole, faults)


def _entry_files(roots: list[Path], folder: str) -> dict[str, Path]:
    """Name → file of each entry, sorted. A name with `_` in front is a template to copy."""
    files = {p.stem: p for root in roots for p in (root / folder).glob("*.yaml") if not p.name.startswith("_")}
    return dict(sorted(files.items()))


def _mappings(roots: list[Path], file: str) -> list[dict]:
    """The file as the project has it, and as the folder has it where it does."""
    first, *others = (root / file for root in roots)
    return [read_mapping(first), *(read_mapping(path) for path in others if path.is_file())]


def _settings(roots: list[Path], file: str) -> dict:
    """The settings of a file, those of the folder laid over those of the project."""
    return functools.reduce(lambda under, over: deep_merge(under, over, file), _mappings(roots, file))


def _mapping(value: object, file: str, key: str) -> dict:
    if not isinstance(value, dict):
        raise ConfigError(f"{file}: {key}: {value!r} is not allowed; it must be a mapping (name: value)")
    return value


def _check_free(name: object, folder: str, taken: Collection[str] = ()) -> None:
    """Refuse a name that is no plain word, or that means something else to the workflow."""
    if not isinstance(name, str) or not re.fullmatch("[a-z0-9_]+", name):
        raise ConfigError(f"{folder}: {name!r} is not allowed as a name; use small letters, digits and _")
    if name in taken:
        raise ConfigError(f"{folder}: {name!r} is a target of the workflow already; choose another name")


def _check_folders(config: dict, base: Path, faults: Faults | None) -> None:
    """Refuse folders that the workflow may not write into, and code that is not there."""
    root = base.resolve()
    for key in ("results", "cache", "archive"):
        folder = (root / config[key]).resolve()
        inside = any(folder.is_relative_to(root / own) for own in OWN)
        if ".." in Path(config[key]).parts or folder in (root, *root.parents, Path.home()) or inside:
            raise ConfigError(
                f"config/config.yaml: {key}: {config[key]!r} is not allowed; give a folder of its own, below the project or "
                "by its absolute path"
            )
    if config["from"] == "archive" and not any((root / config["archive"]).glob("*/*.parquet")):
        raise ConfigError(
            f"config/config.yaml: archive: {config['archive']!r} holds no archive; `make archive` computes one, or leave out from: archive"
        )
    for i, folder in enumerate(config["code"]):
        if not (root / folder).is_dir():
            error = ConfigError(
                f"config/config.yaml: code.{i}: there is no folder {folder!r}; make it, or leave it out"
            )
            if faults is None:
                raise error
            faults["code", folder] = error


def _expand(entries: dict, folder: str) -> dict:
    out = {}
    for name, entry in entries.items():
        try:
            out[name] = expand_entry(entry)
        except ConfigError as error:
            raise ConfigError(f"{folder}/{name}.yaml: {error}") from None
    return out


# -- models -----------------------------------------------------------------------------------------------------------


def validate(value: object, model: str, file: str, *prefix: str) -> None:
    """Check against a model of `agglearn_workflow.config.models`."""
    try:
        models.FILES[model].model_validate(value)
    except ValidationError as error:
        keys, text = _nearest([_problem(e, value) for e in error.errors(include_url=False)])
        raise ConfigError(f"{file}: {'.'.join(map(str, [*prefix, *keys])) or 'top level'}: {text}") from None


class Problem(NamedTuple):
    """What is wrong at a place: a whole message, or what the value must be or have."""

    keys: tuple
    value: Any
    text: str = ""
    must: str = ""


def _problem(error: ErrorDetails, value: Any) -> Problem:
    """An error at its place in the file: without the names of types and of alternatives that pydantic puts between keys."""
    kind, context, last = error["type"], error.get("ctx", {}), ("", *error["loc"])[-1]
    keys: tuple = ()
    for item in error["loc"][:-1] if kind == "missing" else error["loc"]:
        items = dict(enumerate(value)) if isinstance(value, list) else value
        if isinstance(items, dict) and item in items:
            keys, value = (*keys, item), items[item]
    if kind == "refusal":
        return Problem((*keys, context["name"]) if context["name"] else keys, value, context["text"])
    if kind == "missing":
        return Problem(keys if isinstance(value, dict) else keys[:-1], value, f"key {last!r} is missing")
    if kind == "union_tag_not_found":
        return Problem(keys, value, f"key {context['discriminator']} is missing")
    if kind == "union_tag_invalid":
        return Problem((*keys, "kind"), context["tag"], must=f"be one of {context['expected_tags']}")
    if last == "[key]":
        keys, value = keys[:-1], error["input"]
    if kind == "string_pattern_mismatch":
        return Problem(keys, value, f"{value!r} is not allowed; {models.FORMS[context['pattern']]}")
    must = error["msg"].partition(" should ")[2].replace("valid dictionary", "mapping (name: value)")
    return Problem(keys, value, must=re.sub("( or instance| or object| after validation).*", "", must))


def _nearest(problems: list[Problem]) -> tuple[tuple, str]:
    """The outermost problem. Where a value has parts, an alternative that looked into them counts alone."""
    inner = {p.keys[:depth] for p in problems for depth in range(len(p.keys))}
    outer = [p for p in problems if p.text or p.keys not in inner]
    keys = min((p.keys for p in outer), key=lambda keys: (len(keys), str(keys)))
    nearest = sorted((p for p in outer if p.keys == keys), key=lambda p: not p.text)
    value = nearest[0].value
    must = " or ".join(dict.fromkeys(p.must for p in nearest))
    return keys, nearest[0].text or f"{value!r} is not allowed; it must {must}"
