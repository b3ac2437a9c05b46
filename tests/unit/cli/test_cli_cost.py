"""What a release costs, before it is made: `agglearn cost`; and what it has spent: `agglearn private --ledger`."""

import math
from pathlib import Path

import pandas as pd
import pytest
from cli_calls import call, refuse, state, told

from agglearn.cost.law import predict_cost
from agglearn.privacy import analytic_gaussian_scale, gaussian_delta
from agglearn.privacy.spending import add_up, read_ledger

PRIVATE = "--epsilon 1 --delta 1e-6 --ledger spent.csv --out"


def test_the_cost_of_a_file_as_table_picture_and_page(at, capsys):
    said = told(capsys, "cost data.csv --label y --positive yes --missing ? --epsilon 3,0.3 --splits 3 --out c")
    cost = pd.read_csv("c/cost.csv")
    assert sorted(p.name for p in Path("c").iterdir()) == ["cost.csv", "cost.html", "cost.svg"]
    assert sorted(set(cost.epsilon)) == [0.3, 3.0, math.inf]
    assert list(cost.release.unique()) == [
        "single tables, record protected", "tables of pairs, record protected", "tables of pairs, label protected",
        "label sums, label protected", "all records",
    ]  # fmt: skip
    assert (cost[["nllh_error", "auc_error"]] > 0).all(axis=None)
    page = Path("c/cost.html").read_text()
    row = cost.iloc[0]
    score = f"{row.nllh:.3f} ± {row.nllh_error:.3f}"
    assert all(text in page for text in (score, "they are not private", "What a release of data.csv costs"))
    assert score[:-5] in said.out
    assert "they are not private" in said.out
    share = 50 * (1 + gaussian_delta(analytic_gaussian_scale(1, 3, 1 / 2400), 1, 0.0))
    assert "ε = 3 (δ = 0.00042): An attacker who knows everything else" in said.out
    assert f"right in at most {share:.3g} of 100 guesses" in said.out
    assert Path("c/cost.svg").read_text().startswith("<?xml")


def test_the_cost_of_records_that_are_described(at, capsys):
    before = state(at)
    said = told(capsys, "cost --rows 50000 --features 10 --values 12 --base-rate .1 --auc .8 --epsilon 0.3,1").out
    predicted = predict_cost(50_000, 10, 12, 0.1, [0.3, 1.0], auc=0.8)
    for row in predicted.itertuples():
        assert f"{row.nllh:.3f} ± {row.nllh_error:.3f}, {row.auc:.3f} ± {row.auc_error:.3f}" in said
    assert "nine of ten predictions" in said
    assert state(at) == before


# -- the ledger ---------------------------------------------------------------------------------------------------------


RELEASES = [  # options, what is protected, mechanism, and what is told
    ("--delta 1e-6", "record", "gaussian", "a record is among the data is right in at most 54.7 of 100 guesses"),
    ("--epsilon 0.5 --mechanism laplace", "record", "laplace", "right in at most 62.2 of 100 guesses"),
    ("--delta 1e-6 --adjacency label", "label", "gaussian", "which of two labels a record has"),
    ("--delta 1e-6 --mechanism discrete_gaussian --split cells", "record", "discrete_gaussian", ""),
]


def test_releases_add_up_in_a_ledger(at, capsys):
    said = []
    for k, (options, _, _, words) in enumerate(RELEASES):
        said.append(told(capsys, f"private declared --epsilon 1 {options} --ledger spent.csv --out out{k}").out)
        assert words in said[-1]
    assert "spent.csv: record: spent rho 0.028, epsilon 1 at delta 1e-06 in all" in said[0]
    assert "spent.csv: label: spent rho 0.028, epsilon 1 at" in said[2]
    ledger = read_ledger("spent.csv")
    assert ledger[["protected", "mechanism"]].to_numpy().tolist() == [[*row[1:3]] for row in RELEASES]
    gaussian = 1 / (2 * analytic_gaussian_scale(1, 1, 1e-6) ** 2)
    assert ledger.rho.tolist() == pytest.approx([gaussian, 0.125, gaussian, gaussian], rel=1e-3)
    rho, epsilon, delta = add_up(ledger.drop(index=2))
    assert f"spent.csv: record: spent rho {rho:.3g}, epsilon {epsilon:.3g} at delta 2e-06 in all" in said[3]
    assert delta == pytest.approx(2e-6)
    assert 2 < epsilon <= 2.5


def test_the_choice_of_rows_is_spent_too(at, capsys):
    pd.read_csv("data.csv").assign(user=lambda d: d.index // 3).to_csv("visits.csv", index=False)
    whose = Path("schema.yaml").read_text().replace("one_row_per_person: true", "unit: user\nmax_rows: auto")
    Path("u.yaml").write_text(whose)
    assert call("aggregate visits.csv --schema u.yaml --missing ? --out u") == 0
    assert "whether a unit is among the data" in told(capsys, f"private u {PRIVATE} chosen").out
    assert call(f"private u --max-rows 2 {PRIVATE} stated") == 0
    ledger = read_ledger("spent.csv")
    assert ledger.protected.tolist() == ["unit user"] * 3
    assert ledger.epsilon.tolist() == pytest.approx([0.95, 0.05, 1])
    scales = [analytic_gaussian_scale(1, epsilon, 1e-6) for epsilon in (0.95, 1)]
    assert ledger.rho.tolist() == pytest.approx([1 / (2 * scales[0] ** 2), 0.05**2 / 2, 1 / (2 * scales[1] ** 2)])


def test_a_ledger_that_is_something_else_stops_the_release(at, capsys):
    Path("spent.csv").write_text("a,b\n1,2\n")
    said = refuse(capsys, f"private declared {PRIVATE} noisy")
    assert said == (1, "agglearn: spent.csv: is no ledger of `agglearn private`; mend it, or name another file\n")
    assert refuse(capsys, f"private declared {PRIVATE} noisy".replace("spent.csv", "tables"))[0] == 1  # a folder
