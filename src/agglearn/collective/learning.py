"""EM with approximate inference in the E step (Sun 2019, section 2.3.2): the mode of the tables stands for their mean."""

import time
from dataclasses import dataclass, field

import numpy as np

from agglearn.collective.inference import Inference, infer
from agglearn.errors import DataError


@dataclass
class Learned:
    """Result of `fit_em`.

    Attributes
    ----------
    theta : parameters of the law. inferences : tables of each instance, from the last E step.
    trace : (iteration, seconds, θ) from the start on, thinned by `trace_every`.
    """

    theta: np.ndarray
    inferences: list[Inference]
    trace: list[tuple[int, float, np.ndarray]] = field(default_factory=list)


def fit_em(
    law,
    counts,
    population_sizes,
    start,
    *,
    n_iter=60,
    method="dual-newton",
    trace_every=1,
    on_iteration=None,
    **options,
) -> Learned:
    """Parameters of a law from noisy counts of one or several populations.

    Parameters
    ----------
    law : one of `agglearn.collective.laws`, or anything with `model(theta, instance)` and `maximise(theta, tables)`.
    counts : FlowCounts per instance. population_sizes : M per instance. start : θ to begin with.
    method, options : of the E step, see `infer`. on_iteration : called with (iteration, θ, inferences).

    Raises
    ------
    DataError : no instances, or as many sizes as instances are not given.
    """
    if not counts or len(counts) != len(population_sizes):
        raise DataError(f"{len(counts)} instances and {len(population_sizes)} population sizes; give one for each")
    theta, trace, duals = np.asarray(start, float), [], [None] * len(counts)
    begin, out, found = time.perf_counter(), 0.0, []
    for iteration in range(n_iter + 1):
        if iteration % trace_every == 0 or iteration == n_iter:
            trace.append((iteration, time.perf_counter() - begin - out, theta.copy()))
        if iteration == n_iter:
            break
        found = []
        for k, (y, m) in enumerate(zip(counts, population_sizes, strict=True)):
            warm = {"start": duals[k]} if method == "dual-newton" else {}
            found.append(infer(law.model(theta, k), y, m, method=method, **warm, **options))
            duals[k] = found[-1].details.get("dual")
        if on_iteration:
            since = time.perf_counter()
            on_iteration(iteration, theta, found)
            out += time.perf_counter() - since
        theta = law.maximise(theta, [f.edge_tables for f in found])
    return Learned(theta, found, trace)
