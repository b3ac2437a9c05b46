"""A printed table as Markdown, LaTeX and HTML."""

from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby

from agglearn.reporting.printed_table import Cell, Grid

LONG_LABEL = 14  # letters
BEST = "Bold: the best of its setting, and what the intervals do not separate from it."


def markdown(g: Grid, title: str, caption: str) -> str:
    """GitHub Markdown."""
    heads = [", ".join(filter(None, h)) for h in g.heads]
    first = " by ".join(filter(None, [g.corner, g.stubs[0]]))
    lines = [
        f"**{title}**",
        "",
        "| " + " | ".join([first, *g.stubs[1:], *heads]) + " |",
        "|" + " --- |" * (len(g.stubs) + len(heads)),
    ]
    for i, labels in enumerate(g.rows):
        cells = [_marked(g.cells.get((i, j), Cell()), "**", "**") for j in range(len(heads))]
        lines.append("| " + " | ".join([*labels, *cells]) + " |")
    lines += ["", _below(g, caption), *(f"\n[{k}] {note}" for k, note in enumerate(g.notes, 1))]
    return "\n".join(lines) + "\n"


def _marked(cell: Cell, start: str, end: str, write: Callable[[str], str] = str) -> str:
    """A cell in one line: value, note, and in parentheses the printed number with our difference from it."""
    value = write(cell.value)
    value = f"{start}{value}{end}" if cell.best else value
    printed = ", ".join(filter(None, [cell.reported, cell.difference]))
    return value + write((f" ({printed})" if printed else "") + (f" [{cell.note}]" if cell.note else ""))


def _below(g: Grid, caption: str) -> str:
    return " ".join(filter(None, [caption, BEST if g.marked else ""]))


def latex(g: Grid, title: str, caption: str) -> str:
    """A `table` environment that needs booktabs and nothing else."""
    lines = [
        r"\begin{table}",
        rf"\caption{{{_tex(title)}. {_tex(_below(g, caption))}}}",
        rf"\begin{{tabular}}{{{'l' * len(g.stubs)}{'r' * len(g.heads)}}}",
        r"\toprule",
    ]
    levels = _levels(g)
    for k, level in enumerate(levels):
        stubs = g.stubs if k == len(levels) - 1 else [""] * len(g.stubs)
        spans = [rf"\multicolumn{{{n}}}{{c}}{{{_tex(text)}}}" if n > 1 else _tex(text) for text, n in level]
        lines.append(" & ".join([*map(_tex, stubs), *spans]) + r" \\")
    lines.append(r"\midrule")
    for i, labels in enumerate(g.rows):
        cells = [_marked(g.cells.get((i, j), Cell()), r"\textbf{", "}", _tex) for j in range(len(g.heads))]
        lines.append(" & ".join([*map(_tex, labels), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize [{k}] {_tex(note)}" for k, note in enumerate(g.notes, 1)]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "λ": r"$\lambda$",
    "μ": r"$_\mu$", "µ": r"$\mu$", "θ": r"$\theta$", "ε": r"$\varepsilon$", "δ": r"$\delta$", "σ": r"$\sigma$",
    "<": "$<$", ">": "$>$", "|": "$|$", "≥": r"$\ge$", "≤": r"$\le$", "→": r"$\to$", "…": r"\ldots{}", "⁻": r"$^{-}$",
    **{c: f"$^{i}$" for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(TEX.get(c, c) for c in text.replace("λθ", "\0")).replace("\0", r"$\lambda_\theta$")


def _levels(g: Grid) -> list[list[tuple[str, int]]]:
    """Rows of the header, outermost first: (label, number of columns that it spans)."""
    rows = [[(g.corner, len(g.heads))]] if g.corner else []
    depth = max(len(h) for h in g.heads)
    for k in range(depth):
        if k == depth - 1:
            rows.append([(h[k], 1) for h in g.heads])
        else:
            shared = groupby(h[: k + 1] for h in g.heads)
            rows.append([(key[k], len(list(group))) for key, group in shared])
    return [row for row in rows if any(text for text, _ in row)]


DOCUMENT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body {{ font-family: sans-serif }} table {{ border-collapse: collapse }} th, td {{ border: 1px solid #ccc; padding: .3em .6em }}
.reported {{ display: block; font-size: smaller }} figcaption {{ font-weight: bold; margin-bottom: .5em }}</style>
{figures}</html>
"""


def document(title: str, figures: str) -> str:
    """An HTML document of `<figure>` elements, for who opens them outside the site."""
    return DOCUMENT.format(title=escape(title), figures=figures)


def figures_in(text: str) -> str:
    """The `<figure>` elements of a document."""
    return text[text.index("<figure") : text.rindex("</html>")]


def html(g: Grid, title: str, caption: str) -> str:
    """A `<figure>` with the table. The source's numbers stand under ours, coloured by outcome through CSS classes."""
    levels = _levels(g)
    stubs = "".join(f"<th scope=col rowspan={len(levels)}>{escape(s)}</th>" for s in g.stubs)
    head = []
    for k, level in enumerate(levels):
        spans = "".join(
            f'<th scope="col{"group" if n > 1 else ""}" colspan={n}>{escape(text)}</th>' for text, n in level
        )
        head.append(f"<tr>{'' if k else stubs}{spans}</tr>")
    body = []
    for i, labels in enumerate(_spanned(g.rows)):
        cells = "".join(f"<td>{_html_cell(g.cells.get((i, j), Cell()))}</td>" for j in range(len(g.heads)))
        body.append(f"<tr>{labels}{cells}</tr>")
    notes = "".join(f"<li>{escape(n)}</li>" for n in g.notes)
    kind = "words" if _in_words(g) else "numbers"
    return (
        f'<figure class="table"><figcaption>{escape(title)}</figcaption>\n'
        f'<div class="scroll" tabindex=0><table class="{kind}"><thead>{"".join(head)}</thead>\n<tbody>\n'
        + "\n".join(body)
        + f'\n</tbody></table></div>\n<p class="caption">{escape(_below(g, caption))}</p>'
        + (f"<ol class=notes>{notes}</ol>" if notes else "")
        + "</figure>\n"
    )


def _in_words(g: Grid) -> bool:
    """Whether the first column of row labels has words, which need more room than numbers."""
    return max((len(labels[0]) for labels in g.rows if labels), default=0) > LONG_LABEL


def _spanned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Row headers. One of several rows is written once, except for the last label of a row."""
    for i, labels in enumerate(rows):
        cells = []
        for k, text in enumerate(labels):
            last = k == len(labels) - 1
            if last or i == 0 or rows[i - 1][: k + 1] != labels[: k + 1]:
                n = 1
                while not last and i + n < len(rows) and rows[i + n][: k + 1] == labels[: k + 1]:
                    n += 1
                cells.append(f'<th scope="row{"group" if n > 1 else ""}" rowspan={n}>{escape(text)}</th>')
        yield "".join(cells)


def _html_cell(cell: Cell) -> str:
    value = f"<strong>{escape(cell.value)}</strong>" if cell.best else escape(cell.value)
    value = f"<em>{value}</em>" if cell.stated else value
    note = f"<sup>{cell.note}</sup>" if cell.note else ""
    if not cell.reported:
        return value + note
    kind = cell.outcome if cell.outcome in ("agrees", "above", "below") else ""
    difference = f", <span class=difference>{escape(cell.difference)}</span>" if cell.difference else ""
    return f'{value}{note}<span class="reported {kind}" title="{escape(cell.outcome)}">{escape(cell.reported)}{difference}</span>'
