"""The site: an index, and a page per source with its tables, figures and verdicts.

The folder is complete. Its pages open from disk, and from any web server.
"""

import datetime
import os
import shutil
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from agglearn import __version__, machine, storage
from agglearn.evaluation.verdicts import FAILS
from agglearn.text import bytes_text
from agglearn_workflow.archive import store
from agglearn_workflow.claims import statements
from agglearn_workflow.figures import svg
from agglearn_workflow.plan import Plan
from agglearn_workflow.project import TEMPLATES
from agglearn_workflow.run_summary import problem_lines, problems
from agglearn_workflow.runs import products
from agglearn_workflow.runs.circumstances import commit
from agglearn_workflow.site import crate, findings
from agglearn_workflow.site.inventory import inventory
from agglearn_workflow.site.references import citations
from agglearn_workflow.tables.numbers import duration_text, measure_name, number, plain
from agglearn_workflow.tables.printed_table import statement
from agglearn_workflow.tables.writers import figures_in

LONG = 24  # rows above which a table is folded
MAX_ROWS = 800  # of the page with every measure, for less than 300 kB


def build(plan: Plan, claims: list[dict], results: Path, out: Path, base: Path, address: Path) -> None:
    """Write the site of a plan into an empty folder. `address` is where it will lie."""
    pages = Environment(loader=PackageLoader("agglearn_workflow"), autoescape=True, undefined=StrictUndefined)
    pages.trim_blocks = True
    experiments = {n: _experiment(plan, n, results, out, pages) for n in plan.experiments}
    archived = _of_archive(plan)
    for name, entry in experiments.items():
        entry["archived"] = archived.get(name)
    sources = [_source(plan, name, experiments, claims, results, base) for name in plan.sources()]
    context = {
        "version": __version__,
        "commit": commit(),
        "scale": plan.config["scale"],
        "date": datetime.date.today().isoformat(),
        "machine": machine.describe(),
        "archived": _totals(archived),
        "spent": duration_text(sum(e["spent"] for e in experiments.values())),
        "sources": sources,
        "counts": statements.count_verdicts(claims),
        "archived_counts": _archived_counts(claims),
        "failing": [c | {"paper": s["paper"]} for s in sources for c in s["claims"] if c["verdict"] == FAILS],
        "timed": [c for s in sources for c in s["claims"] if c["of_time"]],
        "ladder": _ladder(plan, experiments, results, base),
        "benchmarks": _benchmarks(Path(plan.config["results"])),
        "datasets": _datasets(plan, base),
        "without": problem_lines(results, problems(plan.config["results"], results, plan.experiments)),
        "here": "",
        "guide": _guide(Path(plan.config["results"]), address),
    }
    for source in sources:
        page = pages.get_template("source.html").render(context | {"source": source, "here": source["name"]})
        (out / f"{source['name']}.html").write_text(page)
    text = findings.render_markdown((base / "docs/verdicts.md").read_text())
    verdicts = pages.get_template("verdicts.html").render(context | {"text": text, "here": "verdicts"})
    (out / "verdicts.html").write_text(verdicts)
    for page in ("data", "index"):  # the index is never older than what it links
        (out / f"{page}.html").write_text(pages.get_template(f"{page}.html").render(context | {"here": page}))
    shutil.copy(TEMPLATES / "style.css", out / "style.css")
    crate.write(plan, context["datasets"], context["commit"], out)


def _source(plan: Plan, name: str, experiments: dict, claims: list[dict], results: Path, base: Path) -> dict:
    """Entry of a source in the templates."""
    paper = plan.config["references"].get("papers", {}).get(name, {"title": name, "short": ""})
    own = [c for c in claims if c["source"] == name]
    here = [e for e in experiments.values() if e["source"] == name]
    return {
        "name": name,
        "title": paper["title"],
        "menu": paper.get("menu", paper["title"]),
        "paper": paper["short"],
        "url": paper.get("url"),
        "page": (base / f"docs/{name}.md").exists(),
        "picture": _picture(sorted(here, key=lambda e: e["name"] != paper.get("headline")), results),
        "experiments": here,
        "claims": [
            c
            | statements.describe_claim(
                c,
                plan.config["claims"][c["name"]],
                _seeds(plan, c),
                _names(plan, c),
                experiments.get(c["experiment"], {"spent": 0.0})["spent"],
            )
            for c in own
        ],
        "counts": statements.count_verdicts(own),
        "archived_counts": _archived_counts(own),
        "weak": sum(bool(c["weak"]) for c in own),
        **findings.read_findings(base, name),
    }


