"""DeepSets, a PointNet-style model and attention pooling (Sun 2019, section 4.1.3). JAX is imported when needed."""

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from scipy.special import softmax

from agglearn.distribution.embedding import BagsLike, keep_instances
from agglearn.distribution.ridge import columns_of
from agglearn.distribution.set_batches import Batch, Batches
from agglearn.distribution.two_step import BagModel
from agglearn.errors import ConfigError, DataError
from agglearn.networks import start_jax
from agglearn.observations import Bags
from agglearn.saving import check_classes, expect
from agglearn.seeds import derive_generator, derive_seed, draw_seed, split_validation
from agglearn.settings import Count, Positive, Range, Share

VALIDATION = 0.2  # fraction of the bags for early stopping where `n_validation` is 0
FIRST = 64  # bags whose pooled values give g its scale
CHECKS = 10  # checkpoints of a training

if TYPE_CHECKING:
    from agglearn.distribution.set_network import SetNetwork


class SetModel(BagModel):
    """A network on sets, trained with Adam on the bags' targets.

    Covariates, targets and pooled values are standardised. The learning rate falls to 0 along a cosine. The checkpoint
    of least validation loss wins. On a processor results do not depend on the number of threads.

    Parameters
    ----------
    features, regressor : sequence of int
        Widths of the layers of φ and g.
    pooling, layers, activation : {'mean', 'sum', 'max', 'attention'}, {'dense', 'equivariant'}, {'elu', 'tanh', 'relu'}
        Pooling over the instances, layers of φ, and activation between layers. None follows the last layer of φ.
    dropout, heads : float, int
        Rate before the layers of g, and number of heads of attention.
    rate, clip : float
        Learning rate, and the norm at which gradients are clipped.
    steps, batch_size, patience : int, int, int or None
        Steps, bags per step, and checkpoints (of 10) without improvement after which training ends. None: no early end.
    instances, full_share : int or None, float
        Instances drawn of each bag per step (None: all), and fraction of the steps, the last ones, that take all.
    augment : {'turn'} or None
        `turn` turns clouds of points about the z axis.
    device, random_state : {'auto', 'cpu', 'cuda'}, int, RandomState, Generator or None
        `auto` is JAX's default. Without such a device, or without JAX, `fit` raises NotAvailable.
    n_bags, bag_size, n_validation, bounds : see `BagModel`
        Without validation bags a fifth of the bags is held out.

    Attributes
    ----------
    weights_, losses_, n_out_ : dict, list of float, int
        Name → array, validation loss at every checkpoint, and number of outputs.
    centre_, scale_, target_centre_, target_scale_ : ndarray of shape (d,), (d,), (k,), (k,)
        Mean and standard deviation of the covariates and, of regressors, of the targets.
    """

    loss: ClassVar[str]

    features: tuple[Count, ...] = (50, 100, 50)
    regressor: tuple[Count, ...] = (30, 30, 10)
    pooling: Literal["mean", "sum", "max", "attention"] = "mean"
    layers: Literal["dense", "equivariant"] = "dense"
    activation: Literal["elu", "tanh", "relu"] = "elu"
    dropout: Annotated[float, Range(0, 1, open="high")] = 0.0
    heads: Count = 5
    rate: Positive = 1e-3
    clip: Positive = 5.0
    batch_size: Count = 128
    steps: Count = 2000
    patience: Count | None = None
    instances: Count | None = None
    full_share: Share = 0.25
    augment: Literal["turn"] | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def _fit(self, observation: Bags) -> None:
        _jax_modules()  # before any work
        if self.pooling == "sum" and self.instances is not None:
            raise ConfigError("instances: a sum needs all of them; use mean pooling, or instances: null")
        if self.pooling == "attention" and self.features[-1] % self.heads:
            raise ConfigError(f"heads: {self.heads} does not divide the last width of features, {self.features[-1]}")
        training, validation = self._split(observation)
        if self.augment == "turn" and (d := training.X.shape[1]) != 3:
            raise ConfigError(f"augment: turn is for points in space; these have {d} coordinates, not 3")
        if validation is None:
            rng = derive_generator("held bags", draw_seed(self.random_state))
            validation, training = map(training.take, split_validation(len(training), VALIDATION, rng))
        self._standardise(training)
        y = self._encode(training)
        self._train(self._batches(training), y, self._batches(validation), self._encode(validation))

    def _standardise(self, bags: Bags) -> None:
        rows = np.linspace(0, len(bags.X) - 1, min(len(bags.X), 1 << 16)).astype(int)
        x = np.asarray(bags.X[rows], np.float32)
        self.centre_, spread = x.mean(axis=0), x.std(axis=0)
        self.scale_ = np.where(spread > 0, spread, 1).astype(np.float32)
        if self.augment:  # one scale for all axes: clouds are turned
            self.centre_, self.scale_ = np.zeros_like(self.centre_), np.full_like(self.scale_, spread.mean())

    def _train(self, batches: Batches, y: np.ndarray, validation: Batches, validation_y: np.ndarray) -> None:
        modules, training = _jax_modules()
        state, network = derive_seed("set network", draw_seed(self.random_state)), self._network()
        rng = derive_generator("batches", draw_seed(self.random_state))
        batch, every = min(self.batch_size, len(y)), max(1, self.steps // CHECKS)
        validation_blocks = list(validation.blocks())  # every checkpoint reads them
        schedule = training.Schedule(self.rate, self.clip, self.steps, every, self.patience, cosine=True)

        def split(indices: np.ndarray, draw: int | None) -> list[np.ndarray]:
            return batches.split(indices, draw) if training.on_processor() else [indices]

        def draw_batches() -> Iterator[Iterator[tuple[Batch, np.ndarray]]]:
            for step, indices in enumerate(training.draw_batches(len(y), batch, self.steps, rng), 1):
                draw = self.instances if step <= (1 - self.full_share) * self.steps else None
                yield ((batches.take(chunk, rng, draw), y[chunk]) for chunk in split(indices, draw))

        def validation_loss(weights: dict[str, np.ndarray]) -> float:
            return float(training.loss_of(self.loss, self._evaluate(network, weights, validation_blocks), validation_y))

        with training.on_device(self.device):
            weights = network.initial(np.random.default_rng(state))
            pooled = modules.embed(network, weights, batches.take(np.arange(min(FIRST, len(y)))))
            weights = network.standardise(weights, np.asarray(pooled))
            self.weights_, self.losses_ = training.train(
                network, weights, draw_batches(), validation_loss, self.loss, schedule, state
            )

    def _network(self) -> "SetNetwork":
        return _jax_modules()[0].SetNetwork(
            len(self.centre_), self.n_out_, tuple(self.features), tuple(self.regressor), self.pooling, self.layers,
            self.activation, self.dropout, self.heads,
        )  # fmt: skip

    def _batches(self, bags: Bags) -> Batches:
        if bags.weights is not None:
            bags = keep_instances(bags, bags.weights > 0)
        return Batches(bags, self.centre_, self.scale_, self.augment == "turn")

    @property
    def n_features_in_(self) -> int:
        """Number of covariates."""
        return len(self.centre_)

    def _outputs(self, bags: BagsLike) -> np.ndarray:
        bags = self._truncate(bags)
        if bags.X.shape[1] != len(self.centre_):
            raise DataError(f"bags: have {bags.X.shape[1]} covariates, this model has {len(self.centre_)}")
        with _jax_modules()[1].on_device(self.device):
            return self._evaluate(self._network(), self.weights_, self._batches(bags).blocks())

    def _evaluate(
        self, network: "SetNetwork", weights: dict[str, np.ndarray], blocks: Iterable[tuple[Batch, int]]
    ) -> np.ndarray:
        evaluate = _jax_modules()[1].evaluate
        return np.concatenate([np.asarray(evaluate(network, weights, batch))[:n] for batch, n in blocks])

    def _encode(self, bags: Bags) -> np.ndarray:
        raise NotImplementedError


class DeepSetsRegressor(SetModel):
    """DeepSets for a number or a vector per bag (Zaheer et al. 2017, eq. 4.4), by squared error.

    Defaults are the thesis's architecture for population statistics: φ 50–100–50, g 30–30–10, ELU, mean pooling.

    Parameters
    ----------
    features, regressor, pooling, layers, activation, dropout, heads, rate, clip, batch_size, steps, patience, instances
    full_share, augment, device, random_state, n_bags, bag_size, n_validation, bounds
        See `SetModel`.
    """

    loss = "squared_error"

    def _encode(self, bags: Bags) -> np.ndarray:
        return ((columns_of(np.asarray(bags.target)) - self.target_centre_) / self.target_scale_).astype(np.float32)

    def _standardise(self, bags: Bags) -> None:
        super()._standardise(bags)
        y = columns_of(np.asarray(bags.target))
        spread = y.std(axis=0)
        self.target_centre_, self.target_scale_ = y.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self.n_out_ = y.shape[1]

    def predict(self, bags: BagsLike) -> np.ndarray:
        return self._bounded(self._outputs(bags) * self.target_scale_ + self.target_centre_)


class DeepSetsClassifier(SetModel):
    """DeepSets for a class per bag, by cross-entropy.

    Parameters
    ----------
    features, regressor, pooling, layers, activation, dropout, heads, rate, clip, batch_size, steps, patience, instances
    full_share, augment, device, random_state, n_bags, bag_size, n_validation, bounds
        See `SetModel`.
    """

    classifies = True
    loss = "cross_entropy"

    def _fit(self, observation: Bags) -> None:
        if observation.target is not None:
            self.classes_ = np.unique(observation.target)
            self.n_out_ = len(self.classes_)
            if self.n_out_ < 2:
                raise DataError("bags of one class only; two classes are needed")
        super()._fit(observation)

    def _check_state(self) -> None:
        expect(self, n_out_=int)
        check_classes(self, self.n_out_)

    def _encode(self, bags: Bags) -> np.ndarray:
        return np.searchsorted(self.classes_, np.asarray(bags.target)).astype(np.int32)

    def predict_proba(self, bags: BagsLike) -> np.ndarray:
        """Probabilities (B, C) of the classes.

        Parameters
        ----------
        bags : see `fit`
        """
        return softmax(self._outputs(bags).astype(float), axis=1)

    def predict(self, bags: BagsLike) -> np.ndarray:
        return self.classes_[self._outputs(bags).argmax(axis=1)]


class PointNetClassifier(DeepSetsClassifier):
    """A shared perceptron, max pooling, a perceptron: PointNet without its transformation networks (Qi et al. 2017).

    Parameters
    ----------
    features, regressor, pooling, layers, activation, dropout, heads, rate, clip, batch_size, steps, patience, instances
    full_share, augment, device, random_state, n_bags, bag_size, n_validation, bounds
        See `SetModel`.
    """

    features: tuple[Count, ...] = (64, 128, 256)
    regressor: tuple[Count, ...] = (128, 64)
    pooling: Literal["mean", "sum", "max", "attention"] = "max"
    activation: Literal["elu", "tanh", "relu"] = "relu"
    dropout: Annotated[float, Range(0, 1, open="high")] = 0.3
    heads: Count = 4
    batch_size: Count = 32


def _jax_modules() -> tuple[ModuleType, ModuleType]:
    start_jax()
    from agglearn.distribution import set_network
    from agglearn.networks import training

    return set_network, training
