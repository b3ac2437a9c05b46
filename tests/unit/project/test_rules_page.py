"""The table of rules in `docs/architecture.md` is that of the rules: their names, scripts and what they write."""

import re

from samples import ROOT, rule_texts

HELPERS = {
    "pages(": "pages",
    "verdicts(": "claims",
    "outcome(": "outcome",
}  # functions of `rules/common.smk` that name outputs
OF_ALL = {"pages": "site", "claims": "claims.json"}  # what they name of the target `all`


def stated() -> dict[str, tuple[str, set[str]]]:
    """Rule → its script, and folders that it writes, by the table."""
    row = re.compile(r"^\| `(\w+)` \| .* \| `workflow/scripts/(\w+\.py)`.*? \| (.*) \|$", re.M)
    rows = row.findall((ROOT / "docs/architecture.md").read_text())
    return {rule: (script, set(re.findall(r"`([\w.]+)`", writes)) - {"runs"}) for rule, script, writes in rows}


def written() -> dict[str, tuple[str, set[str]]]:
    """The same by the rules."""
    found, script = {}, ""
    for text in rule_texts():
        for block in re.split(r"^(?=rule |use rule )", text, flags=re.M)[1:]:
            name = re.match(r"(?:use rule \w+ as |rule )(\w+)", block)[1]
            script = (re.findall(r"scripts/(\w+\.py)", block) or [script])[0]  # a rule that uses another has its script
            output = re.search(r"^    output:\n(.*?)^    \w+:", block, re.M | re.S)[1]
            folders = set(re.findall(r"\{[RS]\}/(\w+)", output)) | (
                {"archived"} if "measurements(" in output else set()
            )
            calls = [(call, kind) for call, kind in HELPERS.items() if call in output]
            folders |= {OF_ALL[kind] if f'{call}"all"' in output else kind for call, kind in calls}
            found[name] = script, folders
    return found


def test_the_table_is_that_of_the_rules():
    assert stated() == written()
    assert len(stated()) == 8


def test_a_script_belongs_to_a_rule():
    named = {script for script, _ in written().values()}
    assert all((ROOT / "workflow/scripts" / script).exists() for script in named)
    handed = {p.name for p in (ROOT / "workflow/scripts").glob("*.py") if "job_log(snakemake" in p.read_text()}
    assert handed == named
