"""What was found, in the words of a person: config/findings/<source>.md, whose numbers are held against measurements."""

from pathlib import Path

import markdown2
from markupsafe import Markup

from agglearn.reporting.marks import MARK

FOLDER = "config/findings"


def of(base: Path, name: str) -> dict:
    """`finding`, the first paragraph as text, and `findings`, all of it as HTML. Both are empty where nobody has written any."""
    path = base / FOLDER / f"{name}.md"
    if not path.exists():
        return {"finding": "", "findings": ""}
    text = MARK.sub(lambda found: found["number"], path.read_text()).strip()
    first = " ".join(text.partition("\n\n")[0].split())
    return {"finding": first, "findings": Markup(markdown2.markdown(text, extras=["tables", "cuddled-lists"]))}
