"""The site: an index, and a page per source with tables, figures and verdicts. It opens from disk, too."""

import datetime
import itertools
import os
import re
import shutil
from html import unescape
from operator import attrgetter
from pathlib import Path

import markdown2
import pandas as pd
import yaml
from markupsafe import Markup, escape

from agglearn import __version__, machine, storage
from agglearn.evaluation.verdicts import FAILS
from agglearn.text import bytes_text
from agglearn_workflow import project
from agglearn_workflow.archive import prices
from agglearn_workflow.claims import statements
from agglearn_workflow.claims.judging import NOT_JUDGED, TOO_FEW
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.config.scales import FROM_ARCHIVE, NOTE, ORDER, measured_folder
from agglearn_workflow.digests import commit
from agglearn_workflow.figures import drawing
from agglearn_workflow.plan import IDENTITY, Plan, cell_key
from agglearn_workflow.run_summary import problem_lines, problems
from agglearn_workflow.runs import products
from agglearn_workflow.site.inventory import citations, inventory
from agglearn_workflow.tables.numbers import duration_text, measure_name, method_name, number, plain
from agglearn_workflow.tables.printed_table import NO_RESULT, TEMPLATES, figures_in, statement
from agglearn_workflow.tables.tuning import tunings

ADDRESS = re.compile(r'(?P<name>href|src)="(?P<address>[^"]*)"')
SAFE = re.compile(r"https?://|[^:]*$")  # the web, or no scheme. markdown2's own filter passes `javascript:1/…`
FINDINGS = "config/findings"
MARK = re.compile(r"<!--\s*(?P<experiment>\w+):\s*(?P<selector>\{.*?\})\s*-->\s*(?P<number>[−-]?(?:\d[\d,]*)?\.?\d+|)")
ELSEWHERE = (
    "Numbers in parentheses are not of this run. They are of the archive, or of scale default where it has none."
)


def read_findings(base: Path, results: Path, name: str) -> dict:
    """`finding`, the first paragraph as text, and `findings`, the page as HTML, with the numbers that this run has measured. Both
    are empty without a page."""
    path = base / FINDINGS / f"{name}.md"
    if not path.exists():
        return {"finding": "", "findings": ""}
    written = path.read_text().strip()
    marks = list(MARK.finditer(written))
    tables = {experiment: _table(results, experiment) for experiment in {mark["experiment"] for mark in marks}}
    measured = {mark[0]: _measured(mark, tables[mark["experiment"]]) for mark in marks}
    text = MARK.sub(lambda mark: measured[mark[0]] or f"({mark['number']})", written)
    is_whole = all(measured.values())
    first = " ".join(text.partition("\n\n")[0].split())
    return {"finding": first, "findings": render_markdown(text if is_whole else f"{text}\n\n{ELSEWHERE}")}


def _table(results: Path, experiment: str) -> Rows | None:
    """The table of an experiment. None where this run has none."""
    path = results / f"tables/{experiment}.csv"
    return Rows(pd.read_csv(path, low_memory=False)) if path.exists() else None


def _measured(mark: re.Match, table: Rows | None) -> str:
    """What this run has measured in the place of a written number, with as many digits. Empty where it has no such result."""
    if table is None:
        return ""
    means = table.frame["mean"][table.selected(yaml.safe_load(mark["selector"]))].dropna()
    if len(means) != 1:
        return ""
    digits = len(mark["number"].partition(".")[2])
    text = f"{round(means.item(), digits) + 0.0:,.{digits}f}".replace("-", "−")
    return re.sub(r"^(−?)0[.]", r"\1.", text) if re.match("[−-]?[.]", mark["number"]) else text


def render_markdown(text: str) -> Markup:
    """HTML of a Markdown page. What is HTML in it is shown, not obeyed, and links lead to files and to the web only."""
    extras = {"tables": None, "cuddled-lists": None, "middle-word-em": {"allowed": False}}
    page = markdown2.markdown(text, extras=extras, safe_mode="escape")
    return Markup(ADDRESS.sub(lambda m: m[0] if SAFE.match(unescape(m["address"])) else f'{m["name"]}="#"', page))


PAGES = TEMPLATES.overlay(lstrip_blocks=False, keep_trailing_newline=False)
LONG = 24  # rows above which a table is folded
MAX_ROWS = 800  # of the page with every measure, for less than 300 kB


