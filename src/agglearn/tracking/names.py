"""Names of MLflow's runs: method, data set, and the parameters in which the runs of an experiment differ."""

import json
from collections.abc import Iterable

from agglearn.reporting.numbers import parameter_name, plain

LONGEST = 250  # characters of a name that MLflow keeps
PARTS = "dataset_params", "observation_params", "params"


class Names:
    """Names of the runs of an experiment.

    Parameters
    ----------
    records : of all its runs.
    """

    def __init__(self, records: Iterable[dict]):
        values: dict[tuple, dict[str, set]] = {}
        for method, dataset, *texts in {(r["method"], r["dataset"], *(r[part] for part in PARTS)) for r in records}:
            own = values.setdefault((method, dataset), {})
            for name, value in _all_leaves(texts).items():
                own.setdefault(name, set()).add(plain(value))
        self._varied = {key: sorted(n for n, v in own.items() if len(v) > 1) for key, own in values.items()}

    def of_run(self, record: dict) -> str:
        """The name of a run of one seed."""
        return _joined(self.of_cell(record), f"seed {record['seed']}")

    def of_mean(self, records: list[dict]) -> str:
        """The name of the mean over the runs of a cell."""
        return _joined(self.of_cell(records[-1]), f"mean of {len(records)} seed{'s' * (len(records) > 1)}")

    def of_cell(self, record: dict) -> str:
        """What the runs of a cell have in common: the method as tables call it, the data set, what is varied."""
        config = record["config"]
        method = config["experiment"]["methods"][record["method"]].get("name", record["method"])
        title = config.get("datasets", {}).get(record["dataset"], {}).get("title", record["dataset"])
        values = _all_leaves(record[part] for part in PARTS)
        varied = [n for n in self._varied[record["method"], record["dataset"]] if n in values]
        settings = [f"{parameter_name(n.rpartition('.')[2])} = {plain(values[n])}" for n in varied]
        return _joined(method, title.partition(" (")[0], *settings)


def _joined(*parts: str) -> str:
    """Parts of a name. Where they are too long the middle is cut, and the last part stays."""
    text = " · ".join(parts)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - len(parts[-1]) - 5]}… · {parts[-1]}"


def _all_leaves(texts: Iterable[str]) -> dict:
    """Parameters out of several JSON texts, each with the place of its text before its name."""
    return {f"{k}.{name}": v for k, text in enumerate(texts) for name, v in leaves(json.loads(text)).items()}


def leaves(values: dict, prefix: str = "") -> dict:
    """Parameters without nesting: `{"quantizer": {"budget": 5}}` becomes `{"quantizer.budget": 5}`."""
    flat = {}
    for name, value in values.items():
        flat |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
