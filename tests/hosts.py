"""An HTTP server on this machine that behaves, well or badly, as a test asks."""

import hashlib
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """One file, and how it is served.

    Attributes
    ----------
    data : the body. kind : its Content-Type.
    tag : ETag; by default it belongs to the data, None for none. modified : Last-Modified.
    ranges : whether the rest of a file can be asked for. careless : `If-Range` is ignored.
    first : (status, headers) or (status, headers, body) of the first answers, before the file is served.
    cut : hang up after this many bytes of a body. length : how the end is stated: "stated", "chunked" or "missing".
    headers : of the answer with the file; they take the place of those that it would have.
    agents : only a User-Agent that starts like this gets the file; others get 403.
    delays : how many requests get no answer at all. pause : seconds after every 1,000 bytes.
    """

    data: bytes
    kind: str = "application/octet-stream"
    tag: str | None = ""
    modified: str | None = None
    ranges: bool = True
    careless: bool = False
    first: list = field(default_factory=list)
    cut: int | None = None
    length: str = "stated"
    headers: dict = field(default_factory=dict)
    agents: str = ""
    delays: int = 0
    pause: float = 0

    def validators(self) -> dict[str, str]:
        tag = f'"{hashlib.sha256(self.data).hexdigest()}"' if self.tag == "" else self.tag
        return {k: v for k, v in (("ETag", tag), ("Last-Modified", self.modified)) if v}


NOTHING = Served(b"")


class Host:
    """Files by path. `asked` lists (path, Range) of every request."""

    def __init__(self):
        self.files: dict[str, Served] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.awake = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            host = self
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.close_connection = True
                served, start = self.host.files.get(self.path), self.headers.get("Range")
                self.host.asked.append((self.path, start))
                if served is None:
                    return self.send_error(404, "Not Found")
                if served.delays:
                    served.delays -= 1
                    return self.host.awake.wait(10)
                if not self.headers["User-Agent"].startswith(served.agents):
                    return self.send_error(403, "Forbidden")
                if served.first:
                    status, headers, *body = served.first.pop(0)
                    return self._answer(status, headers, b"".join(body))
                self._serve(served, int(start.removeprefix("bytes=").rstrip("-")) if start else 0)

            def _serve(self, served: Served, start: int):
                same = self.headers.get("If-Range") in served.validators().values()
                start = start if served.ranges and (same or served.careless) else 0
                if start and start >= len(served.data):
                    return self._answer(416, {}, b"")
                headers = {"Content-Type": served.kind} | served.validators()
                if start:
                    headers["Content-Range"] = f"bytes {start}-{len(served.data) - 1}/{len(served.data)}"
                body = served.data[start:]
                self._answer(206 if start else 200, headers, body, served)

            def _answer(self, status, headers, body, served=NOTHING):
                ending = {"stated": ("Content-Length", str(len(body))), "chunked": ("Transfer-Encoding", "chunked")}
                self.send_response(status)
                headers = headers | dict([ending[served.length]] if served.length in ending else []) | served.headers
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if served.length == "chunked":
                    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
                body = body[: served.cut]
                step = 1000 if served.pause else max(len(body), 1)
                for at in range(0, len(body), step):
                    self.wfile.write(body[at : at + step])
                    self.host.awake.wait(served.pause)

            def log_message(self, *args):
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                """A client that went away is no event."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def serve(self, path: str, data: bytes, **how) -> Served:
        self.files[path] = Served(data, **how)
        return self.files[path]

    def requests(self, path: str) -> list[str | None]:
        """Ranges of the requests for a file."""
        return [start for asked, start in self.asked if asked == path]


@contextmanager
def running():
    """A host that runs until the block ends."""
    host = Host()
    thread = threading.Thread(target=host.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield host
    finally:
        host.awake.set()
        host.server.shutdown()
        thread.join()
        host.server.server_close()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
