"""Every kind of key of the shipped YAML files, misspelt in turn, is refused in one line that names the file and the key.

Exempt are names that an author chooses freely: of methods and observations, of claims, of files and build inputs, of columns.
What refers to such a name elsewhere is refused where it is misspelt, see `test_refused_settings.py`.
"""

import copy
import functools
import re

import pytest
from samples import ROOT, shipped_config

from agglearn.errors import ConfigError
from agglearn_workflow.config import checks, models
from agglearn_workflow.config.entries import expand_entry
from agglearn_workflow.config.forms import validate
from agglearn_workflow.config.loading import read_yaml, resolve_extends

CONFIG = ROOT / "config"
TESTS = {path.stem for folder in ("ablations", "experiments") for path in (CONFIG / folder).glob("*.yaml")}

# keys of an entry whose own keys are names: of files, of inputs, of parameters, of columns
FREE = tuple((name,) for name in ("files", "inputs", "scales", "log2", "rare", "hashed", "domains"))


def names(folder: str) -> list[str]:
    return sorted(p.stem for p in (CONFIG / folder).glob("*.yaml"))


def paths(value, at=()):
    """The path of every key at every depth."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        if isinstance(value, dict):
            yield (*at, key)
        yield from paths(part, (*at, key))


def misspelt(content: dict, path: tuple):
    """(the content with the last key of the path misspelt, the wrong key)."""
    content = copy.deepcopy(content)
    *before, key = path
    inner = content
    for step in before:
        inner = inner[step]
    wrong = f"{key}{str(key)[-1]}"
    items = [(wrong if k == key else k, v) for k, v in inner.items()]
    inner.clear()
    inner.update(items)
    return content, wrong


def accepted(content: dict, check, free=lambda path: False, file: str = "", met: set | None = None) -> list[str]:
    """Keys of the content that may be misspelt, or whose refusal does not name them. `met`: kinds of keys that were tried before."""
    out = []
    for path in paths(content):
        kind = (path[0], len(path), path[-1])
        if free(path) or (met is not None and kind in met):
            continue
        if met is not None:
            met.add(kind)
        changed, wrong = misspelt(content, path)
        try:
            check(changed)
            out.append(".".join(map(str, path)))
        except ConfigError as error:
            line = str(error)
            # a key that is needed is named as missing
            named = wrong in line or re.search(rf"['`{{]{path[-1]}['`}}]", line)
            if not (named and file in line and "\n" not in line):
                out.append(f"{'.'.join(map(str, path))}: {line}")
    return out


def shortened(value):
    """An entry with few of the files that a pattern stands for: two, and those whose variables are others."""
    if isinstance(value, list):
        return [shortened(v) for v in value]
    if not isinstance(value, dict):
        return value
    out = {k: shortened(v) for k, v in value.items()}
    each = out.get("each")
    if isinstance(each, dict):
        out["each"] = {k: v[:2] for k, v in each.items()}
    if isinstance(each, list):
        out["each"] = each[:2] + [row for row in each[2:] if set(row) != set(each[0])]
    return out


def free_in_experiments(path) -> bool:
    return (len(path) == 2 and path[0] in ("methods", "observe", "words")) or (
        len(path) > 2 and path[-2] in ("hashed", "ranges", "highlight")
    )


@pytest.mark.slow
def test_experiments():
    files = {name: read_yaml(CONFIG / f"experiments/{name}.yaml") for name in names("experiments")}

    def check(content, name):
        e = resolve_extends(name, {**files, name: content}, "config/experiments")
        checks.check_experiment(e, name, shipped_config()["datasets"])

    met = set()
    for name, content in files.items():
        check(content, name)
        where = f"config/experiments/{name}.yaml"
        assert accepted(content, lambda c, n=name: check(c, n), free_in_experiments, where, met) == []


@pytest.mark.slow
def test_datasets():
    entries, met = {n: read_yaml(CONFIG / f"datasets/{n}.yaml") for n in names("datasets")}, set()

    def check(content, name, needed):
        raw = {n: shortened(content if n == name else entries[n]) for n in needed}
        whole = {n: expand_entry(entry, f"config/datasets/{n}.yaml") for n, entry in raw.items()}
        checks.check_dataset(resolve_extends(name, whole, "config/datasets"), name, shipped_config()["datasets"])

    for name, entry in entries.items():
        needed = {name}
        while (parents := {entries[n].get("extends", n) for n in needed}) - needed:
            needed |= parents
        check(entry, name, needed)
        tried = accepted(
            entry, lambda c, n=name, m=needed: check(c, n, m), lambda p: p[-2:-1] in FREE, "config/datasets", met
        )
        assert tried == []


@pytest.mark.slow
def test_claims():
    shipped = shipped_config()
    claims, met = read_yaml(CONFIG / "claims.yaml"), set()
    named = {n: checks.names_in(e) for n, e in shipped["experiments"].items()}
    for name, claim in claims.items():
        check = functools.partial(checks.check_claim, name=name, config=shipped, names=named, tests=TESTS)
        assert accepted(claim, check, file="config/claims.yaml", met=met) == []


def test_the_configuration_and_the_references():
    for file, free in (("config", lambda p: False), ("references", lambda p: len(p) == 2)):
        content = read_yaml(CONFIG / f"{file}.yaml")
        check = functools.partial(validate, model=models.FILES[file], file=f"config/{file}.yaml")
        assert accepted(content, check, free, f"{file}.yaml") == []
