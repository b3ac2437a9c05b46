"""Table and figure of one experiment: CSV for machines, Markdown, LaTeX and HTML for people, SVG."""

import traceback
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from agglearn import storage
from agglearn.errors import describe
from agglearn.evaluation.verdicts import FAILS, HOLDS
from agglearn.text import bytes_text, count_text, write_csv
from agglearn_workflow.claims import judging
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.figures import drawing
from agglearn_workflow.memory import size_of_files
from agglearn_workflow.plan import Plan
from agglearn_workflow.run_summary import CELL, NOT_HAD
from agglearn_workflow.tables import printed_table, summary
from agglearn_workflow.tables.numbers import measure_name, seeds_text


def render(plan: Plan, name: str, paths: Iterable[str | Path], results: str | Path) -> None:
    """Write an experiment's files. The last is `tables/<name>.json`: the number of `rows`, what `failed`, the cells `without` a
    run (`CELL`, status, reason), and the verdicts on the `claims` on it."""
    experiment = plan.experiments[name]
    titles = {d: plan.config["datasets"][d]["title"] for d in experiment["datasets"]}
    claims = judging.claims_on(plan.config.get("claims", {}), name)
    tables, figure = Path(results) / "tables", Path(results) / f"figures/{name}.svg"
    try:
        rows = summary.load_rows(paths, plan, name)
        table = summary.summarise(rows, experiment)
        grids = printed_table.grids(
            table.assign(reason=_reasons(plan, table), number=range(len(table))), experiment, titles
        )
        texts = printed_table.write(experiment["title"], grids, caption_of(experiment, table))
        verdicts, failed = judging.judge_all(claims, Rows(rows)), []
    except Exception as error:
        traceback.print_exc()
        reason = describe(error)
        rows, table, failed = None, pd.DataFrame(columns=summary.COLUMNS), [f"table: {reason}"]
        grids = [(experiment["title"], printed_table.sentence(f"This table failed: {reason}"))]
        texts = printed_table.write(experiment["title"], grids, "")
        verdicts = [judging.entry(key, claim, judging.failed(reason)) for key, claim in claims.items()]
    with storage.atomic_file(tables / f"{name}.csv") as work:
        write_csv(table, work)
    for kind, text in texts.items():
        with storage.atomic_file(tables / f"{name}.{kind}") as work:
            work.write_text(text)
    with storage.atomic_file(figure) as work:
        if rows is None:
            drawing.write(drawing.sentence(f"This figure has no table to start from: {reason}"), work)
        else:
            judged = experiment | {"findings": findings(claims, verdicts)}
            failed += [f"figure: {problem}" for problem in drawing.draw(rows, table, judged, titles, work)]
    states = table.assign(status=table["lost"].fillna(table["status"]))[[*CELL, "status", "reason"]]
    without = states[states["status"] != "ok"].fillna("").drop_duplicates().to_numpy().tolist()
    n_rows = sum(len(grid.rows) for _, grid in grids)
    facts = {"failed": failed, "rows": n_rows, "without": without, "claims": verdicts}
    storage.write_json(tables / f"{name}.json", facts)


def findings(claims: dict, verdicts: list[dict]) -> dict[str, str]:
    """Measure → the first claim on it that is decided, after its verdict."""
    decided = [v for v in verdicts if v["verdict"] in (HOLDS, FAILS)]
    sentences = {v["name"]: f"{v['verdict'].capitalize()}: {v['claim'].strip()}" for v in decided}
    return {claims[key].get("value", {}).get("measure"): sentences[key] for key in reversed(sentences)}


def _reasons(plan: Plan, table: pd.DataFrame) -> pd.Series:
    """Reasons of cells without a run. What is said of a data set that is not here is size, licence and command."""
    texts = {}
    for name, e in ((name, plan.config["datasets"][name]) for name in set(table["dataset"])):
        about = f"size {bytes_text(size_of_files(e))}, licence {e.get('licence', 'unknown')}"
        texts[name] = f"{e['title']} is not here ({about}). Fetch it: agglearn data get {name}"
    is_absent = (table["status"] == "unavailable") & table["reason"].str.contains(NOT_HAD, regex=False, na=False)
    return table["reason"].mask(is_absent, table["dataset"].map(texts))


def _agreement(experiment: dict, table: pd.DataFrame) -> list[str]:
    """Sentences on cells that agree with the printed numbers, the margins, and the misses expected by chance."""
    margins, reason = experiment["agreement"]["margins"], experiment["agreement"]["reason"]
    outcomes = table["outcome"].dropna()
    counts = {
        "agree": (outcomes == "agrees").sum(),
        "are above or below": outcomes.isin(["above", "below"]).sum(),
        "are undecided": (outcomes == "undecided").sum(),
    }
    if not sum(counts.values()):
        return [f"They are not compared: {reason}."] if not margins else []
    listed = ", ".join(f"{n} {outcome}" for outcome, n in counts.items() if n)
    sizes = ", ".join(f"{m:g} ({measure_name(name)})" for name, m in margins.items())
    sentences = [f"Of {count_text(sum(counts.values()), 'printed number')} {listed}. Margins: {sizes}; {reason}."]
    if table.loc[table["outcome"].notna(), "low"].notna().any():
        number = f"{summary.missed_by_chance(table, experiment):.1f} cells with an interval would not agree by chance"
        sentences.append(f"If every true mean were the printed number, {number}.")
    return sentences


def caption_of(experiment: dict, table: pd.DataFrame) -> str:
    sentences = [experiment.get("caption", "").strip()]
    if seeds := seeds_text(table["n"]):
        sentences.append(f"Mean ± half the 95 % interval over {seeds}.")
    if table["reported"].notna().any():
        sentences += ["In parentheses, or below: printed in the source.", *_agreement(experiment, table)]
    return " ".join(filter(None, sentences))
