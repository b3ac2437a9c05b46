"""Figures of an experiment, as SVG."""

import io
import textwrap
import traceback
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import matplotlib
import pandas as pd
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from agglearn.errors import describe
from agglearn_workflow.figures.charts import LETTER, STYLE, Chart
from agglearn_workflow.figures.lines import curves, lines
from agglearn_workflow.figures.points import dots, scatter
from agglearn_workflow.tables.printed_table import measures_of

SVG = "http://www.w3.org/2000/svg"
KINDS = {"dots": dots, "curve": curves, "line": lines, "scatter": scatter}
METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # none of them
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def from_figure(figure: Figure, title: str, description: str = "") -> Element:
    file = io.BytesIO()
    FigureCanvasSVG(figure).print_svg(file, metadata=METADATA)  # savefig would draw it twice
    return _with_words(ElementTree.fromstring(file.getvalue()), title, description)


def _with_words(drawing: Element, title: str, description: str) -> Element:
    drawing.set("role", "img")
    for k, (tag, text) in enumerate({"title": title, "desc": description}.items()):
        if text:
            drawing.insert(k, Element(f"{{{SVG}}}{tag}"))
            drawing[k].text = text
    return drawing


def sentence(text: str) -> Element:
    """A drawing of a sentence, as text that can be searched and read aloud."""
    lines = textwrap.wrap(text, 90)
    drawing = _empty(500, 16 * len(lines) + 16)
    block = SubElement(drawing, f"{{{SVG}}}text", {"y": "4", "font-family": "sans-serif", "font-size": "11"})
    for line in lines:
        SubElement(block, f"{{{SVG}}}tspan", x="8", dy="16").text = line
    return drawing


def _empty(width: float, height: float) -> Element:
    size = {"width": f"{width:g}pt", "height": f"{height:g}pt", "viewBox": f"0 0 {width:g} {height:g}"}
    return Element(f"{{{SVG}}}svg", size)


def stack(drawings: list[Element], title: str) -> Element:
    if len(drawings) == 1:
        return drawings[0]
    sizes = [_size(drawing) for drawing in drawings]
    page = _with_words(_empty(max(w for w, _ in sizes), sum(h for _, h in sizes)), title, "")
    y = 0.0
    for drawing, (width, height) in zip(drawings, sizes, strict=True):
        drawing.attrib |= {"y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}"}
        page.append(drawing)
        y += height
    return page


def write(drawing: Element, path: Path) -> None:
    ElementTree.ElementTree(drawing).write(path, encoding="utf-8", xml_declaration=True)


def _size(drawing: Element) -> tuple[float, float]:
    _, _, width, height = map(float, drawing.get("viewBox", "").split())
    return width, height


def first(path: Path) -> Element | None:
    """The first of some figures below each other that has a result."""
    drawings = ElementTree.parse(path).iter(f"{{{SVG}}}svg")
    return next((d for d in drawings if d.find(f"{{{SVG}}}g") is not None), None)


def draw_chart(chart: Chart) -> Figure | None:
    """The figure under its heading. None without a result."""
    figure, lines = KINDS[chart.spec["kind"]](chart), chart.heading().splitlines()
    if figure and lines:
        wrapped = [textwrap.fill(line, int(figure.get_figwidth() / LETTER)) for line in lines]
        figure.suptitle("\n".join(wrapped), x=0.01, ha="left", fontsize=9)
        figure.set_figheight(figure.get_figheight() + 0.08 + 0.16 * sum(1 + w.count("\n") for w in wrapped))
    if figure:
        _fit_texts(figure)
    return figure


def _fit_texts(figure: Figure) -> None:
    """Cut names of axes into lines, and hide names of values that reach into another, but not those at the ends."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    labels = [ax.get_xlabel() for ax in figure.axes]
    for ax, label in zip(figure.axes, labels, strict=True):
        letters = int(ax.bbox.width / figure.dpi / LETTER) + 4
        ax.set_xlabel("\n".join(textwrap.fill(line, letters) for line in label.splitlines()))
        texts = [text for text in ax.get_xticklabels() if text.get_text()]
        shown: list[Bbox] = []
        for text in [*texts[:1], *texts[:0:-1]]:
            extent = text.get_window_extent().padded(1.5)
            text.set_visible(not extent.count_overlaps(shown))
            shown += [extent] * text.get_visible()
    if [ax.get_xlabel() for ax in figure.axes] == labels:
        figure.set_layout_engine("none")  # it is laid out


NO_RESULT = "No run of this figure has a result."


def draw(rows: pd.DataFrame, table: pd.DataFrame, experiment: dict, titles: dict[str, str], path: Path) -> list[str]:
    """Write the figures of an experiment below each other. A sentence replaces one that fails, and all of them
    where none has data."""
    specs = experiment.get("figure") or {"kind": "dots", "y": measures_of(experiment)[0]}
    title, caption = experiment["title"], experiment.get("caption", "").strip()
    drawings, failed = [], []
    for spec in specs if isinstance(specs, list) else [specs]:
        try:
            with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
                figure = draw_chart(Chart(rows, table, experiment, spec, titles))
                if figure is not None:
                    drawings.append(from_figure(figure, title, caption))
        except Exception as error:
            traceback.print_exc()
            failed.append(describe(error))
            drawings.append(sentence(f"This figure failed: {failed[-1]}"))
    write(stack(drawings or [sentence(NO_RESULT)], title), path)
    return failed
