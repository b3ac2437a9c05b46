"""Chromium without a window, and the site served to it on loopback beside a page that drives it."""

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.parse
from pathlib import Path

HERE = Path(__file__).parent
SHOTS = HERE.parents[1] / "results/screenshots"
BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
]  # fmt: skip
DRIVER = {"/harness.html": HERE / "harness.html", "/axe.min.js": HERE / "node_modules/axe-core/axe.min.js"}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the site, and those that drive the browser."""

    def translate_path(self, path: str) -> str:
        driver = DRIVER.get(path.partition("?")[0])
        return str(driver) if driver else super().translate_path(path)

    def log_message(self, *words) -> None:
        """Nothing: the browser's own messages are read."""


class Visitor:
    """Asks a browser about the pages of a site.

    Attributes
    ----------
    messages : what pages wrote to the console, errors of loading among them.
    """

    def __init__(self, site: Path, *flags: str):
        self.site, self.flags, self.messages = site, flags, []

    def ask(self, asked: list[dict]) -> list[dict]:
        """Checks (`page`, `width`) and walks (`page`, `clicks`), in their order; see `harness.html`."""
        handler = functools.partial(Handler, directory=str(self.site))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            query = urllib.parse.urlencode({"asked": json.dumps(asked)})
            dom = self.dom(f"http://127.0.0.1:{server.server_port}/harness.html?{query}")
            server.shutdown()
        found = re.search('<pre id="found">(.+?)</pre>', dom, re.DOTALL)
        assert found, f"the browser did not come to an end: {self.messages}\n{dom[-2000:]}"
        return json.loads(html.unescape(found.group(1)))

    def run(self, *flags: str, timeout: int) -> subprocess.CompletedProcess:
        """What the browser does with a new profile."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            command = [BROWSER, *QUIET, *self.flags, f"--user-data-dir={profile}", *flags]
            return subprocess.run(command, capture_output=True, text=True, timeout=timeout)

    def dom(self, url: str, budget: int = 600_000) -> str:
        """A page's DOM after its scripts have run, for at most `budget` virtual milliseconds."""
        flags = ["--enable-logging=stderr", "--v=0", "--window-size=1400,2000", f"--virtual-time-budget={budget}"]
        done = self.run(*flags, "--dump-dom", url, timeout=550)
        self.messages += [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
        return done.stdout

    def shot(self, url: str, name: str, width: int, height: int = 3000) -> Path:
        """A picture of a page."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        flags = [f"--window-size={width},{height}", f"--screenshot={SHOTS / name}", "--virtual-time-budget=15000"]
        self.run(*flags, url, timeout=120)
        return SHOTS / name
