"""A fleet on the terminal: what is missing first, then what failed, and the counts last."""

from __future__ import annotations

from acceptance.core.language import ENGLISH, Language
from acceptance.fleet.night import Judged, Standing
from acceptance.reports.terminal import Terminal
from acceptance.wording import words

_STYLE = {"PASS": "green", "FAIL": "red", "UNJUDGED": "yellow"}


def show(judged: Judged, screen: Terminal, language: Language = ENGLISH) -> None:
    """Print each machine that did not pass, what could not be read, and the closing line."""
    for one in judged.due:
        if one.verdict != "PASS":
            screen.say(_line(one, language), _STYLE[one.verdict])
    # The first trouble of a machine is its reason, and stands above.
    told = [one.reason for one in judged.due]
    for trouble in judged.troubles:
        if trouble not in told:
            screen.say(words.message(trouble, language), "yellow")
    for one in judged.others:
        screen.say(
            language(
                "not due: {machine}: {verdict}, which does not count",
                machine=one.machine,
                verdict=one.verdict,
            )
        )
    unsigned = [one.machine for one in judged.due if one.newest and one.newest.signer is None]
    if unsigned:
        screen.say(language("unsigned: {machines}", machines=", ".join(unsigned)))
    screen.say(closing_line(judged, language), f"bold {_STYLE[judged.verdict]}")


def _line(one: Standing, language: Language) -> str:
    reason = words.text(one.reason or "", language)
    run = f" ({one.newest.run_id})" if one.newest else ""
    return f"{one.verdict} {one.machine}: {reason}{run}"


def closing_line(judged: Judged, language: Language = ENGLISH) -> str:
    """The word on the fleet and the counts of its due machines."""
    due = language.ngettext("{n} machine due", "{n} machines due", len(judged.due))
    counts = ", ".join(f"{judged.count(word)} {word}" for word in ("PASS", "FAIL", "UNJUDGED"))
    missing = sum(one.missing for one in judged.due)
    if missing:
        counts += language(" ({number} without a fresh verdict)", number=missing)
    return f"{judged.verdict}: {due}: {counts}"
