"""Speed of WALR beside scikit-learn's logistic regression on the same coordinates, and of releases.

    python benchmarks/labelsums.py

Records are simulated: 14 features of ten values. Both solvers get the same sparse matrix, made beforehand; WALR sees labels
through one vector. The tolerances are those at which L-BFGS of both ends at about the same loss, which is printed.
"""

import numpy as np
import pandas as pd
from _common import compare, fastest
from sklearn.linear_model import LogisticRegression

from agglearn.encoding import FeatureMap, FrameEncoder
from agglearn.labelsums import WALRClassifier
from agglearn.observations import ContingencyTables, CountedBags, LabelSums
from agglearn.observations.release import release_bag_counts, release_tables
from agglearn.privacy import draw_private, draw_seeded

L2 = 4.0


def records(n: int, features: int = 14, values: int = 10) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, values, (n, features))
    z = rng.normal(0, 0.4, (features, values))[np.arange(features), codes].sum(axis=1) - 1
    frame = pd.DataFrame({f"f{i}": pd.Series(codes[:, i]).map("v{}".format) for i in range(features)})
    return frame, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def fits(n: int, kind: str) -> None:
    frame, y = records(n)
    sums = LabelSums.from_map(FeatureMap.fit(kind, FrameEncoder.fit(frame), frame), frame, y)
    x = sums.matrix[:, :-1].tocsr()
    losses = {}

    def loss(theta):
        z = sums.matrix @ theta
        return np.logaddexp(0, z).sum() - sums.sums @ theta + L2 * theta[:-1] @ theta[:-1]

    for solver in ("lbfgs", "newton"):
        model = WALRClassifier(solver, l2=L2, tol=1e-3, max_iter=1000)
        seconds = fastest(lambda model=model: model.fit(sums), 2)
        losses[f"WALR, {solver}"] = (seconds, loss(np.append(model.coef_, model.intercept_)))
    for solver in ("lbfgs", "newton-cg"):
        model = LogisticRegression(C=1 / (2 * L2), solver=solver, max_iter=1000, tol=1e-6)
        seconds = fastest(lambda model=model: model.fit(x, y), 2)
        losses[f"scikit-learn, {solver}"] = (seconds, loss(np.append(model.coef_[0], model.intercept_)))
    ours, theirs = (
        min((f for f in losses.items() if f[0].startswith(who)), key=lambda f: f[1][0]) for who in ("W", "s")
    )
    above = (theirs[1][1] - ours[1][1]) / n
    compare(f"{n:,} records, {kind}", ours[1][0], theirs[0], theirs[1][0], note=f"its loss per record {above:+.0e}")
    best = min(value for _, value in losses.values())
    print(f"\n{n:,} records, {kind}, {x.shape[1]:,} coordinates: seconds, loss per record above the best")
    for name, (seconds, value) in losses.items():
        print(f"  {name:26s} {seconds:8.3f} s  {(value - best) / n:.1e}")


def releases(n: int = 50_000) -> None:
    frame, y = records(n)
    encoder = FrameEncoder.fit(frame)
    tables = ContingencyTables.from_codes(encoder, encoder.encode(frame), y)
    sums = LabelSums.from_map(FeatureMap.fit("quadratic", encoder, frame), frame, y)
    bags = CountedBags.from_records(encoder, frame, y, 10, np.random.default_rng(0))
    numbers = {
        "contingency tables": (2 * sum(t.counts.size for t in tables.tables.values()), lambda how: release_tables(
            tables, 1.0, 1e-6, accept_learned_schema=True, draw=how)),
        "label sums": (len(sums.sums), lambda how: sums.private(1.0, 1e-6, draw=how)),
        "bag counts": (len(bags.counts), lambda how: release_bag_counts(bags, 1.0, draw=how)),
    }  # fmt: skip
    print("\nReleases: thousand numbers a second, secret (OpenDP) and seeded")
    for name, (count, release) in numbers.items():
        rates = [
            count / fastest(lambda how=how, release=release: release(how)) / 1e3
            for how in (draw_private, draw_seeded(0))
        ]
        print(f"  {name:20s} {count:8,} numbers  {rates[0]:10,.0f}  {rates[1]:10,.0f}")


if __name__ == "__main__":
    fits(50_000, "onehot")
    fits(20_000, "quadratic")
    releases()
