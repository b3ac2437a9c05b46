"""An experiment whose results are reported: two methods on two data sets."""

from agglearn_workflow.tables import printed_table
from agglearn_workflow.tables.printed_table import Grid

EXPERIMENT = {
    "title": "T & U_1",
    "datasets": {"a": {}, "b": {}},
    "methods": {"ours": {"name": "Ours"}, "base": {}},
    "measures": ["nllh"],
    "reported": [],
}


def written(kind: str, grid: Grid, title: str = "T") -> str:
    """A table without a caption."""
    return printed_table.write(title, [(title, grid)], "")[kind]
