"""The pages that people read: an index, and a page per source with its tables, figures and verdicts.

Everything a page needs lies in the folder; it can be opened from disk or copied to any web server.
"""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from agglearn import __version__, products
from agglearn.plan import Plan
from agglearn.reporting.layout import measure_name, statement
from agglearn.reporting.outcome import lines
from agglearn.running import commit

SOURCES = {
    "maxent": ("Maximum entropy from contingency tables", "Gilotte, Ben Yahmed, Rohde 2022"),
    "vocabulary": ("Vocabulary compression", "Bateni et al. 2019"),
    "collective": ("Collective graphical models", "Sun 2019, chapter 2"),
    "proportions": ("Learning with label proportions", "Sun 2019, chapter 3"),
    "distribution": ("Distribution regression", "Sun 2019, chapter 4"),
    "labelsums": ("Logistic regression from label sums", "WALR note"),
}


def build(plan: Plan, results: Path, out: Path) -> None:
    """Write the site into an empty folder."""
    pages = Environment(loader=PackageLoader("agglearn.reporting"), autoescape=True, undefined=StrictUndefined)
    claims = products.read_json(results / "claims.json")
    experiments = {n: _experiment(plan, n, results, out) for n in plan.experiments}
    sources = []
    for name in plan.sources():
        title, paper = SOURCES.get(name, (name, ""))
        sources.append(
            {
                "name": name,
                "title": title,
                "paper": paper,
                "experiments": [e for e in experiments.values() if e["source"] == name],
                "claims": [c for c in claims if c["source"] == name],
            }
        )
    context = {
        "version": __version__,
        "commit": commit(),
        "scale": plan.config["scale"],
        "sources": sources,
        "datasets": _datasets(plan),
        "outcome": [
            x
            for x in lines(plan.config["results"], results, plan.experiments)
            if not x.startswith(("tables:", "read them"))
        ],
    }
    (out / "index.html").write_text(pages.get_template("index.html").render(**context))
    for source in sources:
        page = pages.get_template("source.html").render(source=source, **context)
        (out / f"{source['name']}.html").write_text(page)
    shutil.copy(Path(__file__).parent / "templates/style.css", out / "style.css")


def _experiment(plan: Plan, name: str, results: Path, out: Path) -> dict:
    e = plan.experiments[name]
    for kind in ("csv", "md", "tex"):
        (out / "tables").mkdir(exist_ok=True)
        shutil.copy(results / f"tables/{name}.{kind}", out / "tables")
    (out / "figures").mkdir(exist_ok=True)
    shutil.copy(results / f"figures/{name}.svg", out / "figures")
    table = pd.read_csv(results / f"tables/{name}.csv")
    return {
        "name": name,
        "source": e["source"],
        "title": e["title"],
        "table": Markup((results / f"tables/{name}.html").read_text()),
        "rows": _full(table, e),
        "spent": _spent(plan, name, results),
        "budget": e.get("budget"),
        "runs": len(plan.runs(name)),
    }


def _full(table: pd.DataFrame, e: dict) -> list[dict]:
    """Every row of the summary as text."""
    found = []
    for row in table.to_dict("records"):
        known = row["mean"] == row["mean"]
        half = (row["high"] - row["low"]) / 2
        found.append(
            {
                "dataset": row["dataset"],
                "method": e["methods"][row["method"]].get("name") or row["method"],
                "params": _brief(row["params"]),
                "measure": measure_name(row["measure"]) + (f" ({row['item']})" if isinstance(row["item"], str) else ""),
                "value": f"{row['mean']:.4g}" + (f" ± {half:.2g}" if half == half else "") if known else statement(row),
                "unit": row["unit"] if isinstance(row["unit"], str) else "",
                "n": row["n"],
                "reported": f"{row['reported']:g}" if row["reported"] == row["reported"] else "",
                "place": row["place"] if isinstance(row["place"], str) else "",
                "verdict": row["verdict"] if isinstance(row["verdict"], str) else "",
            }
        )
    return found


def _brief(params: str) -> str:
    return params.strip("{}").replace('"', "")


def _spent(plan: Plan, name: str, results: Path) -> float:
    """Seconds of all runs of an experiment (whenever they were computed)."""
    total = 0.0
    for batch in plan.batches(name):
        rows = pq.read_table(
            results / f"measurements/{name}/{batch}.parquet", columns=["measure", "value", "status"]
        ).to_pandas()
        total += rows.loc[(rows["measure"] == "elapsed") & (rows["status"] == "ok"), "value"].sum()
    return total


def _datasets(plan: Plan) -> list[dict]:
    names = sorted({d for e in plan.experiments.values() for d in e["datasets"]})
    results = Path(plan.config["results"])
    found = []
    for name in names:
        entry = plan.config["datasets"][name]
        said = {"status": "ok", "reason": "drawn by a simulator"}
        for stop in ("records", "sources"):
            manifest = results / stop / name / products.MANIFEST
            if manifest.exists():
                said = products.read_json(manifest)
                break
        rows = f"{said['rows']:,} records, {said['columns']} features" if "rows" in said else ""
        rows += f", rate {said['rate']:.3f}" if "rate" in said else ""
        found.append(
            {
                "name": name,
                "title": entry["title"],
                "homepage": entry.get("homepage"),
                "licence": entry.get("licence", ""),
                "note": entry.get("note", ""),
                "status": said["status"],
                "said": rows or said.get("reason", ""),
            }
        )
    return found
