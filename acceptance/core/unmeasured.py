"""Why something was not measured: every skip says which of these it is."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from acceptance.core.message import Text


class Unmeasured(StrEnum):
    """Why a measurement was not taken; the value is also the code of its finding.

    NOT_OFFERED: this part cannot have it (a virtual disk has no SMART report). NOT_PERMITTED:
    rigproof may not read it as it was started and set up (no root, a program that is not
    installed). NO_ANSWER: it failed to answer (an I/O error, a reading that was there before);
    no waiver covers it, and a reason that is not known is this one. AFTER_FAULT: something else is
    at fault, which has a finding of its own, and this was left out because of it.
    """

    NOT_OFFERED = "not_offered"
    NOT_PERMITTED = "not_permitted"
    NO_ANSWER = "no_answer"
    AFTER_FAULT = "after_fault"

    @property
    def waivable(self) -> bool:
        """Whether a waiver of the machine file may cover it."""
        return self is not Unmeasured.NO_ANSWER


class Gap(NamedTuple):
    """A measurement that was not taken: why, and the reason in words, with the cure."""

    why: Unmeasured
    reason: Text


def not_offered(reason: Text) -> Gap:
    """A gap because this part cannot have it."""
    return Gap(Unmeasured.NOT_OFFERED, reason)


def not_permitted(reason: Text) -> Gap:
    """A gap because rigproof may not read it; the reason has the cure."""
    return Gap(Unmeasured.NOT_PERMITTED, reason)


def no_answer(reason: Text) -> Gap:
    """A gap because it failed to answer."""
    return Gap(Unmeasured.NO_ANSWER, reason)


def after_fault(reason: Text) -> Gap:
    """A gap because of something else, which has a finding of its own."""
    return Gap(Unmeasured.AFTER_FAULT, reason)
