"""Arrays that become bags."""

import numpy as np
import pytest

from agglearn.distribution.embedding import as_bags


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_arrays_keep_their_precision(kind):
    assert as_bags([np.zeros((2, 1), kind), np.ones((1, 1), kind)]).X.dtype == kind
