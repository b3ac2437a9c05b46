"""Engines of the Gibbs chains of the maximum-entropy model: Numba, JAX and Spark."""
