"""What a release would cost in accuracy: measured on a person's records."""

from agglearn.cost.measuring import measure_cost

__all__ = ["measure_cost"]
