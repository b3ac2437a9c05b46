"""Links that pages do not write out: names in code, other projects' names, experiments and claims on the site of results.

No inventory of another project is needed, so pages are built without a network: NumPy, pandas, SciPy and scikit-learn have
one page per object, whose address follows from its name.
"""

import importlib
import inspect
from pathlib import Path

from api_pages import members, public
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

from agglearn.cli import commands
from agglearn_workflow.config.loading import load
from agglearn_workflow.site.findings import MARK

ADDRESSES = {
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{}.html",
}
RANDOM = ("numpy.random.Generator", "https://numpy.org/doc/stable/reference/random/generator.html")
SITE = "../site"  # beside the folder of the pages
BASE = Path(__file__).resolve().parents[2]


def address(target: str) -> str | None:
    """Where another project describes an object, such as `numpy.ndarray`."""
    if target == RANDOM[0]:
        return RANDOM[1]
    pattern = ADDRESSES.get(target.partition(".")[0])
    return pattern.format(target) if pattern and "." in target else None


def link_elsewhere(app, env, node, content):
    """A reference to a name of another project."""
    target = node["reftarget"]
    if (url := address(target)) is None:
        return None
    return nodes.reference("", "", content, internal=False, refuri=url, reftitle=target)


def names_in_code() -> dict[str, str]:
    """Full path of every public name by its spellings in text: with its package, or alone if it is unique and no command."""
    paths = {}
    for module, names in public().items():
        for name in names:
            target = getattr(importlib.import_module(module), name)
            inner = [f".{member}" for member in members(target)] if inspect.isclass(target) else []
            for end in ("", *inner):
                path = f"{module}.{name}{end}"
                for spelling in (path, path.removeprefix("agglearn."), f"{name}{end}"):
                    paths.setdefault(spelling, set()).add(path)
    alone = {spelling for spelling, candidates in paths.items() if len(candidates) == 1} - commands().keys()
    return {spelling: paths[spelling].pop() for spelling in alone}


def results() -> dict[str, str]:
    """Place on the site of every experiment and claim, by its name."""
    config = load(BASE, targets=())
    places = {name: f"{e['source']}.html#{name}" for name, e in config["experiments"].items()}
    return places | {name: f"{c['source']}.html#claim-{name}" for name, c in config["claims"].items()}


class LinkCode(SphinxTransform):
    """Inline code that is a public name, an experiment or a claim becomes a link."""

    default_priority = 400

    def apply(self, **_) -> None:
        """Link every such text that is in no link yet."""
        names, places = self.app.agglearn_names, self.app.agglearn_results
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, nodes.reference | addnodes.pending_xref | nodes.title):
                continue
            text = literal.astext()
            spelling = text.partition("(")[0].removeprefix("~")
            if spelling in names and text[:1] != ".":
                self._wrap(literal, self._reference(names[spelling]))
            elif text in places:
                up = "../" * (self.env.docname.count("/") + 1) + SITE.removeprefix("../")
                place = nodes.reference("", "", internal=False, refuri=f"{up}/{places[text]}", classes=["result"])
                self._wrap(literal, place)

    def _reference(self, path: str) -> addnodes.pending_xref:
        return addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=path, refexplicit=True, refdoc=self.env.docname, refwarn=True
        )

    @staticmethod
    def _wrap(literal: nodes.literal, reference: nodes.Element) -> None:
        literal.replace_self(reference)
        reference += literal


def without_marks(app, docname: str, source: list[str]) -> None:
    """Take the marks out that refer numbers to their measurements."""
    source[0] = MARK.sub(lambda mark: mark["number"], source[0])


def look_for_results(app, config) -> None:
    """Tell the templates whether results lie beside the pages. A change of this setting writes all pages again."""
    config.html_context = config.html_context | {"results": (app.outdir / SITE / "index.html").is_file()}


def collect(app) -> None:
    """What inline code can be linked to."""
    app.agglearn_names, app.agglearn_results = names_in_code(), results()


def setup(app) -> dict:
    """Connect to Sphinx."""
    app.connect("config-inited", look_for_results)
    app.connect("builder-inited", collect)
    app.connect("source-read", without_marks)
    app.connect("missing-reference", link_elsewhere)
    app.add_transform(LinkCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
