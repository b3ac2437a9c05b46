"""Print the size of the code: lines with code (without comments, docstrings, blank lines) and lines in all, by room."""

import ast
import io
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

MACHINERY = ("src/agglearn_workflow/", "rules/", "workflow/scripts/", "Snakefile")
SURPLUS = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str) -> int:
    """Number of lines that have code. Rules are read by their tokens, which are those of Python."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SURPLUS:
            lines.update(range(token.start[0], token.end[0] + 1))
    try:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED)]
    except SyntaxError:  # a file of rules
        nodes = []
    for node in nodes:
        if ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def main() -> None:
    """Print the sizes of all rooms, of `src/` and of the machinery."""
    listed = subprocess.run(
        ["git", "ls-files", "src/*.py", "rules", "Snakefile", "workflow/peers/*.py", "workflow/scripts/*.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    code, total = Counter(), Counter()
    for name in listed.stdout.split():
        text = Path(name).read_text()
        rooms = ["/".join(Path(name).parts[:3])] + ["src/"] * name.startswith("src/")
        for room in rooms + ["machinery"] * name.startswith(MACHINERY):
            code[room] += code_lines(text)
            total[room] += text.count("\n")
    for room in sorted(code):
        print(f"{room:40} {code[room]:7,} {total[room]:7,}")


if __name__ == "__main__":
    main()
