"""Digests of code: what must change them, what must not; and classes by their names."""

import itertools
import os
import subprocess

import pytest

from agglearn import kernel_cache, registry, storage
from agglearn_workflow import digests

numbers = itertools.count()


def forget() -> None:
    """What a new process knows: nothing."""
    for cached in digests.CACHED:
        cached.cache_clear()


class Package:
    """A small package in a folder of its own, followed like our own code."""

    def __init__(self, folder):
        self.name = f"followed{next(numbers)}"
        self.folder = folder / self.name
        self.folder.mkdir()
        self.write("__init__", "from .models import Model\nfrom .models import Model as Renamed\n")
        self.write("models", f"import numpy as np\nfrom {self.name}.base import Base\nfrom .helpers import near\n\n"
                   "class Model(Base):\n    KIND = 'm'\n    def fit(self):\n        return near(1)\n")  # fmt: skip
        self.write("base", "class Base:\n    KIND = 'b'\n    TABLE = {'a': ('', 1)}\n"
                   "    def __init__(self, rate=1, *, seed=None):\n        pass\n")  # fmt: skip
        self.write("helpers", "def near(x):\n    from .far import far\n    return far(x)\n")
        self.write("far", '"""Far."""\n\ndef far(x):\n    """Docstring."""\n    return x + 1  # comment\n')
        self.write("apart", "class Apart:\n    def __init__(self, **more):\n        pass\n")
        digests.add_root(folder)

    def write(self, module: str, text: str):
        (self.folder / f"{module}.py").write_text(text)
        forget()

    def digest(self, name="Model") -> str:
        forget()
        return digests.code_digest(f"{self.name}.{name}")


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache, "default_base", lambda: tmp_path / "cache")
    monkeypatch.syspath_prepend(tmp_path)
    before = list(digests.ROOTS)
    package = Package(tmp_path)
    yield package
    digests.ROOTS[:] = before
    forget()


def test_imports_are_followed(package):
    behind = {m.removeprefix(f"{package.name}.") for m in digests.modules_behind(f"{package.name}.Model")}
    assert behind == {"models", "base", "helpers", "far"}


def test_packages_beside_the_installed_library_are_not_followed(package, tmp_path, monkeypatch):
    """In the folder of all packages lie numpy and others. Some import a compiled module from themselves, which has no text."""
    package.write("models", f"from {package.name} import _compiled\nclass Model: pass\n")
    monkeypatch.setattr(digests, "HOME", tmp_path)
    forget()
    assert digests.find_file(package.name) is None
    assert not digests.is_followed(f"{package.name}.Model")


def test_a_compiled_module_of_a_package_is_its_own_origin(package):
    package.write("__init__", f"from {package.name} import _compiled\n")
    assert digests.origin_of(package.name, "_compiled") == package.name


FAR = "def far(x):\n    return x + 1\n"


@pytest.mark.parametrize(
    "text", [FAR, '"""Farther."""\n# more\n\n\ndef far(x):\n    """Other."""\n    return (x\n            + 1)\n']
)
def test_comments_docstrings_and_layout_change_nothing(package, text):
    before = package.digest()
    package.write("far", text)
    assert package.digest() == before


@pytest.mark.parametrize("module", ["models", "base", "helpers", "far", "apart"])
def test_an_edit_changes_the_digests_of_what_imports_it(package, module):
    """The imports are relative, absolute, in a function, and of a whole module. What is not imported is no part."""
    package.write("user", f"import {package.name}.far as f\nfrom . import helpers\n\nclass User:\n    pass\n")
    names = ("Model", "apart.Apart", "user.User")
    before = [package.digest(name) for name in names]
    text = (package.folder / f"{module}.py").read_text()
    package.write(module, text.replace("x + 1", "x + 2") if module == "far" else text + "\nEXTRA = 1\n")
    same = [package.digest(name) == digest for name, digest in zip(names, before, strict=True)]
    assert same == [module == "apart", module != "apart", module in ("models", "base", "apart")]


def test_names_through_packages(package):
    for name in ("Model", "Renamed", "models.Model"):
        assert registry.name_of(registry.find(f"{package.name}.{name}")) == f"{package.name}.models.Model"
    assert package.digest("Model") == package.digest("models.Model")
    for wrong in ("Nothing", "models.Nothing", "nowhere.Model", "Model.nothing.Deeper"):
        assert registry.find(f"{package.name}.{wrong}") is None
    assert registry.find("Model") is None
    assert registry.find("") is None


def test_a_module_that_imports_what_is_not_there(package):
    package.write("broken", "import nowhere_at_all\n\nclass Broken:\n    pass\n")
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        registry.find(f"{package.name}.broken.Broken")


BELOW = {
    "grand": "from . import Model\n\nclass Below(Model):\n    pass\n",
    "dotted": "from . import base\n\nclass Below(base.Base):\n    pass\n",
    "aliased": "from .base import Base as B\n\nclass Below(B):\n    pass\n",
}


def test_descent(package):
    name = package.name
    for module, text in BELOW.items():
        package.write(module, text)
    for below in ("Model", "Renamed", "base.Base", *(f"{module}.Below" for module in BELOW)):
        assert registry.is_subclass(f"{name}.{below}", f"{name}.base.Base"), below
    for other in ("apart.Apart", "nowhere"):
        assert not registry.is_subclass(f"{name}.{other}", f"{name}.base.Base"), other


