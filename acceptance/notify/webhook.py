"""Post a verdict to a webhook.

Failures that may pass are retried within one deadline. Messages hold nothing secret.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
import threading

from acceptance.core.message import Message, english, known
from acceptance.journal import provenance
from acceptance.notify.targets import Webhook
from acceptance.process.deadline import Deadline
from acceptance.wording.errors import behind

CONNECT_S, ANSWER_S = 5.0, 15.0  # of one attempt
# Pauses between attempts, doubled each time: long enough for a receiver to restart, and short
# enough for the minute that notices.py allows.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0)
SIGNATURE = "X-Rigproof-Signature-256"
DELIVERY = "X-Rigproof-Run"
GIVEN_UP_S = 1.0  # past the deadline: an attempt that ends with it may still report why it failed
_TOO_MANY = 429


def signature(secret: bytes, body: bytes) -> str:
    """The value of the signature header: HMAC-SHA256 of the body.

    It is `sha256=` and 64 hexadecimal digits.
    """
    return f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"


def headers(hook: Webhook, body: bytes, run_id: str) -> dict[str, str]:
    """The HTTP headers of a post.

    The run's id is the same at each attempt, so that a receiver can recognize a repeated delivery.
    """
    fields = {
        "Content-Type": "application/json",
        "User-Agent": f"rigproof/{provenance.version()}",
        DELIVERY: "".join(letter for letter in run_id if letter.isascii() and letter.isprintable())[
            :200
        ],
    }
    return fields if hook.secret is None else {**fields, SIGNATURE: signature(hook.secret, body)}


def post(hook: Webhook, body: bytes, run_id: str, deadline: Deadline) -> Message | None:
    """Post a body; returns why it did not arrive, or None.

    An answer from 200 to 299 means that it arrived. It returns by the deadline whatever the
    receiver does: name resolution, and an answer that trickles in, have no timeout in the library.
    Hence the thread.
    """
    found: list[Message | None] = []
    fields = headers(hook, body, run_id)  # not in the thread: the version may be git's
    thread = threading.Thread(
        target=lambda: found.append(_tries(hook, body, fields, deadline)), daemon=True
    )
    thread.start()
    thread.join(deadline.remaining() + GIVEN_UP_S)
    return (
        found[0]
        if found
        else Message(
            english(
                "answer_endless",
                "it did not come to the end of its answer in time: see what listens there",
            )
        )
    )


def _tries(
    hook: Webhook, body: bytes, fields: dict[str, str], deadline: Deadline
) -> Message | None:
    failed: Message | None = None
    for tried, pause in enumerate((*PAUSES_S, None), start=1):
        failure, after_s = _once(hook, body, fields, deadline)
        if failure is None or after_s is None:
            return failure
        times = tried if tried > 1 else None
        failed = Message(
            english("tried_in_vain", "{what}[, {times} times]: see whether anything listens there"),
            known(what=failure, times=times),
        )
        if pause is None or max(pause, after_s) >= deadline.remaining():
            break
        _wait(max(pause, after_s))
    return failed


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def _once(
    hook: Webhook, body: bytes, fields: dict[str, str], deadline: Deadline
) -> tuple[Message | None, float | None]:
    """Why one attempt failed, None where it did not.

    Where a retry can help, with the least seconds until then.
    """
    # Imported here: the import takes a tenth of a second, and most runs post nothing.
    import requests

    left = max(0.1, deadline.remaining())
    try:
        # Redirects are not followed: that would send the verdict and its signature to whatever host
        # the answer names.
        with requests.post(
            hook.url,
            data=body,
            headers=fields,
            timeout=(min(CONNECT_S, left), min(ANSWER_S, left)),
            allow_redirects=False,
            stream=True,  # do not read the answer's body
        ) as answer:
            return _answer_of(answer.status_code, answer.headers.get("Retry-After", ""))
    except requests.exceptions.Timeout:
        return Message(english("no_answer_in_time", "it did not answer in time")), 0.0
    except requests.exceptions.RequestException as error:
        # The library's own message quotes the whole address: only the causes below it are printed.
        causes = [
            cause
            for cause in behind(error)
            if not type(cause).__module__.startswith(("requests", "urllib3"))
        ]
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
            return Message(
                english(
                    "certificate_unverified",
                    "its certificate could not be verified: give the authority's file in "
                    "REQUESTS_CA_BUNDLE",
                )
            ), None
        why = next(
            (cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror),
            None,
        )
        return Message(
            english("not_reached", "it could not be reached[ ({why})]"), known(why=why)
        ), 0.0
    # an address that the library cannot use, or missing certificate files
    except (ValueError, OSError) as error:
        return Message(
            english(
                "nothing_sent",
                "nothing could be sent ({error}): look at the address and at REQUESTS_CA_BUNDLE",
            ),
            {"error": type(error).__name__},
        ), None


def _answer_of(status: int, retry_after: str) -> tuple[Message | None, float | None]:
    if 200 <= status < 300:
        return None, None
    if 300 <= status < 400:
        return Message(
            english(
                "answered_redirect",
                "it answered {status}, a redirect, which is not followed: give the address that "
                "it leads to",
            ),
            {"status": status},
        ), None
    if status == _TOO_MANY or status >= 500:
        told = retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < 6
        return Message(english("answered", "it answered {status}"), {"status": status}), float(
            retry_after
        ) if told else 0.0
    return Message(
        english("answered_refusal", "it answered {status}: look at the address and its key"),
        {"status": status},
    ), None
