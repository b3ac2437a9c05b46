"""What `agglearn cost` shows: a table, a picture, a page."""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd

from agglearn.privacy.spending import attacker_advantage, describe_attacker, gaussian_rho


def listing(costs: pd.DataFrame) -> pd.DataFrame:
    """Texts of releases (rows) at budgets (columns)."""
    rows = costs[["nllh", "nllh_error", "auc", "auc_error"]].itertuples(index=False)
    texts = costs.assign(text=["{:.3f} ± {:.3f}, {:.3f} ± {:.3f}".format(*row) for row in rows])
    table = texts.pivot(index="release", columns="epsilon", values="text").loc[costs["release"].unique()]
    return table.rename(columns=_budget).reset_index().fillna("")


def attackers(epsilons: Sequence[float], delta: float, protected: str = "record") -> list[str]:
    """What each budget is worth to an attacker, in words."""
    gains = {epsilon: attacker_advantage(epsilon, gaussian_rho(epsilon, delta)) for epsilon in epsilons}
    return [f"{_budget(e)} (δ = {delta:.2g}): {describe_attacker(gain, protected)}" for e, gain in gains.items()]


def draw(costs: pd.DataFrame, path: Path) -> None:
    """The picture: a line for each release over the budgets, a dashed one for all records."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    for axes, measure in zip(figure.subplots(1, 2), ("nllh", "auc"), strict=True):
        names = measure, f"{measure}_error"
        values, errors = (costs.pivot(index="epsilon", columns="release", values=n).rename(_budget) for n in names)
        axes.axhline(values["all records"].iloc[-1], color="black", linestyle="dashed")
        values.plot(ax=axes, yerr=errors, marker="o", capsize=3, legend=False, xlabel="", title=measure.upper())
        axes.set_xticks(range(len(values)), values.index)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path)


def page(source: str, costs: pd.DataFrame, sentences: Sequence[str]) -> str:
    """The page with the picture `cost.svg`, the table, and sentences."""
    title, paragraph = f"What a release of {escape(Path(source).name)} costs", "<br>".join(map(escape, sentences))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body><h1>{title}</h1>
<img src="cost.svg" alt="NLLH and AUC of each release by epsilon; the table has the same numbers">
{listing(costs).to_html(index=False)}
<p>{paragraph}</p></body></html>
"""


def _budget(epsilon: float) -> str:
    return "no noise" if epsilon == math.inf else f"ε = {epsilon:g}"