def test_constants(package):
    package.write("typed", "class Typed:\n    KIND: str = ''\n    OTHER: int\n")
    expected = {"KIND": "m", "TABLE": {"a": ("", 1)}, "NONE": None}
    assert {key: registry.constant(f"{package.name}.Model", key) for key in expected} == expected
    assert [registry.constant(f"{package.name}.typed.Typed", key) for key in ("KIND", "OTHER")] == ["", None]


def test_a_class_outside_followed_code_counts_by_its_version(package):
    """A nested `class:` may be another package's."""
    assert digests.modules_behind("sklearn.naive_bayes.GaussianNB") == ()
    assert list(digests.versions("sklearn.naive_bayes.GaussianNB")) == ["scikit-learn"]
    both = {digests.code_digest("sklearn.naive_bayes.GaussianNB"), digests.code_digest("numpy.ndarray")}
    assert len(both) == 2


def test_versions_of_imported_packages_count(package, monkeypatch):
    before, apart = package.digest(), package.digest("apart.Apart")
    package.write(
        "far", "def far(x):\n    from sklearn import linear_model\n    cp = require('cvxpy', 'generic')\n    return x\n"
    )
    installed = {"numpy": "1", "scikit-learn": "2", "cvxpy": "3", "clarabel": "4"}

    def version(name):
        if name not in installed:
            raise digests.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(digests.metadata, "version", version)
    forget()
    assert digests.versions(f"{package.name}.Model") == installed
    different = {before, package.digest()}
    for name in installed:
        installed[name] = "5"
        different.add(package.digest())
    assert len(different) == 6
    assert package.digest("apart.Apart") == apart


def test_installing_spark_makes_nothing_anew(package, monkeypatch):
    package.write("far", "def far(x):\n    import pyspark\n    return x\n")
    before = package.digest()
    monkeypatch.setattr(digests.metadata, "version", lambda name: "1")
    assert package.digest() != before  # the other packages have another version now
    assert "pyspark" not in digests.versions(f"{package.name}.Model")


def test_what_is_behind_our_own_methods():
    network = digests.versions("agglearn.distribution.DeepSetsRegressor", "agglearn.tasks.BagRegression")
    assert {"jax", "jaxlib", "numpy", "optax", "pandas", "scikit-learn"} <= set(network)
    assert not {"agglearn", "snakemake", "mlflow", "matplotlib"} & set(network)
    assert {"clarabel", "casadi"} <= set(digests.versions("agglearn.collective.FlowReconstruction"))
    behind = digests.modules_behind("agglearn.maxent.MaxEntClassifier")
    assert {"agglearn.maxent.kernels", "agglearn.encoding.binned", "agglearn.observations.tables"} <= set(behind)
    assert not [m for m in behind if m.startswith(("agglearn_workflow", "agglearn.cli"))]


def test_a_commit_is_marked_where_files_changed_outside_the_archive(tmp_path, monkeypatch):
    """Runs of a long computation have one commit, though each of them is added to the archive."""
    monkeypatch.setattr(digests, "__file__", str(tmp_path / "src/digests.py"))
    for path in ("archive/runs.parquet", "src/code.py"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text("a")
    named = ["-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "."], [*named, "commit", "-qm", "m"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    clean = digests.commit.__wrapped__()
    assert len(clean) == 12
    (tmp_path / "archive/runs.parquet").write_text("b")
    assert digests.commit.__wrapped__() == clean
    (tmp_path / "src/code.py").write_text("b")
    assert digests.commit.__wrapped__() == f"{clean}-dirty"


# -- what one process reads is kept for the next: quick, and never wrong ----------------------------------------------


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The file for one module, `thing`, which is followed beside the others; it lies in a folder of its own."""
    monkeypatch.setattr(kernel_cache, "default_base", lambda: tmp_path / "cache")
    monkeypatch.setattr(digests, "ROOTS", [*digests.ROOTS, tmp_path])
    (tmp_path / "thing.py").write_text("import numpy as np\n\ndef twice(x):\n    return 2 * x\n")
    forget()
    yield tmp_path / "cache/modules/thing.json"
    forget()


def digest() -> str:
    forget()
    return digests.code_digest("thing.twice")


def test_the_next_process_parses_nothing(kept, monkeypatch):
    before = digest(), digests.versions("thing.twice"), digests.modules_behind("thing.twice")
    assert "numpy" in before[1]
    assert kept.is_file()
    monkeypatch.setattr(digests.ast, "parse", None)
    assert (digest(), digests.versions("thing.twice"), digests.modules_behind("thing.twice")) == before


def test_another_text_is_read_though_time_and_size_are_the_same(kept, tmp_path):
    before, path = digest(), tmp_path / "thing.py"
    state = path.stat()
    path.write_text(path.read_text().replace("2", "3"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert digest() != before


def test_another_reader_reads_anew(kept, monkeypatch, tmp_path):
    before = digest()
    [(key, [_, imports])] = storage.read_json(kept).items()
    storage.write_json(kept, {key: ["another digest", imports]})
    assert digest() != before  # it was read from the file
    monkeypatch.setattr(digests.sys, "version", "another grammar")
    assert digest() == before


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "3", "\x00"])
def test_a_broken_file_costs_time_only(kept, text):
    before = digest()
    kept.write_text(text)
    assert digest() == before
    assert storage.read_json(kept)


def test_a_place_that_cannot_be_written_costs_time_only(kept, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder would be")
    before = digest()
    assert digest() == before
