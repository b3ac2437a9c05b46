"""Networks on sets as PyTorch modules; importing this needs PyTorch."""

from itertools import pairwise

import torch
from torch import nn

ACTIVATIONS = {"elu": nn.ELU, "tanh": nn.Tanh, "relu": nn.ReLU}


class Equivariant(nn.Module):
    """x ↦ Γ(x − max over the set), the permutation-equivariant layer of DeepSets' point clouds (Zaheer et al. 2017)."""

    def __init__(self, width, out):
        super().__init__()
        self.gamma = nn.Linear(width, out)

    def forward(self, h, segments):
        return self.gamma(h - segments.spread(segments.pooled(h, "max")))


class Attention(nn.Module):
    """Pooling by multi-head attention with one learned query per head (Lee et al. 2019, PMA)."""

    def __init__(self, width, heads):
        super().__init__()
        self.keys, self.values = nn.Linear(width, heads), nn.Linear(width, width)
        self.heads = heads

    def forward(self, h, segments, weights):
        score = self.keys(h)
        share = (score - segments.spread(segments.pooled(score, "max")).detach()).exp()
        share = share if weights is None else share * weights[:, None]
        total = segments.pooled(share, "sum")
        values = self.values(h).view(len(h), self.heads, -1)
        return segments.pooled((values * share[:, :, None]).flatten(1), "sum") / total.repeat_interleave(
            values.shape[2], dim=1
        )


class SetNetwork(nn.Module):
    """g((pool φ(x) − shift)·factor) over the instances x of each bag; shift and factor are set before training."""

    def __init__(self, shape, width: int, out: int):
        super().__init__()
        self.shape = shape
        kind = Equivariant if shape.layers == "equivariant" else nn.Linear
        widths = [width, *shape.features]
        self.features = nn.ModuleList(kind(a, b) for a, b in pairwise(widths))
        self.activation = ACTIVATIONS[shape.activation]()
        self.attention = Attention(widths[-1], shape.heads) if shape.pooling == "attention" else None
        parts, at = [], widths[-1]
        for units in shape.regressor:
            parts += [nn.Dropout(shape.dropout)] * (shape.dropout > 0) + [
                nn.Linear(at, units),
                ACTIVATIONS[shape.activation](),
            ]
            at = units
        self.register_buffer("shift", torch.zeros(widths[-1]))
        self.register_buffer("factor", torch.ones(widths[-1]))
        self.regressor = nn.Sequential(*parts, *[nn.Dropout(shape.dropout)] * (shape.dropout > 0), nn.Linear(at, out))

    def forward(self, x, segments, weights=None):
        return self.regressor((self.embedded(x, segments, weights) - self.shift) * self.factor)

    def embedded(self, x, segments, weights=None):
        for k, layer in enumerate(self.features):
            x = layer(x, segments) if self.shape.layers == "equivariant" else layer(x)
            if self.shape.last or k + 1 < len(self.features):
                x = self.activation(x)
        return self._pooled(x, segments, weights)

    def standardise(self, x, segments, weights=None):
        """Let the pooled values of these bags have mean 0 and standard deviation 1."""
        with torch.no_grad():
            pooled = self.embedded(x, segments, weights)
            spread = pooled.std(dim=0)
            self.shift.copy_(pooled.mean(dim=0))
            self.factor.copy_(torch.where(spread > 0, 1 / spread.clamp(min=1e-6), torch.ones_like(spread)))

    def _pooled(self, x, segments, weights):
        if self.attention is not None:
            return self.attention(x, segments, weights)
        if weights is None or self.shape.pooling == "max":
            return segments.pooled(x, self.shape.pooling)
        total = segments.pooled(x * weights[:, None], "sum")
        return total if self.shape.pooling == "sum" else total / segments.pooled(weights[:, None], "sum")
