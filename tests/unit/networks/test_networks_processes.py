"""Networks in processes of their own: forks, threads, a program's choice of 64 bits, and JAX missing."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow

PREAMBLE = """
import os, sys, warnings
import numpy as np
warnings.simplefilter("error")

def trained():  # predictions of a network, as a text
    from agglearn.distribution import DeepSetsRegressor
    from agglearn.observations import Bags
    rng = np.random.default_rng(0)
    x, offsets = rng.normal(size=(96 * 256, 8)).astype(np.float32), np.arange(0, 96 * 256 + 1, 256)
    bags = Bags(x, offsets, target=rng.normal(size=96))
    settings = dict(features=(40, 60), regressor=(20,), steps=12, batch_size=48, dropout=0.2)
    model = DeepSetsRegressor(random_state=1, **settings).fit(bags)
    assert {v.dtype for v in model.weights_.values()} == {np.dtype(np.float32)}
    return model.predict(bags).astype(float).tobytes().hex()
"""


def limited(threads: int) -> dict[str, str]:
    """The variables that a job of the workflow sets."""
    return {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def run(code: str, **environment) -> str:
    call = [sys.executable, "-c", PREAMBLE + code]
    done = subprocess.run(call, capture_output=True, text=True, env=os.environ | environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


POOL = 'sum("XLAEigen" in p.read_text() for p in Path("/proc/self/task").glob("*/comm"))'
PLAIN = f"from pathlib import Path\nprint(trained(), {POOL})"


def run_with(threads: int, code: str = PLAIN, **environment) -> tuple[str, int]:
    """Predictions, and threads of JAX's pool."""
    predictions, pool = run(code, **limited(threads), **environment).split()
    return predictions, int(pool)


@pytest.fixture(scope="module")
def one_thread() -> tuple[str, int]:
    return run_with(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_results_depend_neither_on_the_threads_of_a_job_nor_on_a_fork(one_thread):
    """A process that imported JAX forks silently, and its child trains, as in `isolation.run_isolated`."""
    code = f"""
import jax, optax
from pathlib import Path
pid = os.fork()
if pid == 0:
    print(trained(), {POOL}, flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized()
"""
    assert run_with(4, code) == one_thread


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_one_thread_computes_and_more_would_change_results(one_thread):
    """What `start_jax` is there for; where more threads give the same numbers, it may go."""
    predictions, pool = run_with(1, PJRT_NPROC="4")
    assert predictions != one_thread[0]
    assert one_thread[1] <= 1 < pool


def test_a_program_may_have_chosen_64_bits(one_thread):
    texts = one_thread[0], run("print(trained())", JAX_ENABLE_X64="1")
    plain, wide = (np.frombuffer(bytes.fromhex(text)) for text in texts)
    np.testing.assert_allclose(wide, plain, rtol=1e-4, atol=1e-5)


def test_without_jax_every_method_names_the_extra():
    code = """
sys.modules["jax"] = None
import pandas as pd
from agglearn.distribution import DeepSetsRegressor
from agglearn.errors import NotAvailable
from agglearn.maxent import MaxEntClassifier
from agglearn.maxent.warming import TINY
from agglearn.observations import Records
from agglearn.vocabulary import NetworkOnClusters, OptimalQuantizer
records = Records.from_records(pd.DataFrame({"a": list("xyz") * 20, "y": [0, 1] * 30}), "y")
for fit in (
    lambda: DeepSetsRegressor().fit([np.ones((2, 2))] * 9, np.arange(9.0)),
    lambda: MaxEntClassifier(engine="jax").fit(*TINY),
    lambda: NetworkOnClusters(OptimalQuantizer(2)).fit(records),
):
    try:
        fit()
    except NotAvailable as error:
        print(error)
"""
    line = "jax is not installed; install it with `pip install 'agglearn[networks]'`\n"
    assert run(code) == 3 * line
