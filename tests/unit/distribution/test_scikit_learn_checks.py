"""scikit-learn's own checks of its conventions, for the learners that take vectors and targets."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from agglearn.distribution import KernelRidge, LinearRidge, MultinomialLogistic


@parametrize_with_checks([LinearRidge(), KernelRidge(), MultinomialLogistic()])
def test_scikit_learns_conventions(estimator, check):
    check(estimator)
