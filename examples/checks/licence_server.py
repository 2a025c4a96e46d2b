"""Does the licence server answer?"""

import socket
import time

import pytest

TRIES = 5
TIMEOUT_S = 3.0  # of one connection


@pytest.mark.costs(TRIES * TIMEOUT_S)
@pytest.mark.measures("site_licence_connect")
def test_answers(check, settings):
    """The licence server takes connections, and the slowest of five is fast enough."""
    if not settings["server"]:
        pytest.skip('no licence server is named: set server = "HOST:PORT" in licence_server.toml')
    host, _, port = settings["server"].rpartition(":")
    check("site_licence_connect", max(connect(host, int(port)) for _ in range(TRIES)))


def connect(host, port):
    """Seconds until a connection is made. Raises OSError where there is none."""
    begin = time.monotonic()
    try:
        with socket.create_connection((host, port), timeout=TIMEOUT_S):
            return time.monotonic() - begin
    except OSError as error:
        raise ConnectionError(
            f"no connection to {host}:{port} ({error}): start the licence server, or open its port "
            "in the firewall"
        ) from error
