"""Write a file that runs as it is, and that you go on from.

examples:
  agglearn new experiment mine
  agglearn new dataset survey --csv data/survey.csv --label bought --positive yes
  agglearn new method nearest

reads   the head of the CSV file of a data set.
writes  config/experiments/NAME.yaml, config/datasets/NAME.yaml or NAME.py in the current folder, and prints what comes next.
"""

import argparse
import json
import re
from pathlib import Path

from agglearn_workflow.project import TEMPLATES, project_files

HELP = "write a method, a data set or an experiment to begin with"
NEXT = {
    "experiment": "run it: agglearn reproduce {name} --scale smoke",
    "dataset": "name it in an experiment (datasets: {{{name}: {{}}}}), or try it: agglearn reproduce maxent_table4 "
    "--set maxent_table4.datasets='{{adult: null, bank: null, {name}: {{}}}}'",
    "method": "run it: python {name}.py; in an experiment: methods: {{{name}: {{class: {name}.{title}, observe: tables}}}}, "
    "with code: [.] in config/config.yaml",
}


def add_options(command: argparse.ArgumentParser) -> None:
    kinds = command.add_subparsers(dest="kind", required=True, metavar="KIND")
    for kind in NEXT:
        options = kinds.add_parser(kind, help=f"the file of a new {kind.replace('dataset', 'data set')}")
        options.add_argument("name", metavar="NAME", help="small letters, digits and _")
        if kind == "dataset":
            options.add_argument("--csv", required=True, metavar="FILE", help="your records")
            options.add_argument("--label", required=True, metavar="COLUMN", help="column of the label")
            options.add_argument("--positive", default="1", metavar="VALUE", help="value that counts as 1 (default: 1)")


def run(args: argparse.Namespace) -> None:
    import pandas as pd

    from agglearn.encoding.columns import present
    from agglearn.errors import ConfigError
    from agglearn.storage import atomic_file

    if not re.fullmatch(r"[a-z][a-z0-9_]*", args.name):
        raise ConfigError(f"new: {args.name!r} is no name; use small letters, digits and _")
    title = args.name.title().replace("_", "")
    if args.kind == "experiment":
        path, words = Path(f"config/experiments/{args.name}.yaml"), {"mine": args.name, "My comparison": title}
        template = project_files() / "config/experiments/_template.yaml"
    elif args.kind == "dataset":
        path, template = Path(f"config/datasets/{args.name}.yaml"), TEMPLATES / "new_dataset.yaml"
        present([args.label], pd.read_csv(args.csv, nrows=0).columns)
        words = {"NAME": args.name, "FILE": Path(args.csv).name, "PATH": args.csv}
        words |= {"COLUMN": args.label, "POSITIVE": args.positive}
        words = {word: json.dumps(value) for word, value in words.items()}
    else:
        path, template = Path(f"{args.name}.py"), TEMPLATES / "new_method.py"
        words = {"NAME": args.name, "NewMethod": title}
    if path.exists():
        raise ConfigError(f"{path}: is there already; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as draft:
        draft.write_text(re.sub("|".join(words), lambda word: words[word[0]], template.read_text()))
    print(f"{path}\n{NEXT[args.kind].format(name=args.name, title=title)}")
