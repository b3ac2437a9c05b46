"""Words for people."""


def bytes_text(size: int | None) -> str:
    """A size in bytes with three digits and its unit, as `5.83 MB`; `unknown` for None."""
    if size is None:
        return "unknown"
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:  # 999.6 would be rounded to 1,000
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"
