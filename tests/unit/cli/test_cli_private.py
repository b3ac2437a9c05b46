"""The command line's private route: no sequence of commands, without a file edited by hand, calls a file private that shows
a value of a single record."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from cli_calls import call, check_refusal, told
from samples import PEOPLE_SCHEMA, people

from agglearn.observations import ContingencyTables

QUICK = "--set n_chains=200 --set max_iter=5"
PRIVATE = "--epsilon 1 --delta 1e-6"


# -- drafts and schemas -------------------------------------------------------------------------------------------------


def test_draft_edit_aggregate_private(at, capsys):
    """The documented way, with the person's edit."""
    said = told(capsys, "schema draft data.csv --label y --positive yes --missing ?")
    assert "set reviewed: true" in said.err
    Path("mine.yaml").write_text(said.out)
    how = "aggregate data.csv --schema mine.yaml --missing ? --out t"
    check_refusal(capsys, how, 2, "mine.yaml: reviewed: is false")
    text = said.out.replace("reviewed: false", "reviewed: true").replace("person: false", "person: true")
    Path("mine.yaml").write_text(text)
    assert "by a declared schema: age (" in told(capsys, how).out
    assert call(f"private t {PRIVATE} --out noisy") == 0
    assert "at most 2.72 times as likely with any one record as without it" in capsys.readouterr().out
    header = json.loads(Path("noisy/tables.json").read_text())["params"]
    assert header["encoder"]["__object__"]["params"]["schema"] == "declared"
    noise = header["noise"]["__object__"]["params"]
    assert noise["private"] is True
    assert "at most 2.72 times" in noise["meaning"]


def test_what_the_schema_has_no_level_for_is_told(at, capsys):
    frame = pd.read_csv("data.csv", na_values="?").astype({"age": object})
    frame.loc[:4, "job"] = "pilot"
    frame.loc[7, "age"] = "old"
    frame.to_csv("odd.csv", index=False)
    assert call("aggregate odd.csv --schema schema.yaml --out t") == 0
    assert "no level of their own for: age 1, job 5" in capsys.readouterr().out


def test_what_a_wrong_label_leaves_out_is_said_aloud(at, capsys):
    frame = pd.DataFrame({"job": ["cook", "nurse"] * 30, "y": ["yes", "no", "perhaps"] * 20})
    frame.to_parquet("labels.parquet")
    text = "{reviewed: true, label: {column: y, positive: yes, negative: no}, features: {job: {values: [cook]}}}"
    Path("right.yaml").write_text(text)
    said = told(capsys, "aggregate labels.parquet --schema right.yaml --out right")
    left_out = "label 'y': 20 of 60 records are left out, which have neither 'yes' nor 'no'"
    assert said.err == f"agglearn: warning: {left_out}\n"
    assert "40 records, 20 with label 1" in said.out


def test_a_learned_schema_is_not_private(at, capsys):
    said = told(capsys, f"private tables {PRIVATE} --accept-learned-schema --out noisy").out
    assert "Not private: bins, categories and which features have missing values were learned from the records" in said
    assert "at most" not in said
    assert ContingencyTables.load("noisy").noise.private is False


def test_large_promises(at, capsys):
    said = told(capsys, "private declared --epsilon 25 --mechanism laplace --allow-large-epsilon --out n")
    assert said.err.splitlines() == ["agglearn: warning: epsilon 25 is above 10: that protects little"]
    assert "at most 72,004,899,337 times" in said.out


# -- sequences of commands ----------------------------------------------------------------------------------------------

CANARY = "canary"  # stands in texts of single records
NUMBER = 98_765_432.25  # a number of one record, of so many digits that no noise has them


def secretive(n: int = 150) -> pd.DataFrame:
    """Records of which each has a text of its own, and one a number, one a category and one a missing value of its own."""
    frame = people(n)
    frame["mail"] = [f"{CANARY}{i}@x.org" for i in range(n)]
    frame["age"] = frame.age.astype(float)
    frame.loc[0, "age"] = NUMBER
    frame.loc[1, "job"] = f"{CANARY} of jobs"
    frame.loc[2, "zone"] = None
    return frame


SCHEMA = PEOPLE_SCHEMA + "  mail: {buckets: 5}\n"


