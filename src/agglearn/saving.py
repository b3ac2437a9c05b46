"""Objects as JSON, arrays as NPZ and NPY, data frames as Parquet. Names, types, shapes and sizes are checked.

`load` runs code of this package, of the module whose class reads, and of what the caller trusts, no other.
"""

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from agglearn.errors import DataError, NotAvailable, describe
from agglearn.machine import memory_bytes
from agglearn.registry import resolve
from agglearn.seeds import GENERATORS
from agglearn.settings import RUNTIME, faults, values_at_fault
from agglearn.settings import parameters as declared_parameters
from agglearn.storage import atomic_file, json_lines

PACKAGE = __name__.partition(".")[0]
JSON_BYTES = 1 << 29  # longest description
MAPPED_BYTES = 1 << 20  # arrays from this size on stay on disk until they are used
ARRAY_KINDS = "biufcU"  # NumPy's codes: booleans, integers, floats, complex numbers, text
FLOATS = "fdFD"  # of single and double precision, which all kernels take
WEIGHTS = ("coef_", "intercept_", "mu_", "theta_")


class Saved:
    """What `save` writes: constructor parameters and learned state. `_title` and `_advice` are for messages."""

    _file: ClassVar[str] = "object"
    _title: ClassVar[str] = "object"
    _advice: ClassVar[str] = ""
    _maps_arrays: ClassVar[bool] = True

    def save(self, folder: Path | str) -> None:
        """Write the object to an existing or new folder. Its JSON file comes last, when the others are complete."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        packed = Packed(self)
        for name, frame in packed.frames.items():
            with atomic_file(folder / f"{name}.parquet") as path:
                frame.to_parquet(path, index=False, compression="zstd")
        arrays = dict(packed.arrays)
        for name, array in packed.arrays.items():
            if self._maps_arrays and array.nbytes >= MAPPED_BYTES:
                with atomic_file(folder / f"{name}.npy") as path:
                    np.save(path, arrays.pop(name))
        if arrays or not self._maps_arrays:
            write = np.savez if self._maps_arrays else np.savez_compressed
            with atomic_file(folder / f"{self._file}.npz") as path:
                write(path, **arrays)  # type: ignore[arg-type]  # the names are paths, no option's
        with atomic_file(folder / f"{self._file}.json") as path:
            path.write_text(json_lines(packed.description) + "\n")

    @classmethod
    def load(cls, folder: Path | str, trusted: Iterable[str] = ()) -> Self:
        """Read an object that `save` wrote, of this class or, called on a base class, of whatever class was saved.

        The folder can name classes of this package, of the module of this class, and of `trusted`: dotted names of
        classes, modules or packages. DataError for an absent, damaged, untrusted or other object.
        """
        folder = Path(folder)
        path = folder / f"{cls._file}.json"
        if not path.exists():
            raise DataError(f"{folder}: no {cls._title} here ({path.name} is missing){cls._advice}")
        with refuse_damaged(folder, cls._title):
            if path.stat().st_size > JSON_BYTES:
                raise DataError(f"{folder}: {path.name} is longer than {JSON_BYTES >> 20} MiB")
            reader = _Reader(folder, _read_arrays(folder, f"{cls._file}.npz"), (PACKAGE, cls.__module__, *trusted))
            value = reader.build(json.loads(path.read_text()))
        if not isinstance(value, cls):
            raise DataError(f"{folder}: holds a {type(value).__name__}, not a {cls.__name__}")
        return value

    def _parameters(self) -> dict[str, Any]:
        """Arguments of the constructor, and fields that it computes."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    @classmethod
    def _restore(cls, parameters: dict[str, Any]) -> Self:
        computed = {field.name for field in dataclasses.fields(cls) if not field.init}  # type: ignore[arg-type]
        parameters = {k: v for k, v in parameters.items() if k not in computed}
        for path, fault in values_at_fault(parameters, declared_parameters(cls) or {}):  # type: ignore[arg-type]
            raise ValueError(f"{cls.__name__}.{path}: {fault}")
        return cls(**parameters)

    def _check_state(self) -> None:
        """Refuse learned state of a loaded model that predictions cannot use, see `expect`."""


def is_learned(name: str) -> bool:
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def _is_plain(values: Iterable) -> bool:
    return set(map(type, values)) <= {str, bool, int, float, type(None)}


