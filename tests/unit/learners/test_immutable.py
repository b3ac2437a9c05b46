"""Dataclasses that are values cannot be changed."""

import dataclasses
import importlib
import pkgutil

import pytest

import agglearn

VALUES = ("agglearn.observations", "agglearn.privacy", "agglearn.encoding")


def dataclasses_of_the_package():
    for info in pkgutil.walk_packages(agglearn.__path__, "agglearn."):
        if info.name.startswith(VALUES):
            module = importlib.import_module(info.name)
            own = (c for c in vars(module).values() if isinstance(c, type) and c.__module__ == info.name)
            yield from filter(dataclasses.is_dataclass, own)


@pytest.mark.parametrize("kind", list(dataclasses_of_the_package()), ids=lambda kind: kind.__name__)
def test_observations_promises_and_plans_are_frozen(kind):
    assert kind.__dataclass_params__.frozen
