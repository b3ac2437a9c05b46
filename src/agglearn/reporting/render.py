"""Table and figure of one experiment: CSV for machines, Markdown, LaTeX and HTML for people, SVG."""

from pathlib import Path

from agglearn import products
from agglearn.plan import Plan
from agglearn.reporting import figures, layout, summary


def render(plan: Plan, name: str, paths, results) -> None:
    """Write `tables/<name>.csv .md .tex .html` and `figures/<name>.svg`."""
    experiment = plan.experiments[name]
    rows = summary.load_rows(paths, plan, name)
    table = summary.summarise(rows, experiment)
    titles = {d: plan.config["datasets"][d]["title"] for d in experiment["datasets"]}
    grids = layout.grids(table, experiment, titles)
    caption = caption_of(experiment, table)
    folder = Path(results)
    with products.atomic_file(folder / f"tables/{name}.csv") as work:
        table.to_csv(work, index=False)
    for kind, write in (("md", layout.markdown), ("tex", layout.latex), ("html", layout.html)):
        with products.atomic_file(folder / f"tables/{name}.{kind}") as work:
            work.write_text("\n".join(write(grid, title, caption) for title, grid in grids))
    with products.atomic_file(folder / f"figures/{name}.svg") as work:
        figures.draw(rows, table, experiment, titles, work)


def caption_of(experiment: dict, table) -> str:
    """The experiment's caption, and how to read the numbers."""
    parts = [experiment.get("caption", "").strip()]
    if (table["n"] > 1).any():
        parts.append(f"Mean ± half the 95 % interval over {int(table['n'].max())} seeds.")
    if table["reported"].notna().any():
        parts.append("In parentheses, or below: printed in the source.")
    return " ".join(p for p in parts if p)
