"""A package that is not installed is one line that names the extra; other import errors stay what they are."""

import pytest

from agglearn.errors import NotAvailable
from agglearn.optional import require


@pytest.mark.parametrize("module", ["absent_package", "absent_package.part"])
def test_an_absent_package_is_one_line_that_names_the_extra(module):
    with pytest.raises(NotAvailable) as error:
        require(module, "networks")
    assert str(error.value) == "absent_package is not installed; install it with `pip install 'agglearn[networks]'`"


def test_a_broken_package_is_not_called_absent(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import absent_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="absent_package"):
        require("broken_package", "networks")
