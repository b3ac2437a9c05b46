"""Findings as a person wrote them, in config/findings/<source>.md.

A number may stand behind a comment that is not rendered, `<!-- EXPERIMENT: {measure: M, method: N} -->.42`. Tests of the project
compare it with the measurement that the comment names.
"""

import re
from html import unescape
from pathlib import Path

import markdown2
from markupsafe import Markup

ADDRESS = re.compile(r'(?P<name>href|src)="(?P<address>[^"]*)"')
SAFE = re.compile(r"https?://|[^:]*$")  # the web, or no scheme. markdown2's own filter passes `javascript:1/…`
FOLDER = "config/findings"
MARK = re.compile(r"<!--\s*(?P<experiment>\w+):\s*(?P<selector>\{.*?\})\s*-->\s*(?P<number>\S*)")


def read_findings(base: Path, name: str) -> dict:
    """`finding`, the first paragraph as text, and `findings`, the page as HTML. Both are empty where there is no page."""
    path = base / FOLDER / f"{name}.md"
    if not path.exists():
        return {"finding": "", "findings": ""}
    text = MARK.sub(lambda mark: mark["number"], path.read_text()).strip()
    first = " ".join(text.partition("\n\n")[0].split())
    return {"finding": first, "findings": render_markdown(text)}


def render_markdown(text: str) -> Markup:
    """HTML of a Markdown page. What is HTML in it is shown, not obeyed, and links lead to files and to the web only."""
    page = markdown2.markdown(text, extras=["tables", "cuddled-lists"], safe_mode="escape")
    return Markup(ADDRESS.sub(lambda m: m[0] if SAFE.match(unescape(m["address"])) else f'{m["name"]}="#"', page))