def build(plan: Plan, claims: list[dict], results: Path, out: Path, base: Path, address: Path) -> None:
    """Write the site of a plan into an empty folder. `address` is where it will lie."""
    config = plan.config
    experiments = {n: _experiment(plan, n, results, out, address) for n in plan.experiments}
    archived = prices.summarise(plan, config["archive"]) if config["from"] == "archive" else {}
    for name, entry in experiments.items():
        entry["archived"] = archived.get(name)
    sources = [_source(plan, name, experiments, claims, results, base) for name in plan.sources()]
    described = [c | {"paper": s["short"]} for s in sources for c in s["claims"]]
    context = {
        "version": __version__,
        "commit": commit(),
        "scale": config["scale"],
        "date": datetime.date.today().isoformat(),
        "scales": _other_scales(config, address),
        "machine": machine.describe(),
        "archived": archived.get("all"),
        "spent": duration_text(sum(e["spent"] for e in experiments.values())),
        "sources": sources,
        "counts": statements.count_verdicts(claims),
        "archived_counts": statements.count_verdicts(claims, "archived"),
        "described": described,
        "failing": [c for c in described if c["verdict"] == FAILS],
        "timed": [c for c in described if c["of_time"]],
        "ladder": _ladder(plan, experiments, results, base, out),
        "benchmarks": _benchmarks(Path(config["results"])),
        "datasets": _datasets(plan, base),
        "without": problem_lines(results, problems(config["results"], results, plan.experiments)),
        "guide": _guide(Path(config["results"]), address),
        "text": render_markdown((base / "docs/verdicts.md").read_text()),
    }
    pages = [(source["name"], "source", source) for source in sources]
    # the index is never older than what it links
    for name, template, source in [*pages, *((page, page, None) for page in ("verdicts", "data", "index"))]:
        page = PAGES.get_template(f"{template}.html").render(context | {"source": source, "here": name})
        (out / f"{name}.html").write_text(page.replace(" %", "\u00a0%").replace(" ± ", "\u00a0±\u00a0"))
    shutil.copy(project.TEMPLATES / "style.css", out / "style.css")


def _source(plan: Plan, name: str, experiments: dict, claims: list[dict], results: Path, base: Path) -> dict:
    paper = plan.config["references"].get("papers", {}).get(name, {"title": name, "short": ""})
    of_source = [c for c in claims if c["source"] == name]
    rendered = [e for e in experiments.values() if e["source"] == name]
    judged = [_claim(plan, c, experiments) for c in of_source]
    described = {"menu": paper["title"], "url": None} | paper | read_findings(base, results, name)
    return described | {
        "name": name,
        "page": (base / f"docs/{name}.md").exists(),
        "headline": _headline(plan, paper.get("headline"), results, judged),
        "experiments": rendered,
        "claims": judged,
        "counts": statements.count_verdicts(of_source),
        "archived_counts": statements.count_verdicts(of_source, "archived"),
        "weak": sum(bool(c["weak"]) for c in of_source),
    }


def _claim(plan: Plan, claim: dict, experiments: dict) -> dict:
    name = claim["experiment"]
    e = plan.experiments.get(name, {"datasets": {}, "methods": {}, "seeds": []})
    titles = {d: plan.config["datasets"][d]["title"] for d in e["datasets"]}
    titles |= {key: m["name"] for key, m in e["methods"].items() if "name" in m}
    spent = experiments[name]["spent"] if name in experiments else 0.0
    entry = plan.config["claims"][claim["name"]]
    return claim | statements.describe_claim(claim, entry, len(e["seeds"]), titles, spent)


def _headline(plan: Plan, name: str | None, results: Path, claims: list[dict]) -> dict | None:
    """A claim that is judged, or the first number of an experiment that is compared with a printed one and is not the baseline's."""
    if claim := next((c for c in claims if c["name"] == name and c["verdict"] not in (NOT_JUDGED, TOO_FEW)), None):
        text = claim["decisive"].partition(";")[0]
        return {"what": claim["place"], "printed": claim["claim"].strip(), "measured": text[:1].lower() + text[1:]}
    if name not in plan.experiments:
        return None
    e, table = plan.experiments[name], pd.read_csv(results / f"tables/{name}.csv", dtype={"printed": str})
    rows = table[table["tolerance"].notna() & (table["method"] != e.get("baseline"))]
    if rows.empty:
        return None
    row, title = rows.iloc[0], plan.config["datasets"][rows.iloc[0]["dataset"]]["title"]
    subject = f"{method_name(e, row['method'])}, {measure_name(row['measure'])} on {title}"
    measured = number(row["mean"], row["low"], row["high"])
    return {"what": subject, "printed": f"printed {row['printed']}", "measured": f"measured {measured}"}


