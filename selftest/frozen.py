"""What the self-test's runs said before: `fixtures/verdicts/selftest.json`, held against what they
say now.

A change of layout, of names or of speed must leave it alone. Made from the `said.json` of several
self-tests, because what moves from one to the next (times, rates, who notices first) is not
compared: `python -m selftest.frozen SAID.JSON ...` writes it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import statement
from run_left import Run

from selftest.fault import Fault

FROZEN = statement.VERDICTS / "selftest.json"
# A disk of this machine, and none of a description (`disk:nvme7n1`).
_OWN_DISK = re.compile(r"(?<=\| )disk:(?!nvme[78]n1\b)[\w-]+")
_FOUND = re.compile(r" \((?:disks|links) found: [^)]*\)")
# These stand in every recording; findings and closing lines are lists, each of which was said at
# least once.
SAME = ("verdict", "exit_code", "scope")
# What these read while the loads run depends on how fast the machine runs them: which check was
# running, how warm a GPU became, how often a counter moved. That they found a fault, on which
# component, is compared; `says` of the fault holds the words.
LIVE = ("watch.", "thermal.")


def said(fault: Fault, run: Run) -> statement.Statement:
    """What a run of the self-test said, without what is of one run or of the
    machine that played it.
    """
    if run.folder is None:
        return {
            "verdict": "refused",
            "exit_code": run.code,
            "scope": None,
            "closing": [],
            "findings": [],
            "values": {},
        }
    whole = statement.of(run.folder, run.out)
    ours = fault.machine is not None
    # What is quoted of this machine's own parts and of the loads on them is of this machine.
    texts = [statement.masked(_FOUND.sub("", one)) for one in whole["findings"]]
    texts = [
        one
        if ours and not _check(one).startswith(LIVE)
        else _OWN_DISK.sub("disk:#", " | ".join(one.split(" | ")[:4]))
        for one in texts
    ]
    return {
        **{key: whole[key] for key in SAME},
        "closing": [statement.masked(one) for one in whole["closing"][-1:]],
        # A warning of this machine's own processors or memory says nothing of the fault.
        "findings": sorted({one for one in texts if not one.startswith("warn ") or "| gpu" in one}),
        "values": {
            key: _kept(key, one) for key, one in whole["values"].items() if ours and " gpu" in key
        },
    }


def _kept(key: str, value: float) -> float | None:
    """What of a value the next run must have again; None where that is only that it is there."""
    if key.startswith(LIVE) or "_compares_" in key:
        return None
    # How many wrong results a live burn finds before it ends is chance; that it finds some is not.
    return min(value, 1.0) if "_miscompares " in key else value


def merged(recordings: Sequence[statement.Statement]) -> statement.Statement:
    """One statement of several of the same fault: `always` holds what all of them found,
    `sometimes` what only some did.

    A value that moved is null. Raises ValueError where the verdict itself moved.
    """
    first = recordings[0]
    for key in SAME:
        if len({json.dumps(one[key]) for one in recordings}) > 1:
            raise ValueError(f"{key} is not the same in all: {[one[key] for one in recordings]}")
    found = [set(one["findings"]) for one in recordings]
    keys = set.intersection(*(set(one["values"]) for one in recordings))
    return {
        **{key: first[key] for key in SAME},
        "closing": sorted({line for one in recordings for line in one["closing"]}),
        "always": sorted(set.intersection(*found)),
        "sometimes": sorted(set.union(*found) - set.intersection(*found)),
        "values": {
            key: first["values"][key]
            if len({one["values"][key] for one in recordings}) == 1
            else None
            for key in sorted(keys)
        },
    }


@cache
def _frozen() -> dict[str, statement.Statement]:
    found: dict[str, statement.Statement] = json.loads(FROZEN.read_bytes())
    return found


def difference(name: str, fault: Fault, now: statement.Statement) -> str:
    """What a run says otherwise than before, in a sentence; empty where nothing
    is or the fault is new.
    """
    before = _frozen().get(name)
    if before is None:
        return ""
    for key in SAME:
        if now[key] != before[key]:
            return f"{key} is {now[key]}, and was {before[key]}"
    found = set(now["findings"])
    if lacking := next((one for one in before["always"] if one not in found), None):
        return f"it no longer says {lacking!r}"
    known = {*before["always"], *before["sometimes"]}
    moved = {_check(one) for one in before["sometimes"]}
    new = next(
        (
            one
            for one in sorted(found - known)
            if _check(one) not in moved and not _may_speak(fault, one)
        ),
        None,
    )
    if new:
        return f"it says {new!r}, and did not before"
    if not set(now["closing"]) <= set(before["closing"]) and found == set(before["always"]):
        return f"it closes {now['closing']}, and closed {before['closing']}"
    for key, value in before["values"].items():
        if key not in now["values"]:
            return f"{key} was measured, and is not any more"
        if value is not None and now["values"][key] != value:
            return f"{key} is {now['values'][key]}, and was {value}"
    return ""


def _check(finding: str) -> str:
    return finding.split(" | ")[1]


def _may_speak(fault: Fault, finding: str) -> bool:
    check = _check(finding)
    return any(
        re.fullmatch(pattern, "the whole run" if check == "run" else check)
        for pattern in fault.also
    )


def main(paths: Iterable[str]) -> int:
    """Write the fixture from the `said.json` of several self-tests."""
    recordings = [json.loads(Path(path).read_bytes()) for path in paths]
    names = sorted(set.intersection(*(set(one) for one in recordings)))
    frozen = {name: merged([one[name] for one in recordings]) for name in names}
    FROZEN.write_text(
        f"{json.dumps(frozen, indent=1, sort_keys=True, ensure_ascii=False)}\n", encoding="utf-8"
    )
    print(
        f"{len(names)} runs, {sum(len(one['always']) for one in frozen.values())} findings: "
        f"{FROZEN}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
