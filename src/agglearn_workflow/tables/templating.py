"""The environment of the templates."""

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

TEMPLATES = Environment(
    loader=PackageLoader("agglearn_workflow"),
    autoescape=select_autoescape(["html", "svg"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
