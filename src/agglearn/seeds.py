"""Random streams from names, so that a result depends on what it is and never on when or where it ran."""

import hashlib
from numbers import Integral

import numpy as np

from agglearn.errors import ConfigError

GENERATORS = (np.random.RandomState, np.random.Generator)
RandomState = int | np.random.RandomState | np.random.Generator | None  # see `draw_seed`


def draw_seed(random_state: RandomState) -> int:
    """The seed of one fit, from what scikit-learn's users give as `random_state`.

    Parameters
    ----------
    random_state : a whole number from 0 on is the seed itself. A RandomState or a Generator draws one, and moves on. None takes
        one from the system's randomness.

    Raises
    ------
    ConfigError : anything else.
    """
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]  # without an argument it is a number
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int64).max))
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise ConfigError(
        f"random_state: must be a whole number from 0 on, a RandomState, a Generator or None, got {random_state!r}"
    )


def seed(*names: object) -> int:
    """63-bit seed from the names, the same on every machine and in every order of execution.

    Raises
    ------
    TypeError : a name is a generator, whose text is the same for all; use `draw_seed`.
    """
    if any(isinstance(name, GENERATORS) for name in names):
        raise TypeError("a generator names no stream; use draw_seed(random_state)")
    text = "/".join(map(str, names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1


def generator(*names: object) -> np.random.Generator:
    """NumPy generator on the stream that belongs to these names."""
    return np.random.default_rng(seed(*names))
