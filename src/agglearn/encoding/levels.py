"""What encoders of one feature share: a missing value and anything else as modalities."""

import numpy as np

UNSEEN = -1
MISSING = "missing"
OTHER = "other"


class Levels:
    """What encoders share: a missing value and anything else may be modalities, after all others."""

    has_missing: bool
    has_other: bool

    @property
    def size(self) -> int:
        return self._own + self.has_missing + self.has_other

    @property
    def _last_labels(self) -> list[str]:
        return [MISSING] * self.has_missing + [OTHER] * self.has_other

    @property
    def _missing_code(self) -> np.int32:
        return np.int32(self._own if self.has_missing else UNSEEN)

    def _complete(self, codes: np.ndarray) -> np.ndarray:
        """The codes with `other` in place of UNSEEN, where there is such a modality."""
        return np.where(codes == UNSEEN, np.int32(self.size - 1), codes) if self.has_other else codes

    def _state(self) -> dict:
        return {"has_missing": self.has_missing} | ({"has_other": True} if self.has_other else {})
