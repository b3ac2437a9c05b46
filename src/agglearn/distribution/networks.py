"""Learned embeddings: DeepSets, a PointNet-style model and attention pooling, trained end to end (Sun 2019, section 4.1.3).

JAX is imported when a network is trained or predicts.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from agglearn.distribution import set_batches
from agglearn.distribution.two_step import BagModel
from agglearn.errors import ConfigError, DataError
from agglearn.networks import start_jax
from agglearn.observations import Bags
from agglearn.seeds import derive_generator, derive_seed, draw_seed
from agglearn.settings import Count, Number, Positive, Range, Share, Whole

HELD_OUT = 0.2  # share of the bags for early stopping where none are set apart
FIRST = 64  # bags whose pooled values give g its scale
CHECKS = 10  # looks at the held-out loss in a training


class SetModel(BagModel):
    """A network on sets, trained with Adam on the bags' targets; subclasses fix the loss and the architecture's defaults.

    Means of many instances differ little between bags, and training would stand still at first: pooled values of the first 64
    bags are standardised before training, a matter of where it starts. The learning rate falls to 0 along a cosine; the weights of the look with the least held-out loss are kept. Covariates
    and targets are standardised. On a processor results do not depend on the number of threads.

    Parameters
    ----------
    features, regressor : widths of the layers of φ and g. pooling : `mean`, `sum`, `max`, `attention`.
    layers : `dense`, or `equivariant`. activation : `elu`, `tanh`, `relu`, not after the last layer of φ.
    dropout : before the layers of g. heads : of attention.
    rate, clip, batch_size, steps : learning rate, norm at which gradients are clipped, bags per step, steps.
    patience : looks (of 10) without improvement after which training ends; None for never.
    instances : drawn of each bag per step, but in the last `full_share` of the steps, which take all; None for always all.
    full_share : see there. The noise of small bags would otherwise stay in what is learned.
    augment : `turn` clouds of points about z; None.
    n_bags, bag_size, n_validation, bounds : see `BagModel`; without validation bags a fifth is held out.
    device : `cpu`, `cuda`, or `auto` for JAX's default device.
    random_state : seed.

    Attributes
    ----------
    weights_ : {name: array}. centre_, scale_ : of covariates. losses_ : held-out loss at every look. n_out_ : outputs.
    target_centre_, target_scale_ : mean and standard deviation of the targets, of regressors.

    Raises
    ------
    NotAvailable : JAX is not installed, or has no such device.
    """

    def __init__(
        self,
        features: list[Count] = (50, 100, 50),
        regressor: list[Count] = (30, 30, 10),
        pooling: Literal["mean", "sum", "max", "attention"] = "mean",
        layers: Literal["dense", "equivariant"] = "dense",
        activation: Literal["elu", "tanh", "relu"] = "elu",
        dropout: Annotated[float, Range(0, 1, open="high")] = 0.0,
        heads: Count = 5,
        rate: Positive = 1e-3,
        clip: Positive = 5.0,
        batch_size: Count = 128,
        steps: Count = 2000,
        patience: Count | None = None,
        instances: Count | None = None,
        full_share: Share = 0.25,
        augment: Literal["turn"] | None = None,
        n_bags: Count | None = None,
        bag_size: Count | None = None,
        n_validation: Whole = 0,
        bounds: tuple[Number, Number] | None = None,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        random_state=None,
    ):
        self.features = features
        self.regressor = regressor
        self.pooling = pooling
        self.layers = layers
        self.activation = activation
        self.dropout = dropout
        self.heads = heads
        self.rate = rate
        self.clip = clip
        self.batch_size = batch_size
        self.steps = steps
        self.patience = patience
        self.instances = instances
        self.full_share = full_share
        self.augment = augment
        self.n_bags = n_bags
        self.bag_size = bag_size
        self.n_validation = n_validation
        self.bounds = bounds
        self.device = device
        self.random_state = random_state

    # -- learning -----------------------------------------------------------------------------------------------

    def _fit(self, observation):
        _modules()  # before any work
        self._check()
        part, held = self._parts(observation)
        if self.augment == "turn" and part.X.shape[1] != 3:
            raise ConfigError(f"augment: turn is for points in space; these have {part.X.shape[1]} coordinates, not 3")
        if held is None:
            order = derive_generator("held bags", draw_seed(self.random_state)).permutation(len(part))
            n = max(1, round(HELD_OUT * len(part)))
            part, held = part.take(np.sort(order[n:])), part.take(np.sort(order[:n]))
        self._standardise(part)
        self._train(self._batches(part), self._encoded(part), self._batches(held), self._encoded(held))

    def _check(self) -> None:
        if self.pooling == "sum" and self.instances is not None:
            raise ConfigError("instances: a sum needs all of them; use mean pooling, or instances: null")
        if self.pooling == "attention" and self.features[-1] % self.heads:
            raise ConfigError(f"heads: {self.heads} does not divide the last width of features, {self.features[-1]}")

    def _standardise(self, part: Bags) -> None:
        rows = np.linspace(0, len(part.X) - 1, min(len(part.X), 1 << 16)).astype(int)
        x = np.asarray(part.X[rows], np.float32)
        self.centre_, spread = x.mean(axis=0), x.std(axis=0)
        self.scale_ = np.where(spread > 0, spread, 1).astype(np.float32)
        if self.augment:  # one scale for all axes: clouds are turned
            self.centre_, self.scale_ = np.zeros_like(self.centre_), np.full_like(self.scale_, spread.mean())

    def _train(self, batches, y, held, held_y) -> None:
        modules, training = _modules()
        state, network = derive_seed("set network", draw_seed(self.random_state)), self._network()
        rng = derive_generator("batches", draw_seed(self.random_state))
        batch, augment = min(self.batch_size, len(y)), set_batches.AUGMENTATIONS.get(self.augment)
        held = list(held.parts())  # read at every look: made once
        schedule = training.Schedule(
            self.rate, self.clip, self.steps, max(1, self.steps // CHECKS), self.patience, cosine=True
        )

        def drawn():
            for step, which in enumerate(training.shuffled(len(y), batch, self.steps, rng), 1):
                draw = self.instances if step <= (1 - self.full_share) * self.steps else None
                yield batches.take(which, draw, rng, augment), y[which]

        with training.on_device(self.device):
            weights = network.initial(np.random.default_rng(state))
            first = batches.take(np.arange(min(FIRST, len(y))))
            pooled = modules.embed(network, weights, first)
            weights = network.standardised(weights, np.asarray(pooled))
            held_out = lambda w: float(training.loss_of(self.loss, self._predicted(network, w, held), held_y))  # noqa: E731
            self.weights_, self.losses_ = training.train(
                network, weights, drawn(), held_out, self.loss, schedule, state
            )

    def _network(self):
        return _modules()[0].SetNetwork(
            len(self.centre_), self.n_out_, tuple(self.features), tuple(self.regressor), self.pooling, self.layers,
            self.activation, self.dropout, self.heads,
        )  # fmt: skip

    def _batches(self, bags: Bags) -> set_batches.Batches:
        return set_batches.Batches(_positive(bags), self.centre_, self.scale_)

    @property
    def n_features_in_(self) -> int:
        """d, the number of covariates."""
        return len(self.centre_)

    # -- predicting ---------------------------------------------------------------------------------------------

    def _outputs(self, bags) -> np.ndarray:
        bags = self._seen(bags)
        if bags.X.shape[1] != len(self.centre_):
            raise DataError(f"bags: have {bags.X.shape[1]} covariates, this model knows {len(self.centre_)}")
        with _modules()[1].on_device(self.device):
            return self._predicted(self._network(), self.weights_, self._batches(bags).parts())

    def _predicted(self, network, weights: dict, parts: Iterable[tuple[set_batches.Batch, int]]) -> np.ndarray:
        evaluate = _modules()[1].evaluate
        return np.concatenate([np.asarray(evaluate(network, weights, batch))[:n] for batch, n in parts])

    def _encoded(self, bags: Bags) -> np.ndarray:
        raise NotImplementedError


class DeepSetsRegressor(SetModel):
    """DeepSets for a number or a vector per bag (Zaheer et al. 2017; eq. 4.4): squared error. See `SetModel`.

    Defaults are the thesis's architecture for population statistics: φ 50–100–50, g 30–30–10, ELU, mean pooling.
    """

    loss = "squared_error"

    def _encoded(self, bags):
        y = np.asarray(bags.target, float)
        y = y[:, None] if y.ndim == 1 else y
        if not hasattr(self, "target_centre_"):
            spread = y.std(axis=0)
            self.target_centre_, self.target_scale_ = y.mean(axis=0), np.where(spread > 0, spread, 1.0)
            self.n_out_ = y.shape[1]
        return ((y - self.target_centre_) / self.target_scale_).astype(np.float32)

    def _fit(self, observation):
        self.__dict__.pop("target_centre_", None)
        super()._fit(observation)

    def predict(self, bags) -> np.ndarray:
        """(B,) or (B, k) predictions of the bags' targets."""
        found = self._bounded(self._outputs(bags) * self.target_scale_ + self.target_centre_)
        return found[:, 0] if self.n_out_ == 1 else found


