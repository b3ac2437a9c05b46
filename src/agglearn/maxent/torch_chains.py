"""Persistent Gibbs chains in PyTorch: on a CUDA device where there is one, else on the processor.

Lines 2–7 of Algorithm 1 (Gilotte et al. 2022) over all chains at once, feature by feature. Streams differ from those of
`agglearn.maxent.chains`, so that weights agree with it to Monte-Carlo error; on one device a seed gives one result.
"""

import numpy as np

from agglearn.errors import NotAvailable
from agglearn.maxent.chains import proposals, starting_positions, wide_features
from agglearn.maxent.layout import Layout

try:
    import torch
except ImportError:  # an optional extra
    torch = None

ROOM = 1 << 27  # numbers in the largest intermediate array
UNIT = float(1 << 23)  # probabilities are counted in multiples of 2^-23, whose sums do not depend on their order


class TorchChains:
    """What `agglearn.maxent.chains.Chains` is, in PyTorch.

    Parameters
    ----------
    layout, n, intercept, seed, start, sampler, n_proposals : as in `Chains`.
    device : None for `cuda` where there is one, else `cpu`.

    Raises
    ------
    NotAvailable : PyTorch is not installed.
    """

    def __init__(
        self, layout: Layout, n: int, intercept: float, seed: int, start="marginals", sampler="gibbs", n_proposals=8,
        device=None,
    ):  # fmt: skip
        if torch is None:
            raise NotAvailable("PyTorch is not installed; `make torch` installs it")
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.layout, self.n, self.intercept, self.seed, self.n_proposals = layout, n, intercept, seed, n_proposals
        self.wide = wide_features(layout, sampler)
        self.positions = self._on(starting_positions(layout, n, seed, start).astype(np.int64))
        self.threshold, self.alias, self.log_q = map(self._on, proposals(layout))
        self.alias = self.alias.long()
        self.offsets, self.sizes = layout.offsets.tolist(), layout.sizes.tolist()
        # Per feature the weights that lead to it, (2(K + 1), size): rows of y = 0, its single weights, the same of y = 1.
        k = layout.n_modalities
        self.weights = [torch.zeros((2 * (k + 1), size), device=self.device) for size in self.sizes]
        self.theta = torch.zeros((k, k), device=self.device)

    def _on(self, array):
        return torch.as_tensor(np.ascontiguousarray(array).astype(_PLAIN.get(array.dtype, array.dtype))).to(self.device)

    def set_weights(self, mu: np.ndarray, theta: np.ndarray) -> None:
        """Use these (w,) weights from now on."""
        at = self.layout
        single = self._on(at.single)
        rows, columns = (self._on(a).long() for a in (at.rows, at.columns))
        mu, theta = (self._on(at.expand(v).astype(np.float32)) for v in (mu, theta))
        self.theta[rows, columns] = self.theta[columns, rows] = theta
        matrix = torch.zeros_like(self.theta)
        for y, values in enumerate((mu, mu + theta)):
            pairs = torch.where(single, 0.0, values)
            matrix[rows, columns] = matrix[columns, rows] = pairs
            alone = torch.zeros(len(matrix), device=self.device)
            alone[rows[single]] = values[single]
            first = y * (len(matrix) + 1)
            for offset, size, into in zip(self.offsets, self.sizes, self.weights, strict=True):
                into[first : first + len(matrix)] = matrix[:, offset : offset + size]
                into[first + len(matrix)] = alone[offset : offset + size]

    def sweep(self, iteration: int, n_sweeps: int = 1, marginalize: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Move all chains; sums over chains as `Chains.sweep` gives them."""
        random = torch.Generator(self.device)
        random.manual_seed(int(np.random.SeedSequence([self.seed, iteration]).generate_state(1, np.uint64)[0]) >> 1)
        sums = torch.zeros((2, len(self.layout.rows)), dtype=torch.float64, device=self.device)
        room = max(1, ROOM // max(*self.sizes, len(self.sizes) ** 2))
        for x in self.positions.split(room):
            for _ in range(n_sweeps):
                y = torch.rand(len(x), generator=random, device=self.device) < self._probability(x)
                self._move(x, y.long(), random)
            self._tally(x, self._probability(x) if marginalize else y.float(), sums)
        return tuple(map(self.layout.fold, sums.cpu().numpy()))

    def _probability(self, x):
        """P(Y = 1 | x) (eq. 3), (n,) float32."""
        z = torch.full((len(x),), self.intercept, device=self.device)
        for d in range(x.shape[1]):
            z += self.theta[x[:, d, None], x[:, d:]].sum(dim=1)
        return torch.sigmoid(z)

    def _move(self, x, y, random):
        """One sweep over the features; x is changed in place."""
        label = (y * (len(self.theta) + 1))[:, None]
        rows = torch.cat([x + label, label + len(self.theta)], dim=1)
        for d in range(x.shape[1]):
            x[:, d] = (self._metropolis if self.wide[d] else self._gibbs)(d, x[:, d], rows, random)
            rows[:, d] = x[:, d] + label[:, 0]

    def _gibbs(self, d, now, rows, random):
        """Positions drawn from the exact conditional law of feature d."""
        logits = torch.nn.functional.embedding_bag(rows, self.weights[d], mode="sum")
        cumulative = torch.softmax(logits, dim=1).cumsum(dim=1)
        u = torch.rand((len(rows), 1), generator=random, device=self.device) * cumulative[:, -1:]
        found = torch.searchsorted(cumulative, u, right=True)[:, 0]
        return self.offsets[d] + found.clamp(max=self.sizes[d] - 1)

    def _metropolis(self, d, now, rows, random):
        """Positions after some steps with proposals from the alias table of feature d."""
        weights, offset, size = self.weights[d], self.offsets[d], self.sizes[d]
        log_weight = weights[rows, (now - offset)[:, None]].sum(dim=1)
        for _ in range(self.n_proposals):
            u, v, w = torch.rand((3, len(rows)), generator=random, device=self.device)
            new = offset + (u * size).long().clamp(max=size - 1)
            new = torch.where(v < self.threshold[new], new, self.alias[new])
            then = weights[rows, (new - offset)[:, None]].sum(dim=1)
            accepted = torch.log(w) < then - log_weight + self.log_q[now] - self.log_q[new]
            now, log_weight = torch.where(accepted, new, now), torch.where(accepted, then, log_weight)
        return now

    def _tally(self, x, p, sums):
        """Add chains to the (2, m) sums of counts and of P(Y=1|X) of all cells, exactly."""
        p = torch.round(p.double() * UNIT) / UNIT
        codes = x - torch.as_tensor(self.offsets, device=self.device)
        for d, e in np.argwhere(self.layout.cells >= 0).tolist():
            size = self.sizes[d] if d == e else self.sizes[d] * self.sizes[e]
            at = codes[:, d] if d == e else codes[:, d] * self.sizes[e] + codes[:, e]
            first = int(self.layout.cells[d, e])
            sums[0, first : first + size] += torch.bincount(at, minlength=size)
            sums[1, first : first + size] += torch.bincount(at, p, minlength=size)


_PLAIN = {np.dtype(np.uint16): np.int64, np.dtype(np.int32): np.int64}  # kinds that PyTorch cannot index with
