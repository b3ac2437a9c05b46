"""A small world with known answers: records, an experiment on them, and the numbers that follow, in plain Python.

Nothing here uses the package. Given are the raw records, and which of them each seed trained and tested.
"""

import math
import random
import statistics
from dataclasses import dataclass

from scipy import stats

SIZES, SEEDS, COLOURS, STAGES = (120, 240), (0, 1, 2), ("blue", "green", "red"), (1, 2, 3, 4)
LEGS = {"0,0>1,0": 0.15, "0,1>0,0": 0.85, "1,0>1,1": 0.35, "1,1>0,1": 0.7}  # leg → rate of label 1


def colour_keys(colour: str | None) -> str | None:
    """Keys of a measure of a colour, as they are stored."""
    return colour and f'{{"colour": "{colour}"}}'


LEAST = 181  # records that the method `exacting` needs
OVERLAP = 0.25 / 0.75  # test records per training record


def people() -> list[dict]:
    """300 records whose label depends on the leg."""
    rng = random.Random(11)
    found = []
    for i in range(300):
        leg = rng.choice(list(LEGS))
        y = "yes" if rng.random() < LEGS[leg] else "no"
        found.append({"id": f"r{i:03}", "leg": leg, "colour": rng.choice(COLOURS), "y": y})
    return found


def csv_of(records: list[dict]) -> str:
    lines = [";".join(records[0]), *(";".join(r.values()) for r in records)]
    return "\n".join(lines) + "\n"


ENTRY = {
    "title": "People & <co>",
    "class": "agglearn.datasets.Tabular",
    "format": {"separator": ";"},
    "label": {"column": "y", "positive": "yes"},
    "split": 0.25,
}

MEASURES = ["nllh", "auc", "log_loss", "curve", "right"]


