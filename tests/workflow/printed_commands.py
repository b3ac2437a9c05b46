"""Every command of `make`, `snakemake` and `agglearn` that a page, a comment, a message or a template prints, as it is printed."""

import ast
import re
from collections.abc import Iterator

from readme_blocks import ROOT

TARGETS = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split()) | {".venv/.ready"}
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md", "results/README.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
COMMENTS = [ROOT / "Makefile", *sorted((ROOT / "config").rglob("*.yaml"))]
CODE = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "examples").glob("*.py"))]
TEMPLATES = [*sorted((ROOT / "src").rglob("*.html")), *sorted((ROOT / "workflow/report").glob("*.rst"))]
PROGRAM = re.compile(r"(?:\.venv/bin/)?(make|snakemake|agglearn) (?=[a-z.-])")
SPAN = re.compile(r"``([^`]+)``|`([^`]+)`|<code>([^<]+)</code>")
IN_A_MESSAGE = re.compile(
    r"\b(?:make (?:{})\b(?: [A-Z]+=(?:\"[^\"]*\"|\S+))*|agglearn data get \S+)".format("|".join(sorted(TARGETS)))
)
# What stands for an expression in a message or in a template.
VALUES = {
    "name": "maxent_table4", "scale": "smoke", "run.experiment": "maxent_table4", "dataset": "adult", "port + 1": "5001",
    "claim['experiment']": "maxent_table4",
    "e.name": "maxent_table4", 'snakemake.config["scale"]': "smoke", "snakemake.wildcards.experiment": "maxent_table4",
}  # fmt: skip


def printed() -> dict[str, str]:
    """Command → a place that prints it."""
    found = {}
    for paths, read in ((PAGES, of_page), (COMMENTS, of_comments), (CODE, of_code), (TEMPLATES, of_template)):
        for path in paths:
            for command in read(path.read_text()):
                found.setdefault(" ".join(command.split()), str(path.relative_to(ROOT)))
    return found


def of_page(text: str) -> Iterator[str]:
    """Commands of code blocks and of code within sentences."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield from of_lines(block) if language in ("", "sh") else ()
    yield from of_spans(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def of_lines(text: str) -> Iterator[str]:
    """Commands of a text with one in a line. A quoted text may go over several lines, and a comment or two spaces end one."""
    command = ""
    for line in text.replace("\\\n", " ").splitlines():
        command = f"{command}\n{line}" if command else re.split(r" #|\s{2,}(?=\S)", line.strip(), maxsplit=1)[0]
        if not PROGRAM.match(command):
            command = ""
        elif command.count("'") % 2 == 0:
            yield command
            command = ""


def of_spans(text: str) -> Iterator[str]:
    """Commands in code within sentences. `make` alone and the name of a command are none."""
    for span in SPAN.findall(text):
        command = " ".join("".join(span).split())
        if PROGRAM.match(command) and "…" not in command:
            yield command


def of_comments(text: str) -> Iterator[str]:
    comments = "\n".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
    yield from of_lines(re.sub(r"  +\(.*$", "", comments, flags=re.M))
    yield from of_spans(comments)


def of_code(text: str) -> Iterator[str]:
    """Commands in the texts of a module: in code within sentences, in a line of their own, or anywhere in a message."""
    nodes = [*ast.walk(ast.parse(text))]
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            message = "".join(str(p.value) if isinstance(p, ast.Constant) else value_of(p.value) for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            message = node.value.replace(" COMMAND ", " fit ")
        else:
            continue
        yield from of_spans(message)
        if "\n" in message:
            yield from of_lines(message)
        else:
            yield from (found.rstrip(".,;)`") for found in IN_A_MESSAGE.findall(message))


def value_of(expression: ast.expr) -> str:
    """What stands for an expression: one of VALUES, or a text that no command holds."""
    return VALUES.get(ast.unparse(expression), "<value>")


def of_template(text: str) -> Iterator[str]:
    text = re.sub(r"{% if .*? %}(.*?){% else %}(.*?){% endif %}", r"\2", text)
    text = re.sub(r"{{ (.*?) }}", lambda value: VALUES.get(value[1], "<value>"), text)
    yield from (command for command in of_spans(text) if "<value>" not in command)
