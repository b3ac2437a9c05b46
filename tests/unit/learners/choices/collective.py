"""The fastest option of a reconstruction."""

import numpy as np

from agglearn import collective
from agglearn.collective.results import Iterate
from agglearn.observations import FlowCounts
from choices.base import Choice


class Fastest(Choice):
    """The option that is first at the lowest objective, on the very counts that are reconstructed."""

    grid = (1.0, 0.5, 0.25)
    counts = FlowCounts(
        node_counts=np.array([[10.0, 20], [20, 10], [5, 25]]), noise="gaussian", scale=2.0, population_size=30,
        context={"log_potentials": np.log([[[0.7, 0.3], [0.4, 0.6]]] * 2)},
    )  # fmt: skip

    def choose(self, patch, planted=None):
        right, made = collective.reconstruction.infer, []

        def timed(*problem, **options):
            found = right(*problem, **options)
            if planted:
                found.trace = [Iterate(0, -planted(options["damping"]), -5.0, 0.0)]
            made.append(options["damping"])
            return found

        patch.setattr(collective.reconstruction, "infer", timed)
        model = collective.TunedReconstruction(values=self.grid, options={"max_iter": 3}).fit(self.counts)
        assert tuple(made) == self.grid
        return model

    def fixed(self, value):
        return collective.FlowReconstruction("nlbp-feasible", {"max_iter": 3, "damping": value}).fit(self.counts)

    def chosen(self, model):
        return model.value_

    def numbers(self, model):
        return np.ravel(model.edge_tables_)
