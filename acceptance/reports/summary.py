"""Words that all reports share: the closing line, and the lines of checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from acceptance.core.finding import Finding, Waiver
from acceptance.core.grouping import grouped
from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import Message, english, known
from acceptance.core.plan import SITE, Due, Plan, Reduction, reductions_message
from acceptance.core.record import Outcome
from acceptance.core.verdict import CheckResult, Judgement, Verdict, covers
from acceptance.expect.limit_book import NO_ARCHITECTURE, NO_SHEET
from acceptance.journal.run import Run
from acceptance.machine import waiver_lines
from acceptance.reports import explanation, languages
from acceptance.reports.explanation import Headline
from acceptance.reports.locations import Locations
from acceptance.reports.text import one_line
from acceptance.wording import words

MOST_NAMES = 3


def closing_line(run: Run, language: Language = ENGLISH) -> str:
    """The closing line: the verdict, what made it so, what it does not cover, and the counts.

    It begins with the verdict's word and ends with the counts, whatever stands between.
    """
    word, text = run.verdict.verdict, counts(run.verdict, language)
    first = explanation.of_run(run, language)
    about = language("; ").join(paperwork(run, first, language))
    values = {"verdict": word, "counts": text}
    if first is not None:
        values["headline"] = first.line(language)
        if about:
            return language(
                "{verdict}: {headline} ({reservations}): {counts}", reservations=about, **values
            )
        return language("{verdict}: {headline}: {counts}", **values)
    if about:
        return language("{verdict} ({reservations}): {counts}", reservations=about, **values)
    return language("{verdict}: {counts}", **values)


def paperwork(run: Run, first: Headline | None, language: Language = ENGLISH) -> tuple[str, ...]:
    """What follows the headline: how many more findings there are, and the reservations."""
    more = () if first is None or not first.more else (more_findings(run, first, language),)
    return (*more, *reservations(run, language))


def more_findings(run: Run, first: Headline, language: Language = ENGLISH) -> str:
    """How many findings there are beside that of the headline."""
    if run.verdict.verdict == "FAIL":
        return language.ngettext("{n} more failure", "{n} more failures", first.more)
    return language.ngettext("{n} more finding", "{n} more findings", first.more)


class Caveat(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that the verdict does not cover, as the closing line of the run says it."""

    code: Annotated[str, Meta(pattern="^[a-z_]+$")]
    text: Annotated[str, Meta(min_length=1)]


def caveats(run: Run, language: Language = ENGLISH) -> tuple[Caveat, ...]:
    """Everything in the closing line that the verdict does not cover."""
    whole = _waived_whole(run.verdict, language)
    return (*_reserved(run, language), *([Caveat("subject_waived", whole)] if whole else ()))


def reservations(run: Run, language: Language = ENGLISH) -> tuple[str, ...]:
    """What the verdict does not cover, but for what was waived, which stands with the counts."""
    return tuple(one.text for one in _reserved(run, language))


def _reserved(run: Run, language: Language) -> tuple[Caveat, ...]:
    verdict = run.verdict
    passed = verdict.verdict == "PASS"
    about = []
    if passed and run.seal.old:
        about.append(Caveat("not_sealed", language("not sealed")))
    if run.troubles:
        about.append(Caveat("evidence_incomplete", language("the evidence is incomplete")))
    if verdict.shortened:
        about.append(Caveat("shortened", no_acceptance(verdict, language)))
    elif verdict.scope == "partial":
        about.append(Caveat("partial", language("partial: no acceptance of the machine")))
    if not verdict.inventory_declared:
        about.append(Caveat("inventory_not_declared", language("inventory not declared")))
    if run.start.limits is not None and (count := len(run.start.limits.looser)):
        looser = language.ngettext(
            "{n} limit looser by the site's sheets",
            "{n} limits looser by the site's sheets",
            count,
        )
        about.append(Caveat("looser_limits", looser))
    if passed and declares_no_gpu(verdict):
        about.append(Caveat("no_gpu_declared", language("no GPU declared")))
    if passed and (missing := not_judged(verdict, language)):
        about.append(Caveat("not_judged", missing))
    return tuple(about)


