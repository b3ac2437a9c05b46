"""The number of components is chosen on the training bags, and the mean of the bag is beside every embedding."""

import warnings

import numpy as np
import pytest
from samples import shipped_config

from agglearn.distribution import EmbeddingRegressor, FisherVectorEmbedding, LinearRidge, MomentEmbedding
from agglearn.errors import GridEdge
from agglearn_workflow.plan import Plan

COMPONENTS = {"n_components": [1, 2, 5, 10, 20, 50]}


def bags_with_target(seed: int, by: str) -> tuple[list[np.ndarray], np.ndarray]:
    """200 bags of unequal size; the target follows the means of their covariates, or their spreads."""
    rng = np.random.default_rng(seed)
    means, spreads = 0.5 * rng.normal(size=(200, 5)), np.exp(0.2 * rng.normal(size=(200, 5)))
    bags = [m + s * rng.normal(size=(rng.integers(10, 80), 5)) for m, s in zip(means, spreads, strict=True)]
    target = means @ np.linspace(-1, 1, 5) if by == "mean" else np.log(spreads).sum(axis=1)
    return bags, target + 0.1 * rng.normal(size=200)


def r2(model: EmbeddingRegressor, bags: list, target: np.ndarray) -> float:
    return model.fit(bags[:120], target[:120]).score(bags[120:], target[120:])


@pytest.mark.parametrize("by", ["mean", "spread"])
def test_components_are_chosen_on_the_training_bags(by):
    """As good as the mean where it is all there is, and better where it is not. 200 components are far worse in both."""
    scores = []
    for seed in range(2):
        bags, target = bags_with_target(seed, by)
        mean = EmbeddingRegressor(MomentEmbedding(order=1), LinearRidge(), random_state=0)
        chosen = EmbeddingRegressor(FisherVectorEmbedding(), LinearRidge(), tune=COMPONENTS, random_state=0)
        plain = EmbeddingRegressor(FisherVectorEmbedding(), LinearRidge(), random_state=0)
        scores.append([r2(m, bags, target) for m in (mean, chosen, plain)])
    mean, chosen, plain = np.mean(scores, axis=0)
    assert chosen > plain + 0.15
    assert chosen > mean - 0.02 if by == "mean" else chosen > mean + 0.2


def test_one_component_is_no_end_beyond_which_values_lie():
    rng = np.random.default_rng(0)
    bags = [rng.normal(m, 1, (30, 2)) for m in np.linspace(0, 3, 40)]
    model = EmbeddingRegressor(FisherVectorEmbedding(), LinearRidge(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", GridEdge)
        model.set_params(tune={"n_components": [1, 15, 30]}).fit(bags, np.linspace(0, 3, 40))
    assert model.tuned_ == {"n_components": 1}
    assert "n_components" not in model.edges_
    with pytest.warns(GridEdge, match="n_components = 2 is an end"):
        model.set_params(tune={"n_components": [2, 15, 30]}).fit(bags, np.linspace(0, 3, 40))


def test_every_experiment_with_fixed_embeddings_has_the_mean_of_the_bag():
    plan = Plan(shipped_config() | {"scale": "smoke"})
    of_source = [name for name, entry in plan.experiments.items() if entry["source"] == "distribution"]
    of_bags = [name for name in of_source if any("embedding" in str(r.params) for r in plan.runs(name))]
    assert len(of_bags) >= 6
    for name in of_bags:
        means = [r for r in plan.runs(name) if r.method == "mean"]
        assert means, name
        assert all("MomentEmbedding" in r.params and '"order": 1' in r.params for r in means), name