def _archived_counts(claims: list[dict]) -> list[tuple[str, int]]:
    """(verdict of the archive, number of claims) of the claims that the archive judges at larger sizes."""
    return statements.count_verdicts([{"verdict": c["archived"]} for c in claims if "archived" in c])


def _picture(experiments: list[dict], results: Path) -> dict | None:
    """The first panel of the first experiment that has a figure. None where none has."""
    for e in experiments:
        if view := svg.first_panel(results / f"figures/{e['name']}.svg"):
            return {"name": e["name"], "title": e["title"], "view": view}
    return None


def _seeds(plan: Plan, claim: dict) -> int:
    """Number of seeds that a claim rests on. It is 0 where its experiment is not in the plan."""
    return len(plan.experiments.get(claim["experiment"], {"seeds": []})["seeds"])


def _names(plan: Plan, claim: dict) -> dict[str, str]:
    """Names of the data sets and methods of a claim's experiment."""
    e = plan.experiments.get(claim["experiment"], {"datasets": {}, "methods": {}})
    methods = {key: m["name"] for key, m in e["methods"].items() if "name" in m}
    return {d: plan.config["datasets"][d]["title"] for d in e["datasets"]} | methods


def _ladder(plan: Plan, experiments: dict, results: Path, base: Path) -> dict | None:
    """The experiment that compares releases, with its finding. None where it is not in the plan."""
    name = plan.config["references"].get("ladder")
    if name not in experiments:
        return None
    e = experiments[name]
    return {
        "name": name,
        "source": e["source"],
        "title": e["title"],
        "text": findings.read_findings(base, "ladder")["findings"],
        "view": svg.first_figure(results / f"figures/{name}.svg"),
    }


def _guide(results: Path, site: Path) -> str:
    """Path from the site to the pages of `make docs`. Empty where there are none."""
    return os.path.relpath(results / "docs", site) if (results / "docs/index.html").is_file() else ""


def _of_archive(plan: Plan) -> dict[str, dict]:
    """Experiment → what the archive has of it. Empty where results are computed."""
    config = plan.config
    return store.summarise(plan, config["archive"], list(plan.experiments)) if config["from"] == "archive" else {}


def _totals(archived: dict[str, dict]) -> dict | None:
    """What the archive has of all experiments. None where results are computed."""
    if not archived:
        return None
    facts = archived.values()
    days = sorted({day for f in facts for day in f["days"]})
    return {
        **{name: sum(f[name] for f in facts) for name in ("planned", "archived", "outdated", "cpu_seconds")},
        "complete": sum(f["archived"] == f["planned"] for f in facts),
        **{name: sorted({text for f in facts for text in f[name]}) for name in ("commits", "machines")},
        "days": days[:1] + days[1:][-1:],
    }


def _benchmarks(results: Path) -> dict | None:
    """Tables of the last `make bench`, with its date and machine. None before the first."""
    files = sorted((results / "bench").glob("*.txt"))
    if not files:
        return None
    when = datetime.date.fromtimestamp(max(f.stat().st_mtime for f in files)).isoformat()
    tables = [{"name": f.stem.replace("_", " "), "text": f.read_text().strip()} for f in files]
    return {"date": when, "machine": machine.describe(), "parts": tables}


