"""Encodings from noisy tables: what is summed, and the law of what is drawn instead of summed."""

import math

import numpy as np
import pandas as pd
import pytest
from test_target_encoding import clicks

from agglearn.datasets import Population
from agglearn.encoding import FrameEncoder, TargetEncoder
from agglearn.observations import ContingencyTables, Records, tables_with_noisy_encoding, with_gaussian_noise
from agglearn.tasks import Classification, TaskInput


@pytest.fixture(scope="module")
def world():
    """(encoder, codes, y) of a feature of many values with missing ones, and two of few."""
    frame, y = clicks(4000, values=60)
    frame["third"] = np.random.default_rng(2).choice(list("xyz"), len(y))
    frame.loc[::50, "big"] = None
    encoder = FrameEncoder.fit(frame)
    return encoder, encoder.encode(frame), y, frame


def summed(full: np.ndarray, to: np.ndarray, size: int) -> np.ndarray:
    """A table whose rows were merged."""
    sums = np.zeros((size, *full.shape[1:]))
    np.add.at(sums, to, full)
    return sums


def behind(tables, raw):
    """Old values behind each modality of each feature, and the modality of each old value."""
    new, old = tables.encoder.features[0], raw.encoder.features[0]
    to = new.encode(pd.Series([*old.values, None], name=old.name, dtype=object))
    return to, [np.bincount(to, minlength=new.size), *(np.ones(n) for n in raw.encoder.sizes[1:])]


def test_without_noise_tables_are_sums_over_values(world):
    encoder, codes, y, frame = world
    raw = ContingencyTables.from_codes(encoder, codes, y)
    most = encoder.sizes[0]
    assert tables_with_noisy_encoding(encoder, codes, y, 0.0, 5, above=most, modalities=20).encoder == encoder
    coded = tables_with_noisy_encoding(encoder, codes, y, 0.0, 5, above=most - 1, modalities=20)
    assert isinstance(coded.encoder.features[0], TargetEncoder)
    assert coded.encoder.features[1:] == encoder.features[1:]
    assert coded.noise is None
    to, _ = behind(coded, raw)
    for key in raw.tables:
        for found, full in zip(coded.dense(*key), raw.dense(*key), strict=True):
            np.testing.assert_array_equal(found, summed(full, to, len(found)) if key[0] == 0 else full)
    again = ContingencyTables.from_codes(coded.encoder, coded.encoder.encode(frame), y)
    assert again.digest == coded.digest


def test_the_encoding_knows_the_noisy_tables_only(world):
    """Its noisy single table decides; single tables of the result are sums of it."""
    encoder, codes, y, _ = world
    coded = tables_with_noisy_encoding(encoder, codes, y, 8.0, 5, above=10, modalities=20)
    noisy = with_gaussian_noise(ContingencyTables.from_codes(encoder, codes, y, pairs="none"), 8.0, 5)
    old = encoder.features[0]
    rate = noisy.positives / noisy.total
    made = TargetEncoder.from_counts("big", (*old.values, "\0missing"), *noisy.dense(0), rate, 20)
    assert coded.encoder.features[0] == made
    for found, full in zip(coded.dense(0), noisy.dense(0), strict=True):
        np.testing.assert_allclose(found, np.bincount(made.codes, full, made.size))
    assert (coded.total, coded.positives) == (noisy.total, noisy.positives)
    assert coded.noise.scale == 8.0
    assert tables_with_noisy_encoding(encoder, codes, y, 0.0, 5, 10, 20).encoder != coded.encoder


def check_law(make, world, sigma=3.0, draws=60):
    """z² of every cell of pair tables, over the values behind it: mean 1, by their own variance, at about 1e-6."""
    encoder, codes, y, _ = world
    raw, z = ContingencyTables.from_codes(encoder, codes, y), []
    for seed in range(draws):
        coded = make(encoder, codes, y, sigma, seed)
        to, counts = behind(coded, raw)
        for key in coded.pairs:
            spread = sigma * np.sqrt(np.multiply.outer(counts[key[0]], counts[key[1]]))
            for found, full in zip(coded.dense(*key), raw.dense(*key), strict=True):
                exact = summed(full, to, len(found)) if key[0] == 0 else full
                held = spread > 0
                assert (found[~held] == 0).all()
                z.append((found - exact)[held] / spread[held])
    z = np.concatenate(z)
    assert abs(z.mean()) < 5 / math.sqrt(len(z))
    assert abs(np.mean(z**2) - 1) < 5 * math.sqrt(2 / len(z))
    assert abs(np.mean(z**4) - 3) < 5 * math.sqrt(96 / len(z))


def drawn(encoder, codes, y, sigma, seed):
    return tables_with_noisy_encoding(encoder, codes, y, sigma, seed, above=10, modalities=20)


def unsummed(encoder, codes, y, sigma, seed):
    """Noise as if no cells had been summed."""
    return with_gaussian_noise(drawn(encoder, codes, y, 0.0, seed), sigma, seed)


@pytest.mark.slow
def test_noise_of_sums_has_their_law(world):
    check_law(drawn, world)
    with pytest.raises(AssertionError):
        check_law(unsummed, world)


def observed(world, kind=ContingencyTables, **params):
    _, _, y, frame = world
    source = TaskInput("clicks", {"split": 0.2}, {}, Population(frame, y, np.full(len(y), 0.5)))
    return Classification().observe(source, kind, params, 0)[0]


def test_in_an_experiment(world):
    noisy = observed(world, noise_share=0.001, encode_noisy={"above": 10, "modalities": 20})
    assert isinstance(noisy.encoder.features[0], TargetEncoder)
    exact = observed(world)
    assert noisy.noise.scale == pytest.approx(exact.total * 0.001)
    assert observed(world, noise_share=0.001).noise == observed(world, gaussian_noise=exact.total * 0.001).noise


def test_large_features_are_left_out_or_hashed(world):
    assert observed(world, max_modalities=3, buckets=0).names == ["small", "third"]
    hashed = observed(world, max_modalities=10, buckets=7)
    assert hashed.encoder.sizes.tolist() == [8, 2, 3]
    assert observed(world, Records, max_modalities=10, buckets=7).encoder == hashed.encoder
    crossed = observed(world, cross_buckets=30)
    assert set(crossed.hashed_pairs.values()) == {30}
    assert observed(world, Records, cross_buckets=30).cross_buckets == 30
