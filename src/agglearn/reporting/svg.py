"""Drawings as SVG text: with a title and a description, stacked, and the region that the first page shows."""

import io
import re
import textwrap
from pathlib import Path
from xml.sax.saxutils import escape

from matplotlib.figure import Figure

OPENING = re.compile(r"<svg [^>]*>")
SIZE = re.compile(r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"')
PANEL = re.compile(r'<svg [^>]*data-panel="([\d.]+) ([\d.]+) ([\d.]+)"[^>]*>')


def from_figure(figure: Figure, title: str, description: str = "") -> str:
    """A Matplotlib figure as SVG, with title and description for screen readers."""
    drawing = io.StringIO()
    figure.savefig(drawing, format="svg", metadata={"Date": None})
    opening = '<svg role="img" data-panel="{:.1f} {:.1f} {:.1f}" '.format(*_first_panel(figure))
    return _named(drawing.getvalue().replace("<svg ", opening, 1), title, description)


def _first_panel(figure: Figure) -> tuple[float, float, float]:
    """Upper end, width and height in points of a figure's first panel, from its left edge on, with legends below it."""
    panel, *others = (axes.get_tightbbox() or figure.bbox for axes in figure.axes)
    boxes = [panel, *(legend.get_window_extent() for legend in figure.legends)]
    points = 72 / figure.dpi
    right, bottom = max(box.x1 for box in boxes), min(box.y0 for box in boxes)
    width, height = figure.bbox.width, figure.bbox.height
    neighbours = [box.x0 for box in others if box.x0 >= right]  # nothing of theirs is shown
    top = max(height - panel.y1 - 4, 0) if figure.get_suptitle() else 0
    return top * points, min([right + 4, width, *neighbours]) * points, min(height - bottom + 4 - top, height) * points


def _named(drawing: str, title: str, description: str) -> str:
    words = f"\n <title>{escape(title)}</title>" + (f"\n <desc>{escape(description)}</desc>" if description else "")
    return OPENING.sub(lambda opening: opening[0] + words, drawing, count=1)


def sentence(text: str) -> str:
    """A drawing of a sentence, as text that can be searched and read aloud."""
    wrapped = textwrap.wrap(text, 90)
    height = 16 * len(wrapped) + 16
    spans = "".join(f'<tspan x="8" dy="16">{escape(line)}</tspan>' for line in wrapped)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="500pt" height="{height}pt" viewBox="0 0 500 {height}">'
        f'<text y="4" font-family="sans-serif" font-size="11">{spans}</text></svg>\n'
    )


def stacked(drawings: list[str], title: str) -> str:
    """Drawings below each other, as one."""
    if len(drawings) == 1:
        return drawings[0]
    bodies = [d[d.index("<svg") :] for d in drawings]
    sizes = [_size(body) for body in bodies]
    width, height = max(w for w, _ in sizes), sum(h for _, h in sizes)
    placed, y = [], 0.0
    for body, (_, h) in zip(bodies, sizes, strict=True):
        body = re.sub(r'(width|height)="([\d.]+)pt"', r'\1="\2"', body, count=2)
        placed.append(body.replace("<svg", f'<svg y="{y:g}"', 1))
        y += h
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}pt" height="{height:g}pt" '
        f'viewBox="0 0 {width:g} {height:g}">'
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n{_named(head, title, "")}\n' + "\n".join(placed) + "\n</svg>\n"


def _size(drawing: str) -> tuple[float, float]:
    """Width and height of the first drawing in a text."""
    width, height = SIZE.findall(drawing)[0]
    return float(width), float(height)


def first_figure(path: Path) -> tuple[str, float] | None:
    """(fragment of a drawing's address that shows the uppermost of its figures, width over height). None without a figure."""
    return _region(path, whole=True)


def first_panel(path: Path) -> tuple[str, float] | None:
    """(fragment of a drawing's address that shows the first panel only, its width over its height). None without a figure."""
    return _region(path, whole=False)


def _region(path: Path, whole: bool) -> tuple[str, float] | None:
    if (first := PANEL.search(path.read_text())) is None:
        return None
    top, width, height = (0.0, *_size(first[0])) if whole else map(float, first.groups())
    return f"#svgView(viewBox(0,{top:g},{width:g},{height:g}))", width / height