# -- writing ----------------------------------------------------------------------------------------------------------


class Packed:
    """An object as JSON, which refers to `arrays` and `frames` by their path within the object."""

    def __init__(self, value: Saved):
        self.arrays: dict[str, np.ndarray] = {}
        self.frames: dict[str, pd.DataFrame] = {}
        self.description = self._describe(value, "")

    def digest(self) -> str:
        """16 hex digits over the content."""
        hasher = hashlib.sha256(json.dumps(self.description).encode())
        for name, array in self.arrays.items():
            hasher.update(f"{name}{array.dtype.str}{array.shape}".encode())
            hasher.update(array.tobytes())
        for name, frame in self.frames.items():
            hasher.update(f"{name}{list(frame.columns)}".encode())
            hasher.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
        return hasher.hexdigest()[:16]

    def _describe(self, value: Saved, path: str) -> dict:
        learned = {k: v for k, v in vars(value).items() if is_learned(k) and k != "trace_"}
        return {
            "class": f"{type(value).__module__}.{type(value).__qualname__}",
            "params": {k: self._pack(v, f"{path}{k}") for k, v in value._parameters().items()},
            **({"state": {k: self._pack(v, f"{path}{k}") for k, v in learned.items()}} if learned else {}),
        }

    def _pack(self, value: object, path: str) -> object:
        """JSON for a value. A generator has been drawn from: what stays of it is None."""
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in ARRAY_KINDS:
                raise TypeError(f"{path}: an array of {value.dtype} (objects?) cannot be written; use a list")
            self.arrays[path] = value
            return {"__array__": path}
        if isinstance(value, pd.DataFrame):
            self.frames[path] = value
            return {"__frame__": path}
        if isinstance(value, Saved):
            return {"__object__": self._describe(value, f"{path}.")}
        if isinstance(value, dict):
            values = [self._pack(v, f"{path}.{i}") for i, v in enumerate(value.values())]
            if all(isinstance(k, str) and not k.startswith("__") for k in value):
                return dict(zip(value, values, strict=True))
            keys = [self._pack(k, f"{path}.k{i}") for i, k in enumerate(value)]
            return {"__dict__": list(zip(keys, values, strict=True))}
        if isinstance(value, tuple | list):
            items = list(value) if _is_plain(value) else [self._pack(v, f"{path}.{i}") for i, v in enumerate(value)]
            return {"__tuple__": items} if isinstance(value, tuple) else items
        if isinstance(value, GENERATORS):
            return None
        return value.item() if isinstance(value, np.generic) else value


# -- reading ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def refuse_damaged(folder: str | Path, title: str) -> Iterator[None]:
    """Turn any error of a damaged or foreign folder into a DataError. Pipes, devices and huge arrays are not read."""
    for path in Path(folder).glob("*"):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise DataError(f"{path}: is no file, but a pipe or a device; remove it")
        if path.suffix == ".npz" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                size = sum(member.file_size for member in packed.infolist())
            if size > memory_bytes():
                raise DataError(f"{path}: unpacked it has {size:,} bytes, more than this machine's memory")
    try:
        yield
    except (DataError, NotAvailable):
        raise
    except PermissionError as error:
        raise DataError(f"{error.filename or folder}: cannot be read ({os.strerror(errno.EACCES)})") from error
    except Exception as error:
        raise DataError(
            f"{folder}: damaged, or no {title} made by agglearn ({describe(error)}); make it again"
        ) from error


