"""Neural networks on sets in PyTorch, which is imported when first needed: layers, pooling, training.

A batch of bags is its instances one below the other and the sizes of the bags. Pooling adds up segments; with bags of one
size it is a sum over an axis.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from agglearn.observations import Bags
from agglearn.vocabulary.network import torch

PREDICTED = 1 << 17  # instances predicted at a time


class Architecture(NamedTuple):
    """Layers of a network on sets: widths of φ and of g, how φ sees the set, how it is pooled."""

    features: tuple[int, ...]
    regressor: tuple[int, ...]
    pooling: str = "mean"  # sum, mean, max or attention
    layers: str = "dense"  # or equivariant
    activation: str = "elu"  # or tanh, relu
    last: bool = False  # whether an activation follows the last layer of φ
    dropout: float = 0.0
    heads: int = 4


class Segments(NamedTuple):
    """Where bags lie in a batch: `size` where all have one, else their `lengths` (B,)."""

    lengths: object
    size: int | None

    def pooled(self, h, how: str):
        """(B, w) sum, mean or max over the instances of each bag, for h (n, w)."""
        if self.size is not None:
            h = h.view(-1, self.size, h.shape[1])
            return h.amax(dim=1) if how == "max" else getattr(h, how)(dim=1)
        return torch().segment_reduce(h, how, lengths=self.lengths)

    def spread(self, v):
        """(n, w) each bag's row of v (B, w) for each of its instances."""
        if self.size is not None:
            return v.unsqueeze(1).expand(-1, self.size, -1).reshape(-1, v.shape[1])
        return v.repeat_interleave(self.lengths, dim=0)


@dataclass
class Batches:
    """Bags as tensors on a device, standardised: what training and prediction read from.

    Attributes
    ----------
    bags : with instances of weight 0 left out. centre, scale : (d,) of covariates. device : of PyTorch.
    """

    bags: Bags
    centre: np.ndarray
    scale: np.ndarray
    device: str

    def take(self, which: np.ndarray, draw: int | None = None, rng=None, augment=None):
        """(x, segments, weights or None) of some bags; of each `draw` instances at random, or all."""
        t, sizes = torch(), self.bags.sizes[which]
        if draw is not None and (sizes > draw).all():
            within = (rng.random((len(which), draw)) * sizes[:, None]).astype(np.int64)
            rows, sizes = (self.bags.offsets[which][:, None] + within).ravel(), np.full(len(which), draw)
        else:
            ends = np.cumsum(sizes)
            rows = np.repeat(self.bags.offsets[which] - ends + sizes, sizes) + np.arange(ends[-1])
        x = np.asarray(self.bags.X[rows], np.float32)
        x = x if augment is None else augment(x, sizes, rng)
        x = t.from_numpy((x - self.centre) / self.scale).to(self.device)
        weights = None
        if self.bags.weights is not None:
            weights = t.from_numpy(self.bags.weights[rows].astype(np.float32)).to(self.device)
        same = int(sizes[0]) if (sizes == sizes[0]).all() else None
        return x, Segments(t.from_numpy(sizes).to(self.device), same), weights

    def parts(self):
        """Numbers of bags, in order, in parts of about `PREDICTED` instances."""
        ends = np.searchsorted(self.bags.offsets, np.arange(PREDICTED, self.bags.offsets[-1], PREDICTED))
        borders = np.unique(np.concatenate([[0], ends, [len(self.bags)]]))
        return [np.arange(a, b) for a, b in pairwise(borders)]


def network(shape: Architecture, width: int, out: int, state: int):
    """A fresh network; the same for the same `state`."""
    t = torch()
    with t.random.fork_rng(devices=[]):
        t.manual_seed(state)
        from agglearn.distribution.modules import SetNetwork

        return SetNetwork(shape, width, out)


def predicted(model, batches: Batches) -> np.ndarray:
    """(B, out) float32 outputs for all bags."""
    model.eval()
    with torch().no_grad():
        return np.concatenate([model(*batches.take(part)).cpu().numpy() for part in batches.parts()])


def turned(x: np.ndarray, sizes: np.ndarray, rng) -> np.ndarray:
    """Clouds turned about the z axis at random and scaled by 0.8 to 1.25, each as a whole (DeepSets' augmentation)."""
    angle, factor = 2 * np.pi * rng.random(len(sizes)), 0.8 + 0.45 * rng.random(len(sizes))
    c, s = (np.repeat(f(angle) * factor, sizes).astype(np.float32) for f in (np.cos, np.sin))
    height = np.repeat(factor, sizes).astype(np.float32)
    return np.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1], height * x[:, 2]], axis=1)


AUGMENTATIONS = {"turn": turned}
