"""Exit codes of every verb: the one table that each `--help` and docs/exit-codes.md show.

    python -m acceptance.cli.exit_codes

prints it as docs/exit-codes.md holds it.
"""

from __future__ import annotations

from collections.abc import Mapping

from acceptance.core.exit_code import FAIL, PASS, SKIPPED, UNJUDGED, USAGE
from acceptance.core.grouping import grouped

Meanings = Mapping[int, str]

# The order in which help texts name them: what a verb says, then what kept it from saying so.
ORDER = (PASS, FAIL, UNJUDGED, USAGE, SKIPPED)
_USAGE = "usage error"
_FLEET: Meanings = {
    PASS: "each due machine has a fresh PASS",
    FAIL: "a due machine is FAIL",
    UNJUDGED: "one is UNJUDGED, none is due, or something could not be read",
    USAGE: _USAGE,
}
_RUN: Meanings = {
    PASS: "PASS",
    FAIL: "FAIL",
    UNJUDGED: "UNJUDGED: an error, a skip that nobody waived, or stopped",
    USAGE: "usage error, or an error in a file; nothing was run",
}
_RECORDED: Meanings = {
    PASS: "the run is a PASS",
    FAIL: "the run is a FAIL",
    UNJUDGED: "the run is UNJUDGED, or could not be read",
    USAGE: "usage error, or there is no run",
}
# By verb, or by verb and what follows it, where that has codes of its own.
CODES: Mapping[str, Meanings] = {
    "accept": _RUN,
    "nightly": {
        **_RUN,
        SKIPPED: "the machine was in use, so the night was skipped or given up; no failure",
    },
    "plan": {
        PASS: "shown",
        UNJUDGED: "the machine could not be read",
        USAGE: "usage error, or an error in a file",
    },
    "inventory": {
        PASS: "shown, or written",
        UNJUDGED: "the machine could not be read",
        USAGE: "usage error, or the file cannot be written",
    },
    "judge": {
        **_RECORDED,
        UNJUDGED: "the run is UNJUDGED or could not be read, or a log differs (--from-logs)",
    },
    "report": _RECORDED,
    "replay": _RECORDED,
    "sign": {
        PASS: "signed, whatever the verdict is",
        UNJUDGED: "a file cannot be read or written",
        USAGE: "usage error, or the run or the key cannot sign",
    },
    "verify": {
        PASS: "all of it is as signed, whatever the verdict is",
        FAIL: "something is not as signed, or cannot be read",
        UNJUDGED: "there is no signature",
        USAGE: "usage error, or there is no run",
    },
    "compare": {
        PASS: "nothing is worse than in the first run",
        FAIL: "something is worse",
        UNJUDGED: (
            "a run cannot be read, its evidence is incomplete, or it measured nothing that the "
            "first did, or did not make a check that failed in the first"
        ),
        USAGE: "usage error, or there is no run",
    },
    "baseline": {
        PASS: "done",
        UNJUDGED: "a file cannot be read, trusted or written",
        USAGE: "usage error, or the run cannot be the baseline",
    },
    "history": {
        PASS: "done",
        UNJUDGED: "the history cannot be read or written",
        USAGE: _USAGE,
    },
    "capacity": {
        PASS: "shown",
        UNJUDGED: "the run cannot be read, or its evidence is incomplete",
        USAGE: "usage error, or the run tested no GPU",
    },
    "fleet collect": _FLEET,
    "fleet report": _FLEET,
    "fleet accept": {
        PASS: "accepted",
        UNJUDGED: "a file cannot be read or written",
        USAGE: "usage error, no reason, or no FAIL that stands",
    },
    "fleet failures": {
        PASS: "no FAIL stands",
        FAIL: "a FAIL stands",
        UNJUDGED: "something could not be read or written",
        USAGE: _USAGE,
    },
    "fleet submit": {
        PASS: "each due node is submitted, being tested, or has a fresh PASS or FAIL "
        "(--wait: a fresh PASS)",
        FAIL: "a due node is FAIL (--wait only)",
        UNJUDGED: "one could not be submitted, or the engine refused something "
        "(--wait: or is UNJUDGED)",
        USAGE: _USAGE,
    },
    "fleet pairs": {
        PASS: "every pair passed",
        FAIL: "a bad node or link is named",
        UNJUDGED: "something is not judged",
        USAGE: "usage error, or two names of one machine",
    },
    "schedule": {
        PASS: "done",
        UNJUDGED: "systemd or the disk failed, or a notification failed",
        USAGE: _USAGE,
    },
    "image": {
        PASS: "done",
        UNJUDGED: "the image cannot be built, saved or loaded",
        USAGE: _USAGE,
    },
    "read": {
        PASS: "the text was read whole and shows no fault",
        FAIL: "the text proves a fault",
        UNJUDGED: "the text proves nothing",
        USAGE: "usage error, or the file cannot be read",
    },
    "completion": {PASS: "printed", USAGE: _USAGE},
}
_TOP = (
    "Exit codes of a run: 0 PASS, 1 FAIL, 3 UNJUDGED, 2 usage error. `rigproof VERB --help` has "
    "those of each verb, docs/exit-codes.md all of them."
)


def meanings(verb: str) -> dict[str, Meanings]:
    """The codes of a verb by its name, such as `fleet collect`; those of its parts for `fleet`.

    Raises KeyError for a verb that is not in the table.
    """
    own = next((name for name in (verb, verb.partition(" ")[0]) if name in CODES), None)
    if own is not None:
        return {own: CODES[own]}
    found = {name: codes for name, codes in CODES.items() if name.startswith(f"{verb} ")}
    if not found:
        raise KeyError(verb)
    return found


def epilog(verb: str = "") -> str:
    """The sentence on exit codes at the end of a verb's help, or of `rigproof --help`."""
    if not verb:
        return _TOP
    found = meanings(verb)
    if len(found) > 1:
        return f"Exit codes: see `rigproof {verb} WHAT --help`, or docs/exit-codes.md."
    (codes,) = found.values()
    return f"Exit codes: {'; '.join(f'{one} {codes[one]}' for one in ORDER if one in codes)}."


def table() -> str:
    """The table as Markdown; verbs with the same codes share a line."""
    alike = grouped((tuple(codes.items()), f"`{verb}`") for verb, codes in CODES.items())
    lines = [
        f"| verb | {' | '.join(map(str, ORDER))} |",
        f"|---|{'---|' * len(ORDER)}",
    ]
    for pairs, verbs in alike.items():
        codes = dict(pairs)
        cells = (", ".join(verbs), *(codes.get(code, "") for code in ORDER))
        lines.append("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
