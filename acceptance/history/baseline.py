"""A machine's baseline: facts and measurements of the accepted run, under a seal.

A baseline never makes a run pass. A certificate whose content was changed is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import msgspec

from acceptance.baseline import facts
from acceptance.core import parts
from acceptance.core.grouping import grouped
from acceptance.core.machine_facts import MachineFacts
from acceptance.core.message import Message, english
from acceptance.core.parts import Component
from acceptance.core.plan import Due, Plan, reductions_message
from acceptance.core.record import Entry, Measured, records
from acceptance.core.verdict import Judgement, Verdict
from acceptance.diagnosis.gravity import by_gravity
from acceptance.expect import measurements
from acceptance.history.errors import HistoryError
from acceptance.history.noise import NoiseBook
from acceptance.journal.run import Run
from acceptance.wording import words
from acceptance.wording.errors import WordedUserError

FORMAT = 1
# The codes of a plan's gaps where earlier runs cannot be read, so that this run cannot be compared
# with them. Such a gap is no shortfall of the run itself.
NOT_COMPARED = {"changes_unknown", "nightly_changes_unknown"}


class BaselineValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One measurement of one component, in `unit`.

    `serial` is the part's own UUID or serial number, if the run recorded it.

    `among` is the range of the run's own values, if there are several. `spread` is how far two runs
    of one sound part may lie apart in general; `basis` says where that comes from. It is None if
    two runs cannot be compared, and `basis` says why.
    """

    check: str
    measurement: str
    component: Component
    unit: str
    value: float
    serial: str | None
    among: float | None
    spread: float | None
    basis: str


class FormerBaseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The certificate that this one replaced: its run, when it was accepted, and its seal."""

    run_id: str
    accepted_utc: str
    sha256: str


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of the run that accepted a machine.

    `folder` is the run's folder, `accepted_utc` the time when it was made the baseline, and
    `rigproof` the version that wrote the certificate.

    `waived` are the shortfalls accepted with the machine. `set_aside` are the failures and errors
    of the run against the former baseline and the nights before, and `warnings` its warnings.
    `provenance` is the run's own: driver, image, versions. `era` holds the facts on which the
    measurements depend: with other facts, measurements are of another era.
    """

    machine_id: str
    folder: str
    accepted_utc: str
    rigproof: str
    profile: str
    inventory_declared: bool
    machine: MachineFacts = msgspec.field(name="birth")
    figures: tuple[BaselineValue, ...]
    waived: tuple[str, ...]
    set_aside: tuple[str, ...]
    warnings: tuple[str, ...]
    provenance: dict[str, str]
    era: tuple[tuple[str, str], ...]
    replaces: FormerBaseline | None = None

    def figure(self, check: str, measurement: str, component: Component) -> BaselineValue | None:
        """The measurement of a component by that run's name for it; None if there is none."""
        found = (
            one
            for one in self.figures
            if (one.check, one.measurement, one.component) == (check, measurement, component)
        )
        return next(found, None)


class _Sealed(msgspec.Struct, frozen=True):
    rigproof_baseline: int
    sha256: str
    certificate: msgspec.Raw


def make(
    run: Run,
    book: NoiseBook,
    *,
    folder: str,
    accepted_utc: str,
    rigproof: str,
    era: tuple[tuple[str, str], ...],
    replaces: FormerBaseline | None = None,
    anew: bool = False,
) -> Certificate:
    """The certificate of a run.

    With `anew` the run is not compared with the baseline and the nights in its plan: the machine
    was changed, and is to be accepted as it is. Limits apply as ever, and what is ignored is
    recorded in `set_aside`.

    Raises WordedUserError for a run that is not a full PASS.
    """
    verdict = run.with_plan(_without_past(run.plan)).verdict if anew else run.verdict
    _require_pass(verdict)
    machine = facts.facts_of(run.entries)
    if machine is None:
        raise WordedUserError(
            english(
                "run_without_inventory",
                "holds no inventory, so it does not tell what the machine is made of: run "
                "`rigproof accept` again",
            )
        )
    virtual = bool(run.inventory.cpu.virtualised)
    return Certificate(
        machine_id=run.start.machine_id,
        folder=folder,
        accepted_utc=accepted_utc,
        rigproof=rigproof,
        profile=verdict.profile,
        inventory_declared=verdict.inventory_declared,
        machine=machine,
        figures=tuple(_figures(verdict, run.entries, book, virtual)),
        waived=tuple(map(words.of, verdict.of_kind("waived"))),
        # By itself the run is a PASS, so every other failure or error comes from its past.
        set_aside=tuple(map(words.of, run.verdict.of_kind("fail", "error"))),
        warnings=tuple(map(words.of, verdict.of_kind("warn"))),
        provenance=verdict.provenance,
        era=era,
        replaces=replaces,
    )


