"""What `agglearn cost` shows: a table, a picture, a page."""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd

from agglearn.privacy.spending import attacker_advantage, describe_attacker, gaussian_rho

KEYS = ["release", "protected"]
NAMES = {"nllh": "NLLH", "auc": "AUC"}
STYLE = "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}img{max-width:100%}td,th{padding:.2rem .6rem;text-align:left}"


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Means and 95 % intervals of each release at each budget, and both as a text."""
    from agglearn.cost.measuring import OVERLAP
    from agglearn.evaluation.intervals import mean_interval

    rows = []
    for key, part in scores.groupby([*KEYS, "epsilon"], sort=False):
        nllh, auc = (mean_interval(part[measure], OVERLAP) for measure in NAMES)
        cell = ", ".join(f"{mean:.3f} ± {high - mean:.3f}" for mean, _, high in (nllh, auc))
        rows.append([*key, *nllh, *auc, cell])
    bounds = [f"{measure}{bound}" for measure in NAMES for bound in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=[*KEYS, "epsilon", *bounds, "cell"])


def listing(summary: pd.DataFrame) -> pd.DataFrame:
    """Texts of releases (rows) at budgets (columns)."""
    table = summary.pivot(index=KEYS, columns="epsilon", values="cell")
    table = table.reindex(pd.MultiIndex.from_frame(summary[KEYS].drop_duplicates()))
    return table.rename(columns=_budget).reset_index().fillna("")


def attackers(epsilons: Sequence[float], delta: float, protected: str = "record") -> list[str]:
    """What each budget is worth to an attacker, in words."""
    gains = {epsilon: attacker_advantage(epsilon, gaussian_rho(epsilon, delta)) for epsilon in epsilons}
    return [f"{_budget(e)} (δ = {delta:.2g}): {describe_attacker(gain, protected)}" for e, gain in gains.items()]


def draw(summary: pd.DataFrame, path: Path) -> None:
    """The picture: a line for each release over the budgets, a dashed one for all records."""
    from matplotlib.figure import Figure

    figure, budgets = Figure(figsize=(10, 5), layout="constrained"), sorted(set(summary["epsilon"]))
    for axes, measure in zip(figure.subplots(1, 2), NAMES, strict=True):
        for k, ((release, protected), part) in enumerate(summary.groupby(KEYS, sort=False)):
            if protected == "nothing":
                axes.axhline(part[measure].item(), color="black", linestyle="dashed", label=f"{release}, not released")
                continue
            errors = part[measure] - part[f"{measure}_low"], part[f"{measure}_high"] - part[measure]
            places = part["epsilon"].map(budgets.index) + 0.05 * k  # beside one another
            axes.errorbar(
                places, part[measure], errors, marker="o", capsize=3, label=f"{release}, {protected} protected"
            )
        axes.set_xticks(range(len(budgets)), map(_budget, budgets))
        axes.set_title(f"{NAMES[measure]}: more is better")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path)


def page(source: str, table: pd.DataFrame, said: Sequence[str]) -> str:
    """The page with table, picture `cost.svg`, and sentences."""
    title = f"What a release of {escape(Path(source).name)} costs"
    sentences = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in said)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>
<body><h1>{title}</h1>
<img src="cost.svg" alt="NLLH and AUC of each release by epsilon; the table has the same numbers">
{table.to_html(index=False, border=0)}
{sentences}
</body></html>
"""


def _budget(epsilon: float | str) -> str:
    return str(epsilon) if isinstance(epsilon, str) else "no noise" if epsilon == math.inf else f"ε = {epsilon:g}"
