"""`agglearn private`: tables with noise for privacy."""

from pathlib import Path

from agglearn.cli.common import keep_reading, number
from agglearn.cli.outputs import TABLES, output_folder
from agglearn.errors import ConfigError

HELP = "add noise for privacy to tables"
ABOUT = """Add noise to the tables of `agglearn aggregate`, so that they promise (epsilon, delta)-differential privacy as a whole.
Noise is drawn once, by OpenDP, from the system's secret randomness: a second run gives other noise, and both together
promise less. Whatever is learned from OUT costs nothing more.

example:
  agglearn private tables/ --epsilon 1 --delta 1e-6 --out noisy/

reads   the folder TABLES.
writes  the folder OUT: the same files, every cell with noise (empty ones too, so that all cells are written), mechanism,
        scale, epsilon, delta and adjacency in tables.json. It appears when complete, or not at all.

Noise protects counts. Bins and categories stay as they are. TABLES must have been aggregated by a declared schema
(`agglearn aggregate --schema`), which tells of no record. Others are refused unless --accept-learned-schema: OUT then states
what is not protected, and is not called private. With --adjacency label counts are public and stay exact; label
sums alone have noise."""


def options(command) -> None:
    """Options of the command, but for --out and --force."""
    command.add_argument("tables", help="folder written by `agglearn aggregate`")
    command.add_argument(
        "--epsilon", type=float, required=True, help="of the promise, for all tables together; above 0"
    )
    command.add_argument(
        "--delta", type=float, help="of the promise, between 0 and 1; Gaussian noise needs it, Laplace none"
    )
    command.add_argument(
        "--mechanism", default="gaussian", help="gaussian (default), laplace, discrete_gaussian, discrete_laplace"
    )
    command.add_argument("--split", default="uniform", help="of the budget over tables: uniform (default) or by cells")
    command.add_argument("--adjacency", default="record", help="what is protected: one record (default) or one label")
    command.add_argument(
        "--accept-learned-schema",
        action="store_true",
        help="accept bins and categories that were learned from the records: OUT is then not private",
    )
    command.add_argument(
        "--allow-large-epsilon", action="store_true", help="accept an epsilon above 20, which protects nobody"
    )
    command.add_argument(
        "--post", default="none", help="afterwards: none (default), clip, or project (tables made to agree)"
    )


def run(o) -> None:
    """Release tables once."""
    from agglearn.observations import ContingencyTables

    if Path(o.tables).resolve() == Path(o.out).resolve():
        raise ConfigError(f"{o.out}: is the folder to be read; choose another --out")
    with output_folder(o.out, o.force, TABLES) as work:
        noisy = release(o, ContingencyTables.load(o.tables))
        noisy.save(work)
        keep_reading(o.tables, work)
    spec = noisy.noise
    scale = f"scale {spec.scale:.4g}" if spec.scales is None else f"scales up to {spec.scale:.4g}"
    print(f"{o.out}: {number(len(noisy.tables), 'table')} with {spec.mechanism.replace('_', ' ')} noise, {scale}")
    print(spec.meaning)


def release(o, tables):
    """The tables with noise."""
    how = {"mechanism": o.mechanism, "split": o.split, "adjacency": o.adjacency, "postprocessing": o.post}
    how |= {"allow_large_epsilon": o.allow_large_epsilon, "accept_learned_schema": o.accept_learned_schema}
    return tables.private(o.epsilon, o.delta, **how)
