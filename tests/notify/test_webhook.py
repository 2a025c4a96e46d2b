"""The webhook against a receiver on this machine; all of it is bounded."""

from __future__ import annotations

import hashlib
import hmac
import socket
import time
from collections.abc import Callable

import pytest
import requests  # noqa: F401 (the product imports it when it sends, which would be in the time measured)
from cases import each
from known import known
from receiver import receiving

from acceptance.notify import webhook
from acceptance.notify.targets import Webhook
from acceptance.process.deadline import Deadline
from acceptance.wording import words

BODY = b'{"verdict": "FAIL"}'


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses worth waiting for, and no proxy of the environment."""
    monkeypatch.setattr(webhook, "PAUSES_S", (0.01, 0.01, 0.01))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


def post(
    url: str, secret: bytes | None = None, seconds: float = 30.0, run_id: str = "run-1"
) -> str | None:
    failure = webhook.post(Webhook(url, secret), BODY, run_id, Deadline.after(seconds))
    said = None if failure is None else words.message(failure)
    assert said is None or "secret" not in said, "the address is the key to it"
    return said


def test_what_is_posted() -> None:
    with receiving(204) as there:
        assert post(there.url) is None
    ((path, headers, body),) = there.seen
    assert path == "/services/T0/secret?key=secret"
    assert body == BODY
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Rigproof-Run"] == "run-1"
    assert headers["User-Agent"].startswith("rigproof/")
    assert "X-Rigproof-Signature-256" not in headers


def test_a_receiver_can_tell_who_posted() -> None:
    with receiving(200) as there:
        assert post(there.url, b"0123456789abcdef") is None
    ((_, headers, body),) = there.seen
    expected = hmac.new(b"0123456789abcdef", body, hashlib.sha256).hexdigest()
    assert headers["X-Rigproof-Signature-256"] == f"sha256={expected}"


def test_the_signature_is_the_one_that_the_page_shows() -> None:
    """RFC 4231, test case 2."""
    told = webhook.signature(b"Jefe", b"what do ya want for nothing?")
    assert told == "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"


GIVEN_UP = ", 4 times: see whether anything listens there"
REFUSED = "it answered {}: look at the address and its key"


@each(
    "answers, said, times",
    [
        *(((status, status, 200), None, 3) for status in (500, 502, 503, 429)),
        ((503,), f"it answered 503{GIVEN_UP}", 4),
        *(((status,), REFUSED.format(status), 1) for status in (400, 401, 403, 404, 410)),
        *(
            (((503, {"Retry-After": wish}),), f"it answered 503{GIVEN_UP}", 4)
            for wish in ("9999999999999", "soon", "-1", "\u00b2".encode().decode("latin-1"))
        ),
        # A wish that would take longer than there is time.
        (
            ((503, {"Retry-After": "3600"}),),
            "it answered 503: see whether anything listens there",
            1,
        ),
    ],
)
def test_a_receiver_in_trouble_is_tried_again_and_a_refusal_is_final(
    answers: tuple[int | tuple[int, dict[str, str]], ...], said: str | None, times: int
) -> None:
    with receiving(*answers) as there:
        assert post(there.url) == said
    assert [headers["X-Rigproof-Run"] for _, headers, _ in there.seen] == ["run-1"] * times


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with receiving(200) as other, receiving((status, {"Location": other.url})) as there:
        said = post(there.url)
    assert said == (
        f"it answered {status}, a redirect, which is not followed: give the address that it "
        "leads to"
    )
    assert (len(there.seen), other.seen) == (1, [])


def test_the_receivers_own_wish_for_a_pause_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(webhook, "_wait", waited.append)
    with receiving((429, {"Retry-After": "7"}), 200) as there:
        assert post(there.url) is None
    assert waited == [7.0]


def test_a_pause_is_waited_for() -> None:
    began = time.monotonic()
    webhook._wait(0.05)
    assert time.monotonic() - began >= 0.05


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/services/secret"
        assert post(url) == (
            "it could not be reached (Connection refused), 4 times: see whether anything "
            "listens there"
        )


def test_who_comes_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "ANSWER_S", 0.2)
    with receiving(200, hang=True) as there:
        assert (
            post(there.url)
            == "it did not answer in time, 4 times: see whether anything listens there"
        )
    assert len(there.seen) == 4


@pytest.mark.parametrize("kind", ["hang", "drip"])
def test_the_deadline_holds_whatever_the_receiver_does(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "GIVEN_UP_S", 0.1)
    with receiving(200, hang=kind == "hang", drip=kind == "drip") as there:
        began = time.monotonic()
        said = post(there.url, seconds=0.2)
        assert time.monotonic() - began < 20.0  # of a machine that is busy with other things
        assert there.seen
    assert known(said).startswith(
        ("it did not come to the end of its answer in time", "it did not answer in time")
    )


def test_a_deadline_that_is_over_before_the_pause() -> None:
    with receiving((503, {"Retry-After": "20"})) as there:
        assert (
            post(there.url, seconds=10.0) == "it answered 503: see whether anything listens there"
        )


def test_a_certificate_that_nobody_signed(tls: Callable[[], int]) -> None:
    said = known(post(f"https://127.0.0.1:{tls()}/services/secret"))
    assert said.startswith(
        "its certificate could not be verified: give the authority's file in REQUESTS_CA_BUNDLE"
    )


def test_certificates_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    said = post("https://127.0.0.1:9/services/secret")
    assert said == "nothing could be sent (OSError): look at the address and at REQUESTS_CA_BUNDLE"


def test_a_run_id_from_a_strange_journal_is_no_header_of_its_own() -> None:
    with receiving(200) as there:
        assert post(there.url, run_id="run\r\nX-Evil: 1\u4e2d" + "x" * 500) is None
    ((_, headers, _),) = there.seen
    assert "X-Evil" not in headers
    assert len(headers["X-Rigproof-Run"]) == 200
