"""`pip install` by uv where uv can, by pip where it cannot, into the environment of the Python that runs this file.

    .venv/bin/python workflow/scripts/install.py --require-hashes -r requirements.lock

The arguments are those that `pip install` and `uv pip install` share. uv is the one on the PATH, else the one that the
lock names, which pip installs first. uv does not read pip's configuration, so it gets pip's indexes, proxy and
certificates from here. This file imports the standard library only.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LOCK = Path(__file__).resolve().parents[2] / "requirements.lock"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
SECTIONS = ("global", "install", ":env:")  # the later one wins, as in pip
VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "retries": "UV_HTTP_RETRIES",
}
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def pip_settings() -> dict[str, str]:
    """Settings of `pip install` from pip's files and environment variables: {option: value}."""
    return settings(subprocess.run([*PIP, "config", "list"], capture_output=True, text=True).stdout)


def settings(text: str) -> dict[str, str]:
    """Settings from the lines `section.option='value'` of `pip config list`."""
    by_section = {section: {} for section in SECTIONS}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in by_section:
            by_section[section][option] = ast.literal_eval(value)
    return {option: value for section in SECTIONS for option, value in by_section[section].items()}


def uv_environment(pip: dict[str, str], environ: dict[str, str]) -> dict[str, str]:
    """Environment in which uv uses the places that pip uses. What the user set for uv itself comes first."""
    values = {VARIABLES[option]: value for option, value in pip.items() if option in VARIABLES}
    values |= dict.fromkeys(PROXIES, pip["proxy"]) if "proxy" in pip else {}
    values |= {"UV_KEYRING_PROVIDER": "subprocess"} if pip.get("keyring-provider") == "subprocess" else {}
    values = {name: " ".join(value.split()) for name, value in values.items()}
    # pip takes a file from any index. The hashes of the lock decide which file is right, so uv may look in all of them too.
    values |= {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_PYTHON_DOWNLOADS": "never"}
    # As pip does. Else the first processes compile all at once, and every process where PYTHONDONTWRITEBYTECODE is set.
    values |= {"UV_COMPILE_BYTECODE": "1"}
    return environ | {name: value for name, value in values.items() if name not in environ}


def uv_options(pip: dict[str, str]) -> list[str]:
    """Options of `uv pip install` for the settings of pip that have no environment variable in uv, or one of files only."""
    options = [word for link in pip.get("find-links", "").split() for word in ("--find-links", link)]
    return [*options, "--no-index"] if pip.get("no-index", "").lower() in ("1", "true", "yes", "on") else options


def find_uv(lock: Path) -> str | None:
    """Path of uv: on the PATH, or installed by pip as the lock has it. It is None where neither works."""
    beside = Path(sys.executable).with_name("uv")
    if path := shutil.which("uv"):
        return path
    if not beside.is_file() and (pin := re.search(r"^uv==.*\n(?:\s+--hash=.*\n?)*", lock.read_text(), re.M)):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(pin.group())
            file.flush()
            subprocess.run([*PIP, "install", "-qq", "--require-hashes", "-r", file.name], stderr=subprocess.DEVNULL)
    return str(beside) if beside.is_file() else None


def install(arguments: list[str], uv: str | None, pip: dict[str, str]) -> int:
    """Install with uv, else with pip, and return the exit status."""
    if uv:
        call = [uv, "pip", "install", "--quiet", "--python", sys.executable, *uv_options(pip), *arguments]
        if subprocess.run(call, env=uv_environment(pip, dict(os.environ))).returncode == 0:
            return 0
        print("agglearn: uv could not install the packages; pip tries it now", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*PIP, "install", "-qq", *for_pip(arguments, Path(folder))]).returncode


def for_pip(arguments: list[str], folder: Path) -> list[str]:
    """The arguments with constraints without hashes, copied into a folder: where one package has a hash, pip refuses those without."""
    if "--require-hashes" in arguments or "-c" not in arguments:
        return arguments
    position, copy = arguments.index("-c") + 1, folder / "constraints.txt"
    copy.write_text(re.sub(r"\s*\\?\s+--hash=\S+", "", Path(arguments[position]).read_text()))
    return [*arguments[:position], str(copy), *arguments[position + 1 :]]


if __name__ == "__main__":
    sys.exit(install(sys.argv[1:], find_uv(LOCK), pip_settings()))
