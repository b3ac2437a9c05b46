"""Metrics of predicted probabilities p (n,) = P(Y = 1), for labels y (n,) in {0, 1}, natural logarithm."""

import numpy as np

CLIP = 1e-15  # a probability of exactly 0 or 1 costs log(1e-15), not infinity


def log_likelihood(y: np.ndarray, p: np.ndarray) -> float:
    """Mean log-likelihood, nats per record.

    Parameters
    ----------
    y, p : ndarray of shape (n,)
        Labels in {0, 1}, and predicted P(Y = 1).
    """
    p = np.clip(np.asarray(p, dtype=float), CLIP, 1 - CLIP)
    return float(np.mean(np.where(np.asarray(y) > 0, np.log(p), np.log1p(-p))))


def log_loss(y: np.ndarray, p: np.ndarray) -> float:
    """Mean negative log-likelihood, nats per record.

    Parameters
    ----------
    y, p : ndarray of shape (n,)
    """
    return -log_likelihood(y, p)


def entropy(rate: float) -> float:
    """Entropy of a binary variable, nats. 0 at rates 0 and 1.

    Parameters
    ----------
    rate : float
    """
    return float(-sum(q * np.log(q) for q in (rate, 1 - rate) if q > 0))


def normalized_log_likelihood(y: np.ndarray, p: np.ndarray) -> float:
    """NLLH = 1 − log-loss / H(Y): 0 for the base rate of `y`, 1 for an oracle (Gilotte et al. 2022, section 5.2).

    Parameters
    ----------
    y, p : ndarray of shape (n,)
    """
    h = entropy(float(np.mean(y)))
    return 1 + log_likelihood(y, p) / h if h > 0 else float("nan")


def nllh_of_parts(y: np.ndarray, p: np.ndarray, n_parts: int = 32) -> np.ndarray:
    """(n_parts,) estimates of the NLLH, each from every `n_parts`-th record, for intervals that cover the choice of records.

    An estimate is linear in the part's log-likelihood and in that of the base rate, so the mean of parts of equal size
    is the NLLH of all records, and a small part has one, too.

    Parameters
    ----------
    y, p, n_parts : ndarray of shape (n,), ndarray of shape (n,), int
    """
    rate = float(np.mean(y))
    h, ratio = entropy(rate), 1 - normalized_log_likelihood(y, p)
    blocks = [slice(k, None, n_parts) for k in range(min(n_parts, len(y)))]
    return np.array(
        [1 + (log_likelihood(y[b], p[b]) + ratio * (log_loss(y[b], np.full(len(y[b]), rate)) - h)) / h for b in blocks]
    )


def auc(y: np.ndarray, p: np.ndarray) -> float:
    """Area under the ROC curve. NaN when only one class is present.

    Parameters
    ----------
    y, p : ndarray of shape (n,)
    """
    from sklearn.metrics import roc_auc_score  # slow to import, and observing needs only the other metrics

    return float(roc_auc_score(y, p)) if 0 < np.mean(y) < 1 else float("nan")


def brier(y: np.ndarray, p: np.ndarray) -> float:
    """Mean squared error of the probabilities.

    Parameters
    ----------
    y, p : ndarray of shape (n,)
    """
    return float(np.mean((np.asarray(p, dtype=float) - y) ** 2))


def reliability(y: np.ndarray, p: np.ndarray, bins: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean prediction, rate and size of groups of equal size by prediction, ties in one, from low to high predictions.

    Parameters
    ----------
    y, p, bins : ndarray of shape (n,), ndarray of shape (n,), int

    Returns
    -------
    predictions, rates, sizes : ndarray of shape (bins,)
        NaN for a group without records, as ties leave it.
    """
    order = np.argsort(p)
    y, p = np.asarray(y, dtype=float)[order], np.asarray(p, dtype=float)[order]
    group = np.searchsorted(p, p, side="left") * bins // len(p)
    sizes = np.bincount(group, minlength=bins)
    with np.errstate(invalid="ignore"):
        return np.bincount(group, p, bins) / sizes, np.bincount(group, y, bins) / sizes, sizes


def calibration_error(y: np.ndarray, p: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: mean |rate − mean prediction| over the groups of `reliability`, by their sizes.

    Parameters
    ----------
    y, p, bins : ndarray of shape (n,), ndarray of shape (n,), int
    """
    predictions, rates, sizes = reliability(y, p, bins)
    return float(np.nansum(abs(rates - predictions) * sizes) / len(p))
