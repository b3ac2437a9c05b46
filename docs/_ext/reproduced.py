"""Directives on results: what a source shows, as a table, and the figure of an experiment, from the configuration and the archive."""

import functools
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import yaml
from configuration import BASE, Written, cell

from agglearn_workflow.archive import store
from agglearn_workflow.claims import judging
from agglearn_workflow.claims.samples import Rows
from agglearn_workflow.config.loading import load
from agglearn_workflow.figures import drawing
from agglearn_workflow.plan import Plan
from agglearn_workflow.render import findings
from agglearn_workflow.site.inventory import kind_of
from agglearn_workflow.tables import summary
from agglearn_workflow.tables.numbers import setting

KINDS = ("Table", "Figure", "Theorem", "Lemma", "Corollary", "Proposition", "Algorithm")
NUMBER = r"(?:[A-Z]\.|\d+\.)?\d+"
NAMED = re.compile(rf"\b({'|'.join(KINDS)})s? ((?:{NUMBER}(?: ?[a-f](?:[–-][a-f])?(?![a-z]))?(?:, | and )?)+)", re.I)
OURS = ("ours", "our finding", "not in the", "follows from")
FOLDER = "drawn"  # of figures, below the sources of the pages
PLACE = re.compile(r"((?:Section|Appendix) [\dA-Z.]+)")


def listed() -> dict[str, dict[str, dict]]:
    """Source → table, figure or theorem → what `docs/_ext/reproduced.yaml` states of it."""
    return yaml.safe_load((BASE / "docs/_ext/reproduced.yaml").read_text())


def items(text: str) -> list[str]:
    """Tables, figures and theorems that a text names: `Figures 2.4 d–e and 2.6` are Figure 2.4 and Figure 2.6."""
    return [
        f"{kind.capitalize()} {number}"
        for kind, numbers in NAMED.findall(text)
        for number in re.findall(NUMBER, numbers)
    ]


def places(text: str) -> list[str]:
    """Items of a place, else its section or heading. Empty where the source does not have it."""
    if text.startswith(OURS):
        return []
    return items(text) or PLACE.findall(text)[:1] or [text.partition(" (")[0]]


@functools.cache
def paper() -> Plan:
    """All experiments at the scale of the papers."""
    return Plan(load(BASE) | {"scale": "paper", "run": "all"})


def rows(source: str) -> dict[str, dict]:
    """Item → `experiments` (titles, claims and printed numbers name them), `claims` and number of `printed` ones."""
    stated, plan = listed().get(source) or {}, paper()
    found = {item: {"experiments": [], "claims": [], "printed": 0} for item in stated}

    def add(item: str, experiment: str, claim: str | None = None, printed: int = 0) -> None:
        row = found.setdefault(item, {"experiments": [], "claims": [], "printed": 0})
        row["experiments"] += [experiment] if experiment not in row["experiments"] else []
        row["claims"] += [claim] if claim else []
        row["printed"] += printed

    for item, entry in stated.items():
        for name in entry.get("experiments", ()):
            add(item, name)
    for name, e in plan.experiments.items():
        if e["source"] == source:
            for item in items(e["title"]):
                add(item, name)
            for number in e["reported"]:
                for item in places(number["place"]):
                    add(item, name, printed=1)
    for name, claim in plan.config["claims"].items():
        if claim["source"] == source:
            for item in places(claim["place"]):
                add(item, claim["experiment"], name)
    return found


@functools.cache
def recalled(name: str) -> tuple[Plan, pd.DataFrame | None]:
    """The plan of an experiment, and the archived rows of its runs. None where the archive has none."""
    plan = Plan(paper().config | {"run": [name]})
    kept = store.read(BASE / "archive", name) if name in store.experiments(BASE / "archive") else {}
    if not kept:
        return plan, None
    with tempfile.TemporaryDirectory() as work:
        paths = [f"{work}/measurements/{name}/{batch}.parquet" for batch in plan.batches(name)]
        for batch, path in zip(plan.batches(name), paths, strict=True):
            store.recall(plan.runs(name, batch), kept, path)
        return plan, summary.load_rows(paths, plan, name)


@functools.cache
def archived(name: str) -> tuple[dict[str, str], Counter]:
    """Verdicts on the claims of an experiment, and outcomes of its printed numbers by item, from the archive."""
    plan, found = recalled(name)
    claims = judging.claims_on(plan.config["claims"], name)
    if found is None:
        return dict.fromkeys(claims, "not archived"), Counter()
    verdicts = {entry["name"]: entry["verdict"] for entry in judging.judge_all(claims, Rows(found))}
    table = summary.summarise(found, plan.experiments[name])
    table = table[table["place"].notna()]
    outcomes = [(item, o) for place, o in zip(table["place"], table["outcome"], strict=True) for item in places(place)]
    return verdicts, Counter(outcomes)


