"""Docstrings as Sphinx reads them: names with an underscore at their end are no references, and types link to their pages."""

from functools import partial

from api_pages import escaped, public
from jinja2 import FileSystemBytecodeCache
from numpydoc import docscrape_sphinx, xref

EXTERNAL = {
    "BaseEstimator": "sklearn.base.BaseEstimator",
    "DataFrame": "pandas.DataFrame",
    "Series": "pandas.Series",
    "ndarray": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "csr_matrix": "scipy.sparse.csr_matrix",
    "csr_array": "scipy.sparse.csr_array",
}


def escape(app, what: str, name: str, target, options, lines: list[str]) -> None:
    """Escape the lines of a docstring in place."""
    if what != "module":
        lines[:] = map(escaped, lines)


def setup(app) -> dict:
    """Connect to Sphinx."""
    app.connect("autodoc-process-docstring", escape, priority=400)  # before numpydoc
    xref.DEFAULT_LINKS.clear()  # they need Python's inventory
    app.doctreedir.mkdir(parents=True, exist_ok=True)
    compiled = FileSystemBytecodeCache(app.doctreedir)  # else numpydoc compiles its template for each docstring
    docscrape_sphinx.SandboxedEnvironment = partial(docscrape_sphinx.SandboxedEnvironment, bytecode_cache=compiled)
    own = {name: f"{module}.{name}" for module, names in public().items() for name in names}
    app.connect(
        "config-inited", lambda _, config: setattr(config, "numpydoc_xref_aliases", EXTERNAL | own), priority=400
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
