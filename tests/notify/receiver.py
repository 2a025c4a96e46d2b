"""A receiver of webhooks on this machine, which answers what it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """`answers` are statuses with headers, one a request, the last of them for all that follow;
    `seen` is what came.
    """

    answers: list[tuple[int, dict[str, str]]]
    seen: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    silent: threading.Event = field(default_factory=threading.Event)
    drip: bool = False
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/secret?key=secret"


@contextmanager
def receiving(
    *answers: int | tuple[int, dict[str, str]], hang: bool = False, drip: bool = False
) -> Iterator[Receiver]:
    """A receiver; with `hang` it never answers, with `drip` its answer comes letter by letter
    and never ends.
    """
    found = Receiver([one if isinstance(one, tuple) else (one, {}) for one in answers], drip=drip)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.seen.append((self.path, dict(self.headers), body))
            if hang:
                found.silent.wait(60)
                return
            if drip:
                while not found.silent.wait(0.05):
                    self.wfile.write(b"H")
                    self.wfile.flush()
                return
            status, headers = found.answers[min(len(found.seen), len(found.answers)) - 1]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            found.seen.append((self.path, dict(self.headers), b""))
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """It says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            """Who posted may have gone: that is what some tests are about."""

    with Server(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_address[1]
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.002}, daemon=True
        )
        thread.start()
        try:
            yield found
        finally:
            found.silent.set()
            server.shutdown()
            thread.join(10)
