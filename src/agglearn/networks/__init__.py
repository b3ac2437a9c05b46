"""Small neural networks in JAX: layers and training, for methods of several papers.

A network is a function of weights (a dict of float32 arrays by name), a batch and, in training, a key of random numbers. Its
settings make it hashable, so that compiled steps are used again. Methods import `layers` and `training`, which import JAX, when
they train or predict.
"""

import os

from agglearn.optional import require

THREADS = "PJRT_NPROC"  # JAX reads the size of its thread pool from it when it starts, and ignores OMP_NUM_THREADS


def start_jax() -> None:
    """Start JAX with one thread on the processor: the order of additions in a matrix product depends on their number.

    A program that has started JAX before, or has set `PJRT_NPROC`, keeps its threads. Results then agree to rounding.
    """
    jax = require("jax", "networks")
    if THREADS in os.environ:
        return
    os.environ[THREADS] = "1"
    try:
        jax.devices("cpu")
    finally:
        del os.environ[THREADS]
