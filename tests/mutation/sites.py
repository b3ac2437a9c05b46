"""Places where the code can be changed, and a random sample of them.

cosmic-ray makes the changes. mutmut was judged first: it replaces each function by one that calls the original or a
mutant, which Numba cannot compile.
"""

import ast
import contextlib
import random
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code, use_mutation
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENTS = Path(__file__).with_name("equivalents.toml")
# Compiled functions have truth tests of their own, and no line of theirs can be traced. Spark's engine needs Java.
LEFT_OUT = ("kernels.py", "gibbs_kernels.py", "spark", "spark_chains.py")
COMPILERS = ("njit", "vectorize")
CACHES = ("cache", "lru_cache", "cached_property")  # without them only the time changes
MESSAGES = ("print", "warn", "ArgumentTypeError")
# Pairs whose exchange cosmic-ray offers and no programmer makes: shifts and bit operators on numbers.
IMPLAUSIBLE = ("Shift", "BitXor", "BitAnd", "BitOr")


@dataclass(frozen=True, order=True)
class Mutant:
    """One change: the file, cosmic-ray's operator, and which of its places in the file."""

    path: str
    operator: str
    occurrence: int
    start: tuple[int, int]
    end: tuple[int, int]

    @property
    def site(self) -> tuple[str, tuple[int, int], str]:
        """What the sample draws from: a place and a kind of change, whatever replaces what stands there."""
        return self.path, self.start, self.operator.split("_")[0]

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}:{self.start[0]}"

    @contextlib.contextmanager
    def planted(self, root: Path) -> Iterator[None]:
        """Have the change in a copy of the project."""
        with use_mutation(root / self.path, get_operator(self.operator)(), self.occurrence) as (_, changed):
            if changed is None:
                raise ValueError(f"{self} changes nothing")
            yield

    def line(self) -> str:
        """The source line that changes, as it is."""
        return (ROOT / self.path).read_text().splitlines()[self.start[0] - 1].strip()

    def changed(self) -> str:
        """The source line after the change."""
        code = mutate_code((ROOT / self.path).read_text(), get_operator(self.operator)(), self.occurrence)
        return code.splitlines()[self.start[0] - 1].strip()


def source_files() -> list[Path]:
    """Modules whose code is mutated."""
    found = sorted((ROOT / "src" / "agglearn").rglob("*.py"))
    return [p for p in found if not set(p.relative_to(ROOT).parts) & set(LEFT_OUT)]


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every change of a file that could give a user another result."""
    nodes, hidden = list(ast_nodes(get_ast_from_path(path))), unsampled_lines(path.read_text())
    name = str(path.relative_to(ROOT))
    for operator_name in operator_names():
        kind = get_operator(operator_name)
        if kind.arguments() or any(word in operator_name for word in IMPLAUSIBLE):
            continue
        operator = kind()
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            if start[0] not in hidden:
                yield Mutant(name, operator_name, occurrence, tuple(start), tuple(end))


def unsampled_lines(source: str) -> set[int]:
    """Lines of message texts, annotations and compiled functions. A default beside an annotation is left out with it."""
    parts = [part for node in ast.walk(ast.parse(source)) for part in _unsampled(node)]
    return {line for part in parts for line in range(part.lineno, part.end_lineno + 1)}


def _unsampled(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _name(node.func) in MESSAGES):
        return [node]
    if isinstance(node, ast.AnnAssign):
        return [node.annotation]
    if isinstance(node, ast.FunctionDef):
        if any(_name(d) in COMPILERS for d in node.decorator_list):
            return [node, *node.decorator_list]
        cached = [d for d in node.decorator_list if _name(d) in CACHES]
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return [*cached, *filter(None, [a.annotation for a in arguments]), *filter(None, [node.returns])]
    return []


def _name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def sample(size: int, seed: int, files: Iterable[Path]) -> list[Mutant]:
    """A random sample of sites, one change at each: a larger sample of the same seed begins with the smaller one."""
    by_site = defaultdict(list)
    for path in files:
        for mutant in mutants_of(path):
            by_site[mutant.site].append(mutant)
    draw = random.Random(seed)
    sites = sorted(by_site)
    draw.shuffle(sites)
    chosen = (draw.choice(sorted(by_site[site])) for site in sites)
    return list(islice(filter(_compiles, chosen), size))


def _compiles(mutant: Mutant) -> bool:
    """Whether the change leaves a program: cosmic-ray takes the `*` of a signature for a product."""
    if "_Mul_" not in mutant.operator:
        return True
    code = mutate_code((ROOT / mutant.path).read_text(), get_operator(mutant.operator)(), mutant.occurrence)
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def equivalents() -> list[dict[str, str]]:
    """Changes that no user can notice, each with its reason."""
    return tomllib.loads(EQUIVALENTS.read_text())["equivalent"]


def reason_of_equivalence(mutant: Mutant, accepted: list[dict[str, str]]) -> str | None:
    """Why a change makes no difference, or None."""
    for entry in accepted:
        if (entry["file"], entry["line"], entry["changed"]) == (mutant.path, mutant.line(), mutant.changed()):
            return entry["reason"]
    return None
