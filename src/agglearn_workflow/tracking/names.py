"""Names of MLflow's runs: method, data set, and the parameters in which the runs of an experiment differ."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

from agglearn_workflow.tables.numbers import count, parameter_name, plain

LONGEST = 250  # characters of a name that MLflow keeps
PARAMS = "dataset_params", "observation_params", "params"


class Names:
    def __init__(self, all_facts: Iterable[dict]):
        values: dict[tuple, set[str]] = defaultdict(set)
        for method, dataset, *texts in {tuple(r[field] for field in ("method", "dataset", *PARAMS)) for r in all_facts}:
            for name, value in _all_leaves(texts).items():
                values[method, dataset, name].add(plain(value))
        self._varied = {key for key, texts in values.items() if len(texts) > 1}

    def of_run(self, facts: dict) -> str:
        return _join(self._of_cell(facts), f"seed {facts['seed']}")

    def of_mean(self, all_facts: Sequence[dict]) -> str:
        return _join(self._of_cell(all_facts[-1]), f"mean of {count(len(all_facts), 'seed')}")

    def _of_cell(self, facts: dict) -> str:
        """A method as tables call it, its data set, its value of each parameter that is varied."""
        config, (method, dataset) = facts["config"], (facts["method"], facts["dataset"])
        name = config["experiment"]["methods"][method].get("name", method)
        title = config.get("datasets", {}).get(dataset, {}).get("title", dataset)
        values = _all_leaves(facts[field] for field in PARAMS)
        varied = [param for param in values if (method, dataset, param) in self._varied]
        settings = [f"{parameter_name(param.rpartition('.')[2])} = {plain(values[param])}" for param in sorted(varied)]
        return _join(name, title.partition(" (")[0], *settings)


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
