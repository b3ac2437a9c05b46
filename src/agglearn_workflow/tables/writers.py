"""Printed tables as Markdown, LaTeX and HTML, by the templates `table.*`."""

from agglearn_workflow.tables.printed_table import Grid
from agglearn_workflow.tables.templating import TEMPLATES

KINDS = ("md", "tex", "html")
TEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "λ": r"$\lambda$",
    "μ": r"$_\mu$", "µ": r"$\mu$", "θ": r"$\theta$", "ε": r"$\varepsilon$", "δ": r"$\delta$", "σ": r"$\sigma$",
    "<": "$<$", ">": "$>$", "|": "$|$", "≥": r"$\ge$", "≤": r"$\le$", "→": r"$\to$", "…": r"\ldots{}", "⁻": r"$^{-}$",
    **{c: f"$^{i}$" for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}, "\0": r"$\lambda_\theta$",
})  # fmt: skip


def write(name: str, grids: list[tuple[str, Grid]], caption: str) -> dict[str, str]:
    """Tables with their titles as `md` (GitHub), `tex` (with booktabs) and `html`, a document with a name."""
    return {k: TEMPLATES.get_template(f"table.{k}").render(name=name, grids=grids, caption=caption) for k in KINDS}


def figures_in(text: str) -> str:
    """The `<figure>` elements of an HTML document."""
    return text[text.index("<figure") : text.rindex("</html>")]


def _tex(text: str) -> str:
    return text.replace("λθ", "\0").translate(TEX)


TEMPLATES.filters["tex"] = _tex
