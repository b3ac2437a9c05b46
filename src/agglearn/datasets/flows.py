"""Populations that move: simulated birds and commuters with known truth, and published flows between states."""

import re
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd

from agglearn.datasets.base import Simulated, Stored, require_columns, write_header
from agglearn.errors import DataError
from agglearn.seeds import derive_generator
from agglearn.settings import Count, Number, Positive, Range


@dataclass(frozen=True)
class FlowPopulation:
    """Movements that a simulator draws: one or several populations under one model.

    Parameters
    ----------
    edge_tables, log_potentials, population_size, theta : list[ndarray], list[ndarray], int, ndarray or None
    context, shape : list[dict[str, ndarray]], tuple[int, int] or None
        Per instance (T−1, L, L) true counts, log ψ and public arrays by name. M of each, parameters, rows and columns.
    """

    edge_tables: list[np.ndarray]
    log_potentials: list[np.ndarray]
    population_size: int
    theta: np.ndarray | None
    context: list[dict[str, np.ndarray]] = field(default_factory=list)
    shape: tuple[int, int] | None = None


class BirdMigration(Simulated):
    """Birds from the bottom-left to the top-right cell of a grid, with a wind at each step (Sun 2019, section 2.6.1).

    Parameters
    ----------
    side, steps, population, theta, years : int, int, int, tuple[float, float, float, float], int
        ℓ, cells along an edge, T, M, parameters of `agglearn.collective.migration`, realisations with winds N(1, 0.5²).
    """

    KEYS = ()

    side: Count = 10
    steps: Annotated[int, Range(2)] = 20
    population: Count = 1000
    theta: tuple[Number, Number, Number, Number] = (5, 10, 10, 10)
    years: Count = 1

    def draw(self, seed: int) -> FlowPopulation:
        from agglearn.collective.migration import migration_features
        from agglearn.collective.parametric_models import LogLinearTransitions

        side, n = int(self.side), int(self.side) ** 2
        spelt = self.arguments | {"theta": list(self.theta)}  # which feeds the seed
        rng = derive_generator("birds", sorted((k, str(v)) for k, v in spelt.items()), seed)
        initial = np.where(np.arange(n) == 0, 0.0, -np.inf)
        winds = [rng.normal(1, 0.5, (self.steps - 1, 2)) for _ in range(self.years)]
        transitions = LogLinearTransitions([migration_features(side, side, w) for w in winds], initial)
        theta = np.array(self.theta, float)
        models = [transitions.model(theta, k) for k in range(self.years)]
        tables = [np.array(m.sample_tables(self.population, rng)) for m in models]
        context = [{"shape": np.array([side, side]), "wind": w, "log_initial": initial} for w in winds]
        potentials = [np.array(m.log_potentials) for m in models]
        return FlowPopulation(tables, potentials, self.population, theta, context, (side, side))


class HumanMobility(Simulated):
    """Commuters of a rectangular map from home (top right) to work (bottom left) (Sun 2019, section 2.6.2.1).

    Parameters
    ----------
    rows, columns, steps, population, home_spread, work_spread, step_spread : int, int, int, int, float, float, float
        Of the map, T, M, and standard deviations of the Gaussian potentials, in cells.
    """

    KEYS = ()

    rows: Count = 15
    columns: Count = 14
    steps: Annotated[int, Range(2)] = 10
    population: Count = 1_000_000
    home_spread: Positive = 2.0
    work_spread: Positive = 2.0
    step_spread: Positive = 1.0

    def draw(self, seed: int) -> FlowPopulation:
        from agglearn.collective.model import ChainModel

        rng = derive_generator("mobility", sorted(self.arguments.items()), seed)
        shape, size = (int(self.rows), int(self.columns)), int(self.population)
        first, last, psi = commuting_potentials(*shape, self.home_spread, self.work_spread, self.step_spread)
        tables = np.tile(psi, (int(self.steps) - 1, 1, 1))
        tables[0] += first[:, None]
        tables[-1] += last[None, :]
        drawn = np.array(ChainModel(list(tables)).sample_tables(size, rng))
        return FlowPopulation([drawn], [tables], size, None, [{}], shape)


class StateFlows(Stored):
    """Weekly flows of visitors between US states, as tables `weekly_state2state_YYYY_MM_DD.csv` in a packed file."""

    KEYS = ("mirror", "files")

    def parse(self, files: dict[str, Path], out: Path) -> dict:
        frames = []
        for path in files.values():
            with tarfile.open(path) as pack:
                for member in sorted(pack.getnames()):
                    if match := re.search(r"weekly_state2state_(\d{4}_\d{2}_\d{2})\.csv$", member):
                        frames.append(_week(pack, member, match[1]))
        if not frames:
            raise DataError(f"{', '.join(files)}: holds no file named weekly_state2state_YYYY_MM_DD.csv")
        flows = pd.concat(frames, ignore_index=True)
        flows.to_parquet(out / "features.parquet", index=False, compression="zstd")
        write_header(out, len(flows), "flow")
        return {"weeks": len(frames), "flows": len(flows)}


def _week(pack: tarfile.TarFile, member: str, week: str) -> pd.DataFrame:
    columns = {"geoid_o": "origin", "geoid_d": "destination", "lng_o": "x", "lat_o": "y", "visitor_flows": "flow"}
    table = pd.read_csv(pack.extractfile(member), dtype={"geoid_o": str, "geoid_d": str})
    require_columns(table, columns, member)
    return table[list(columns)].rename(columns=columns).assign(week=week)


def commuting_potentials(
    rows: int, columns: int, home_spread: float, work_spread: float, step_spread: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log φ_1 (L,), log φ_T (L,), log ψ (L, L), which are ours. Centres are a quarter of the map away from corners."""
    from agglearn.collective.migration import centres

    xy = centres(rows, columns)
    size = np.array([columns, rows])
    home_centre, work_centre = 0.75 * size - 0.5, 0.25 * size - 0.5
    offsets = (xy - home_centre, home_spread), (xy - work_centre, work_spread), (xy - xy[:, None], step_spread)
    first, last, steps = (-(offset**2).sum(axis=-1) / (2 * spread**2) for offset, spread in offsets)
    return first, last, steps
