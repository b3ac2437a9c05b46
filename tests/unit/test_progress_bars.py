"""Bars of long work: on a terminal, after three seconds, and nowhere else."""

import io
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterable

import numpy as np
import pytest
from scipy.optimize import minimize

from agglearn import progress
from agglearn.estimator import Estimator
from agglearn.observations import Bags

FIT = """
import sys
import numpy as np
from agglearn import progress
from agglearn.labelsums import WALRClassifier
from agglearn.observations import LabelSums
rng = np.random.default_rng(0)
sums = LabelSums.from_records(rng.normal(size=(90, 2)), rng.integers(0, 2, 90))
progress.DELAY = float(sys.argv[1])
model = WALRClassifier(solver="lbfgs", max_iter=77, random_state=0)
model.verbose = sys.argv[2] == "verbose"
model.fit(sums)
print("tqdm" in sys.modules)
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Slow(Estimator):
    """A learner whose fit has steps."""

    observes = Bags

    def __init__(self, inner: "Slow | None" = None, random_state: int | None = None) -> None:
        self.inner, self.random_state = inner, random_state

    def _fit(self, observation: Bags) -> None:
        self.seen_ = list(progress.track(range(3), "steps"))
        if self.inner:
            self.inner.fit(observation)


BAGS = Bags(np.zeros((2, 1)), [0, 2], np.array([1]))


def sit_down(monkeypatch) -> Terminal:
    """A terminal as standard error, on which bars appear at once."""
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(progress, "DELAY", 0)
    return terminal


def on_terminal(*arguments: str) -> tuple[str, str]:
    """What a fit writes to a pseudo-terminal as its standard error, and to standard output."""
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 100))
    done = subprocess.run([sys.executable, "-c", FIT, *arguments], stderr=writer, stdout=subprocess.PIPE, check=True)
    os.write(writer, b"end")  # else nothing to read would block
    os.close(writer)
    text = b""
    while not text.endswith(b"end"):
        text += os.read(reader, 1 << 16)
    os.close(reader)
    return text.decode().removesuffix("end"), done.stdout.decode().strip()


@pytest.mark.parametrize(
    ("arguments", "words"), [(("0", "verbose"), "L-BFGS: "), (("3600", "verbose"), ""), (("0", "silent"), "")]
)
def test_a_bar_appears_on_a_terminal_after_the_delay(arguments, words):
    text, _ = on_terminal(*arguments)
    assert words in text
    assert bool(text) == bool(words)
    if words:
        assert "/77 " in text
        assert text.split("\r")[-2:] == [" " * len(text.split("\r")[-2]), ""]  # it is cleared at the end


def test_nothing_is_printed_or_loaded_without_a_terminal():
    done = subprocess.run([sys.executable, "-c", FIT, "0", "verbose"], capture_output=True, text=True, check=True)
    assert (done.stderr, done.stdout) == ("", "False\n")


def test_nothing_changes_what_is_iterated(monkeypatch):
    terminal = sit_down(monkeypatch)
    tracked: Iterable[int] = progress.track(iter([3, 1, 2]), "numbers", 3)
    assert list(tracked) == [3, 1, 2]
    assert "numbers:" in terminal.getvalue()


def test_a_silent_learner_silences_what_it_fits(monkeypatch):
    terminal = sit_down(monkeypatch)
    outer = Slow(Slow())
    outer.fit(BAGS)
    assert terminal.getvalue().count("0/3") == 2
    terminal.truncate(0)
    outer.verbose = False
    outer.fit(BAGS)
    assert "steps" not in terminal.getvalue()
    assert outer.inner.seen_ == [0, 1, 2]
    Slow().fit(BAGS)
    assert "steps" in terminal.getvalue()


def test_verbose_is_no_parameter():
    assert "verbose" not in Slow().get_params()


def test_a_solver_of_scipy_reports_each_iteration(monkeypatch):
    terminal = sit_down(monkeypatch)

    def solve() -> np.ndarray:
        with progress.steps("L-BFGS", 50) as callback:
            return minimize(lambda x: ((x - [1, 20]) ** 4).sum(), [0, 0], method="L-BFGS-B", callback=callback).x

    tracked = solve()
    assert "0/50" in terminal.getvalue()
    with progress.verbosity(False):
        np.testing.assert_array_equal(solve(), tracked)
