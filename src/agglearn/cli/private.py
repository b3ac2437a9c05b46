"""Add noise to the tables of `agglearn aggregate`, so that they satisfy (epsilon, delta)-differential privacy as a whole.
Noise is drawn once, by OpenDP (extra `privacy`), from the system's secret randomness. A second run draws other noise, and both together
satisfy a weaker guarantee. Training on OUT spends no further budget.

example:
  agglearn private tables/ --epsilon 1 --delta 1e-6 --out noisy/

reads   the folder TABLES.
writes  the folder OUT: the same files, every cell with noise (empty ones too, so that all cells are written), mechanism,
        scale, epsilon, delta and adjacency in tables.json. It appears when complete, or not at all.

Noise protects counts. Bins and categories stay as they are. TABLES must have been aggregated by a declared schema
(`agglearn aggregate --schema`), which reveals nothing about records. Others are refused unless --accept-learned-schema: OUT
then states what is not protected, and is not called private. With --adjacency label, counts are public and stay exact, and
only label sums have noise.

All records of one unit are protected where the schema or --unit of `agglearn aggregate` tells whose each record is, one record where
the schema states one_row_per_person: true. Other tables by a declared schema are refused. With --max-rows auto, 5 % of epsilon choose
how many records of each unit count. A number in place of auto states it.

The output says what an attacker gains, and with --ledger what all releases of the data set have spent: rho of zero-concentrated
differential privacy adds up over them. The ledger is plain CSV. `agglearn cost` tells beforehand what an epsilon costs in accuracy.
"""

import argparse
from pathlib import Path

from agglearn.cli.common import TABLES, add_unit_options, copy_reading, output_folder
from agglearn.errors import ConfigError
from agglearn.text import count_text

HELP = "add noise for privacy to tables"
OPTIONS = ("mechanism", "split", "adjacency", "postprocessing", "allow_large_epsilon", "accept_learned_schema")


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("tables", help="folder written by `agglearn aggregate`")
    command.add_argument("--epsilon", type=float, required=True, help="privacy loss of all tables together, above 0")
    command.add_argument("--delta", type=float,
                   help="probability of a larger loss, between 0 and 1; Gaussian noise needs it, Laplace none")  # fmt: skip
    command.add_argument(
        "--mechanism", default="gaussian", help="gaussian (default), laplace, discrete_gaussian, discrete_laplace"
    )
    command.add_argument("--split", default="uniform", help="of the budget over tables: uniform (default) or by cells")
    command.add_argument(
        "--adjacency", help="what is protected: record, or unit where TABLES have one (default), or label"
    )
    add_unit_options(command)
    command.add_argument("--accept-learned-schema", action="store_true",
                   help="accept bins and categories that were learned from the records: OUT is then not private")  # fmt: skip
    command.add_argument("--allow-large-epsilon", action="store_true",
                   help="accept an epsilon above 20, which protects nobody")  # fmt: skip
    command.add_argument("--post", dest="postprocessing", default="none",
                   help="afterwards: none (default), clip, or project (tables made to agree)")  # fmt: skip
    command.add_argument("--ledger", metavar="FILE", help="CSV file of one data set, to which this release is added")


def run(args: argparse.Namespace) -> None:
    from agglearn.observations import ContingencyTables
    from agglearn.observations.units import CHOICE
    from agglearn.privacy.spending import add_up, append_ledger, describe_attacker, spending_of

    if Path(args.tables).resolve() == Path(args.out).resolve():
        raise ConfigError(f"{args.out}: is the folder to be read; choose another --out")
    with output_folder(args.out, args.force, TABLES) as work:
        tables = ContingencyTables.load(args.tables)
        if args.unit and args.unit != (tables.unit and tables.unit.column):
            raise ConfigError(f"--unit: {args.tables} has another unit than {args.unit!r}, or none; aggregate again")
        max_rows = None if args.max_rows == "auto" else args.max_rows
        options = {name: getattr(args, name) for name in OPTIONS}
        noisy = tables.private(args.epsilon, args.delta, max_rows=max_rows, **options)
        noisy.save(work)
        copy_reading(args.tables, work)
        chooses = tables.unit is not None and tables.unit.sizes and args.max_rows in (None, "auto")
        spent, advantage = spending_of(noisy, args.tables, CHOICE * args.epsilon * bool(chooses))
        if args.ledger:
            ledger = append_ledger(args.ledger, spent)  # before anybody can see the release
    spec = noisy.noise
    assert spec is not None
    scale = f"scale {spec.scale:.4g}" if spec.scales is None else f"scales up to {spec.scale:.4g}"
    print(
        f"{args.out}: {count_text(len(noisy.tables), 'table')} with {spec.mechanism.replace('_', ' ')} noise, {scale}"
    )
    print(spec.meaning)
    if spec.private:
        print(describe_attacker(advantage, spec.adjacency))
    if args.ledger:
        protected = spent["protected"][0]
        rho, epsilon, delta = add_up(ledger[ledger["protected"] == protected])
        print(f"{args.ledger}: {protected}: spent rho {rho:.3g}, epsilon {epsilon:.3g} at delta {delta:.3g} in all")
