"""Words for people."""


def bytes_text(size: int | None) -> str:
    """`5.8 MB`."""
    if size is None:
        return "unknown"
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
