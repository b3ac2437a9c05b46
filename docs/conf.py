"""Settings of Sphinx: pages, gallery and API reference, built by `make docs` without a network."""

import sys
from importlib.util import find_spec
from pathlib import Path

import agglearn

BASE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BASE / "docs/_ext"))

project = "agglearn"
version = release = agglearn.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "docstrings",
    "links",
    "configuration",
    "reproduced",
]
exclude_patterns = ["_ext", "_templates", "drawn", "gallery/**/*.ipynb", "gallery/**/*.py"]
default_role = "code"  # of single backticks in docstrings
nitpicky = False

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # docstrings have the types
numpydoc_show_class_members = False  # api_pages.py lists them
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # words that are no names
viewcode_line_numbers = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_" if find_spec("pyspark") else r"/plot_(?!spark)",  # the others are shown, not run
    "abort_on_example_error": True,
    "backreferences_dir": "gallery/uses",
    "doc_module": ("agglearn",),
    "reference_url": {"agglearn": None},
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "agglearn"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "agglearn"},
    "header_links_before_dropdown": 7,
    "navbar_end": ["results", "theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["about"],
    "footer_end": [],
    "show_prev_next": False,
    "show_toc_level": 2,
}
html_context = {"default_mode": "auto"}
