"""Small neural networks in JAX: layers and training, for methods of several sources.

A network is an immutable description of its layers with three parts: `initial(rng)` draws its weights, a dict of float32
arrays; calling it with weights and a batch gives outputs; equality and hash let compiled steps be used again.
Only `layers` and `training` import JAX, and the methods import these when they train or predict.
"""
