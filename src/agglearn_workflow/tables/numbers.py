"""Numbers, units, measures and parameters as text for readers."""

import json
import math
from collections.abc import Iterable

import numpy as np

ABBREVIATIONS = {
    "nllh": "NLLH", "auc": "AUC", "rmse": "RMSE", "mse": "MSE", "nmse": "MSE / variance", "mae": "MAE", "l2": "L2", "map": "MAP",
    "gibbs": "Gibbs", "seconds": "time", "elapsed": "time in all",
}  # fmt: skip
SYMBOLS = {
    "l2_mu": "λμ", "l2_theta": "λθ", "l2": "λ", "theta": "θ", "epsilon": "ε", "delta": "δ", "population": "M", "scale": "b",
    "n": "records", "n_iter": "iterations", "max_iter": "iterations", "tol": "tolerance", "noise_share": "noise / total",
}  # fmt: skip
YEARS = {"election", "elections"}  # parameters
# Words of a measure's name.
LOWER = {"error", "rmse", "mse", "nmse", "mae", "loss", "gap", "seconds", "brier", "violation", "index", "width"}
HIGHER = {"nllh", "auc", "accuracy", "information", "predictive", "correlation"}
UNITS = {  # name, size, and the least number of them that is written
    "s": [("µs", 1e-6, 1), ("ms", 1e-3, 1), ("s", 1.0, 1), ("min", 60.0, 2), ("h", 3600.0, 2)],
    "B": [("B", 1.0, 1), ("kB", 1e3, 1), ("MB", 1e6, 1), ("GB", 1e9, 1)],
}
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SMALL, LARGE, LONG = 1e-3, 1e6, 5  # from these sizes, or above so many decimals, numbers are written as powers of ten


def plain(value: object, key: str = "") -> str:
    """The value of the parameter `key` as text. A mapping may be the JSON text that `summary.column_or_param` returns."""
    return _plain(json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value, key)


def _plain(value: object, key: str) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{parameter_name(k)} {_plain(v, k)}" for k, v in value.items())
    if isinstance(value, list):
        return f"({', '.join(_plain(v, key) for v in value)})"
    if type(value) is int and key not in YEARS:
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def parameter_name(key: str) -> str:
    return SYMBOLS.get(key, key.removeprefix("n_").replace("_", " "))


def setting(field: str, value: object, words: dict[str, str]) -> str:
    """A value of the field `params.l2` as text: its word, or the name and the value, or the symbol = the value. Empty
    without a value."""
    if value is None or value != value:
        return ""
    key = field.rpartition(".")[2]
    name = parameter_name(key)
    return words.get(str(value)) or f"{name}{' = ' if len(name) < 3 else ' '}{plain(value, key)}"


def method_name(experiment: dict, key: str) -> str:
    method = experiment["methods"][key]
    return (method.get("name") or key.replace("_", " ")) + ", ours" * method.get("ours", False)


def measure_name(name: str, experiment: dict | None = None) -> str:
    """Write a measure in words. A difference names its baseline where the experiment is given."""
    if not isinstance(name, str):
        return ""
    measure, minus, baseline = name.partition("_minus_")
    if minus and experiment:
        return f"{measure_name(measure)} minus that of {method_name(experiment, baseline)}"
    return " ".join(ABBREVIATIONS.get(w, w) for w in name.split("_"))


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


def common_power(means: Iterable[float]) -> int:
    """The power of ten that small numbers of similar size have in common. 0 for others."""
    sizes = [abs(m) for m in means if np.isfinite(m) and m]
    is_small = bool(sizes) and max(sizes) < min(0.01, 1e3 * min(sizes))
    return math.floor(math.log10(max(sizes))) if is_small else 0


def common_decimals(means: np.ndarray, halves: np.ndarray) -> int | None:
    """Decimals of a column: two digits of the median half interval, without intervals three of the median size, at most
    four digits of the largest number. None where numbers are small, or one would lose its second digit and its interval."""
    is_number = np.isfinite(means) & (means != 0)
    sizes, halves = np.abs(means[is_number]), np.where(halves > 1e-12, halves, np.nan)[is_number]
    if not len(sizes) or not SMALL <= max(sizes) < LARGE:
        return None
    if np.isnan(halves).all() and (sizes == np.round(sizes)).all():
        return 0
    digits = 2 - math.log10(np.median(sizes)) if np.isnan(halves).all() else 1 - math.log10(np.nanmedian(halves))
    decimals = max(0, min(math.ceil(digits - 1e-9), 3 - math.floor(math.log10(max(sizes)))))
    is_lost = (sizes < 10.0 ** (1 - decimals)) & ~(halves >= 0.5 * 10.0**-decimals)
    return None if is_lost.any() else decimals


def number(mean: float, low: float = math.nan, high: float = math.nan, decimals: int | None = None) -> str:
    """Mean ± half the interval, with two digits of the half, or below the last of `decimals`. Without an interval it has
    three significant digits, or fewer if it is exact."""
    half = (high - low) / 2
    is_alone = not np.isfinite(half) or half <= 1e-12 * abs(mean)
    if is_alone and mean == 0:
        return "0"
    size = abs(mean) if is_alone else max(abs(mean), half)
    is_long = not is_alone and half < 10.0 ** (1 - LONG)
    power = 0 if decimals is not None or (SMALL <= size < LARGE and not is_long) else math.floor(math.log10(size))
    mean, half = mean / 10.0**power, half / 10.0**power
    if is_alone and decimals is None:
        digits = max(0, 2 - math.floor(math.log10(abs(mean))))
        text = _signed(mean, digits)
        is_exact = math.isclose(mean, round(mean, digits), rel_tol=1e-9)  # otherwise its zeros are digits too
        text = text.rstrip("0").rstrip(".") if is_exact and "." in text else text
    else:
        digits = max(0, 1 - math.floor(math.log10(half))) if decimals is None else decimals
        beside = f" ± {half:,.{digits}f}" if half >= 0.5 * 10.0**-digits else f" ± <{10.0**-digits:.{digits}f}"
        text = _signed(mean, digits) + ("" if is_alone else beside)
        text = f"({text})" if power else text
    return f"{text} × 10{str(power).translate(SUPERSCRIPTS)}" if power else text


def _signed(x: float, decimals: int) -> str:
    """With a minus sign in place of a hyphen, and never −0."""
    text = f"{x:,.{decimals}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.replace("-", "")


def seeds_text(counts: Iterable[float]) -> str:
    """Numbers of seeds of the cells that have several: `5 seeds`, or `3 to 5 seeds`. Empty where none has."""
    several = sorted({int(n) for n in counts if n > 1})
    return " to ".join(str(n) for n in dict.fromkeys((several[0], several[-1]))) + " seeds" if several else ""


def duration_text(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