class DeepSetsClassifier(SetModel):
    """DeepSets for a class per bag: cross-entropy. See `SetModel`."""

    classifies = True
    loss = "cross_entropy"

    def _fit(self, observation):
        if observation.target is not None:
            self.classes_ = np.unique(observation.target)
            self.n_out_ = len(self.classes_)
            if self.n_out_ < 2:
                raise DataError("bags of one class only: there is nothing to learn")
        super()._fit(observation)

    def _encoded(self, bags):
        return np.searchsorted(self.classes_, bags.target).astype(np.int32)

    def predict_proba(self, bags) -> np.ndarray:
        """(B, C) probabilities of the classes."""
        scores = self._outputs(bags).astype(float)
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, bags) -> np.ndarray:
        """(B,) most probable classes."""
        return self.classes_[self._outputs(bags).argmax(axis=1)]


class PointNetClassifier(DeepSetsClassifier):
    """The PointNet idea without its transformation networks (Qi et al. 2017): a shared perceptron, max pooling, a perceptron."""

    def __init__(
        self,
        features: list[Count] = (64, 128, 256),
        regressor: list[Count] = (128, 64),
        pooling: Literal["mean", "sum", "max", "attention"] = "max",
        layers: Literal["dense", "equivariant"] = "dense",
        activation: Literal["elu", "tanh", "relu"] = "relu",
        dropout: Annotated[float, Range(0, 1, open="high")] = 0.3,
        heads: Count = 4,
        rate: Positive = 1e-3,
        clip: Positive = 5.0,
        batch_size: Count = 32,
        steps: Count = 2000,
        patience: Count | None = None,
        instances: Count | None = None,
        full_share: Share = 0.25,
        augment: Literal["turn"] | None = None,
        n_bags: Count | None = None,
        bag_size: Count | None = None,
        n_validation: Whole = 0,
        bounds: tuple[Number, Number] | None = None,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        random_state=None,
    ):
        super().__init__(
            features, regressor, pooling, layers, activation, dropout, heads, rate, clip, batch_size, steps, patience,
            instances, full_share, augment, n_bags, bag_size, n_validation, bounds, device, random_state,
        )  # fmt: skip


def _modules():
    """The modules on JAX, imported when they are first needed."""
    start_jax()
    from agglearn.distribution import set_network
    from agglearn.networks import training

    return set_network, training


def _positive(bags: Bags) -> Bags:
    """The bags without instances of weight 0."""
    if bags.weights is None or (bags.weights > 0).all():
        return bags
    kept = bags.weights > 0
    sizes = np.bincount(bags.bag_of[kept], minlength=len(bags))
    return replace(
        bags, X=bags.X[kept], offsets=np.append(0, np.cumsum(sizes)), weights=bags.weights[kept], counts=None
    )
