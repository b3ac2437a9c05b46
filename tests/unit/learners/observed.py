"""All learners, and what tests of several share: observations of some two hundred records, and of thirty persons between two places."""

import importlib
import pkgutil

import numpy as np
from samples import people

import agglearn
from agglearn.encoding import FeatureMap
from agglearn.estimator import Estimator
from agglearn.observations import Bags, ContingencyTables, CountedBags, FlowCounts, LabelSums, Records, TablesAndSample


def learners() -> list[type[Estimator]]:
    """Every learner that a user can name."""
    packages = [m.name for m in pkgutil.iter_modules(agglearn.__path__, "agglearn.") if m.ispkg]
    found = [getattr(p, n) for p in map(importlib.import_module, packages) for n in getattr(p, "__all__", ())]
    return sorted({c for c in found if isinstance(c, type) and issubclass(c, Estimator)}, key=lambda c: c.__name__)


def sums_of(records: Records) -> LabelSums:
    """Label sums of one indicator for each value."""
    mapped = FeatureMap.fit("onehot", records.encoder, records.frame)
    return LabelSums.from_map(mapped, records.frame, records.y)


def bags_of(records: Records) -> CountedBags:
    """Bags of five records."""
    return CountedBags.from_records(records.encoder, records.frame, records.y, 5, np.random.default_rng(0))


FRAME = people(203)  # three are in no bag of five
TABLES = ContingencyTables.from_records(FRAME, "y")
RECORDS = Records.from_records(FRAME, "y")
SUMS, COUNTED, BOTH = sums_of(RECORDS), bags_of(RECORDS), TablesAndSample(TABLES, RECORDS)
FLOWS = FlowCounts(
    node_counts=np.array([[10.0, 20], [20, 10], [5, 25]]), noise="gaussian", scale=2.0, population_size=30,
    context={"log_potentials": np.zeros((2, 2, 2))},
)  # fmt: skip
MOVES = FlowCounts(
    edge_counts=np.array([[[8.0, 2], [3, 17]], [[9, 2], [4, 15]]]), noise="laplace", scale=1.0, population_size=30
)
MOVE = FlowCounts(edge_counts=MOVES.edge_counts[:1], noise="laplace", scale=1.0, population_size=30)
NESTS = FlowCounts(
    node_counts=FLOWS.node_counts, population_size=30,
    context={"shape": np.array([2, 1]), "wind": np.ones((2, 2)), "log_initial": np.zeros(2)},
)  # fmt: skip
X = np.random.default_rng(0).normal(size=(160, 2))
ENDS = np.arange(0, 161, 4)  # of bags of four
LABELS = (X[:, 0] + np.random.default_rng(1).normal(size=160) > 0).astype(int)
BAGS = Bags(X, ENDS, np.add.reduceat(LABELS, ENDS[:-1]))
CLOUDS = Bags(X, ENDS, target=X[::4, 0])
CLASSES = Bags(X, ENDS, target=(X[::4, 0] > 0).astype(int))
VECTORS = np.random.default_rng(1).normal(size=(60, 3))
