"""Distribution regression (Sun 2019, chapter 4): from bags of instances to a target of each bag."""

from agglearn.distribution.bag_of_words import BagOfWordsEmbedding
from agglearn.distribution.embedding import Embedding
from agglearn.distribution.fisher import FisherVectorEmbedding
from agglearn.distribution.fourier import OrthogonalRandomEmbedding, RandomFourierEmbedding
from agglearn.distribution.logistic import MultinomialLogistic
from agglearn.distribution.moments import MomentEmbedding
from agglearn.distribution.networks import DeepSetsClassifier, DeepSetsRegressor, PointNetClassifier
from agglearn.distribution.ridge import KernelRidge, LinearRidge
from agglearn.distribution.two_step import EmbeddingClassifier, EmbeddingRegressor

__all__ = [
    "BagOfWordsEmbedding",
    "DeepSetsClassifier",
    "DeepSetsRegressor",
    "Embedding",
    "EmbeddingClassifier",
    "EmbeddingRegressor",
    "FisherVectorEmbedding",
    "KernelRidge",
    "LinearRidge",
    "MomentEmbedding",
    "MultinomialLogistic",
    "OrthogonalRandomEmbedding",
    "PointNetClassifier",
    "RandomFourierEmbedding",
]
