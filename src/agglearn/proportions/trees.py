"""A non-linear classifier for the M step."""

from typing import Annotated

from sklearn.ensemble import HistGradientBoostingClassifier

from agglearn.settings import Count, NonNegative, Positive, Range


class BoostedTrees(HistGradientBoostingClassifier):
    """Gradient-boosted trees small enough to be fitted in every M step.

    Parameters
    ----------
    max_iter, learning_rate, max_leaf_nodes, l2_regularization : of `HistGradientBoostingClassifier`.
    """

    def __init__(
        self,
        max_iter: Count = 50,
        learning_rate: Positive = 0.1,
        max_leaf_nodes: Annotated[int, Range(2)] = 15,
        l2_regularization: NonNegative = 10.0,
    ):
        super().__init__(
            max_iter=max_iter,
            learning_rate=learning_rate,
            max_leaf_nodes=max_leaf_nodes,
            l2_regularization=l2_regularization,
            early_stopping=False,
            random_state=0,
        )
