"""Where the Gibbs chains of the maximum-entropy model run: Numba, JAX or Spark."""
