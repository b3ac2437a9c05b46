"""The exact optimum as an encoder. Records that build it must not be used for anything else: their labels are in it."""

import numpy as np
import pandas as pd

from agglearn.encoding import TargetEncoder
from agglearn.encoding.columns import as_text
from agglearn.encoding.target import MISSING_VALUE, NEVER
from agglearn.vocabulary.optimal import OptimalQuantizer


def optimal_encoder(column: pd.Series, y: np.ndarray, modalities: int) -> TargetEncoder:
    """Return at most `modalities` clusters, one for values not among held-out records. Rates are shrunk before."""
    values = as_text(column).fillna(MISSING_VALUE)
    table = pd.DataFrame({"value": values, "y": y}).groupby("value")["y"].agg(["size", "sum"])
    quantizer = OptimalQuantizer(min(modalities - 1, len(table)), shrinkage="beta_binomial")
    codes = np.asarray(quantizer.fit(table["size"].to_numpy(), table["sum"].to_numpy()).labels_)
    n, c = np.bincount(codes, table["size"]), np.bincount(codes, table["sum"])
    labels = [f"{int(a)} records, rate {b / a:.3g}" for a, b in zip(n, c, strict=True)]
    return TargetEncoder(str(column.name), tuple(table.index), tuple((codes + 1).tolist()), (NEVER, *labels))
