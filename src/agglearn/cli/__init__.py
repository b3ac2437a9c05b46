"""The command line. Exit status: 0 for success, 1 for wrong data, 2 for a wrong command. An error is one line.
A command is a module: its docstring, HELP, `add_options(command)` without --out and --force, and `run(args)` with its heavy imports.
"""

import argparse
import atexit
import gc
import os
import re
import sys
import warnings
from functools import cache, partial
from importlib import metadata
from types import ModuleType
from typing import Any, NoReturn

from agglearn import __version__
from agglearn.cli import aggregate, compress, cost, fit, import_tables, predict, private, schema
from agglearn.errors import AgglearnError, ConfigError
from agglearn.text import visible

COMMANDS = {
    "aggregate": aggregate, "import": import_tables, "cost": cost, "private": private, "fit": fit, "predict": predict,
    "compress": compress, "schema": schema,
}  # fmt: skip
GROUP = "agglearn.commands"  # entry points, by which the workflow adds its commands

ABOUT = """Learn a classifier from contingency tables instead of records.
`agglearn COMMAND --help` explains each command, with an example."""


class Parser(argparse.ArgumentParser):
    """Parser that reports an error in one line."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        print(f"agglearn: {_line(message)}; see `{self.prog} --help`", file=sys.stderr)
        sys.exit(2)


@cache
def commands() -> dict[str, ModuleType]:
    """Name → module of each command, those of the entry points `agglearn.commands` among them."""
    return COMMANDS | {point.name: point.load() for point in metadata.entry_points(group=GROUP)}


def parser() -> Parser:
    top = Parser(prog="agglearn", description=ABOUT)
    top.add_argument("--version", action="version", version=f"agglearn {__version__}")
    top.add_argument(
        "--completion", action=Completion, nargs=0, help="print a script that completes words in bash and zsh"
    )
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in commands().items():
        command = subparsers.add_parser(name, description=module.__doc__, help=module.HELP)
        _add_options(command, name)
        command.set_defaults(run=module.run, stopped=getattr(module, "STOPPED", "nothing was written"))
    return top


def _add_options(command: argparse.ArgumentParser, name: str) -> None:
    """Add the options of a command, with the output of those on data."""
    commands()[name].add_options(command)
    if name in COMMANDS:
        output = "file to write" if name in ("predict", "compress", "schema") else "folder to write"
        command.add_argument("--out", required=name not in ("cost", "predict", "schema"), metavar="OUT", help=output)
        command.add_argument("--force", action="store_true", help="replace OUT where it exists")


COMPLETION = """[ -n "$ZSH_VERSION" ] && autoload -U +X bashcompinit && bashcompinit
_agglearn() {{
  local words="{commands}"
  [ "$COMP_CWORD" -gt 1 ] && case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _agglearn agglearn"""


class Completion(argparse.Action):
    """Print shell functions that complete the names of commands, their options, and files."""

    def __call__(self, parser: argparse.ArgumentParser, *words: Any) -> None:
        cases = []
        for name in commands():
            _add_options(command := Parser(prog=name), name)
            options = re.findall(r"(?<=[\[( ])--?[a-z][a-z-]*", command.format_usage())
            cases.append(f'    {name}) words="{" ".join(options)}" ;;')
        print(COMPLETION.format(commands=" ".join(commands()), cases="\n".join(cases)))
        parser.exit()


def main(arguments: list[str] | None = None) -> int:
    atexit.register(gc.freeze)  # else the interpreter, as it ends, searches all modules for garbage: most of a second
    try:
        try:
            return run(sys.argv[1:] if arguments is None else list(arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def run(words: list[str]) -> int:
    """The exit status of a command line. What goes wrong is told in one line."""
    end = words.index("--") if words[:1] == ["reproduce"] and "--" in words else len(words)
    args = parser().parse_args(words[:end])
    args.snakemake = words[end + 1 :]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_warn, set())
            args.run(args)
        return 0
    except BrokenPipeError:
        raise
    except AgglearnError as error:
        return _fail(error, 2 if isinstance(error, ConfigError) else 1)
    except OSError as error:
        path = error.filename or getattr(args, "out", None) or args.command
        return _fail(f"{path}: {error.strerror or error}", 1)
    except MemoryError:
        return _fail(f"{args.command}: not enough memory; use fewer features or fewer pairs", 1)
    except KeyboardInterrupt:
        return _fail(f"stopped; {args.stopped}", 130)


def _warn(printed: set[str], message: Warning | str, *_: object, **__: object) -> None:
    line = f"agglearn: warning: {_line(message)}"
    if line not in printed:  # several fits of one command warn alike
        print(line, file=sys.stderr)
    printed.add(line)


def _fail(error: Exception | str, status: int) -> int:
    print(f"agglearn: {_line(error)}", file=sys.stderr)
    return status


def _line(text: object) -> str:
    return visible(" ".join(str(text).split()))
