"""Names in the configuration feed the seeds: a new name of a parameter would change results by chance, unnoticed. A smaller size or
fewer seeds at scale paper would, too, and with them what the archive shows.

After a change of results that is meant, `PYTHONPATH=tests python tests/unit/workflow/test_pinned_seeds.py` writes today's digests.
"""

import json
from pathlib import Path

import pytest
from samples import shipped_config

from agglearn.storage import digest
from agglearn_workflow.plan import Plan
from agglearn_workflow.runs.execution import fit_seed

PINNED = Path(__file__).with_name("pinned_seeds.json")
SCALES = ("smoke", "default", "paper")


def digests(scale: str) -> dict[str, str]:
    """By experiment a digest over the keys of its runs and observations and the seeds of its fits."""
    plan = Plan(shipped_config() | {"scale": scale})
    return {name: digest(sorted([r.key, r.slot, fit_seed(r)] for r in plan.runs(name))) for name in plan.experiments}


@pytest.mark.parametrize("scale", SCALES)
def test_every_planned_run_has_its_seed(scale):
    pinned, today = json.loads(PINNED.read_text())[scale], digests(scale)
    assert sorted(today) == sorted(pinned)
    assert [name for name in today if today[name] != pinned[name]] == []


if __name__ == "__main__":
    PINNED.write_text(json.dumps({scale: digests(scale) for scale in SCALES}, indent=1) + "\n")