def _ladder(plan: Plan, experiments: dict, results: Path, base: Path, out: Path) -> dict | None:
    """The experiment that compares releases, with its finding. None where it is not in the plan. The first of its figures
    is written as `figures/ladder.svg`."""
    name = plan.config["references"].get("ladder")
    if name not in experiments:
        return None
    if (picture := drawing.first(results / f"figures/{name}.svg")) is not None:
        drawing.write(picture, out / "figures/ladder.svg")
    text = read_findings(base, results, "ladder")["findings"]
    return experiments[name] | {"text": text, "is_drawn": picture is not None}


def _other_scales(config: dict, page: Path) -> list[tuple[str, str]]:
    """(scale, path to its first page) of the other scales that have pages."""
    results = Path(config["results"])
    noted = storage.read_json(results / NOTE)["scale"] if (results / NOTE).exists() else None
    folders = {scale: results if scale == noted else results / scale for scale in ORDER}
    del folders[FROM_ARCHIVE if config["from"] == FROM_ARCHIVE else config["scale"]]
    pages = [(scale, _address(folder / "site/index.html", page)) for scale, folder in folders.items()]
    return [(scale, path) for scale, path in pages if path]


def _guide(results: Path, site: Path) -> str:
    """Path from the site to the pages of `make docs`. Empty where there are none."""
    return os.path.relpath(results / "docs", site) if (results / "docs/index.html").is_file() else ""


def _benchmarks(results: Path) -> dict | None:
    """Lines and tables of the last `make bench`, with date and machine. None before the first."""
    files = sorted((results / "bench").glob("*.txt"))
    if not files:
        return None
    benches = [storage.read_json(f) for f in sorted((results / "bench").glob("*.json"))]
    measured = sorted({f"{k['date']}, {k['machine']}" for k in benches})
    tables = [{"name": f.stem.replace("_", " "), "text": f.read_text().strip()} for f in files]
    return {"measured": "; ".join(measured), "lines": [line for k in benches for line in k["lines"]], "parts": tables}


def _command(plan: Plan, name: str) -> str:
    scale = plan.config["scale"]
    return (
        f"make reproduce ARGS={name}" if scale == "default" else f'make reproduce ARGS="{name} --config scale={scale}"'
    )


def _experiment(plan: Plan, name: str, results: Path, out: Path, address: Path) -> dict:
    """Entry of an experiment in the templates. Its files and its page with every measure are written into the site."""
    e = plan.experiments[name]
    for path in (*(f"tables/{name}.{kind}" for kind in ("csv", "md", "tex")), f"figures/{name}.svg"):
        (out / path).parent.mkdir(exist_ok=True)
        shutil.copy(results / path, out / path)
    table = pd.read_csv(results / f"tables/{name}.csv", low_memory=False)
    text = figures_in((results / f"tables/{name}.html").read_text())
    text = text.replace(f"<figcaption>{escape(e['title'])}</figcaption>", "")  # the page has it as a heading
    rows = storage.read_json(results / f"tables/{name}.json")["rows"]
    docs = Path(plan.config["results"]) / "docs/api"
    classes = {m["class"]: _address(docs / f"{m['class']}.html", address) for m in e["methods"].values()}
    text = _with_classes(text, [(method_name(e, m), classes[spec["class"]]) for m, spec in e["methods"].items()])
    listed = table[~table["measure"].astype(str).str.contains("_of_part")].head(MAX_ROWS)
    entry = e | {
        "name": name,
        "table": Markup(_linked(text, name, set(listed.index))),
        "rows": rows,
        "long": rows > LONG,
        "is_absent": NO_RESULT in text and not rows,
        "spent": _spent(plan, name, results),
        "budget": e.get("budget"),
        "command": _command(plan, name),
        "runs": len(plan.runs(name)),
        "tuned": [(method_name(e, m), spec["class"], tunings(e, m)) for m, spec in e["methods"].items()],
        "classes": classes,
        "written": _address(project.project_files() / f"config/experiments/{name}.yaml", address),
    }
    cells = _runs(plan, name, results, address / "full")
    numbers = {cell["key"]: k for k, cell in enumerate(cells)}
    rows = _full(listed, entry, numbers)
    page = PAGES.get_template("full.html").render(e=entry, rows=rows, total=len(table), cells=cells)
    (out / "full").mkdir(exist_ok=True)
    (out / f"full/{name}.html").write_text(page)
    return entry


def _linked(text: str, name: str, numbers: set[int]) -> str:
    """A table whose values lead to their rows in the page of every measure."""

    def link(cell: re.Match) -> str:
        number, value = cell.groups()
        return f'<td><a href="full/{name}.html#r{number}">{value}</a>' if int(number) in numbers else f"<td>{value}"

    return re.sub(r'<td data-row="(\d+)">(.*?)(?=<sup|<span|</td>)', link, text)


