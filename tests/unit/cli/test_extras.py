"""Every command in an environment without extras: it does its work, or names in one line the extra that it needs."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from samples import OFFLINE, ROOT

from agglearn import cli

CALLING = Path(__file__).with_name("calls_without_extras.py")
RECORDS = "\n".join(["x,z,y", *(f"{i % 7},{'abc'[i % 3]},{int(i % 7 > 2)}" for i in range(200))]) + "\n"
CELLS = "x,z,count,label_sum\n,,200,114\n0,,90,10\n1,,110,104\n,a,120,60\n,b,80,54\n"
SCHEMA = """
reviewed: true
one_row_per_person: true
label: {column: y, positive: 1, negative: 0}
features: {x: {edges: [2, 4]}, z: {values: [a, b, c]}}
"""
CALLS = {  # the extra that a call needs, and its arguments; later calls read what earlier ones write
    "aggregate": (None, "aggregate records.csv --schema schema.yaml --out tables"),
    "schema": (None, "schema draft records.csv --label y --positive 1 --out draft.yaml"),
    "import": (None, "import cells.csv --threshold 50 --out imported"),
    "cost": ("workflow", "cost records.csv --label y --epsilon 3 --splits 2 --out cost"),
    "cost by a law": (None, "cost --rows 500 --features 2 --values 4 --base-rate .3 --epsilon 3"),
    "private": ("privacy", "private tables --epsilon 1 --delta 1e-6 --out noisy"),
    "fit": (None, "fit tables --set n_sweeps=1 --out model"),
    "fit in JAX": ("networks", "fit tables --set engine=jax --set n_sweeps=1 --out model_of_jax"),
    "predict": (None, "predict model records.csv --out predictions.csv"),
    "compress": (None, "compress tables --budget 2 --out clusters.csv"),
    "reproduce": ("workflow", "reproduce --list"),
    "plan": ("workflow", "plan maxent_xor --scale smoke"),
    "archive": ("workflow", "archive"),
    "data": ("workflow", "data"),
    "cite": ("workflow", "cite results"),
    "track": ("workflow", "track --from results --to sqlite:///tracked.db"),
    "doctor": (None, "doctor"),
    "new": (None, "new method mine"),
}


def installed() -> set[str]:
    """Names of the distributions that agglearn without extras brings."""
    found, todo = {"agglearn"}, [("agglearn", ())]
    while todo:
        name, chosen = todo.pop()
        for requirement in map(Requirement, importlib.metadata.requires(name) or ()):
            mark, key = requirement.marker, canonicalize_name(requirement.name)
            needed = mark is None or any(mark.evaluate({"extra": extra}) for extra in ("", *chosen))
            if needed and key not in found:
                found.add(key)
                todo.append((requirement.name, requirement.extras))
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict:
    """Status and printed errors of each call where agglearn is installed without extras."""
    folder, kept, modules = tmp_path_factory.mktemp("bare"), installed(), importlib.metadata.packages_distributions()
    refused = [module for module, names in modules.items() if not kept & set(map(canonicalize_name, names))]
    for name, text in (("records.csv", RECORDS), ("cells.csv", CELLS), ("schema.yaml", SCHEMA)):
        (folder / name).write_text(text)
    calls = {call: arguments for call, (_, arguments) in CALLS.items()}
    command = [sys.executable, CALLING, json.dumps(refused), json.dumps(calls)]
    environment = os.environ | OFFLINE | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_command_is_called():
    assert {call.split()[0] for call in CALLS} == set(cli.commands())


@pytest.mark.parametrize("extra", ["workflow", "privacy"])
def test_the_guide_states_which_commands_need_an_extra(extra):
    text = " ".join((ROOT / "docs/commands.md").read_text().split())
    [sentence] = re.findall(rf"((?:`\w+`,? (?:and )?)+)needs? the extra `{extra}`", text)
    assert re.findall(r"\w+(?=`)", sentence) == [call for call, (needed, _) in CALLS.items() if needed == extra]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_a_command_works_or_names_its_extra(outcomes, call):
    (status, printed), extra = outcomes[call], CALLS[call][0]
    line = rf"agglearn: \w+ is not installed; install it with `pip install 'agglearn\[{extra}\]'`\n"
    assert status == (extra is not None), printed
    assert not extra or re.fullmatch(line, printed), printed
