"""The exact optimum as an encoder: values of a large feature become the clusters of most information about the label.

As with target encodings, records that build the clusters must not be used for anything else: their labels are in them.
"""

import numpy as np
import pandas as pd

from agglearn.encoding import TargetEncoder
from agglearn.encoding.columns import as_text
from agglearn.encoding.target import MISSING_VALUE, NEVER
from agglearn.vocabulary.optimal import OptimalQuantizer


def optimal_encoder(column: pd.Series, y: np.ndarray, modalities: int) -> TargetEncoder:
    """Return at most `modalities` clusters of one feature from held-out records, one of them for values not among them.

    Rates are shrunk before they are clustered, so that a value of one record has no certain rate.
    """
    values = as_text(column).fillna(MISSING_VALUE)
    table = pd.DataFrame({"value": values, "y": y}).groupby("value")["y"].agg(["size", "sum"])
    quantizer = OptimalQuantizer(min(modalities - 1, len(table)), shrinkage="beta_binomial")
    codes = np.asarray(quantizer.fit(table["size"].to_numpy(), table["sum"].to_numpy()).labels_)
    n, c = np.bincount(codes, table["size"]), np.bincount(codes, table["sum"])
    labels = [f"{int(a)} records, rate {b / a:.3g}" for a, b in zip(n, c, strict=True)]
    return TargetEncoder(str(column.name), tuple(table.index), tuple((codes + 1).tolist()), (NEVER, *labels))
