"""Linear models and their solvers, which any method may use: logistic regression, sparse and dense, and L-BFGS."""