def verdict(item: str, row: dict) -> str:
    """How many claims hold and fail, and how many printed numbers agree, in the archive."""
    plan = paper()
    verdicts = Counter(archived(plan.config["claims"][c]["experiment"])[0].get(c, "not judged") for c in row["claims"])
    texts = [f"{'claims' if sum(verdicts.values()) > 1 else 'claim'}: {_counted(verdicts)}"] if verdicts else []
    if row["printed"]:
        outcomes = Counter()
        for name in row["experiments"]:
            outcomes.update({o: n for (i, o), n in archived(name)[1].items() if i == item})
        texts.append(f"{row['printed']} printed numbers, in cells: {_counted(outcomes) or 'not archived'}")
    return "; ".join(texts)


def _counted(words: Counter) -> str:
    plural = {"holds": "hold", "fails": "fail", "agrees": "agree"}
    return ", ".join(f"{n} {plural.get(word, word) if n > 1 else word}" for word, n in words.most_common())


def data(name: str) -> str:
    """The data sets of an experiment at the scale of the papers: real ones, or simulated, with their sizes."""
    plan, texts = paper(), []
    kept = store.read(BASE / "archive", name) if name in store.experiments(BASE / "archive") else {}
    sizes = {run.facts["dataset"]: run.facts["data"].get("sizes", {}).get("rows") for run in kept.values()}
    for dataset, varied in plan.experiments[name]["datasets"].items():
        entry = plan.config["datasets"][dataset]
        is_real = kind_of(entry) != "simulated"
        size = [f"{sizes[dataset]:,} rows"] if is_real and sizes.get(dataset) else []
        varied = {k: v.get("grid") if isinstance(v, dict) else v for k, v in (varied or {}).items()}  # no nested ones
        keys = [
            setting(k, v, {}) for k, v in varied.items() if not (k == "rows" and (sizes.get(dataset) or 0) <= (v or 0))
        ]
        facts = ["real" if is_real else "simulated", *size, *filter(None, keys)]
        texts.append(f"{entry['title']} ({', '.join(facts)})")
    return "; ".join(texts)


class Reproduced(Written):
    """Tables, figures, theorems and printed numbers of a source."""

    def lines(self) -> Iterator[str]:
        """A row for each, then the data of the experiments."""
        [source] = self.arguments
        stated, found = listed().get(source) or {}, rows(source)
        yield from [
            "| | what it shows | experiments | differences | verdict in the archive |",
            "| --- | --- | --- | --- | --- |",
        ]
        for item, row in found.items():
            entry = stated.get(item, {})
            names = ", ".join(f"`{name}`" for name in row["experiments"])
            test = f"test: `{entry['test']}`" if "test" in entry else ""
            without = "; ".join(filter(None, [entry.get("why_not"), test]))
            columns = (
                item,
                entry.get("is", "statements of the text"),
                names or "none",
                entry.get("differs", without),
                verdict(item, row) if self.config.reproduced_verdicts else "",
            )
            yield f"| {' | '.join(map(cell, columns))} |"
        yield from ["", "| experiment | data at the scale of the papers |", "| --- | --- |"]
        for name in sorted({name for row in found.values() for name in row["experiments"]}):
            yield f"| `{name}` | {cell(data(name))} |"


def draw(name: str, folder: Path) -> Path | None:
    """The first figure of an experiment, from the archive, as a file in a folder. None without a result."""
    plan, found = recalled(name)
    if found is None or not (found["status"] == "ok").any():
        return None
    claims = judging.claims_on(plan.config["claims"], name)
    e = plan.experiments[name] | {"findings": findings(claims, judging.judge_all(claims, Rows(found)))}
    figures = e.get("figure")
    titles = {d: plan.config["datasets"][d]["title"] for d in e["datasets"]}
    folder.mkdir(exist_ok=True)
    shown = e | {"figure": figures[0] if isinstance(figures, list) else figures}
    drawing.draw(found, summary.summarise(found, e), shown, titles, folder / f"{name}.svg")
    return folder / f"{name}.svg"


class Drawn(Written):
    """The figure of an experiment, from the archive. Nothing where the archive has no result."""

    def lines(self) -> Iterator[str]:
        """An image and what it is of."""
        [name] = self.arguments
        if self.config.reproduced_verdicts and draw(name, Path(self.env.srcdir) / FOLDER):
            title = paper().experiments[name]["title"].translate(str.maketrans("[]", "()"))
            yield from [f"![{title}]({FOLDER}/{name}.svg)", "", f"Measured, from the archive: `{name}`."]


def setup(app) -> dict:
    """Connect to Sphinx."""
    app.add_directive("reproduced", Reproduced)
    app.add_directive("drawn", Drawn)
    app.add_config_value("reproduced_verdicts", True, "env")  # to judge the whole archive takes half a minute
    return {"parallel_read_safe": True, "parallel_write_safe": True}
