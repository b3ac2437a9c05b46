#!/bin/sh
# Make a virtual environment with exactly what the lock names. What was installed beyond it, such as PySpark, is gone.
#   setup.sh PYTHON FOLDER
python=$1 venv=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "agglearn: $python is not a Python of 3.11 or newer; name one: make PYTHON=python3.12 …" >&2
    exit 1
}

make_venv() {
    rm -rf "$venv"
    "$python" -m venv "$venv" >/dev/null 2>&1 && [ -x "$venv/bin/pip" ]
}

# Debian and Ubuntu keep part of the standard library in a package of its own: python3-venv.
borrow_pip() {
    rm -rf "$venv"
    "$python" -m venv --without-pip "$venv" >/dev/null 2>&1 &&
        "$python" -m pip --python "$venv/bin/python" install --quiet pip >/dev/null 2>&1
}

install_venv_package() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
        { apt-get update -qq && apt-get install -y -qq python3-venv; } >/dev/null 2>&1
}

echo "agglearn: setting up $venv (half a minute with uv, two minutes without; once)"
make_venv || borrow_pip || { install_venv_package && make_venv; } || {
    echo "agglearn: $python cannot make virtual environments; install the package python3-venv" >&2
    echo "          (sudo apt install python3-venv), or name another Python: make PYTHON=…" >&2
    rm -rf "$venv"
    exit 1
}
"$venv/bin/python" workflow/scripts/install.py --require-hashes -r requirements.lock &&
    "$venv/bin/python" -m pip --disable-pip-version-check --no-input --quiet install --no-deps --no-build-isolation --editable . || {
    echo "agglearn: the packages of requirements.lock could not be installed; see above (is the package index reachable?)" >&2
    exit 1
}
"$venv/bin/python" -m compileall -q src
