"""Configuration: files read, laid over each other, checked against schemas and against the code, before anything runs.

Every error names the file, the key and what is allowed there.
"""

import difflib
import functools
import re
from pathlib import Path

import jsonschema
import yaml

from agglearn import source
from agglearn.entries import expanded
from agglearn.errors import ConfigError

DATASET = "agglearn.datasets.base.Dataset"
SIMULATED = "agglearn.datasets.base.Simulated"
ESTIMATOR = "agglearn.estimator.Estimator"
OBSERVATION = "agglearn.observations.base.Observation"
TASK = "agglearn.tasks.base.Task"
RULES = "agglearn.datasets.builds"
UNIVERSAL_MEASURES = {"seconds"}


def load(base, overrides: dict | None = None) -> dict:
    """The effective configuration.

    Parameters
    ----------
    base : the project's root, which holds `config/` and `workflow/schemas/`.
    overrides : what the command line or `--configfile` says; laid over the files key by key. May also hold
        `datasets`, `experiments` and `claims`.

    Raises
    ------
    ConfigError : in one line, with the file and the key.
    """
    base = Path(base)
    overrides = dict(overrides or {})
    layered = {k: overrides.pop(k) for k in ("datasets", "experiments", "claims") if k in overrides}
    config = merged(read_mapping(base / "config/config.yaml"), overrides)
    validate(config, base, "config", "config/config.yaml")
    for folder in config["code"]:
        source.add_root(base / folder)
    files = {p.stem: read_yaml(p) for p in sorted((base / "config/experiments").glob("*.yaml"))}
    raw = merged(files, layered.get("experiments", {}))
    config["experiments"] = {name: extended(name, raw, "config/experiments") for name in raw}
    config["datasets"] = _datasets(base, layered.get("datasets", {}))
    config["references"] = read_mapping(base / "config/references.yaml")
    validate(config["references"], base, "references", "config/references.yaml")
    claims = merged(read_mapping(base / "config/claims.yaml"), layered.get("claims", {}))
    config["claims"] = {k: v for k, v in claims.items() if v is not None}
    for name, entry in config["datasets"].items():
        validate(entry, base, "dataset", f"config/datasets/{name}.yaml")
        _check_dataset(name, entry)
    for name, e in config["experiments"].items():
        file = f"config/experiments/{name}.yaml"
        validate(e, base, "experiment", file)
        config["experiments"][name] = e = {**DEFAULTS, **e}
        _check_experiment(e, file, config["datasets"])
    for name, claim in config["claims"].items():
        validate(claim, base, "claim", "config/claims.yaml", name)
        check_name(claim["experiment"], config["experiments"], "config/claims.yaml", f"{name}.experiment")
    for key in ("run", "show"):
        for name in [] if config[key] == "all" else config[key]:
            check_name(name, config["experiments"], "config/config.yaml", key)
    return config


FOR_READERS = ("title", "licence", "citation", "doi", "homepage", "note")  # in a data set's entry
DEFAULTS = {"batch_by": ["dataset", "method"], "time_limit": 600, "keep_model": "none", "timed": False, "reported": []}


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same safe subset, faster


def read_mapping(path) -> dict:
    """A YAML file that holds a mapping, or nothing."""
    content = read_yaml(path)
    if content is not None and not isinstance(content, dict):
        raise ConfigError(f"{path}: top level: must be a mapping (name: value), not a {type(content).__name__}")
    return content or {}


def read_yaml(path):
    """A YAML file; an error of syntax is one line with the place."""
    try:
        return yaml.load(path.read_text(), LOADER)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; restore it from the repository") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{place}: not valid YAML: {getattr(error, 'problem', error)}") from None


