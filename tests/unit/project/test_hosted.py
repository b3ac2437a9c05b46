"""What the repository's host reads: checks run the targets of the Makefile, and the citation names every source."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from samples import ROOT

import agglearn

TARGETS = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1).split())
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def jobs(path: Path) -> dict[str, dict]:
    return yaml.safe_load(path.read_text())["jobs"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_every_step_is_a_target_that_a_person_runs(path):
    commands = [step["run"] for job in jobs(path).values() for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        make, target, *settings = shlex.split(command)
        assert make == "make"
        assert target in TARGETS
        assert {setting.partition("=")[0] for setting in settings} <= {"ARGS", "FROM", "SAMPLE"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_every_action_is_pinned_to_a_commit_with_its_version_beside_it(path):
    actions = re.findall(r"uses:(.*)", path.read_text())
    assert actions
    for action in actions:
        assert re.fullmatch(r" [\w-]+/[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action), action


def test_an_action_has_one_version():
    pinned = {line for path in WORKFLOWS for line in re.findall(r"uses: (.*)", path.read_text())}
    assert len(pinned) == len({line.partition("@")[0] for line in pinned})


def test_tests_run_on_every_python_that_is_supported():
    checks = jobs(ROOT / ".github/workflows/check.yml").values()
    [matrix] = [job["strategy"]["matrix"] for job in checks if "strategy" in job]
    stated = re.search(r"with Python ([\d., or]+)\.", (ROOT / "README.md").read_text()).group(1)
    assert matrix["python"] == re.findall(r"3\.\d+", stated)


def test_files_that_steps_name_are_there():
    named = {name for path in WORKFLOWS for name in re.findall(r"tests/\S+", path.read_text())}
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_citation_names_every_source_and_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    papers = yaml.safe_load((ROOT / "config/references.yaml").read_text())["papers"]
    assert citation["version"] == agglearn.__version__
    assert {r["url"] for r in citation["references"]} == {paper["url"] for paper in papers.values()}
    for reference in citation["references"]:
        [cited] = {p["citation"] for p in papers.values() if p["url"] == reference["url"]}
        assert all(author["family-names"] in cited for author in reference["authors"])
        assert str(reference["year"]) in cited
        assert reference["title"].lower() in cited.lower()


def test_the_catalogue_finds_what_it_reads():
    entry = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(entry["software-stack-deployment"].values()) == {False}  # the environment was solved by pip alone
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    assert set(re.findall(r"^    conda:\n +(.*)$", rules, re.M)) == {'"../environment.yml"'}
    assert 'include: "../Snakefile"' in (ROOT / "workflow/Snakefile").read_text()  # where deployment tools look


def test_the_readme_of_the_configuration_names_every_file():
    named = set(re.findall(r"`([\w*/]+\.(?:yaml|md))`", (ROOT / "config/README.md").read_text()))
    for path in (ROOT / "config").rglob("*.*"):
        assert any(path.relative_to(ROOT / "config").match(pattern) for pattern in named | {"README.md"}), path


def test_the_image_is_built_by_what_is_there():
    lines = [line.split(" ", 1) for line in (ROOT / "Dockerfile").read_text().splitlines() if line[:1].isupper()]
    values = {word: [value for other, value in lines if other == word] for word, _ in lines}
    version = re.fullmatch(r"python:(3\.\d+)-slim-\w+", values["FROM"][0]).group(1)
    assert version in (ROOT / "README.md").read_text()
    assert values["RUN"][-1] == "make .venv/.ready"  # the target that every other one sets up
    assert values["ENTRYPOINT"] == ['["agglearn"]']
    generated = set((ROOT / ".gitignore").read_text().replace("/\n", "\n").split()) - {"!results/README.md"}
    left_out = {name.removeprefix("**/") for name in (ROOT / ".dockerignore").read_text().splitlines()}
    assert generated <= left_out
