"""Four records with labels. A fit to them compiles kernels, or loads them, before times are measured."""

import pandas as pd

TINY = pd.DataFrame({"a": list("uvuv"), "b": list("xxyy")}), [0, 1, 1, 0]
