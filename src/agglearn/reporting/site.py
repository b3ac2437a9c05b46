"""The pages that people read: an index, and a page per source with its tables, figures and verdicts.

Everything a page needs lies in the folder; it can be opened from disk or copied to any web server.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

import markdown2
import pandas as pd
import pyarrow.parquet as pq
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from agglearn import __version__, products
from agglearn.plan import Plan
from agglearn.reporting.inventory import inventory
from agglearn.reporting.layout import statement
from agglearn.reporting.numbers import measure_name
from agglearn.reporting.outcome import lines
from agglearn.reporting.predicates import VERDICTS
from agglearn.reporting.references import citations
from agglearn.running import commit
from agglearn.text import bytes_text


def build(plan: Plan, claims: list[dict], results: Path, out: Path, base: Path, unfinished: Iterable[str] = ()) -> None:
    """Write the site of a plan into an empty folder.

    Parameters
    ----------
    claims : verdicts, as `judge_all` returns them.
    results : the scale's folder, with tables, figures and measurements.
    out : the empty folder; base : the project's root.
    unfinished : sources that are still being worked on.
    """
    pages = Environment(loader=PackageLoader("agglearn.reporting"), autoescape=True, undefined=StrictUndefined)
    experiments = {n: _experiment(plan, n, results, out) for n in plan.experiments}
    sources = []
    for name in plan.sources():
        paper = plan.config["references"].get("papers", {}).get(name, {"title": name, "short": ""})
        sources.append(
            {
                "name": name,
                "title": paper["title"],
                "paper": paper["short"],
                "experiments": [e for e in experiments.values() if e["source"] == name],
                "claims": [c for c in claims if c["source"] == name],
            }
        )
    context = {
        "version": __version__,
        "commit": commit(),
        "scale": plan.config["scale"],
        "sources": sources,
        "unfinished": list(unfinished),
        "verdicts": VERDICTS,
        "datasets": _datasets(plan, base),
        "outcome": [
            x
            for x in lines(plan.config["results"], results, plan.experiments)
            if not x.startswith(("tables:", "read them"))
        ],
    }
    for source in sources:
        page = pages.get_template("source.html").render(source=source, **context)
        (out / f"{source['name']}.html").write_text(page)
    text = Markup(markdown2.markdown((base / "docs/verdicts.md").read_text(), extras=["tables"]))
    (out / "verdicts.html").write_text(pages.get_template("verdicts.html").render(text=text, **context))
    for page in ("data.html", "index.html"):  # the index is never older than what it links
        (out / page).write_text(pages.get_template(page).render(**context))
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


def _datasets(plan: Plan, base: Path) -> list[dict]:
    """Rows of the page on data: the inventory, and what the run made of each data set."""
    rows = []
    for row in inventory(plan.config, plan.experiments, base):
        if row["experiments"]:
            entry = plan.config["datasets"][row["name"]]
            rows.append(
                {
                    **row,
                    **_state(Path(plan.config["results"]), row["name"], row["kind"]),
                    "size": bytes_text(row["bytes"]) if row["kind"] == "files" else "",
                    "citations": [] if row["kind"] == "simulated" else citations(entry),
                    "experiments": [{"name": e, "source": plan.experiments[e]["source"]} for e in row["experiments"]],
                }
            )
    return rows


def _state(results: Path, name: str, kind: str) -> dict[str, str]:
    """`status`, and in words how many records there are or why there are none."""
    for product in ("records", "sources"):
        path = results / product / name / products.MANIFEST
        if path.exists():
            manifest = products.read_json(path)
            size = f"{manifest['rows']:,} records, {manifest['columns']} features" if "rows" in manifest else ""
            size += f", rate {manifest['rate']:.3f}" if "rate" in manifest else ""
            return {"status": manifest["status"], "state": size or manifest.get("reason", "")}
    return {"status": "ok", "state": "drawn anew for every seed" if kind == "simulated" else ""}
