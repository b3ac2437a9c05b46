"""Errors that a user can act on: one line that says what, where, and what to do."""

from agglearn.text import visible

__all__ = [
    "AgglearnError",
    "ConfigError",
    "DataError",
    "GridEdge",
    "LooksLikeCodes",
    "NoiseIgnored",
    "NotAvailable",
    "PoorFit",
    "PrivacyWarning",
    "RecordsLeftOut",
    "Stopped",
    "TablesDisagree",
]


class AgglearnError(Exception):
    """Base of every error meant for the user. Its text is one line that a terminal can show."""

    def __str__(self) -> str:
        return visible(super().__str__())


class ConfigError(AgglearnError, ValueError):
    """A configuration file or option is wrong: names the file, the key and what is allowed."""


class DataError(AgglearnError, ValueError):
    """The data are there but wrong: names the file or column and what to do."""


class Stopped(AgglearnError):
    """A solver reached its limit (`> 8 s`) or gave up (`Clarabel failed`), which is the text: a result, not a failure."""


class NotAvailable(AgglearnError):
    """Something cannot be had here (no source, an optional package missing): a status, not a failure."""


class NoiseIgnored(UserWarning):
    """A learner takes noisy aggregates for exact ones."""


class LooksLikeCodes(UserWarning):
    """Numbers that look like names were taken for amounts, amounts for names, or codes have lost digits."""


class GridEdge(UserWarning):
    """A setting was chosen at an end of the values tried, so that a better one may lie beyond."""


class RecordsLeftOut(UserWarning):
    """Records have a label that a declared schema does not name."""


class TablesDisagree(UserWarning):
    """Tables of one population add up to different numbers of records, and were scaled to one total."""


class PoorFit(UserWarning):
    """A fitted model explains the counts worse than chance does."""


class PrivacyWarning(UserWarning):
    """A release keeps its promise, but the promise is a weak one."""


def describe(error: Exception) -> str:
    """One line for a reason: the text of our errors, else the type as well."""
    text = str(error) if isinstance(error, AgglearnError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
