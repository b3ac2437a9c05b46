"""Metrics and intervals."""

from agglearn.evaluation.metrics import (
    auc,
    brier,
    calibration_error,
    entropy,
    log_likelihood,
    log_loss,
    normalized_log_likelihood,
)

__all__ = ["auc", "brier", "calibration_error", "entropy", "log_likelihood", "log_loss", "normalized_log_likelihood"]
