"""Table and figure of an experiment, and its description.

MLflow's experiments have no files. The rendered table and figure are those of a run of their own, the newest of the experiment, to which
its description leads. Beside each mean there would be as many copies as cells.
"""

import re
from pathlib import Path

from agglearn.storage import digest, file_digest
from agglearn.tracking.entry import KIND, NOTE, Entry, milliseconds, shorten_note

TRAINING = "workflowType=machine_learning"  # MLflow's view with runs, metrics and charts, which is not its default
SITE = "/agglearn"  # address of the site on the server of `make ui`
SITE_FOLDER = "AGGLEARN_SITE"  # variable of the environment that names the site's folder to that server
RENDERED = "tables/{}.html", "figures/{}.svg", "tables/{}.csv", "tables/{}.md", "tables/{}.tex"
PLACE = re.compile(r"(?:Table|Figure|Section|Appendix|Theorem)s? [\dA-Z](?:[^:,']|, (?=\d|Figure))*")


def key_of(name: str) -> str:
    """Key of the overview of an experiment."""
    return digest([name, "overview"])


def of_experiment(name: str, latest: dict, rendered: Path) -> Entry | None:
    """An entry with table and figure. None where nothing is rendered.

    Parameters
    ----------
    latest : dict
        Record of the experiment's latest run.
    rendered : Path
        Folder with tables and figures.
    """
    files = [path for pattern in RENDERED if (path := rendered / pattern.format(name)).exists()]
    if not files:
        return None
    _, ended = milliseconds(latest)
    return Entry(
        key=key_of(name),
        title="Table and figure",
        tags={KIND: "overview", "scale": latest["config"]["scale"], "mlflow.source.name": name},
        fingerprint=digest([file_digest(path) for path in files]),
        status="FINISHED",
        began=ended,
        ended=ended,
        files=tuple(files),
    )


def page_of(name: str, source: str) -> str:
    """Address of an experiment on the site that `make ui` serves."""
    return f"{SITE}/{source}.html#{name}"


def experiment_tags(experiment: dict, latest: dict, links: dict[str, str]) -> dict[str, str]:
    """Tags of an experiment: its source, what it reproduces there, its scale, and a description in Markdown.

    Parameters
    ----------
    links : dict
        Text → address of links in the description.
    """
    config, position = latest["config"], PLACE.match(experiment["title"])
    paper = config.get("references", {}).get("papers", {}).get(experiment["source"], {})
    title, caption = experiment["title"], experiment.get("caption", "").strip()
    source = f"Source: [{paper['short']}]({paper['url']})" if "url" in paper else paper.get("short", "")
    shown = [f"[{text}]({address})" for text, address in links.items()]
    kinds = "Runs named `mean of … seeds` hold means with 95 % intervals; under each are the runs of its seeds. Times are in seconds."
    paragraphs = f"**{title}**", caption, " · ".join(filter(None, [*shown, source])), kinds
    return {
        "source": experiment["source"],
        **({"place": position.group()} if position else {}),
        "scale": config["scale"],
        "mlflow.experimentKind": "custom_model_development",  # so that MLflow opens its view on training
        NOTE: shorten_note("\n\n".join(filter(None, paragraphs))),
    }