class _Reader:
    def __init__(self, folder: Path, arrays: dict[str, np.ndarray], trusted: tuple[str, ...]):
        self.folder, self.arrays, self.trusted = folder, arrays, trusted

    def build(self, description: Any) -> Saved:
        """An object from its description. Its class decides what its learned state must look like."""
        keys = set(description) if isinstance(description, dict) else set()
        if not {"class", "params"} <= keys <= {"class", "params", "state"}:
            raise DataError(f"{self.folder}: the description is not that of an object (class, params, state)")
        kind = self.find_class(description["class"])
        built = kind._restore({k: self.unpack(v) for k, v in description["params"].items()})
        if state := description.get("state"):
            for name, value in state.items():
                if not is_learned(name) or hasattr(kind, name):
                    raise DataError(f"{self.folder}: {name!r} is no learned attribute of a {kind.__name__}")
                setattr(built, name, self.unpack(value))
            for name in WEIGHTS:
                weights: Any = vars(built).get(name)
                numeric = isinstance(weights, float | np.ndarray) and np.asarray(weights).dtype.kind == "f"
                if numeric and not np.isfinite(weights).all():
                    raise ValueError(f"{kind.__name__}.{name}: holds values that are no finite numbers")
            built._check_state()
        return built

    def find_class(self, dotted: object) -> type[Saved]:
        """A class of this package or a trusted one. Nothing else is imported."""
        if not isinstance(dotted, str):
            raise DataError(f"{self.folder}: the class is {dotted!r}; it must be a dotted name")
        if not any(dotted == name or dotted.startswith(f"{name}.") for name in self.trusted):
            raise DataError(
                f"{self.folder}: refused to import {dotted!r}: not a class of {PACKAGE}, nor one that you trust "
                f"(Estimator.load(folder, trusted=[{dotted!r}]) imports it and may run its code)"
            )
        module = dotted.rpartition(".")[0]
        kind = None if module.endswith("__main__") else resolve(dotted)
        if not (isinstance(kind, type) and kind.__module__ == module and issubclass(kind, Saved)):
            raise DataError(f"{self.folder}: {dotted!r} is not a class of saved objects")
        return kind

    def unpack(self, value: Any) -> Any:
        if isinstance(value, list):
            return value if _is_plain(value) else [self.unpack(v) for v in value]
        if not isinstance(value, dict):
            return value
        match list(value.items()):
            case [("__array__", path)]:
                return self.arrays[path]
            case [("__frame__", path)]:
                return pd.read_parquet({p.stem: p for p in self.folder.glob("*.parquet")}[path])
            case [("__object__", description)]:
                return self.build(description)
            case [("__tuple__", values)]:
                return tuple(self.unpack(values))
            case [("__dict__", items)]:
                return {self.unpack(k): self.unpack(v) for k, v in items}
        return {k: self.unpack(v) for k, v in value.items()}


def _read_arrays(folder: Path, packed: str) -> dict[str, np.ndarray]:
    """Arrays of NPZ and NPY files. NumPy refuses objects, and shapes for which there are too few bytes."""
    arrays = {p.stem: np.asarray(np.load(p, mmap_mode="c")) for p in folder.glob("*.npy")}
    if not (path := folder / packed).exists():
        return arrays
    with np.load(path) as members:
        for name in members.files:
            array = members[name]
            dtype = array.dtype
            is_strange = dtype.kind in "fc" and dtype.char not in FLOATS
            if dtype.kind not in ARRAY_KINDS or is_strange or not dtype.itemsize:  # empty texts need no bytes in a file
                raise DataError(f"{path}: {name}: arrays of type {dtype} are refused")
            arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)  # the order of bytes that kernels take
    return arrays


# -- types and shapes -------------------------------------------------------------------------------------------------


def expect(model: object, **expected: type | tuple[str, tuple]) -> None:
    """Refuse learned attributes of other types or shapes. Kernels do not check bounds, so this does."""
    for name, declared in expected.items():
        value, label = getattr(model, name, None), f"{type(model).__name__}.{name}"
        if isinstance(declared, tuple):
            _check_array(value, *declared, label)
            continue
        for path, fault in faults(value, declared, label, RUNTIME):
            raise ValueError(f"{path}: {fault}")


def check_classes(model: object, classes: int | None = None) -> None:
    """Refuse `classes_` that are not ascending and distinct, or of another number, as `expect` does."""
    expect(model, classes_=("biufU", (classes,)))
    values = vars(model)["classes_"]
    if not len(values) or not np.array_equal(np.unique(values), values):
        raise ValueError(f"{type(model).__name__}.classes_: must be distinct and ascend")


def _check_array(value: object, kinds: str, shape: tuple, label: str) -> None:
    if not (isinstance(value, np.ndarray) and value.dtype.kind in kinds):
        kind = getattr(value, "dtype", type(value).__name__)
        raise ValueError(f"{label}: must be an array of kind {kinds}, not {kind}")
    if value.ndim != len(shape) or any(e not in (None, n) for e, n in zip(shape, value.shape, strict=True)):
        raise ValueError(f"{label}: has shape {value.shape}, expected {shape}")
