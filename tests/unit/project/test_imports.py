"""The methods need the packages of `dependencies` and no other; what an extra brings is imported when it is used."""

import ast
import re
import subprocess
import sys
import tomllib

import pytest
from samples import ROOT

METHODS = ("maxent", "vocabulary", "collective", "proportions", "distribution", "labelsums")
LIBRARY = (*METHODS, "observations", "encoding", "evaluation", "estimator", "cli", "cli.aggregate", "registry")
OPTIONAL = (
    "snakemake", "mlflow", "matplotlib", "statsmodels", "jinja2", "pydantic", "opendp", "jax", "optax", "cvxpy",
    "casadi", "clarabel", "markdown2", "pyspark", "rdata", "skops", "sqlalchemy",
)  # fmt: skip


IN_FORKS = """
import importlib, os, sys
import numba, pandas, pyarrow.parquet, scipy.stats, sklearn.linear_model  # which all modules may load, once
for module in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        importlib.import_module(f"agglearn.{module}")
        print(module, *{name.partition(".")[0] for name in sys.modules}, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, module
"""


@pytest.mark.slow
def test_imports_load_no_optional_package():
    """Each module in a process that has imported none of the others."""
    printed = subprocess.run(
        [sys.executable, "-c", IN_FORKS, *LIBRARY], capture_output=True, text=True, check=True
    ).stdout
    loaded = {line.split()[0]: set(line.split()[1:]) for line in printed.splitlines()}
    assert set(loaded) == set(LIBRARY)
    assert all("agglearn" in packages for packages in loaded.values())
    assert not {name: packages & set(OPTIONAL) for name, packages in loaded.items() if packages & set(OPTIONAL)}


def test_the_optional_packages_here_are_those_of_the_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    kinds = ("workflow", "networks", "privacy", "generic", "spark")
    named = {line.split(">")[0] for kind in kinds for line in extras[kind]}
    assert named - {"psutil"} <= set(OPTIONAL)  # which joblib imports where it is installed


UNDOCUMENTED = {"trees._bin_mapper", "trees._predictors"}
PRIVATE = re.compile(r"(^|\.)_(?!make\b|fields\b)[a-z]|^numba\.(core|np)\b")  # a named tuple's are documented


def private_uses(text: str) -> set[str]:
    """Private modules that a module imports, and private attributes that it reads."""
    nodes = list(ast.walk(ast.parse(text)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    names |= {ast.unparse(n) for n in nodes if isinstance(n, ast.Attribute) and PRIVATE.match(n.attr)}
    return {name for name in names if PRIVATE.search(name)}


def test_private_names_of_other_packages_are_those_of_the_list():
    texts = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    defined = {name for text in texts for name in re.findall(r"(?:def |self\.|cls\.|^|: |\()(_[a-z]\w*)", text, re.M)}
    uses = {use for text in texts for use in private_uses(text) if use.rpartition(".")[2] not in defined}
    assert uses - {"os._exit"} == UNDOCUMENTED  # Python documents that one
    assert private_uses("from numba.core import cgutils") == {"numba.core"}
