"""Learning from compressed features (Bateni et al. 2019, section 3.2): a quantiser, then a classifier on its clusters.

Both are fitted to the same part of the training records; the rest chooses the classifier's settings. What the clusters
took from labels by chance thus shows in the choice.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from agglearn.estimator import RecordClassifier, choose_best
from agglearn.evaluation.metrics import log_likelihood
from agglearn.observations import ContingencyTables, Records
from agglearn.seeds import derive_generator, derive_seed, draw_seed
from agglearn.settings import Count, Part, Positive
from agglearn.vocabulary import cluster_training
from agglearn.vocabulary.quantizer import Quantizer


class ClusterClassifier(RecordClassifier):
    """Base: compresses the features, keeps every setting that was tried, predicts with the best on held-out rows, of equal ones the
    first. It is not fitted again: the rows that chose it stay held out.

    Subclasses write `_tries(codes, y, sizes, held_codes, held_y)`, which yields predictors, and `_probabilities`.
    """

    observes = Records

    def _fit(self, observation):
        codes, y = observation.codes, np.asarray(observation.y)
        held = np.zeros(len(y), bool)
        rng = derive_generator("validation", draw_seed(self.random_state))
        held[rng.permutation(len(y))[: max(1, round(self.validation * len(y)))]] = True
        tables = ContingencyTables.from_codes(observation.encoder, codes[~held], y[~held], pairs="none")
        self.quantizer_ = clone(self.quantizer)
        self.quantizer_.set_params(random_state=derive_seed("quantizer", draw_seed(self.random_state))).fit(tables)
        self.classes_, self.encoder_ = np.array([0, 1]), observation.encoder
        self.sizes_ = [max(int(self.quantizer_.labels_[n].max()), u) + 1 for n, u in self.quantizer_.unseen_.items()]
        clusters = self._clusters(codes)
        self.tries_ = list(self._tries(clusters[~held], y[~held], clusters[held], y[held]))
        self.scores_ = np.array([log_likelihood(y[held], self._probabilities(t, clusters[held])) for t in self.tries_])
        self.best_ = choose_best(self.scores_)

    def warm_up(self) -> None:
        """Compile the quantiser's kernels, or load them."""
        self.quantizer.warm_up()

    def _clusters(self, codes: np.ndarray) -> np.ndarray:
        q = self.quantizer_
        columns = [np.append(q.labels_[n], q.unseen_[n])[codes[:, i]] for i, n in enumerate(self.encoder_.names)]
        return np.column_stack(columns).astype(np.int64)

    def predict_proba(self, frame) -> np.ndarray:
        """(n, 2) probabilities of both labels for raw columns, matched by name."""
        p = self._probabilities(self.tries_[self.best_], self._clusters(self.encoder_.encode(frame)))
        return np.column_stack([1 - p, p])

    def staged_predict_proba(self, frame) -> Iterator[tuple[int, float, np.ndarray]]:
        """(try, seconds (not known), (n,) P(Y=1)) for every setting tried."""
        clusters = self._clusters(self.encoder_.encode(frame))
        for number, found in enumerate(self.tries_):
            yield number, float("nan"), self._probabilities(found, clusters)


class LogisticOnClusters(ClusterClassifier):
    """L2 logistic regression on the clusters, one weight each (scikit-learn, sparse).

    Parameters
    ----------
    quantizer : any quantiser of this package.
    strengths : values of C (inverse strength of L2) tried.
    validation : share of the training records that chooses among them.
    max_iter : of each fit.
    random_state : seed of that share, and of the quantiser.

    Attributes
    ----------
    quantizer_ : as fitted. tries_ : (weights, intercept) of each C. scores_ : mean log-likelihood of held-out rows.
    best_ : which try predicts. encoder_, classes_, sizes_ (clusters of each feature).
    """

    def __init__(
        self,
        quantizer: Quantizer,
        strengths: list[Positive] = (0.03, 0.1, 0.3),
        validation: Part = 0.2,
        max_iter: Count = 100,
        random_state=None,
    ):
        self.quantizer = quantizer
        self.strengths = strengths
        self.validation = validation
        self.max_iter = max_iter
        self.random_state = random_state

    def _tries(self, clusters, y, held, held_y):
        x = self._one_hot(clusters)
        for strength in self.strengths:
            fitted = LogisticRegression(C=strength, max_iter=self.max_iter).fit(x, y)
            yield fitted.coef_[0], float(fitted.intercept_[0])

    def _probabilities(self, found, clusters):
        weights, intercept = found
        return 1 / (1 + np.exp(-(self._one_hot(clusters) @ weights + intercept)))

    def _one_hot(self, clusters: np.ndarray) -> csr_array:
        n, d = clusters.shape
        columns = clusters + np.cumsum([0, *self.sizes_[:-1]])
        return csr_array((np.ones(n * d), columns.ravel(), np.arange(0, n * d + 1, d)), (n, sum(self.sizes_)))


class NetworkOnClusters(ClusterClassifier):
    """Embeddings of the clusters, then a multi-layer perceptron, trained with Adam (JAX).

    Settings are drawn from the paper's ranges (appendix A.2): hidden units 100–1280, hidden layers 1–5, learning rate
    1e-6–0.01 and norm of clipped gradients 1–1000 (both log-uniform), L2 0–1e-4; the first try is a plain one. Of every
    try the epoch that is best on the held-out rows is kept. Results do not depend on the number of threads.

    Parameters
    ----------
    quantizer : any quantiser of this package.
    trials : settings tried (the paper: 2,000, by a Gaussian process and on the test records).
    epochs, batch_size, embedding : passes over the rows; rows per step; width of the embeddings.
    validation : share of the training records that chooses among the tries.
    random_state : seed.

    Attributes
    ----------
    quantizer_ : as fitted. tries_ : {name: array} of each try's weights. settings_ : of each try. scores_, best_,
    encoder_, classes_, sizes_ : as in `LogisticOnClusters`.

    Raises
    ------
    NotAvailable : JAX is not installed.
    """

    def __init__(
        self,
        quantizer: Quantizer,
        trials: Count = 4,
        epochs: Count = 3,
        batch_size: Count = 512,
        embedding: Count = 8,
        validation: Part = 0.2,
        random_state=None,
    ):
        self.quantizer = quantizer
        self.trials = trials
        self.epochs = epochs
        self.batch_size = batch_size
        self.embedding = embedding
        self.validation = validation
        self.random_state = random_state

    def _fit(self, observation):
        cluster_training.imported()  # before any work
        super()._fit(observation)

    def _tries(self, clusters, y, held, held_y):
        self.settings_ = []
        for trial in range(self.trials):
            chosen = cluster_training.settings(trial, derive_generator("settings", draw_seed(self.random_state), trial))
            self.settings_.append(chosen)
            state = derive_seed("network", draw_seed(self.random_state), trial)
            rows = cluster_training.Rows(clusters, y, held, held_y)
            yield cluster_training.trained(
                rows, self.sizes_, chosen, self.epochs, self.batch_size, self.embedding, state
            )

    def _probabilities(self, found, clusters):
        return cluster_training.probabilities(found, clusters, self.sizes_)
