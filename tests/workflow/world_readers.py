"""Tables in Markdown, LaTeX and HTML, read back and compared with what should stand there."""

import re
from html.parser import HTMLParser

from markupsafe import escape
from world_tables import Grid, Layout, Place


class Tables(HTMLParser):
    """Every table of a page as rows of cells: text, attributes, and what stands in elements inside the cell."""

    PARTS = ("sup", "span", "strong", "em", "small", "a")

    def __init__(self, text: str):
        super().__init__()
        self.tables, self.within = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append({"text": "", "attrs": attrs, "head": tag == "th"})
            self.within = [(tag, attrs)]
        elif self.within and tag in self.PARTS:
            self.within.append((attrs.get("class", tag) if tag == "span" else tag, attrs))
            self.tables[-1][-1][-1].setdefault(self.within[-1][0].split()[0], ["", attrs])

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.within = []
        elif self.within and tag in self.PARTS:
            self.within.pop()

    def handle_data(self, data):
        if self.within:
            cell, inner = self.tables[-1][-1][-1], self.within[-1][0].split()[0]
            cell["text"] += data
            if len(self.within) > 1:
                cell[inner][0] += data


UNTEX = {r"\&": "&", r"\%": "%", r"\_": "_", r"$\pm$": "±", "$-$": "−", "$>$": ">", "$<$": "<", "--": "–"}


def untexed(text: str) -> str:
    return re.sub("|".join(map(re.escape, UNTEX)), lambda found: UNTEX[found[0]], text)


def expanded(rows: list[list[tuple[str, int, int]]]) -> list[list[str]]:
    """Rows of (text, columns, rows that it spans) with the text in every place."""
    grid, height = {}, len(rows)
    for i, row in enumerate(rows):
        j = 0
        for text, wide, high in row:
            while (i, j) in grid:
                j += 1
            grid |= {(i + k, j + m): text for k in range(high) for m in range(wide)}
            j += wide
    return [[grid[i, j] for j in range(1 + max(j for _, j in grid))] for i in range(height)]


def in_text(text: str, bold: str) -> Place:
    """A cell of Markdown or LaTeX."""
    found = re.fullmatch(rf"(?:{bold}|(.*?))(?: \((−?-?[\d.]+)(?:, ([+−][\d.]+))?\))?(?: \[(\d+)\])?", text)
    best, value, *rest = found.groups()
    return Place(value if best is None else best, *(part or "" for part in rest), best is not None)


def in_html(cell: dict) -> Place:
    printed = cell.get("reported", ["", {}])
    difference, note = cell.get("difference", [""])[0], cell.get("sup", [""])[0]
    number = printed[0].strip(" ,")
    value = cell["text"].removesuffix(printed[0] + difference).removesuffix(note)
    kind, title = printed[1].get("class", "").removeprefix("reported").strip(), printed[1].get("title", "")
    assert kind == "".join(re.findall("^(?:agrees|above|below)", title))
    return Place(value, number, difference, note, "strong" in cell, title, "em" in cell)


def check_markdown(text: str, layout: Layout, expected: list[Grid]) -> None:
    blocks = re.split(r"\n(?=\*\*World)", text)
    assert len(blocks) == len(expected)
    for block, grid in zip(blocks, expected, strict=True):
        rows = [[c.strip() for c in line[1:-1].split("|")] for line in block.splitlines() if line.startswith("|")]
        first = " by ".join(filter(None, [layout.corner, layout.stubs[0]]))
        assert rows[0] == [first, *layout.stubs[1:], *(", ".join(filter(None, head)) for head in grid.heads)]
        check_body(rows[2:], layout, grid, lambda c: in_text(c, r"\*\*(.*?)\*\*"))
        assert block.startswith(f"**World & 5 % of_it{grid.title}**\n")
        assert re.findall(r"^\[\d+\] (.*)", block, re.MULTILINE) == grid.notes
        assert re.findall(r"^Without a result: (.*)", block, re.MULTILINE) == grid.without
        marks = any(p.best for one in expected for row in one.cells for p in row)  # the caption stands below the first
        assert ("Bold: the best" in block) == (marks and grid is expected[0])


