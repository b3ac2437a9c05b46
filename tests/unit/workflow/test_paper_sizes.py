"""Scale paper is as large as it was when the archive was planned. `pinned_paper.json` has its values at commit 2e6aea3."""

import json
from pathlib import Path

import pytest
from samples import shipped_config

from agglearn_workflow.plan import select_scale

PINNED = json.loads(Path(__file__).with_name("pinned_paper.json").read_text())

# Settings that are not as they were, each with its reason. A prefix stands for all below it.
DIFFERENT = {
    "distribution_figure45/datasets.digits": "digits are an experiment by themselves: distribution_digits",
    "distribution_figure45/methods.attention": "attention is compared in Figure 4.6, which has it",
    "distribution_figure45/methods.deepsets.params.instances": "renamed bag_size; its value is null as before",
    "distribution_figure45/methods.deepsets.params.full_share": "dropped: networks learn from as many points as they are tested with",
    "distribution_figure45/methods.pointnet.params.instances": "renamed bag_size; its value is null as before",
    "distribution_figure45/methods.pointnet.params.full_share": "dropped: networks learn from as many points as they are tested with",
    "labelsums_ladder/observe.bags.bag_size.grid": "bags of 10 have all budgets; those of 100 and 1,000 are `large_bags`",
    "labelsums_ladder/exclude": "the rule of the public code is shown on two data sets",
    "labelsums_size/exclude": "λ from the sums is shown where λ = ½ fails, on one data set",
    "maxent_noise/exclude": "noise-aware training is shown where there is noise, on one data set",
    "maxent_ablations/methods.default": "the method is named `usual`, as `default` is a scale; its values are the same",
    "maxent_figure2/methods.maxent": "five methods with the same values stand in its place",
    "proportions_adult/exclude": "boosted trees learn from bags of ten alone, to save time",
    "proportions_adult/methods.cardinality_trees": "boosted trees in the M step are gone",
    "vocabulary_figure3/exclude": "14 clusters are too few for the 26 features of criteo_dac_head",
    "vocabulary_heldout/exclude": "14 clusters are too few for the 26 features of criteo_dac_head",
    "vocabulary_logistic/exclude": "budgets with fewer clusters than features",
    "vocabulary_figure4/methods.optimal_shrunk": "the method is compared in vocabulary_logistic and vocabulary_heldout",
}


def value_at(value, path: str):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def is_as_large(value, pinned) -> bool:
    """Whether a number is that or larger, and a list or a mapping has all entries and perhaps more."""
    if isinstance(pinned, bool | str) or pinned is None:
        return value == pinned
    if isinstance(pinned, list):
        return isinstance(value, list) and all(entry in value for entry in pinned)
    if isinstance(pinned, dict):
        return isinstance(value, dict) and all(k in value and is_as_large(value[k], v) for k, v in pinned.items())
    return isinstance(value, int | float) and value >= pinned


def smaller(experiment: dict, pinned: dict) -> list[str]:
    """Paths at which a setting is gone or smaller than the pinned one, and runs that are left out."""
    paths = [f"exclude.{i}" for i in range(len(experiment.get("exclude", [])))]
    for path, value in pinned.items():
        try:
            paths += [] if is_as_large(value_at(experiment, path), value) else [path]
        except (KeyError, IndexError, TypeError):
            paths.append(path)
    return paths


@pytest.mark.parametrize("name", sorted(PINNED))
def test_scale_paper_is_as_large_as_it_was(name):
    experiment = select_scale(shipped_config()["experiments"][name], "paper")
    listed = [path.partition("/")[2] for path in DIFFERENT if path.startswith(f"{name}/")]
    paths = smaller(experiment, PINNED[name])
    assert not [path for path in paths if not path.startswith(tuple(listed))]
    assert not [prefix for prefix in listed if not any(path.startswith(prefix) for path in paths)], (
        "no longer different"
    )
