"""Words for people."""

from collections.abc import Iterable


def bytes_text(size: int | None) -> str:
    """A size in bytes with three digits and its unit, as `5.83 MB`, or `unknown`."""
    if size is None:
        return "unknown"
    scaled = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if scaled < 999.5:  # 999.6 would be rounded to 1,000
            return f"{scaled:.3g} {unit}"
        scaled /= 1000
    return f"{scaled:,.3g} TB"


def visible(text: object) -> str:
    """A text in which characters that a terminal would obey, or not show, are spelt as in Python's `repr`."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def list_some(names: Iterable[object], limit: int = 12) -> str:
    """The first names, and how many follow."""
    texts = [visible(name) for name in names]
    return ", ".join(texts[:limit]) + (f" and {len(texts) - limit} more" if len(texts) > limit else "")
