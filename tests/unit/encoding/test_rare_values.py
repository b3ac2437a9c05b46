"""Values of few training rows as one modality, and columns that the entry of a data set hashes."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from agglearn.datasets import Population
from agglearn.encoding import FrameEncoder, HashedEncoder
from agglearn.encoding.frame import with_rare_values_grouped
from agglearn.errors import DataError
from agglearn.tasks import TaskInput
from agglearn.tasks.classification import fit_encoder


def zipf(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    word = pd.Series(np.minimum(rng.zipf(1.5, n), 400)).astype(str).where(rng.random(n) > 0.1)
    return pd.DataFrame({"word": "w" + word, "letter": rng.choice(list("abc"), n), "age": rng.normal(size=n)})


def test_values_of_few_rows_become_one():
    train, test = zipf(3000, 0), zipf(3000, 1)
    encoder = with_rare_values_grouped(FrameEncoder.fit(train), train, {"word": 20})
    counts = Counter(train["word"].dropna())
    often = {word for word, n in counts.items() if n > 20}
    assert 0 < len(often) < len(counts)
    feature = encoder.features[0]
    assert set(feature.labels) == often | {"missing", "other"}
    for frame in (train, test):
        expected = frame["word"].map(lambda w: w if w in often else "other", na_action="ignore").fillna("missing")
        assert [feature.labels[code] for code in encoder.encode(frame)[:, 0]] == expected.tolist()
    assert encoder.features[1:] == FrameEncoder.fit(train).features[1:]


@pytest.mark.parametrize("name", ["age", "absent"])
def test_only_categories_can_be_rare(name):
    train = zipf(100, 0)
    with pytest.raises(DataError, match=f"rare: '{name}' is no categorical feature"):
        with_rare_values_grouped(FrameEncoder.fit(train), train, {name: 2})


def test_the_entry_names_rare_and_hashed_columns_and_an_observation_others():
    train = zipf(1000, 0)
    entry = {"features": {"rare": {"word": 5}, "hashed": {"letter": 2}}}
    inputs = TaskInput("words", entry, {}, Population(train, np.arange(1000) % 2, np.full(1000, 0.5)))
    word, letter, _ = fit_encoder(inputs, train, np.arange(1000) % 2, {}, 0)[0].features
    assert word.labels[-1] == "other"
    assert letter == HashedEncoder("letter", 2)
    of_observation = fit_encoder(inputs, train, np.arange(1000) % 2, {"hashed": {"letter": 7}}, 0)[0]
    assert of_observation.features[1] == HashedEncoder("letter", 7)