EXPERIMENT = {
    "source": "spike",
    "title": "World & 5 % of_it",
    "caption": "By hand, <plainly>.",
    "task": "ledger.Ledger",
    "datasets": {"people": {"rows": {"grid": list(SIZES)}}},
    "observe": {"records": {"type": "agglearn.observations.Records"}},
    "seeds": list(SEEDS),
    "methods": {
        "rates": {"class": "drawn.Drawn", "observe": "records", "name": "Rates & 5 %", "params": {"prior": {"grid": [1.0, 8.0]}}},
        "base": {"class": "ledger.Rates", "observe": "records", "params": {"column": ""}},
        "exacting": {"class": "ledger.Exacting", "observe": "records", "params": {"least": LEAST}},
        "limited": {"class": "ledger.Limited", "observe": "records"},
        "absent": {"class": "ledger.Absent", "observe": "records"},
    },
    "measures": MEASURES,
    "baseline": "base",
    "batch_by": ["dataset"],
    "keep_model": "all",
    "budget": 7,
    "table": {"rows": ["method", "params.prior"], "columns": ["dataset_params.rows"], "measure": "nllh"},
    "figure": [
        {"kind": "dots", "y": "nllh", "series": ["method", "params.prior", "dataset_params.rows"]},
        {"kind": "curve", "y": "nllh", "series": ["method", "params.prior"], "panel": ["dataset_params.rows"], "x": "seconds"},
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Split:
    """Ids of the records that a seed trained and tested, in their order."""

    trained: tuple[str, ...]
    tested: tuple[str, ...]


class World:
    """Every number of the experiment."""

    def __init__(self, splits: dict[tuple[int, int], Split], pull: float, mended: bool):
        """`splits`: by size and seed. `pull`: rate of the prior of `rates`. `mended`: whether `exacting` takes any number."""
        self.records = {r["id"]: r for r in people()}
        self.splits, self.pull, self.mended = splits, pull, mended
        self.cells = [(m, p, size) for size in SIZES for m, p in METHODS]
        self.values = {
            (m, p, size, seed): self._measured(m, p, size, seed) for m, p, size in self.cells for seed in SEEDS
        }

    def status(self, method: str, size: int, seed: int) -> tuple[str, str]:
        """(status, reason) of a run."""
        if method == "limited":
            return "stopped", "> 3 steps"
        if method == "absent":
            return "unavailable", "surrogate is not installed"
        if method == "exacting" and not self.mended and len(self.splits[size, seed].trained) < LEAST:
            return "failed", f"ValueError: needs {LEAST} records & more"
        return "ok", ""

    def _measured(self, method, prior, size, seed) -> dict[tuple, float]:
        """{(measure, keys, step): value} of a run."""
        if self.status(method, size, seed)[0] != "ok":
            return {}
        trained = [self.records[i] for i in self.splits[size, seed].trained]
        tested = [self.records[i] for i in self.splits[size, seed].tested]
        pull = self.pull if method == "rates" else 0.5
        group = (lambda r: "all") if method == "base" else (lambda r: r["leg"])
        y = [r["y"] == "yes" for r in tested]

        def predicted(known, prior):
            p = []
            for r in tested:
                same = [k["y"] == "yes" for k in known if group(k) == group(r)]
                p.append((sum(same) + pull * prior) / (len(same) + prior) if same else 0.5)
            return p

        p = predicted(trained, prior or 1.0)
        found = {
            ("log_loss", None, None): log_loss(y, p),
            ("nllh", None, None): nllh(y, p),
            ("auc", None, None): auc(y, p),
        }
        for k in STAGES:
            found["nllh", None, k] = nllh(y, predicted(trained[: len(trained) * k // 4], 4.0))
            found["seconds", None, k] = k / 8
        found["right", None, None] = mean([(q > 0.5) == v for q, v in zip(p, y, strict=True)])
        for colour in COLOURS:
            here = [i for i, r in enumerate(tested) if r["colour"] == colour]
            found["right", colour_keys(colour), None] = mean([(p[i] > 0.5) == y[i] for i in here])
        return found

    def seeds(self, method, prior, size, measure, keys=None) -> list[float]:
        """One value per seed that has one; of `<measure>_minus_base` the differences."""
        name, minus, _ = measure.partition("_minus_")
        key, found = (name, keys, None), []
        for seed in SEEDS:
            mine, base = self.values[method, prior, size, seed], self.values["base", None, size, seed]
            if key in mine:
                found.append(mine[key] - base[key] if minus else mine[key])
        return found


METHODS = [("rates", 1.0), ("rates", 8.0), ("base", None), ("exacting", None), ("limited", None), ("absent", None)]


def mean(values) -> float:
    return sum(values) / len(values)


def log_loss(y, p) -> float:
    return -mean([math.log(q if v else 1 - q) for q, v in zip(p, y, strict=True)])


def nllh(y, p) -> float:
    rate = mean(y)
    return 1 - log_loss(y, p) / -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate))


def auc(y, p) -> float:
    """Share of pairs of a positive and a negative in the right order; a tie is half."""
    pairs = [(a, b) for a, v in zip(p, y, strict=True) if v for b, w in zip(p, y, strict=True) if not w]
    return mean([(a > b) + (a == b) / 2 for a, b in pairs])


@dataclass(frozen=True)
class Estimate:
    """A mean with the 95 % interval of Nadeau and Bengio; `error`, `low` and `high` are None where values have no spread."""

    n: int
    mean: float
    error: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: list[float]) -> "Estimate":
        n, m, s = len(values), mean(values), statistics.stdev(values) if len(values) > 1 else 0.0
        error = s * math.sqrt(1 / n + OVERLAP)
        half = float(stats.t.ppf(0.975, n - 1)) * error
        return cls(n, m, error, m - half, m + half) if s > 1e-12 else cls(n, m)


@dataclass(frozen=True)
class Cell:
    """What a reader finds of one measure of one method: an estimate or none, the status and the reason."""

    estimate: Estimate | None
    status: str
    reason: str


def cell(world: World, method, prior, size, measure, keys=None) -> Cell:
    values = world.seeds(method, prior, size, measure, keys)
    bad = [s for s in (world.status(method, size, seed) for seed in SEEDS) if s[0] != "ok"]
    if not values:
        return Cell(None, *bad[0]) if bad else Cell(None, "", "")
    reason = f"{len(bad)} seed{'s' * (len(bad) > 1)} {bad[0][0]}: {bad[0][1]}" if bad else ""
    return Cell(Estimate.of(values), "ok", reason)


def expected_summary(world: World) -> dict[tuple, Cell]:
    """Cell by method, prior, size, measure and keys, as text where it stands so."""
    found = {}
    for method, prior, size in world.cells:
        names = {k[:2] for seed in SEEDS for k in world.values[method, prior, size, seed] if k[2] is None}
        if not names:
            found[method, prior, size, "", ""] = cell(world, method, prior, size, "nllh")
        for measure, keys in names:
            for name in (measure, f"{measure}_minus_base")[: 1 if method == "base" else 2]:
                found[method, prior, size, name, keys or ""] = cell(world, method, prior, size, name, keys)
    return found
