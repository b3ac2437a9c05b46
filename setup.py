"""Puts the workflow's files, which lie beside the package, into the wheel; everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SCRIPTS = ("prepare", "fit", "render", "recall", "track", "site", "conclude")  # of the rules
PROJECT = (
    "Snakefile",
    "config",
    "docs/verdicts.md",
    "environment.yml",
    "profiles",
    "rules",
    "workflow/peers",
    "workflow/report",
    "workflow/schemas",
    *(f"workflow/scripts/{script}.py" for script in SCRIPTS),
)


class BuildWithProject(build_py):
    """The package, with the files of the project as its folder `project`."""

    def run(self):
        super().run()
        if self.editable_mode:  # a checkout has them where they are
            return
        target = Path(self.build_lib, "agglearn_workflow/project")
        shutil.rmtree(target, ignore_errors=True)
        for name in PROJECT:
            path, copy = Path(__file__).parent / name, target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(path, copy)


setup(cmdclass={"build_py": BuildWithProject})
