"""Random streams from names, so that a result does not depend on when or where it was computed."""

import hashlib
import secrets
from numbers import Integral
from typing import Annotated

import numpy as np

from agglearn.errors import ConfigError

GENERATORS = (np.random.RandomState, np.random.Generator)
# what `draw_seed` takes and checks (with this text, see `agglearn.settings.UNCHECKED`, nobody else does)
RandomState = Annotated[int | np.random.RandomState | np.random.Generator | None, "checked where it is used"]


def draw_seed(random_state: RandomState) -> int:
    """The seed of one fit, from what scikit-learn's users give as `random_state`."""
    if random_state is None:
        return secrets.randbits(128)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int64).max))
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return int(random_state)
    raise ConfigError(
        f"random_state: must be a whole number from 0 on, a RandomState, a Generator or None, got {random_state!r}"
    )


def draw_generator(random_state: RandomState) -> np.random.Generator:
    """The generator of one fit, on the stream of `draw_seed(random_state)`."""
    return np.random.default_rng(draw_seed(random_state))


def split_validation(n: int, fraction: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sorted indices of the validation part of n units, at least one, and those of the rest."""
    order, size = rng.permutation(n), max(1, round(fraction * n))
    return np.sort(order[:size]), np.sort(order[size:])


def derive_seed(*names: object) -> int:
    """The 63-bit seed of these names. It is the same on every machine and in every order of execution."""
    if any(isinstance(name, GENERATORS) for name in names):
        raise TypeError("a generator names no stream; use draw_seed(random_state)")
    text = "/".join(map(str, names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1


def derive_generator(*names: object) -> np.random.Generator:
    """The generator on the stream of `derive_seed(*names)`."""
    return np.random.default_rng(derive_seed(*names))


def draw_by_weight(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) different rows by weight, sorted (Efraimidis and Spirakis 2006)."""
    with np.errstate(divide="ignore"):
        keys = np.log(rng.random(len(weights))) / weights
    return np.sort(np.argpartition(-keys, n)[:n])
