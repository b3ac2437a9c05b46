import copy

import pytest
from census_sample import country_for_experiments
from project import ATTRIBUTION, CHAIN, REGIONS, SPIKE_DATA, Project, adult_like, attribution_like, bank_like

from agglearn.config import load

# Every source and every kind of data; all experiments in their smoke sizes would take a quarter of an hour. What these
# leave out, `tests/unit/test_smoke.py` does without a workflow.
WAY = (
    "maxent_table4", "maxent_table5", "maxent_figure2", "maxent_figure4", "maxent_embedded", "maxent_table4_attribution",
    "maxent_hashed_crosses", "vocabulary_figure3", "vocabulary_figure4", "collective_table1", "collective_figure3",
    "labelsums_equality", "labelsums_tables", "proportions_figure35", "proportions_exact",
)  # fmt: skip


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Compiled kernels are shared by all projects."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def project(tmp_path_factory, cache):
    """A project with small data in the formats of Adult and Bank, and the two spikes."""
    made = Project(tmp_path_factory.mktemp("project"), cache)
    made.write_data("adult", "adult", "adult.data", adult_like(500, 1, test=False))
    made.write_data("adult", "adult", "adult.test", adult_like(250, 2, test=True))
    made.write_data("bank", "bank_marketing", "bank-additional-full.csv", bank_like(600, 3))
    made.write_data("criteo_attribution", "criteo_attribution", ATTRIBUTION, attribution_like(4000, 4))
    census = load(made.folder)["datasets"]["acs_2024"]["files"]
    made.overlay["datasets"]["acs_2024"] = country_for_experiments(made.folder / "mirror", census)
    made.overlay["datasets"] |= copy.deepcopy(SPIKE_DATA)
    made.overlay["experiments"] |= copy.deepcopy({"spike_chain": CHAIN, "spike_regions": REGIONS})
    made.overlay["run"] = [*WAY, "spike_chain", "spike_regions"]
    return made
