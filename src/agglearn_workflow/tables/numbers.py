"""Numbers, units, measures and parameters as text for readers."""

import json
import math
from collections.abc import Iterable

import numpy as np

ABBREVIATIONS = {
    "nllh": "NLLH", "auc": "AUC", "rmse": "RMSE", "mse": "MSE", "nmse": "MSE / variance", "mae": "MAE", "l2": "L2", "map": "MAP",
    "gibbs": "Gibbs", "seconds": "time", "elapsed": "time",
}  # fmt: skip
SYMBOLS = {
    "l2_mu": "λμ", "l2_theta": "λθ", "l2": "λ", "theta": "θ", "epsilon": "ε", "delta": "δ", "population": "M", "scale": "b",
    "n_chains": "chains", "n_bags": "bags", "noise_share": "noise / total",
}  # fmt: skip
# Words of a measure's name.
LOWER = {"error", "rmse", "mse", "nmse", "mae", "loss", "gap", "seconds", "brier", "violation", "index", "width"}
HIGHER = {"nllh", "auc", "accuracy", "information", "predictive", "correlation"}
UNITS = {  # name, size, and the least number of them that is written
    "s": [("µs", 1e-6, 1), ("ms", 1e-3, 1), ("s", 1.0, 1), ("min", 60.0, 2), ("h", 3600.0, 2)],
    "B": [("B", 1.0, 1), ("kB", 1e3, 1), ("MB", 1e6, 1), ("GB", 1e9, 1)],
}
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SMALL, LARGE = 1e-3, 1e6  # from here on numbers are written as powers of ten


def plain(value: object) -> str:
    """The value of a parameter as text. A mapping may be the JSON text that `summary.column_or_param` returns."""
    return _plain(json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{parameter_name(k)} {_plain(v)}" for k, v in value.items())
    if isinstance(value, list):
        return f"({', '.join(map(_plain, value))})"
    return f"{value:g}" if isinstance(value, float) else str(value)


def parameter_name(key: str) -> str:
    return SYMBOLS.get(key, key.replace("_", " "))


def setting(field: str, value: object, sign: str = " ") -> str:
    """A value of the field `params.l2` as text: its symbol or name, the sign, the value. Empty without a value."""
    return "" if value is None or value != value else f"{parameter_name(field.rpartition('.')[2])}{sign}{plain(value)}"


def method_name(experiment: dict, key: str) -> str:
    method = experiment["methods"][key]
    return (method.get("name") or key.replace("_", " ")) + ", ours" * method.get("ours", False)


def measure_name(name: str) -> str:
    return " ".join(ABBREVIATIONS.get(w, w) for w in name.split("_")) if isinstance(name, str) else ""


def direction(measure: str) -> str | None:
    """Whether `higher` or `lower` values of a measure are better. None for others, such as a chosen parameter."""
    words = set(measure.partition("_minus_")[0].split("_"))
    return "lower" if words & LOWER else "higher" if words & HIGHER else None


def fitting_unit(unit: str, means: Iterable[float]) -> tuple[str, float]:
    """The unit in which most of some means are short numbers, and its size in `unit`."""
    positive = [m for m in means if np.isfinite(m) and m > 0]
    if not positive or unit not in UNITS:
        return (unit if isinstance(unit, str) else ""), 1.0
    middle = math.exp(np.mean(np.log(positive)))
    name, size, _ = next((c for c in reversed(UNITS[unit]) if middle >= c[1] * c[2]), UNITS[unit][0])
    return name, size


def number(mean: float, low: float = math.nan, high: float = math.nan) -> str:
    """Mean ± half the interval, with two digits of the half. Without an interval it has three significant digits."""
    half = (high - low) / 2
    is_alone = not np.isfinite(half) or half <= 1e-12 * abs(mean)
    if is_alone and mean == 0:
        return "0"
    size = abs(mean) if is_alone else max(abs(mean), half)
    power = 0 if SMALL <= size < LARGE else math.floor(math.log10(size))
    mean, half = mean / 10.0**power, half / 10.0**power
    if is_alone:
        text = _signed(mean, max(0, 2 - math.floor(math.log10(abs(mean)))))
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        decimals = max(0, 1 - math.floor(math.log10(half)))
        text = f"{_signed(mean, decimals)} ± {half:,.{decimals}f}"
        text = f"({text})" if power else text
    return f"{text} × 10{str(power).translate(SUPERSCRIPTS)}" if power else text


def _signed(x: float, decimals: int) -> str:
    """With a minus sign in place of a hyphen, and never −0."""
    text = f"{x:,.{decimals}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.replace("-", "")


def duration_text(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
