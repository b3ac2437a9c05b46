"""Shares of classes in groups of people, with intervals from fits to bags that are drawn again."""

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
from sklearn.base import clone

from agglearn.errors import DataError
from agglearn.observations import Bags
from agglearn.progress import track
from agglearn.proportions.base import BagClassifier
from agglearn.seeds import RandomState, draw_generator


def group_shares(
    model: BagClassifier, bags: Bags, groups: Sequence[Hashable] | np.ndarray | pd.Series,
    n_draws: int = 50, level: float = 0.95, random_state: RandomState = None,
) -> pd.DataFrame:  # fmt: skip
    """Weighted mean probability of each class in each group of instances, with a bootstrap over bags.

    Every draw takes as many bags with replacement, their instances by weight where they have weights (`Bags.draw`), and
    fits the model anew. The intervals are about other bags of the same kind: they do not show what the model gets wrong in all bags.

    Parameters
    ----------
    model, bags : BagClassifier, Bags
        An unfitted model whose parameters are used, and what it learns from.
    groups : (n,) group of each instance in the order of `bags`
    n_draws, level, random_state : int, float, int or RandomState or Generator or None

    Returns
    -------
    DataFrame
        One row for each group and class, with the columns share, low and high.
    """
    codes, names = pd.factorize(np.asarray(groups), sort=True)
    if len(codes) != len(bags.X) or (codes < 0).any():
        raise DataError(f"groups: needs a group for each of the {len(bags.X)} instances")
    classes = bags.classes
    rng, weights = draw_generator(random_state), np.ones(len(codes)) if bags.weights is None else bags.weights
    fits = []
    for k in track(range(n_draws + 1), "bag bootstrap"):
        chosen = rng.integers(len(bags), size=len(bags)) if k else np.arange(len(bags))
        drawn = bags.take(chosen)
        p = clone(model).fit(drawn if bags.weights is None else drawn.draw(rng)).predict_proba(bags.X)
        fits.append([np.average(p[codes == g], axis=0, weights=weights[codes == g]) for g in range(len(names))])
    low, high = np.quantile(fits[1:], [(1 - level) / 2, (1 + level) / 2], axis=0)
    index = pd.MultiIndex.from_product([names, classes], names=["group", "class"])
    columns = {"share": np.ravel(fits[0]), "low": low.ravel(), "high": high.ravel()}
    return pd.DataFrame(columns, index=index)