def _require_pass(verdict: Verdict) -> None:
    """Raise WordedUserError unless the whole machine passed."""
    if verdict.verdict != "PASS":
        reasons = verdict.of_kind("fail") or verdict.of_kind("error", "skip")
        first, *others = by_gravity(reasons, measurements.shipped().by_name)
        why, more = words.as_message(first), len(others) or None
        raise WordedUserError(
            english(
                "run_not_passed",
                "is {verdict}, and only a run that passed can be the baseline ({why}[, and {more} "
                "more]): fix that, then run `rigproof accept` again",
            ),
            verdict=verdict.verdict,
            why=why,
            more=more,
        )
    if verdict.shortened:
        raise WordedUserError(
            english(
                "run_shortened",
                "was shortened ({loads}), and only a run at the profile's own load becomes a "
                "baseline: run `rigproof accept` again without a shorter --burn, and without a "
                "smaller memory.test_share or write_gib in the machine file",
            ),
            loads=reductions_message(verdict.shortened),
        )
    if verdict.scope != "full":
        raise WordedUserError(
            english(
                "run_partial",
                "tested a part of the machine (--only or --gpus), and only a whole run can be the "
                "baseline: run `rigproof accept` again without them",
            )
        )


def _without_past(plan: Plan) -> Plan:
    """The same plan without a baseline and nights before, and without the gaps that these left."""
    gaps = tuple(
        gap for gap in plan.gaps if not (isinstance(gap, Message) and gap.code in NOT_COMPARED)
    )
    return msgspec.structs.replace(plan.without_past(), gaps=gaps)


def _figures(
    verdict: Verdict, entries: Sequence[Entry], book: NoiseBook, virtual: bool
) -> Iterator[BaselineValue]:
    values = grouped(
        ((body.check, body.measurement, body.component), body.value)
        for _, body in records(entries, Measured)
        if body.value is not None
    )
    for check in verdict.checks:
        for judged in check.judged:
            if judged.value is not None:
                own = values[check.id, judged.due.measurement, judged.due.component]
                yield _figure(check.id, judged, judged.value, own, book, virtual)


def _figure(
    check: str,
    judged: Judgement,
    value: float,
    own: Sequence[float],
    book: NoiseBook,
    virtual: bool,
) -> BaselineValue:
    due: Due = judged.due
    among = max(own) - min(own) if len(own) > 1 else None
    spread = book.spread(due.measurement, due.unit, same_part=True, virtual=virtual)
    why = book.incomparable(due.measurement)
    allowed = None if why else spread.between(value, value)
    basis = why or spread.basis
    return BaselineValue(
        check, due.measurement, due.component, due.unit, value, judged.serial, among, allowed, basis
    )


def seal(content: bytes) -> str:
    """SHA-256 of a JSON document's content, whatever its white space and order of keys.

    Raises ValueError if it is not JSON.
    """
    return hashlib.sha256(
        msgspec.json.encode(msgspec.json.decode(content), order="deterministic")
    ).hexdigest()


def encode_certificate(certificate: Certificate) -> bytes:
    """The file of a certificate: indented JSON."""
    content = msgspec.json.encode(certificate, enc_hook=parts.encode)
    return (
        msgspec.json.format(
            msgspec.json.encode(_Sealed(FORMAT, seal(content), msgspec.Raw(content))), indent=1
        )
        + b"\n"
    )


def decode_certificate(file: bytes) -> tuple[Certificate, str]:
    """The certificate in a file, and its seal.

    The seal is checked before anything else is used. Raises HistoryError.
    """
    try:
        found = msgspec.json.decode(file, type=_Sealed)
        if found.rigproof_baseline > FORMAT:
            raise HistoryError(
                english(
                    "certificate_newer",
                    "is written in format {found}, newer than this rigproof reads ({known})",
                ),
                found=found.rigproof_baseline,
                known=FORMAT,
            )
        if seal(bytes(found.certificate)) != found.sha256:
            raise HistoryError(
                english(
                    "seal_broken", "is not what was sealed: somebody or something has changed it"
                )
            )
        certificate = msgspec.json.decode(
            found.certificate, type=Certificate, dec_hook=parts.decode
        )
        return certificate, found.sha256
    except (ValueError, RecursionError) as error:  # not JSON, or of another shape
        raise HistoryError(
            english("no_certificate", "is no certificate that can be read ({why})"), why=str(error)
        ) from error
