"""Names of MLflow's runs: method, data set, and the parameters in which the runs of an experiment differ."""

import json
from collections.abc import Iterable

from agglearn_workflow.tables.numbers import parameter_name, plain

LONGEST = 250  # characters of a name that MLflow keeps
PARAMS = "dataset_params", "observation_params", "params"


class Names:
    """Names of the runs of an experiment."""

    def __init__(self, all_facts: Iterable[dict]):
        values: dict[tuple, dict[str, set]] = {}
        for method, dataset, *texts in {
            (r["method"], r["dataset"], *(r[field] for field in PARAMS)) for r in all_facts
        }:
            by_name = values.setdefault((method, dataset), {})
            for name, value in _all_leaves(texts).items():
                by_name.setdefault(name, set()).add(plain(value))
        self._varied = {key: sorted(n for n, v in by_name.items() if len(v) > 1) for key, by_name in values.items()}

    def of_run(self, facts: dict) -> str:
        """The name of a run of one seed."""
        return _join(self.of_cell(facts), f"seed {facts['seed']}")

    def of_mean(self, all_facts: list[dict]) -> str:
        """The name of the mean over the runs of a cell."""
        return _join(self.of_cell(all_facts[-1]), f"mean of {len(all_facts)} seed{'s' * (len(all_facts) > 1)}")

    def of_cell(self, facts: dict) -> str:
        """The name of a cell: its method as tables call it, its data set, its value of each parameter that is varied."""
        config = facts["config"]
        method = config["experiment"]["methods"][facts["method"]].get("name", facts["method"])
        title = config.get("datasets", {}).get(facts["dataset"], {}).get("title", facts["dataset"])
        values = _all_leaves(facts[field] for field in PARAMS)
        varied = [n for n in self._varied[facts["method"], facts["dataset"]] if n in values]
        settings = [f"{parameter_name(n.rpartition('.')[2])} = {plain(values[n])}" for n in varied]
        return _join(method, title.partition(" (")[0], *settings)


def _join(*words: str) -> str:
    """A name from its words. Where they are too long the middle is cut, and the last word stays."""
    text = " · ".join(words)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - len(words[-1]) - 5]}… · {words[-1]}"


def _all_leaves(texts: Iterable[str]) -> dict:
    """Parameters out of several JSON texts, each with the place of its text before its name."""
    return {f"{k}.{name}": v for k, text in enumerate(texts) for name, v in leaves(json.loads(text)).items()}


def leaves(values: dict, prefix: str = "") -> dict:
    """Parameters without nesting: `{"quantizer": {"budget": 5}}` becomes `{"quantizer.budget": 5}`."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        flat |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
