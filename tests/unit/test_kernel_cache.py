"""Compiled functions follow the code of all modules that they are compiled from."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agglearn import kernel_cache

PACKAGE = kernel_cache.PACKAGE

# A number of a function that `maxent.kernels` compiles from `maxent.simd`.
DRAW = """
import numpy as np
from agglearn.maxent.kernels import draw
arrays = np.zeros(32, np.float32), np.linspace(.05, .95, 8).astype(np.float32), np.zeros((3, 8), np.float32)
logits, u, drawn = (array.ctypes.data for array in arrays)
draw(logits, 0, 4, 0, u, u, drawn)
print(arrays[2][2] @ np.arange(8))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package, with compiled modules but without compiled kernels."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / "agglearn", ignore=shutil.ignore_patterns("agglearn-*"))
    return folder


def run(folder: Path, code: str, **environ: str) -> str:
    """What a process prints that runs the package in `folder`."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    call = [sys.executable, "-c", code]
    process = subprocess.run(
        call, env=clean | {"PYTHONPATH": str(folder)} | environ, capture_output=True, text=True, check=True
    )
    return process.stdout.strip()


@pytest.mark.slow
def test_an_edit_in_a_second_module_changes_the_number(copy, tmp_path):
    path = copy / "agglearn/maxent/simd.py"
    text, cache = path.read_text(), {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    before = run(copy, DRAW, **cache)
    path.write_text(text.replace('fcmp_ordered("<=", a, b)', 'fcmp_ordered(">", a, b)'))
    after = run(copy, DRAW, **cache)
    assert after != before
    path.write_text(text)
    assert run(copy, DRAW, **cache) == before


def test_an_edit_of_any_compiled_module_changes_the_name_of_the_folder(copy, monkeypatch):
    monkeypatch.setattr(kernel_cache, "PACKAGE", copy / "agglearn")
    texts = {path: path.read_text() for path in (copy / "agglearn").rglob("*.py")}
    imports = ("import numba", "from numba", "from llvmlite")
    modules = [p for p, text in texts.items() if any(line.strip().startswith(imports) for line in text.splitlines())]
    assert {"simd", "kernels"} < {path.stem for path in modules}
    before = kernel_cache.today()
    for path in modules:
        path.write_text(texts[path] + "# edited\n")
        assert kernel_cache.today() != before, path
        path.write_text(texts[path])
    assert kernel_cache.today() == before


def test_every_process_uses_one_folder(copy, tmp_path):
    code = (
        "import os, subprocess, sys; import agglearn; print(os.environ['NUMBA_CACHE_DIR'], flush=True)\n"
        "if len(sys.argv) == 1: subprocess.run([sys.executable, '-c', sys.orig_argv[2], 'child'])"
    )
    for environ, base in ({}, copy / "agglearn/__pycache__"), ({"NUMBA_CACHE_DIR": str(tmp_path)}, tmp_path):
        first, second = run(copy, code, **environ).split()
        assert first == second
        assert Path(first).parent == base


def test_a_package_that_cannot_be_written_to_uses_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kernel_cache.default_base() == tmp_path / "agglearn"


def test_several_modules_of_users_that_are_compiled_count(tmp_path, monkeypatch):
    """Numba notices an edit of one, and then nothing of the package is compiled again."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    inner = tmp_path / "code/inner"
    inner.mkdir(parents=True)
    (inner / "__init__.py").write_text("")
    names = [kernel_cache.today()]
    states = ("one", "x = 1\n"), ("one", "import numba\n"), ("two", "import numba\n"), ("two", "import numba, math\n")
    for module, text in states:
        (inner / f"{module}.py").write_text(text)
        kernel_cache.choose([tmp_path / "code"])
        chosen = Path(os.environ["NUMBA_CACHE_DIR"])
        assert chosen.parent == tmp_path
        names.append(chosen.name)
    assert names[0] == names[1] == names[2]
    assert len({*names[2:]}) == 3
    kernel_cache.choose()
    assert Path(os.environ["NUMBA_CACHE_DIR"]).name == names[-1]  # what this process starts keeps it


def compiled(tree: ast.Module) -> list[ast.FunctionDef]:
    """Functions of a module that numba compiles."""
    words = ("njit", "jit", "intrinsic", "overload", "vectorize")
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    return [f for f in functions if any(w in ast.unparse(d) for d in f.decorator_list for w in words)]


def test_compiled_functions_use_nothing_that_the_folder_name_leaves_out():
    """Constants and functions of our other modules would be compiled in, and their edits would be missed."""
    modules = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts): p for p in
               kernel_cache.compiled_modules(PACKAGE)}  # fmt: skip
    assert len(modules) > 10
    for module, path in modules.items():
        tree = ast.parse(path.read_text())
        ours = {
            alias.asname or alias.name: node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agglearn")
            for alias in node.names
        }
        for function in compiled(tree):
            used = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} & set(ours)
            assert {ours[name] for name in used} <= set(modules), f"{module}.{function.name}"