def _experiment(plan: Plan, name: str, results: Path, out: Path, pages: Environment) -> dict:
    """Entry of an experiment in the templates. Its files and its page with every measure are written into the site."""
    e = plan.experiments[name]
    for kind in ("csv", "md", "tex"):
        (out / "tables").mkdir(exist_ok=True)
        shutil.copy(results / f"tables/{name}.{kind}", out / "tables")
    for folder in ("figures", "full"):
        (out / folder).mkdir(exist_ok=True)
    shutil.copy(results / f"figures/{name}.svg", out / "figures")
    table = pd.read_csv(results / f"tables/{name}.csv")
    text = figures_in((results / f"tables/{name}.html").read_text())
    text = text.replace(f"<figcaption>{escape(e['title'])}</figcaption>", "")  # the page has it as a heading
    rows = storage.read_json(results / f"tables/{name}.json")["rows"]
    entry = {
        "name": name,
        "source": e["source"],
        "title": e["title"],
        "table": Markup(text),
        "long": rows if rows > LONG else 0,
        "spent": _spent(plan, name, results),
        "budget": e.get("budget"),
        "command": crate.command(plan, name),
        "runs": len(plan.runs(name)),
    }
    page = pages.get_template("full.html").render(e=entry, rows=_full(table.head(MAX_ROWS), e), total=len(table))
    (out / f"full/{name}.html").write_text(page)
    return entry


def _full(table: pd.DataFrame, e: dict) -> list[dict]:
    """Every row of the summary as text."""
    rows = []
    for row in table.to_dict("records"):
        measured = row["mean"] == row["mean"]
        rows.append(
            {
                "dataset": row["dataset"],
                "method": e["methods"][row["method"]].get("name") or row["method"],
                "params": _brief(row["params"]),
                "measure": measure_name(row["measure"])
                + (f" ({plain(row['keys'])})" if isinstance(row["keys"], str) else ""),
                "value": number(row["mean"], row["low"], row["high"]) if measured else statement(row),
                "unit": row["unit"] if isinstance(row["unit"], str) else "",
                "n": row["n"],
                "reported": f"{row['reported']:g}" if row["reported"] == row["reported"] else "",
                "place": row["place"] if isinstance(row["place"], str) else "",
                "outcome": _outcome(row),
            }
        )
    return rows


def _outcome(row: dict) -> str:
    """Outcome of the comparison with a printed number, with the difference where the two disagree."""
    if row["outcome"] in ("above", "below"):
        return f"{row['outcome']} by {abs(row['difference']):.3g}"
    return row["outcome"] if isinstance(row["outcome"], str) else ""


def _brief(params: str) -> str:
    return params.strip("{}").replace('"', "")


def _spent(plan: Plan, name: str, results: Path) -> float:
    """Seconds of all runs of an experiment, of this and earlier calls."""
    total = 0.0
    for batch in plan.batches(name):
        rows = pq.read_table(
            results / f"measurements/{name}/{batch}.parquet", columns=["measure", "value", "status"]
        ).to_pandas()
        total += rows.loc[(rows["measure"] == "elapsed") & (rows["status"] == "ok"), "value"].sum()
    return total


def _datasets(plan: Plan, base: Path) -> list[dict]:
    """Rows of the page on data: the inventory, with the state of each data set in the run."""
    rows = []
    for row in inventory(plan.config, plan.experiments, base):
        if row["experiments"]:
            entry = plan.config["datasets"][row["name"]]
            rows.append(
                {
                    **row,
                    **_state(Path(plan.config["results"]), row["name"], row["kind"], plan.config["from"] == "archive"),
                    "size": bytes_text(row["bytes"]) if row["kind"] == "files" else "",
                    "citations": [] if row["kind"] == "simulated" else citations(entry),
                    "experiments": [{"name": e, "source": plan.experiments[e]["source"]} for e in row["experiments"]],
                }
            )
    return rows


def _state(results: Path, name: str, kind: str, is_recorded: bool) -> dict[str, str]:
    """`status`, and `state`: the number of records, or the reason why there are none."""
    path = results / "records" / name / products.MANIFEST
    if path.exists() and not is_recorded:
        manifest = storage.read_json(path)
        size = f"{manifest['rows']:,} records, {manifest['columns']} features" if "rows" in manifest else ""
        size += f", rate {manifest['rate']:.3f}" if "rate" in manifest else ""
        return {"status": manifest["status"], "state": size or manifest.get("reason", "")}
    if is_recorded:
        return {"status": "not checked", "state": "not looked at: results come from the archive"}
    return {"status": "ok", "state": "drawn anew for every seed" if kind == "simulated" else ""}
