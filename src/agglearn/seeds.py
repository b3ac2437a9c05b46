"""Random streams from names, so that a result depends on what it is and never on when or where it ran."""

import hashlib

import numpy as np


def seed(*names) -> int:
    """63-bit seed from the names, the same on every machine and in every order of execution."""
    text = "/".join(map(str, names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1


def generator(*names) -> np.random.Generator:
    """NumPy generator on the stream that belongs to these names."""
    return np.random.default_rng(seed(*names))
