"""Small neural networks in JAX: layers and training, for methods of several sources.

A network is a function of weights (a dict of float32 arrays by name), a batch and, in training, a key of random numbers. It is
hashable by its settings, so that compiled steps are used again. Only `layers` and `training` import JAX, and the methods
import these when they train or predict.
"""
