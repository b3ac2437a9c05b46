"""Pages of docs/: links that resolve, every public name with every parameter, every key, every experiment and claim."""

import ast
import importlib
import inspect
import os
import pydoc
import re
import shutil
import subprocess
import sys
import zlib
from fnmatch import fnmatch
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from forks import ForkServer
from samples import ROOT, shipped_config

from agglearn.cli import commands
from agglearn.encoding import Schema
from agglearn_workflow.config.loading import load
from agglearn_workflow.site.pages import MARK

sys.path.insert(0, str(ROOT / "docs/_ext"))
import configuration
import docstrings
import links

DOCS = sorted((ROOT / "docs").glob("*.md"))
MARKDOWN = [*DOCS, *sorted(ROOT.glob("*.md"))]
PAPERS = yaml.safe_load((ROOT / "config/references.yaml").read_text())["papers"]
PUBLIC = [
    f"{'.'.join(path.relative_to(ROOT / 'src').with_suffix('').parts).removesuffix('.__init__')}.{name}"
    for path in sorted((ROOT / "src/agglearn").rglob("*.py"))
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    for name in ast.literal_eval(node.value)
]
FOLDERS = "|".join(path.parent.name for path in (ROOT / "src/agglearn").glob("*/__init__.py"))


def named(path: str):
    """The object of a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


# -- Markdown -----------------------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """Anchors of a page's headings, as code hosts and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_relative_link_resolves():
    checked = 0
    for page in MARKDOWN:
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if urlsplit(target).scheme:
                continue
            path, _, anchor = unquote(target).partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(file), f"{page.name}: {target}"
            checked += 1
    assert checked > 80


def written(page: Path) -> set[str]:
    """Everything that a page has as inline code."""
    return set(re.findall(r"`([^`\n]+)`", page.read_text()))


@pytest.mark.parametrize("source", PAPERS)
def test_a_source_names_its_experiments_and_claims(source):
    config, code = shipped_config(), written(ROOT / f"docs/{source}.md")
    names = [n for kind in ("experiments", "claims") for n, entry in config[kind].items() if entry["source"] == source]
    assert names
    missing = [name for name in names if not any(fnmatch(name, pattern) for pattern in code)]
    assert not missing, f"docs/{source}.md does not name {', '.join(missing)}"


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda p: p.name)
def test_modules_and_names_in_code_exist(page):
    for code in written(page):
        if path := re.fullmatch(rf"(?:agglearn\.|(?=(?:{FOLDERS})\.))(\w+(?:\.\w+)*)(?:\(.*)?", code):
            assert pydoc.locate(f"agglearn.{path[1]}") is not None, f"{page.name}: {code}"
        elif re.fullmatch(r"[\w/]+\.py", code):
            assert (ROOT / code).exists() or any(map(f"/{code}".__eq__, ends(code))), f"{page.name}: {code}"


def ends(code):
    """The last names of each path below src and tests, as many as `code` has. Other tests may remove files meanwhile."""
    for base in ("src", "tests"):
        for folder, _, names in os.walk(ROOT / base):
            for name in names:
                yield f"{folder}/{name}"[-len(code) - 1 :]


# -- API ------------------------------------------------------------------------------------------------------------------


def has_parameters(target) -> bool:
    """Whether a public name is a function or class of this package, not an exception."""
    return inspect.isroutine(target) or (inspect.isclass(target) and not issubclass(target, BaseException))


@pytest.mark.parametrize("path", [p for p in PUBLIC if has_parameters(named(p))])
def test_a_page_lists_every_parameter(path):
    target = named(path)
    lines = (inspect.getdoc(target) or "").splitlines()
    listed = "\n".join(lines).partition("\nParameters\n----------\n")[2].partition("\n----")[0]
    shown = {n for line in listed.splitlines() if not line.startswith(" ") for n in line.split(" : ")[0].split(", ")}
    assert set(inspect.signature(target).parameters) <= {name.lstrip("*") for name in shown}


def test_the_name_of_a_command_is_no_link_to_a_function():
    """`aggregate` in a sentence is `agglearn aggregate`, not the function of `agglearn.spark`."""
    names = links.names_in_code()
    assert not commands().keys() & names.keys()
    assert names["spark.aggregate"] == "agglearn.spark.aggregate"


def test_names_of_other_projects_exist():
    for path in docstrings.EXTERNAL.values():
        assert named(path)
        assert links.address(path).startswith("https://")
        assert links.address(path).endswith(f"{path}.html") or path == links.RANDOM[0]
    assert links.address("agglearn.maxent.MaxEntClassifier") is None


# -- configuration ----------------------------------------------------------------------------------------------------------


def nodes_of(node, place=""):
    """(place, value) of everything in a schema."""
    yield place, node
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield from nodes_of(value, f"{place}.{key}")


@pytest.mark.parametrize("path", sorted(configuration.SCHEMAS.glob("*.yaml")), ids=lambda p: p.stem)
def test_the_reference_has_every_key_of_a_schema(path):
    schema = yaml.safe_load(path.read_text())
    keys = {key for _, node in nodes_of(schema) if isinstance(node, dict) for key in node.get("properties", {})}
    rows = list(configuration.rows(schema, schema, "", ()))
    shown = {part for key, *_ in rows for part in re.split(r"[.\[\]]+", key)}
    conditions = {"kind", "x", "bound", "reference"}  # named again where a condition forbids them
    assert keys - conditions <= shown
    assert all(value is not None for _, value in nodes_of(schema)), "a comma in a description without quotes"


