"""Models as files: structure in JSON, arrays in NPZ. A folder cannot choose what code runs when it is read.

`read_model` builds estimators of this package and of the classes or modules that the caller trusts, encoders, arrays, and
plain values. It checks names, types, shapes and sizes, and refuses everything else by name.
"""

import json
import math
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from agglearn.encoding import FrameEncoder
from agglearn.errors import DataError
from agglearn.observations.base import make_folder, refuse_damaged
from agglearn.registry import resolve
from agglearn.seeds import GENERATORS
from agglearn.storage import json_lines

PACKAGE = __name__.partition(".")[0]
JSON_BYTES = 1 << 29  # longest model.json
ARRAY_BYTES = 4 << 30  # of all arrays together, unpacked
ARRAY_KINDS = "biufcU"  # NumPy's codes: booleans, integers, floats, complex numbers, text
FLOATS = "fdFD"  # of single and double precision, which all kernels take
WEIGHTS = ("coef_", "intercept_", "mu_", "theta_")


class Persistent:
    """What `save` writes and `load` reads: an object with scikit-learn's `get_params`, and learned state (`is_learned`)."""

    def _check_state(self) -> None:
        """Refuse learned state of a loaded model that predictions cannot use, see `expect`."""

    def save(self, folder: Path | str) -> None:
        """Write `model.json` and `model.npz`: class, parameters and learned state."""
        check_is_fitted(self)
        write_model(self, make_folder(folder))

    @classmethod
    def load(cls, folder: Path | str, trusted: Iterable[str] = ()) -> Self:
        """Read a model that `save` wrote. Called on a base class it gives whatever class was saved.

        Parameters
        ----------
        folder : path
            Model folder. Reading it runs no code but that of this package and of what is trusted.
        trusted : iterable of str
            Dotted names of classes, modules or packages outside this package that the folder may name.

        Raises
        ------
        DataError
            There is no model, a damaged one, one of another class, or one that is not trusted.
        """
        folder = Path(folder)
        if not (folder / "model.json").is_file():
            raise DataError(f"{folder}: no model here (model.json is missing); make one with `agglearn fit`")
        with refuse_damaged(folder, "a model"):
            model = read_model(folder, trusted)
        if not isinstance(model, cls):
            raise DataError(f"{folder}: holds a {type(model).__name__}, not a {cls.__name__}")
        return model


def write_model(model: Persistent, folder: Path) -> None:
    """Write `model.json` and `model.npz` into an existing folder."""
    arrays: dict[str, np.ndarray] = {}
    text = json_lines(_describe(model, "", arrays))
    np.savez_compressed(folder / "model.npz", **arrays)  # type: ignore[arg-type]  # the names are paths, no option's
    (folder / "model.json").write_text(text + "\n")


def read_model(folder: Path, trusted: Iterable[str] = ()) -> Persistent:
    """Build the estimator that `write_model` wrote."""
    if (folder / "model.json").stat().st_size > JSON_BYTES:
        raise DataError(f"{folder}: model.json is longer than {JSON_BYTES >> 20} MiB")
    description = json.loads((folder / "model.json").read_text())
    return _Reader(folder, _read_arrays(folder / "model.npz"), tuple(trusted)).build(description)


# -- writing ----------------------------------------------------------------------------------------------------------


def _describe(model: Any, path: str, arrays: dict) -> dict:
    """JSON for a model: its class, parameters (nested estimators described in turn) and learned state."""
    learned = {k: v for k, v in vars(model).items() if is_learned(k) and k != "trace_"}
    params = model.get_params(deep=False).items()
    return {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "params": {k: _pack_parameter(v, f"{path}params.{k}", arrays) for k, v in params},
        "state": {k: _pack(v, f"{path}{k}", arrays) for k, v in learned.items()},
    }


def is_learned(name: str) -> bool:
    """Whether an attribute of this name is learned state."""
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def _pack_parameter(value: object, path: str, arrays: dict) -> object:
    """JSON for a parameter. A generator has been drawn from: what is kept of it is None."""
    if isinstance(value, GENERATORS):
        return None
    if isinstance(value, np.generic):
        return value.item()
    return _pack(value, path, arrays) if isinstance(value, Persistent) else value


