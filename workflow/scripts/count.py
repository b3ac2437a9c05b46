"""Print the size of the code: lines with code (without comments, docstrings, blank lines) and lines in all, by room."""

import io
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

MACHINERY = ("src/agglearn_workflow/", "rules/", "workflow/scripts/", "Snakefile")
SURPLUS = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Number of lines that have code. Rules have the tokens of Python. A statement that is a string is a docstring."""
    lines, statement = set(), []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            if any(part.type != tokenize.STRING for part in statement):
                lines.update(n for part in statement for n in range(part.start[0], part.end[0] + 1))
            statement = []
        elif token.type not in SURPLUS:
            statement.append(token)
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