def scope(part: Verdict | Plan, language: Language = ENGLISH) -> str:
    """The scope of a run or a plan: full, partial, or partial (shortened)."""
    if part.shortened:
        return language("partial (shortened)")
    return language("partial") if part.scope == "partial" else language("full")


def no_acceptance(part: Verdict | Plan, language: Language = ENGLISH) -> str:
    """Why a shortened run is no acceptance."""
    return language(
        "{scope}, no acceptance of the machine: {what}",
        scope=scope(part, language),
        what=reductions(part.shortened, language),
    )


def reductions(shortened: Sequence[Reduction], language: Language = ENGLISH) -> str:
    """What is less than the profile's own, on one line; of many loads the first ones."""
    return words.message(reductions_message(shortened), language)


def counts(verdict: Verdict, language: Language = ENGLISH) -> str:
    """How many checks passed, failed, and so on."""
    unrun = [check for check in verdict.checks if was_not_run(check)]
    count = Counter(check.outcome for check in verdict.checks)
    count -= Counter(check.outcome for check in unrun)
    words: dict[Outcome, str] = {
        "pass": language("{number} passed", number=count["pass"]),
        "fail": language("{number} failed", number=count["fail"]),
        "error": language.ngettext("{n} error", "{n} errors", count["error"]),
        "skip": language("{number} skipped", number=count["skip"]),
    }
    each = [word for outcome, word in words.items() if count[outcome] or outcome == "pass"]
    if unrun:
        each.append(language("{number} not run", number=len(unrun)))
    if waived := len(verdict.of_kind("waived")):
        each.append(language("{number} waived", number=waived))
    parts = [language(", ").join(each)]
    if own := sum(check.session == SITE for check in verdict.checks):
        parts.append(
            language.ngettext("{n} check is the site's own", "{n} checks are the site's own", own)
        )
    if whole := _waived_whole(verdict, language):
        parts.append(whole)
    return language("; ").join(parts)


def _waived_whole(verdict: Verdict, language: Language) -> str | None:
    subjects = waived_whole(verdict)
    if not subjects:
        return None
    return language.ngettext(
        "{n} subject waived whole: {names}",
        "{n} subjects waived whole: {names}",
        len(subjects),
        names=language.listed(subjects),
    )


def declares_no_gpu(verdict: Verdict) -> bool:
    """Whether the machine is judged as one without GPUs: none was found, and none was due."""
    return any(
        one.due.measurement == "gpu_count" and one.value == 0 and not one.waived
        for check in verdict.checks
        for one in check.judged
    )


def is_not_run(finding: Finding) -> bool:
    """Whether a finding says that a check was left out on purpose.

    Another check ended the run before it, or its GPU had fallen off the bus. Whatever else kept a
    check from running is an error.
    """
    if finding.code == "never_ran":
        return finding.kind == "skip"
    reason = finding.values.get("reason")
    return isinstance(reason, Message) and reason.code == "gpus_fallen_off_before"


def was_not_run(check: CheckResult) -> bool:
    """Whether a check was left out on purpose, and nothing else is known of it."""
    return bool(check.findings) and all(map(is_not_run, check.findings))


def waived_whole(verdict: Verdict) -> tuple[str, ...]:
    """Subjects in which everything needed a waiver.

    That is each value with a limit, and each measurement that was not taken.
    """
    subjects = grouped(
        (check.id.partition(".")[0], one.waived)
        for check in verdict.checks
        for one in check.judged
        if one.due.limit is not None or one.value is None
    )
    return tuple(subject for subject, waived in subjects.items() if all(waived))