def _pack(value: object, path: str, arrays: dict) -> object:
    """JSON for a learned value. Arrays go to `arrays` under their path."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in ARRAY_KINDS:
            raise TypeError(f"{path}: an array of {value.dtype} (objects?) cannot be written; use a list")
        arrays[path] = value
        return {"__array__": path}
    if isinstance(value, FrameEncoder):
        return {"__encoder__": value.to_dict()}
    if isinstance(value, Persistent):
        return {"__estimator__": _describe(value, f"{path}.", arrays)}
    if isinstance(value, dict):
        items = enumerate(value.items())
        return {
            "__dict__": [[_pack(k, f"{path}.k{i}", arrays), _pack(v, f"{path}.{i}", arrays)] for i, (k, v) in items]
        }
    if isinstance(value, tuple):
        return {"__tuple__": [_pack(v, f"{path}.{i}", arrays) for i, v in enumerate(value)]}
    if isinstance(value, list):
        return [_pack(v, f"{path}.{i}", arrays) for i, v in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


# -- reading ----------------------------------------------------------------------------------------------------------


class _Reader:
    """Builds models out of one folder."""

    def __init__(self, folder: Path, arrays: dict[str, np.ndarray], trusted: tuple[str, ...]):
        self.folder, self.arrays, self.trusted = folder, arrays, trusted

    def build(self, description: Any) -> Persistent:
        """An estimator from its description. Its class decides what its learned state must look like."""
        if not (isinstance(description, dict) and set(description) == {"class", "params", "state"}):
            raise DataError(f"{self.folder}: model.json does not describe an estimator (class, params, state)")
        kind = self.find_class(description["class"])
        params, state = description["params"], description["state"]
        model = kind(**{k: self.unpack(v) if _is_marked(v, "__estimator__") else v for k, v in params.items()})
        for name, value in state.items():
            if not is_learned(name) or hasattr(kind, name):
                raise DataError(f"{self.folder}: {name!r} is no learned attribute of a {kind.__name__}")
            setattr(model, name, self.unpack(value))
        if not isinstance(getattr(model, "encoder_", None), FrameEncoder | None):
            raise DataError(f"{self.folder}: encoder_ of a {kind.__name__} is not an encoder")
        for name in WEIGHTS:
            _check_finite(vars(model).get(name), f"{kind.__name__}.{name}")
        if state:
            model._check_state()
        return model

    def find_class(self, dotted: object) -> type[Persistent]:
        """A class of this package or a trusted one. Nothing else is imported."""
        if not isinstance(dotted, str):
            raise DataError(f"{self.folder}: the class is {dotted!r}; it must be a dotted name")
        module = dotted.rpartition(".")[0]
        if not (_is_inside(dotted, PACKAGE) or any(_is_inside(dotted, t) for t in self.trusted)):
            raise DataError(
                f"{self.folder}: refused to import {dotted!r}: not a class of {PACKAGE}, nor one that you trust "
                f"(Estimator.load(folder, trusted=[{dotted!r}]) imports it and may run its code)"
            )
        kind = None if module.endswith("__main__") else resolve(dotted)
        if not (isinstance(kind, type) and kind.__module__ == module and issubclass(kind, Persistent)):
            raise DataError(f"{self.folder}: {dotted!r} is not an estimator")
        return kind

    def unpack(self, value: Any) -> Any:
        """A learned value from its JSON."""
        if isinstance(value, list):
            return [self.unpack(v) for v in value]
        if not isinstance(value, dict):
            return value
        [(kind, inner)] = value.items()
        if kind == "__array__":
            return self.arrays[inner]
        if kind == "__encoder__":
            return FrameEncoder.from_dict(inner)
        if kind == "__estimator__":
            return self.build(inner)
        if kind == "__tuple__":
            return tuple(self.unpack(v) for v in inner)
        if kind == "__dict__":
            return {self.unpack(k): self.unpack(v) for k, v in inner}
        raise DataError(f"{self.folder}: model.json holds a value of an unknown kind, {kind!r}")


def _is_inside(dotted: str, name: str) -> bool:
    return dotted == name or dotted.startswith(f"{name}.")


def _is_marked(value: object, mark: str) -> bool:
    return isinstance(value, dict) and set(value) == {mark}


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Arrays of an NPZ file whose headers agree with the sizes of its members, objects refused."""
    left, arrays = ARRAY_BYTES, {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as handle:
                shape, dtype = _read_header(handle, f"{path}: {name}")
            size = math.prod(shape) * max(dtype.itemsize, 1)  # empty texts take room as soon as they are compared
            left -= size
            if dtype.kind not in ARRAY_KINDS or (dtype.kind in "fc" and dtype.char not in FLOATS):
                raise DataError(f"{path}: {name}: arrays of type {dtype} are refused")
            if size > member.file_size or left < 0:
                raise DataError(f"{path}: {name}: shape {shape} needs {size:,} bytes, more than is there or allowed")
            with archive.open(member) as handle:
                array = np.lib.format.read_array(handle, allow_pickle=False)
            arrays[name] = array.astype(
                dtype.newbyteorder("="), copy=False
            )  # kernels take this machine's order of bytes
    return arrays


def _read_header(handle: IO[bytes], label: str) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(handle)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise DataError(f"{label}: NPY format {version} is not supported")
    shape, _, dtype = readers[version](handle)
    return shape, dtype


# -- types and shapes -------------------------------------------------------------------------------------------------


def expect(model: object, **expected: type | tuple[str, tuple]) -> None:
    """Refuse learned attributes that are not as expected. Kernels do not check bounds, so what they read is checked here."""
    for name, what in expected.items():
        value, label = getattr(model, name, None), f"{type(model).__name__}.{name}"
        if isinstance(what, tuple):
            _check_array(value, *what, label)
        else:
            _check_type(value, what, label)


def _check_type(value: object, expected: type, label: str) -> None:
    allowed = (int, float) if expected is float else expected
    if not isinstance(value, allowed) or (isinstance(value, bool) and expected is not bool):
        raise ValueError(f"{label}: must be of type {expected.__name__}, not {type(value).__name__}")


def check_classes(model: object, classes: int | None = None) -> None:
    """Refuse `classes_` that are not ascending and distinct, or of another number. Arguments and errors as of `expect`."""
    expect(model, classes_=("biufU", (classes,)))
    values = vars(model)["classes_"]
    if not len(values) or not np.array_equal(np.unique(values), values):
        raise ValueError(f"{type(model).__name__}.classes_: must be distinct and ascend")


def _check_finite(value: Any, label: str) -> None:
    numeric = isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
    if numeric and not np.isfinite(value).all():
        raise ValueError(f"{label}: holds values that are no finite numbers")


def _check_array(value: object, kinds: str, shape: tuple, label: str) -> None:
    if not (isinstance(value, np.ndarray) and value.dtype.kind in kinds):
        raise ValueError(
            f"{label}: must be an array of kind {kinds}, not {getattr(value, 'dtype', type(value).__name__)}"
        )
    if value.ndim != len(shape) or any(e not in (None, n) for e, n in zip(shape, value.shape, strict=True)):
        raise ValueError(f"{label}: has shape {value.shape}, expected {shape}")