def test_the_page_has_every_schema_and_task():
    text = (ROOT / "docs/configuration.md").read_text()
    for path in configuration.SCHEMAS.glob("*.yaml"):
        assert f"{{schema-keys}} {path.name.partition('.')[0]}\n" in text
    tasks = importlib.import_module("agglearn.tasks")
    names = [name for name in tasks.__all__ if issubclass(getattr(tasks, name), tasks.Task) and name != "Task"]
    for kind in ("observation-keys", "task-measures"):
        assert [name for name in names if f"{{{kind}}} {name}\n" not in text] == []


def test_the_page_has_every_command():
    text = (ROOT / "docs/commands.md").read_text()
    helps = re.findall(r"\{command-help\} (\w+)", text)
    assert helps == [*dict.fromkeys(re.findall(r"## agglearn (\w+)", text))]
    assert set(helps) == set(commands())


# -- the build ------------------------------------------------------------------------------------------------------------


def links_and_anchors(path: Path) -> tuple[set[str], set[str]]:
    tags = re.findall(r"<[a-z][^>]*>", path.read_text())
    found = [{unescape(value) for tag in tags for value in re.findall(f' (?:{names})="([^"]+)"', tag) if tag.startswith(kind)}
             for kind, names in (("<a ", "href"), ("<", "id|name"))]  # fmt: skip
    return found[0], found[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pages, without the results of the examples and without verdicts."""
    base = tmp_path_factory.mktemp("project")
    for path in ROOT.glob("[!.]*"):
        if path.name == "docs":  # where sources of pages are written into
            shutil.copytree(path, base / "docs", ignore=shutil.ignore_patterns("api", "gallery"))
        elif path.is_dir():
            (base / path.name).symlink_to(path)
        else:
            shutil.copy(path, base)
    out, how = base / "built/docs", "-b html -q -W --keep-going -D plot_gallery=False -D reproduced_verdicts=0"
    command = [sys.executable, "-m", "sphinx", *how.split(), base / "docs", out]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return out


@pytest.mark.slow
def test_pages_are_built_without_a_warning_and_their_links_resolve(built):
    pages = {path: links_and_anchors(path) for path in built.rglob("*.html") if "_static" not in path.parts}
    assert len(pages) > len(PUBLIC)
    site = (built / "../site").resolve()
    for path, (found, _) in pages.items():
        for link in found:
            parts = urlsplit(link)
            file = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if parts.scheme or file.is_relative_to(site):
                continue
            assert file.exists(), f"{path.relative_to(built)}: {link}"
            assert not parts.fragment or file not in pages or unquote(parts.fragment) in pages[file][1], link


@pytest.mark.slow
def test_links_to_names_work(built):
    inventory = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    names = {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}
    assert len(PUBLIC) > 100
    assert set(PUBLIC) <= names
    maxent, name = (built / "maxent.html").read_text(), "agglearn.maxent.MaxEntClassifier"
    for address in (
        f"api/{name}.html#{name}",
        "../site/maxent.html#maxent_table4",
        "../site/maxent.html#claim-maxent_near_logistic",
    ):
        assert f'href="{address}"' in maxent
    pages = "".join(path.read_text() for path in (built / "api").glob("agglearn.observations.*.html"))
    assert "https://pandas.pydata.org/docs/reference/api/pandas.DataFrame.html" in pages


@pytest.mark.slow
def test_marks_are_not_shown(built):
    for page in DOCS:
        if marks := MARK.findall(page.read_text()):
            html = (built / f"{page.stem}.html").read_text()
            assert "&lt;!--" not in html, page.name
            assert "<!-- " + marks[0][0] not in html, page.name


# -- code -----------------------------------------------------------------------------------------------------------------


def blocks(page: Path, language: str) -> list[str]:
    """Code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def library():
    """A process that has imported the packages with public names."""
    packages = sorted({path.rpartition(".")[0] for path in PUBLIC})
    return ForkServer(*packages, environ=os.environ | {"PYTHONPATH": str(ROOT / "src")})


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in DOCS if blocks(p, "python")], ids=lambda p: p.stem)
def test_python_on_a_page_runs(page, library, tmp_path):
    if page.stem == "scaling":
        pytest.importorskip("pyspark")
    printed = tmp_path / "printed.txt"
    assert library.run("\n".join(blocks(page, "python")), tmp_path, printed) == 0, printed.read_text()


@pytest.mark.slow
def test_yaml_on_a_page_is_what_the_program_reads():
    texts = blocks(ROOT / "docs/extending.md", "yaml")
    entry, *others = (yaml.safe_load(re.sub(r"\b([0-9a-f]{4})…", lambda m: m[1] * 16, text)) for text in texts)
    assert len(others) == 2
    for part in (entry, *others):
        config = load(ROOT, {"datasets": {"mine": entry | {"files": part["files"]}}})
        assert config["datasets"]["mine"]["files"]
    [schema] = blocks(ROOT / "docs/privacy.md", "yaml")
    assert Schema.parse(schema).label == "y"