def not_judged(verdict: Verdict, language: Language = ENGLISH) -> str | None:
    """How many measurements of which GPUs have no limit because the model is unknown.

    None if there are none.
    """
    found = [
        judged.due
        for check in verdict.checks
        for judged in check.judged
        if judged.due.limit is None
        and judged.value is not None
        and judged.due.origin in (NO_SHEET, NO_ARCHITECTURE)
    ]
    if not found:
        return None
    names = list(dict.fromkeys(str(name) for due in found for name in due.component.ends))
    where = (
        language.listed(names)
        if len(names) <= MOST_NAMES
        else language("{number} GPUs", number=len(names))
    )
    return language.ngettext(
        "{n} figure of {where} not judged: no model sheet gives a limit",
        "{n} figures of {where} not judged: no model sheet gives a limit",
        len(found),
        where=where,
    )


def finding_lines(findings: Iterable[Finding], places: Locations) -> Iterator[str]:
    """Findings as lines; those with the same details share them, below the last of them.

    Below these are the lines of a waiver, where a finding's message recommends one.
    """
    for group, below in explanation.group_findings(findings, places):
        yield from (one_line(words.of(finding)) for finding in group)
        yield from below
        if waiver := waiver_lines.recommended(group):
            yield f"{to_waive(ENGLISH)}:"
            yield from waiver


def to_waive(language: Language) -> str:
    """What to do with the lines of a waiver that follow."""
    return language("To waive this, add to the machine file")


def provenance(run: Run, language: Language = ENGLISH) -> dict[str, str]:
    """Where the run came from, by key: versions, host, image, the last self-test, the evidence.

    Of a run of a version without seals the last one says that it is not sealed.
    """
    found = dict(run.verdict.provenance)
    if run.start.selftest is not None:
        found["selftest"] = words.text(run.start.selftest, language)
    if run.seal.digest is not None:
        found["evidence"] = run.seal.digest
    elif run.seal.old:
        found["evidence"] = language("not sealed")
    return found


def stale_waivers(verdict: Verdict) -> tuple[Message, ...]:
    """The waivers that the run did not need, with their reasons."""
    return tuple(_stale(waiver) for waiver in verdict.waivers if _is_stale(waiver, verdict.checks))


def _stale(waiver: Waiver) -> Message:
    what, about = waiver.measurement or waiver.skip or "", known(component=waiver.component)
    return Message(
        english("stale_waiver", "{what}[ on {component}]: {reason}"),
        {"what": what, "reason": waiver.reason, **about},
    )


def _is_stale(waiver: Waiver, checks: Sequence[CheckResult]) -> bool:
    """Whether everything that a waiver covers was measured and passed without it.

    A measurement that was not taken says nothing about a waiver.
    """
    spoken_of = [
        one for check in checks for one in check.judged if covers(waiver, check.id, one.due)
    ]
    passed = (
        one.value is not None and all(finding.kind == "warn" for finding in one.findings)
        for one in spoken_of
    )
    return bool(spoken_of) and all(passed)


def limit_text(judged: Judgement) -> str:
    """The limit of a measurement, or that there is none."""
    due = judged.due
    return words.limit_text(due.limit) if due.limit else "not judged"


def value_text(judged: Judgement) -> str:
    """A value with its unit, or that there is none."""
    return (
        words.quantity(judged.value, judged.due.unit)
        if judged.value is not None
        else "not measured"
    )


def basis_text(judged: Judgement, language: Language = ENGLISH) -> str:
    """Where the limit comes from, or why there is none."""
    due = judged.due
    told = (
        language(
            "{basis} ({origin})",
            basis=languages.said(due.limit.basis, language),
            origin=languages.said(due.origin, language),
        )
        if due.limit
        else unlimited_text(due, language)
    )
    return one_line(with_ceiling(told, due, language))


def with_ceiling(told: str, due: Due, language: Language) -> str:
    """A text about a limit, and what is possible at best."""
    low, high = (due.ceiling.low, due.ceiling.high) if due.ceiling else (None, None)
    if high is not None:
        most = words.quantity(high, due.unit)
        told = language("{told}; no more than {most} is possible", told=told, most=most)
    if low is not None:
        least = words.quantity(low, due.unit)
        told = language("{told}; no less than {least} is possible", told=told, least=least)
    return told


def unlimited_text(due: Due, language: Language = ENGLISH) -> str:
    """Why there is no limit."""
    return languages.said(due.unlimited, language) if due.unlimited else language("no limit")
