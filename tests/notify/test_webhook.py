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

from acceptance.core.message import Message
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
    """The code of what kept it from being told, without and with what was tried in vain."""
    failure = webhook.post(Webhook(url, secret), BODY, run_id, Deadline.after(seconds))
    if failure is None:
        return None
    assert "secret" not in words.message(failure), "the address is the key to it"
    times, what = failure.values.get("times", 1), failure.values.get("what", failure)
    assert isinstance(what, Message)
    status = what.values.get("status") or ""
    return f"{what.code} {status}".strip() + ("" if times == 1 else f" {times} times")


@each(
    "secret, run_id, told",
    [
        (None, "run-1", "run-1"),
        (b"0123456789abcdef", "run-1", "run-1"),
        (None, f"run\r\nX-Evil: 1\u4e2d{'x' * 500}", None),
    ],
    told=["unsigned", "signed, so that a receiver can tell who posted", "no header of its own"],
)
def test_what_is_posted(secret: bytes | None, run_id: str, told: str | None) -> None:
    with receiving(204) as there:
        assert post(there.url, secret, run_id=run_id) is None
    ((path, headers, body),) = there.seen
    assert (path, body) == ("/services/T0/secret?key=secret", BODY)
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"].startswith("rigproof/")
    run = headers["X-Rigproof-Run"]
    assert (run == told) if told else (len(run) == 200)
    sign = secret and f"sha256={hmac.new(secret, BODY, hashlib.sha256).hexdigest()}"
    assert headers.get("X-Rigproof-Signature-256") == sign
    assert "X-Evil" not in headers


def test_the_signature_is_the_one_that_the_page_shows() -> None:
    """RFC 4231, test case 2."""
    told = webhook.signature(b"Jefe", b"what do ya want for nothing?")
    assert told == "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"


Answer = int | tuple[int, dict[str, str]]


def later(seconds: str) -> Answer:
    return 503, {"Retry-After": seconds}


@each(
    "answers, said, times",
    [
        *(((status, status, 200), None, 3) for status in (500, 429)),
        ((503,), "answered 503 4 times", 4),
        *(((status,), f"answered_refusal {status}", 1) for status in (400, 410)),
        *(
            ((later(wish),), "answered 503 4 times", 4)
            for wish in ("9999999999999", "-1", "\u00b2".encode().decode("latin-1"))
        ),
        # A wish that would take longer than there is time.
        ((later("3600"),), "answered 503", 1),
    ],
)
def test_a_receiver_in_trouble_is_tried_again_and_a_refusal_is_final(
    answers: tuple[Answer, ...], said: str | None, times: int
) -> None:
    with receiving(*answers) as there:
        assert post(there.url) == said
    assert [headers["X-Rigproof-Run"] for _, headers, _ in there.seen] == ["run-1"] * times


@each("status", [301, 303, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with receiving(200) as other, receiving((status, {"Location": other.url})) as there:
        assert post(there.url) == f"answered_redirect {status}"
    assert (len(there.seen), other.seen) == (1, [])


def test_the_receivers_own_wish_for_a_pause_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    webhook._wait(0.05)
    assert time.monotonic() - began >= 0.05
    waited: list[float] = []
    monkeypatch.setattr(webhook, "_wait", waited.append)
    with receiving((429, {"Retry-After": "7"}), 200) as there:
        assert post(there.url) is None
    assert waited == [7.0]
    with receiving(later("20")) as there:  # the deadline is over before the pause
        assert post(there.url, seconds=10.0) == "answered 503"


def test_nobody_listens_or_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/services/secret"
        assert post(url) == "not_reached 4 times"
    monkeypatch.setattr(webhook, "ANSWER_S", 0.05)
    with receiving(200, hang=True) as there:
        assert post(there.url) == "no_answer_in_time 4 times"
    assert len(there.seen) == 4
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    assert post("https://127.0.0.1:9/services/secret") == "nothing_sent"


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("no_answer_in_time", {"hang": True}),
        ("answer_endless", {"drip": True}),
    ],
)
def test_the_deadline_holds_whatever_the_receiver_does(
    code: str, answer: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "GIVEN_UP_S", 0.1)
    with receiving(200, **answer) as there:
        began = time.monotonic()
        assert known(post(there.url, seconds=0.2)).partition(" ")[0] in (code, "answer_endless")
        assert time.monotonic() - began < 20.0  # of a machine that is busy with other things
        assert there.seen


def test_a_certificate_that_nobody_signed(tls: Callable[[], int]) -> None:
    assert post(f"https://127.0.0.1:{tls()}/services/secret") == "certificate_unverified"
