"""Every file of config/ablations/ computes its table."""

import copy
import io

import numpy as np
import pandas as pd
import pytest
import yaml
from census_sample import country_for_experiments
from project import ROOT, Project, adult_like

from agglearn_workflow.config.loading import load, read_mapping

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
FILES = sorted((ROOT / "config/ablations").glob("*.yaml"))
CONTENT = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}


def with_parents(name: str) -> set[str]:
    """An experiment and those that it extends."""
    parent = read_mapping(ROOT / f"config/experiments/{name}.yaml").get("extends")
    return {name, *(with_parents(parent) if parent else ())}


def coded_records(entry: dict, n: int, seed: int) -> str:
    """A CSV of whole numbers in the declared domains, of which the first two features tell something of the label."""
    rng, domains = np.random.default_rng(seed), entry["features"]["domains"]
    frame = pd.DataFrame({name: rng.integers(0, size, n) for name, size in domains.items()})
    first, second = (frame[name] / size for name, size in list(domains.items())[:2])
    frame[entry["label"]["column"]] = (first + second + rng.normal(0, 0.3, n) > 1).astype(int)
    return frame.to_csv(index=False)


def boxes(n: int) -> bytes:
    """Occupancy grids of boxes, whose height is that of their class, in the layout of the point clouds."""
    rng, arrays = np.random.default_rng(0), {}
    for part in ("train", "test"):
        y = np.arange(n) % 10
        grids = np.zeros((n, 30, 30, 30), np.int32)
        for grid, height, width in zip(grids, 2 * y + 3, rng.integers(5, 25, n), strict=True):
            grid[:width, :width, :height] = 1
        arrays |= {f"X_{part}": grids, f"y_{part}": y}
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


@pytest.fixture(scope="module")
def project(places):
    """A project that has run all ablations at once, each with one value of every change: a file adds an experiment of its name."""
    bases = (content["experiments"][name]["extends"] for name, content in CONTENT.items())
    made = Project(*places, shipped=set().union(*map(with_parents, bases)))
    census = load(made.folder)["datasets"]["acs_2024"]["files"]
    made.overlay["datasets"]["acs_2024"] = country_for_experiments(made.folder / "mirror", census)
    made.write_data("adult", "adult", "adult.data", adult_like(500, 1, test=False))
    made.write_data("adult", "adult", "adult.test", adult_like(250, 2, test=True))
    entry = read_mapping(ROOT / "config/datasets/dd_ssp_employment.yaml")
    for k, (part, n) in enumerate({"train": 1500, "test": 200}.items()):
        made.write_data("dd_ssp_employment", "dd_ssp", entry["split"][part], coded_records(entry, n, k))
    made.write_data("modelnet10", "modelnet10", "modelnet10_vox30.npz", boxes(60))
    made.overlay["tracking"] = {"uri": "none"}
    for name, content in copy.deepcopy(CONTENT).items():
        ablate = content["experiments"][name]["ablate"]
        ablate["changes"] = {key: values[:1] for key, values in ablate["changes"].items()}
        made.overlay["experiments"] |= content["experiments"]
    made.succeed(*CONTENT)
    return made


@pytest.mark.parametrize("name", CONTENT)
def test_an_ablation_has_a_table_of_differences(project, name):
    assert CONTENT[name].keys() == {"show", "experiments"}
    assert CONTENT[name]["show"] == list(CONTENT[name]["experiments"]) == [name]
    assert any(status == "ok" for status in project.table(name)["status"])
    assert project.table(name)["measure"].str.contains("_minus_").any()  # paired differences to its base