def typed(value):
    """Values of `--config` with numbers, booleans and nulls in them: Snakemake hands nested ones over as text."""
    if isinstance(value, dict):
        return {k: typed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [typed(v) for v in value]
    if not isinstance(value, str):
        return value
    try:
        found = yaml.load(value, LOADER)
        return found if found is None or isinstance(found, int | float) else float(value)
    except (ValueError, yaml.YAMLError):
        return value


def merged(under, over):
    """`over` laid over `under`, mapping by mapping; a null in `over` removes the key."""
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return over
    out = {k: v for k, v in under.items() if not (k in over and over[k] is None)}
    for key, value in over.items():
        if value is not None:
            out[key] = merged(out[key], value) if key in out else value
    return out


def extended(name: str, raw: dict, folder: str, seen=()):
    """An experiment or data set with what it `extends` under it."""
    e = raw[name]
    if not isinstance(e, dict) or "extends" not in e:
        return e
    file = f"{folder}/{name}.yaml"
    check_name(e["extends"], raw, file, "extends")
    if name in seen:
        raise ConfigError(f"{file}: extends: goes in a circle: {' → '.join([*seen, name])}")
    return merged(extended(e["extends"], raw, folder, (*seen, name)), {k: v for k, v in e.items() if k != "extends"})


def essence(entry: dict) -> dict:
    """What of a data set's entry its data depend on: all but what is only for readers."""
    kept = {key: value for key, value in entry.items() if key not in FOR_READERS}
    if "files" in kept:
        kept["files"] = {name: essence(spec) for name, spec in kept["files"].items()}
    return kept


def _datasets(base: Path, over) -> dict:
    """Entries of `config/datasets/` with `over` laid over them; every file stands by itself."""
    folder = "config/datasets"
    files = {p.stem: read_yaml(p) for p in sorted((base / folder).glob("*.yaml"))}
    over = over if isinstance(over, dict) else {}
    raw = merged(_expanded(files, folder), _expanded(over, folder))
    for name in raw:
        if not re.fullmatch("[a-z0-9_]+", name):
            raise ConfigError(f"{folder}: {name!r} is not allowed as a name; use small letters, digits and _")
    return {name: extended(name, raw, folder) for name in raw}


def _expanded(entries: dict, folder: str) -> dict:
    try:
        return {name: expanded(entry) for name, entry in entries.items()}
    except ConfigError as error:
        raise ConfigError(f"{folder}: {error}") from None


# -- schemas ----------------------------------------------------------------------------------------------------------


def validate(value, base: Path, schema: str, file: str, *where: str) -> None:
    """Check against `workflow/schemas/<schema>.schema.yaml`."""
    validator = _validator(base / f"workflow/schemas/{schema}.schema.yaml")
    errors = sorted(validator.iter_errors(value), key=lambda e: (len(e.path), str(e.path)))
    if errors:
        error = jsonschema.exceptions.best_match(errors) if len(errors[0].path) else errors[0]
        raise ConfigError(f"{file}: {_say(error, where)}")


@functools.cache
def _validator(path: Path) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(read_yaml(path))


def _say(error, where) -> str:
    place = ".".join(map(str, [*where, *error.absolute_path])) or "top level"
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        wrong = sorted(set(error.instance) - set(allowed))[0]
        return f"{place}: unknown key {wrong!r}{_meant(wrong, allowed)}; allowed: {', '.join(allowed)}"
    if error.validator == "enum":
        return f"{place}: {error.instance!r} is not allowed; one of {', '.join(map(str, error.validator_value))}"
    if error.validator == "required":
        lacking = next(k for k in error.validator_value if k not in error.instance)
        return f"{place}: key {lacking!r} is missing"
    if error.validator == "pattern":
        allowed = error.schema.get("description", f"it has the form {error.validator_value}")
        return f"{place}: {error.instance!r} is not allowed; {allowed}"
    if error.validator == "oneOf":
        return (
            f"{place}: {error.instance!r} is not allowed; it must be {' or '.join(map(_kind, error.validator_value))}"
        )
    return f"{place}: {error.message}"


def _kind(option: dict) -> str:
    """One alternative of a schema in words."""
    if "$ref" in option:
        return f"a list of {option['$ref'].rpartition('/')[2]}"
    if "const" in option:
        return repr(option["const"])
    return {"array": "a list", "object": "a mapping", "number": "a number"}.get(option["type"], option["type"])


def _meant(wrong: str, known) -> str:
    close = difflib.get_close_matches(str(wrong), list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check_name(name, known, file: str, place: str) -> None:
    """Raise ConfigError, with the closest of the known names, where a name is none of them."""
    if name not in known:
        raise ConfigError(
            f"{file}: {place}: {name!r} is not known{_meant(str(name), known)}; there are {', '.join(sorted(known))}"
        )


# -- against the code -------------------------------------------------------------------------------------------------


def _class(dotted: str, base: str, file: str, place: str) -> None:
    kind = base.rpartition(".")[2]
    if not source.find_class(dotted):
        raise ConfigError(
            f"{file}: {place}: there is no class {dotted!r}; give the dotted path of a subclass of {base}"
        )
    if not source.is_subclass(dotted, base):
        raise ConfigError(f"{file}: {place}: {dotted!r} is not a subclass of {kind} ({base})")


def _parameters(dotted: str, given, file: str, place: str) -> None:
    _allowed(dotted, source.parameters(dotted), given, file, place)


def _allowed(dotted: str, allowed: set[str] | None, given, file: str, place: str) -> None:
    for name in given or {}:
        if allowed is not None and name not in allowed:
            raise ConfigError(
                f"{file}: {place}: {dotted} takes no {name!r}{_meant(name, allowed)}; it takes {', '.join(sorted(allowed))}"
            )


def _check_dataset(name: str, entry: dict) -> None:
    file = f"config/datasets/{name}.yaml"
    _class(entry["class"], DATASET, file, "class")
    _parameters(entry["class"], entry.get("params"), file, "params")
    for member, origin in entry.get("files", {}).items():
        for i, route in enumerate(origin.get("routes", [])):
            if route["kind"] == "build":
                _rule(route, file, f"files.{member}.routes.{i}")


def _rule(route: dict, file: str, place: str) -> None:
    """The function of a build exists and takes the parameters."""
    dotted = route["function"]
    definition = source.find_function(dotted)
    if not definition:
        raise ConfigError(f"{file}: {place}.function: there is no function {dotted!r}; there are those of {RULES}")
    allowed = source.arguments(definition[1], without={"inputs", "out"})
    _allowed(dotted, allowed, route.get("params"), file, f"{place}.params")
    for name, given in route["inputs"].items():
        sources = [
            r for r in given.get("routes", []) if r["kind"] in ("package", "build") or {"member", "sha256"} & set(r)
        ]
        if given.get("stream") and (sources or given["sha256"] != "unknown"):
            raise ConfigError(
                f"{file}: {place}.inputs.{name}: a stream comes from a mirror or URL as it is; "
                f"it takes `sha256: unknown`, and routes without member and sha256"
            )


def _check_experiment(e: dict, file: str, datasets: dict) -> None:
    _class(e["task"], TASK, file, "task")
    for name in e["datasets"]:
        check_name(name, datasets, file, "datasets")
    for name, spec in e["observe"].items():
        _class(spec["type"], OBSERVATION, file, f"observe.{name}.type")
    for name, m in e["methods"].items():
        _class(m["class"], ESTIMATOR, file, f"methods.{name}.class")
        _parameters(m["class"], m.get("params"), file, f"methods.{name}.params")
        check_name(m["observe"], e["observe"], file, f"methods.{name}.observe")
    measures = {*source.constant(e["task"], "MEASURES"), *UNIVERSAL_MEASURES}
    for name in e["measures"]:
        check_name(name, measures, file, "measures")
    if "baseline" in e:
        check_name(e["baseline"], e["methods"], file, "baseline")
    for i, row in enumerate(e["reported"]):
        check_name(row["dataset"], datasets, file, f"reported.{i}.dataset")  # an ablation may leave a data set out
        check_name(row["method"], e["methods"], file, f"reported.{i}.method")
        check_name(row["measure"], measures, file, f"reported.{i}.measure")
