"""Packages that an extra of `pyproject.toml` brings, imported when they are first needed."""

import importlib

from agglearn.errors import NotAvailable


def require(module: str, extra: str):
    """Import a module of an optional package.

    Parameters
    ----------
    module : dotted name. extra : extra of agglearn that installs its package.

    Raises
    ------
    NotAvailable : the package is not installed; the text names the extra.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # the package is there, but something that it needs is not
        raise NotAvailable(f"{package} is not installed; install it with `pip install 'agglearn[{extra}]'`") from None