def content(path: Path) -> str:
    """Everything in a file, as text."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return str(table.schema.metadata) + table.to_pandas().to_csv()
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return repr({k: arrays[k].tolist() for k in arrays.files})
    return path.read_text()


def shows_a_record(text: str) -> bool:
    return CANARY in text or any(spelling in text for spelling in (str(NUMBER), f"{NUMBER:g}", str(int(NUMBER))))


def judge(output: str, parents: dict, private: dict) -> None:
    """Whether an output says `private`, or comes from one that does; then it shows no record."""
    files = [p for p in [Path(output), *Path(output).rglob("*")] if p.is_file()]
    texts = {p: content(p) for p in files}
    said = any('"private": true' in text for text in texts.values())
    private[output] = said or private.get(parents[output], False)
    for path, text in texts.items():
        assert not (private[output] and shows_a_record(text)), f"{path} is private and shows a record"


AGGREGATE = [
    "--label y", "--label y --hash mail:8", "--label y --hash mail:8 --binning width --features age,mail",
    "--label y --pairs none --categorical age", "--label y --features home,zone", "--schema schema.yaml",
    "--schema schema.yaml --pairs none", "--schema schema.yaml --features age,mail", "--schema draft.yaml",
]  # fmt: skip
RELEASE = [
    "--epsilon 1 --delta 1e-6", "--epsilon 2 --delta 1e-6 --adjacency label", "--epsilon 1 --mechanism laplace --post clip",
    "--epsilon 1 --delta 1e-6 --mechanism discrete_gaussian --post project",
    "--epsilon 1 --mechanism discrete_laplace --split cells", "--epsilon 1e6 --mechanism laplace --allow-large-epsilon",
]  # fmt: skip
BAYES = "--method naive_bayes"
FIT = [QUICK, f"{QUICK} --ignore-noise", f"{BAYES} --ignore-noise", BAYES]
COMPRESS = ["--budget 8", "--budget 0.9 --method frequency --min-count 1"]


def step(rng, outputs: list[str], out: str) -> tuple[str, str | None]:
    """A command on what there is, and the output that it reads."""
    pick = lambda options: options[rng.integers(len(options))]  # noqa: E731
    kind, source = rng.choice(["aggregate", "private", "private", "compress", "fit"]), pick(outputs or ["data.csv"])
    if kind == "aggregate" or not outputs:
        return f"aggregate data.csv {pick(AGGREGATE)} --out {out}", None
    if kind == "private":
        accept = "--accept-learned-schema" * int(rng.integers(2))
        return f"private {source} {pick(RELEASE)} {accept} --out {out}", source
    return f"{kind} {source} {pick(FIT if kind == 'fit' else COMPRESS)} --out {out}", source


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_sequence_of_commands_calls_private_what_shows_a_record(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    secretive().to_csv("data.csv", index=False)
    Path("schema.yaml").write_text(SCHEMA)
    assert call("schema draft data.csv --label y --positive 1 --out draft.yaml") == 0
    assert not shows_a_record(Path("draft.yaml").read_text())
    rng, parents, private, outcomes = np.random.default_rng(1), {}, {}, []
    for sequence in range(10):
        tables = []
        for k in range(9):
            out = f"{sequence}_{k}"
            command, source = step(rng, tables, out)
            status = call(command)
            outcomes.append((command.split()[0], status))
            if status:
                assert not Path(out).exists(), command
                continue
            parents[out] = source
            judge(out, parents, private)
            if Path(out, "tables.json").exists():
                tables.append(out)
    capsys.readouterr()
    said = [o for o, p in private.items() if p]
    assert len(said) > 10
    assert len(private) - len(said) > 10  # the others show records, as `judge` would have found
    assert sum(shows_a_record(content(p)) for o in private for p in Path(o).rglob("*") if p.is_file()) > 5
    assert {c for c, status in outcomes if status == 0} == {"aggregate", "private", "fit", "compress"}
    assert ("private", 2) in outcomes
    assert ("aggregate", 2) in outcomes  # by a draft that nobody reviewed


def test_the_judge_finds_what_is_shown(tmp_path, monkeypatch):
    """The test's power: a file that is edited by hand to say `private`."""
    monkeypatch.chdir(tmp_path)
    secretive().to_csv("data.csv", index=False)
    assert call("aggregate data.csv --label y --pairs none --out t") == 0
    assert call(f"private t {PRIVATE} --accept-learned-schema --out n") == 0
    path = Path("n/tables.json")
    path.write_text(path.read_text().replace('"private": false', '"private": true'))
    with pytest.raises(AssertionError, match="shows a record"):
        judge("n", {"n": "t"}, {})
