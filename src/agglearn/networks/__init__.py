"""Small neural networks in JAX: layers and training, for methods of several papers."""

import os

from agglearn.optional import require

THREADS = "PJRT_NPROC"  # JAX reads the size of its thread pool from it when it starts, and ignores OMP_NUM_THREADS


def start_jax() -> None:
    """Start JAX with one thread on the processor, on which the order of additions in a matrix product depends.

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