def check_latex(text: str, layout: Layout, expected: list[Grid]) -> None:
    blocks = re.findall(r"\\begin{table}(.*?)\\end{table}", text, re.DOTALL)
    assert len(blocks) == len(expected)
    for block, grid in zip(blocks, expected, strict=True):
        head, body = (part.strip().removesuffix(r"\\").split("\\\\\n") for part in re.search(
            r"\\toprule\n(.*?)\\midrule\n(.*?)\\bottomrule", block, re.DOTALL).groups())  # fmt: skip
        head, body = ([[c.strip() for c in re.split(r"(?<!\\)&", line)] for line in part] for part in (head, body))
        n = len(layout.stubs)
        levels = expanded([[spanned(c) for c in row[n:]] for row in head])
        check_head(levels, layout, grid)
        assert [[untexed(c) for c in row[:n]] for row in head] == [[""] * n] * (len(head) - 1) + [layout.stubs]
        check_body([[untexed(c) for c in row] for row in body], layout, grid, lambda c: in_text(c, r"\\textbf{(.*?)}"))
        plain = untexed(block)
        assert rf"\caption{{World & 5 % of_it{grid.title}. By hand, <plainly>." in plain
        assert re.findall(r"footnotesize \[\d+\] (.*)", plain) == grid.notes
        assert re.findall(r"footnotesize Without a result: (.*)", plain) == grid.without


def spanned(text: str) -> tuple[str, int, int]:
    found = re.fullmatch(r"\\multicolumn{(\d+)}{c}{(.*)}", text)
    return (untexed(found[2]), int(found[1]), 1) if found else (untexed(text), 1, 1)


def check_html(text: str, layout: Layout, expected: list[Grid]) -> None:
    figures = text.split("</figure>")[:-1]
    assert len(figures) == len(expected)
    for figure, grid in zip(figures, expected, strict=True):
        [table] = Tables(figure).tables
        size = lambda c: (c["text"], int(c["attrs"].get("colspan", 1)), int(c["attrs"].get("rowspan", 1)))  # noqa: E731
        head = expanded([[size(c) for c in row] for row in table if all(c["head"] for c in row)])
        body = [row for row in table if not all(c["head"] for c in row)]
        n = len(layout.stubs)
        assert {tuple(row[:n]) for row in head} == {tuple(layout.stubs)}
        check_head([row[n:] for row in head], layout, grid)
        labels = expanded([[size(c) for c in row if c["head"]] for row in body])
        cells = [[c for c in row if not c["head"]] for row in body]
        check_body([a + b for a, b in zip(labels, cells, strict=True)], layout, grid, in_html, verdicts=True)
        assert f"<figcaption>World &amp; 5 % of_it{grid.title}</figcaption>" in figure
        assert ("By hand, &lt;plainly&gt;." in figure) == (grid is expected[0])
        assert re.findall("<li>(.*?)</li>", figure) == [escape(note) for note in grid.without + grid.notes]


def check_head(levels: list[list[str]], layout: Layout, grid: Grid) -> None:
    wanted = [list(level) for level in zip(*grid.heads, strict=True)]
    assert levels == [[layout.corner] * len(grid.heads)] * bool(layout.corner) + wanted


def check_body(rows: list[list], layout: Layout, grid: Grid, read, verdicts: bool = False) -> None:
    n = len(layout.stubs)
    assert [tuple(row[:n]) for row in rows] == grid.rows
    for row, labels, expected in zip(rows, grid.rows, grid.cells, strict=True):
        for cell, place in zip(row[n:], expected, strict=True):
            found = read(cell)
            if not verdicts:
                found.verdict, found.stated = place.verdict, place.stated
            assert found == place, labels


CHECKS = {"md": check_markdown, "tex": check_latex, "html": check_html}