def _with_classes(text: str, methods: list[tuple[str, str]]) -> str:
    """A table in whose heads the names of methods lead to the pages of their classes."""
    for name, page in methods:
        if page:
            text = text.replace(f">{escape(name)}</th>", f'><a href="{page}">{escape(name)}</a></th>')
    return text


def _address(path: Path, page: Path) -> str:
    """Path from a folder of pages to a file. Empty where there is no such file."""
    return os.path.relpath(path, page) if path.is_file() else ""


def _runs(plan: Plan, name: str, results: Path, page: Path) -> list[dict]:
    """Cells of an experiment: `key`, what it is, its `runs` (seed, address of the record), and the address of its mean in MLflow."""
    receipts = [storage.read_json(path)["experiments"].get(name, {}) for path in (results / "tracking").glob("*.json")]
    sent: dict = next((receipt for receipt in receipts if "means" in receipt), {"means": {}})
    cells = []
    for _, runs in itertools.groupby(plan.runs(name), attrgetter(*(field for field in IDENTITY if field != "seed"))):
        first, *_ = of_cell = list(runs)
        key, params = cell_key(first.identity), first.params.strip("{}").replace('"', "")
        number = sent["means"].get(key)
        mlflow = f"{project.SERVER}/#/experiments/{sent['experiment_id']}/runs/{number}" if number else ""
        files = [Path(plan.config["results"]) / f"runs/{run.key}/run.json" for run in of_cell]
        records = [(run.seed, _address(file, page)) for run, file in zip(of_cell, files, strict=True)]
        cell = {"dataset": first.dataset, "method": method_name(plan.experiments[name], first.method), "params": params}
        if mlflow or any(record for _, record in records):
            cells.append(cell | {"key": key, "mlflow": mlflow, "runs": records})
    return cells


def _full(table: pd.DataFrame, e: dict, cells: dict[str, int]) -> list[dict]:
    rows = []
    for index, row in zip(table.index, table.to_dict("records"), strict=True):
        texts = {name: row[name] if isinstance(row[name], str) else "" for name in ("unit", "place", "keys")}
        texts |= {
            "method": method_name(e, row["method"]),
            "params": row["params"].strip("{}").replace('"', ""),
            "measure": measure_name(row["measure"], e) + (f" ({plain(texts['keys'])})" if texts["keys"] else ""),
            "value": number(row["mean"], row["low"], row["high"]) if pd.notna(row["mean"]) else statement(row),
            "reported": f"{row['reported']:g}" if pd.notna(row["reported"]) else "",
            "outcome": _outcome(row),
            "index": index,
            "cell": cells.get(cell_key(row | {"experiment": e["name"]})),
        }
        rows.append(row | texts)
    return rows


def _outcome(row: dict) -> str:
    if row["outcome"] in ("above", "below"):
        return f"{row['outcome']} by {abs(row['difference']):.3g}"
    return row["outcome"] if isinstance(row["outcome"], str) else ""


def _spent(plan: Plan, name: str, results: Path) -> float:
    """Seconds of all runs of an experiment, of this and earlier calls."""
    elapsed = [("measure", "==", "elapsed"), ("status", "==", "ok")]
    paths = [results / measured_folder(plan.config) / f"{name}/{batch}.parquet" for batch in plan.batches(name)]
    return sum(pd.read_parquet(path, columns=["value"], filters=elapsed)["value"].sum() for path in paths)


def _datasets(plan: Plan, base: Path) -> list[dict]:
    """Rows of the page on data, of the data sets that an experiment needs."""
    config, rows = plan.config, []
    for row in inventory(config, plan.experiments, base):
        row |= {
            **_state(Path(config["results"]), row["name"], row["kind"], config["from"] == "archive"),
            "size": bytes_text(row["bytes"]) if row["kind"] == "files" else "",
            "citations": [] if row["kind"] == "simulated" else citations(config["datasets"][row["name"]]),
            "experiments": [{"name": e, "source": plan.experiments[e]["source"]} for e in row["experiments"]],
        }
        rows += [row] if row["experiments"] else []
    return rows


def _state(results: Path, name: str, kind: str, is_archived: bool) -> dict[str, str]:
    """`status`, and `state`: the number of records, or the reason why there are none."""
    path = results / "records" / name / products.MANIFEST
    if is_archived:
        return {"status": "not checked", "state": "not looked at: results come from the archive"}
    if not path.exists():
        return {"status": "ok", "state": "drawn anew for every seed" if kind == "simulated" else ""}
    manifest = storage.read_json(path)
    size = f"{manifest['rows']:,} records, {manifest['columns']} features" if "rows" in manifest else ""
    size += f", rate {manifest['rate']:.3f}" if "rate" in manifest else ""
    return {"status": manifest["status"], "state": size or manifest.get("reason", "")}
