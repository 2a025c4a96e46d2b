"""What the self-test's runs said before: `fixtures/verdicts/selftest.json`, held against what they
say now.

A change of layout, of names or of speed must leave it alone. It holds every fault and every clean
run: one that it does not know fails until it is frozen. Made from the `said.json` of several
self-tests, because what moves from one to the next (times, rates, who notices first) is not
compared: `python -m selftest.frozen SAID.JSON ...` adds what is new.

Exit status: 0 when it was written or had nothing to add, 2 where it cannot be, with one sentence.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import statement
from run_left import Run

from selftest.clean_runs import every_clean_run
from selftest.fault import Fault, read

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
_RECORDED = {*SAME, "closing", "findings", "values"}


class FreezeError(Exception):
    """What was recorded cannot be frozen; the message is one sentence."""


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
    if "_excursion" in key:  # the highest of the samples that were taken in time
        return round(value, 1)
    # How many wrong results a live burn finds before it ends is chance; that it finds some is not.
    return min(value, 1.0) if "_miscompares " in key else value


def merged(name: str, recordings: Sequence[statement.Statement]) -> statement.Statement:
    """One statement of several of the same fault: `always` holds what all of them found,
    `sometimes` what only some did.

    A value that moved is null. Raises FreezeError where the verdict itself moved.
    """
    first = recordings[0]
    for key in SAME:
        if len({json.dumps(one[key]) for one in recordings}) > 1:
            told = ", ".join(str(one[key]) for one in recordings)
            raise FreezeError(f"{name}: its {key} is not the same in all recordings: {told}")
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


def compared() -> dict[str, Fault]:
    """All that is played and compared, by name: every fault and every clean run."""
    return {f"{one.family}/{one.name}": one.fault for one in (*read(), *every_clean_run())}


def how(name: str, fault: Fault) -> str:
    """How a fault or clean run becomes frozen."""
    word = name if fault.expect else "clean"  # clean runs are played together
    options = f"{'--long ' if fault.long else ''}--only '{word}'"
    return (
        f"play it twice (`python -m selftest {options} --out DIR`), then give the said.json of "
        f"both to `python -m selftest.frozen --only '{name}' SAID.JSON SAID.JSON`"
    )


@cache
def _frozen() -> dict[str, statement.Statement]:
    found: dict[str, statement.Statement] = json.loads(FROZEN.read_bytes())
    return found


def difference(name: str, fault: Fault, now: statement.Statement) -> str:
    """What a run says otherwise than before, in a sentence; empty where nothing is."""
    before = _frozen().get(name)
    if before is None:
        return f"{name} is not frozen: {how(name, fault)}"
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


def added(
    before: Mapping[str, statement.Statement],
    recordings: Sequence[Mapping[str, statement.Statement]],
    known: Collection[str],
    *,
    replace: bool = False,
) -> dict[str, statement.Statement]:
    """The frozen statements with what the recordings have that is new, or with all that they have
    where it is to `replace` what is there; without what is not known any more.

    Raises FreezeError for a recording of what is not known.
    """
    found = {name: one for name, one in before.items() if name in known}
    for name in sorted({name for one in recordings for name in one}):
        if name not in known:
            raise FreezeError(f"{name} is no fault of fixtures/faults and no clean run")
        if replace or name not in found:
            found[name] = merged(name, [one[name] for one in recordings if name in one])
    return found


def _recording(path: Path, only: str) -> dict[str, statement.Statement]:
    """What one self-test recorded of the names that hold this word. Raises FreezeError."""
    try:
        found: Any = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FreezeError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict) or not all(
        isinstance(one, dict) and one.keys() >= _RECORDED for one in found.values()
    ):
        raise FreezeError(f"{path} is no said.json of a self-test: it lies in its folder")
    return {name: one for name, one in found.items() if only in name}


def main(argv: Sequence[str] | None = None) -> int:
    """Add to the fixture what the `said.json` of several self-tests have that is new."""
    parser = argparse.ArgumentParser(
        prog="python -m selftest.frozen",
        description="Freeze what self-tests recorded. What is frozen stays as it is; the names of "
        "faults that are gone are taken out.",
    )
    parser.add_argument("said", type=Path, nargs="+", metavar="SAID.JSON", help="of a self-test")
    parser.add_argument("--only", default="", help="faults and clean runs that hold this word")
    parser.add_argument("--replace", action="store_true", help="freeze again what is frozen")
    given = parser.parse_args(argv)
    before, known = _frozen(), compared()
    try:
        recordings = [_recording(path, given.only) for path in given.said]
        if not any(recordings):
            raise FreezeError(f"nothing was recorded that holds {given.only!r}")
        found = added(before, recordings, known, replace=given.replace)
    except FreezeError as error:
        sys.stderr.write(f"selftest.frozen: {error}\n")
        return 2
    part = FROZEN.with_suffix(".part")
    part.write_text(
        f"{json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False)}\n", encoding="utf-8"
    )
    part.replace(FROZEN)
    for name in sorted(before.keys() | found):
        if before.get(name) != found.get(name):
            count = sum(name in one for one in recordings)
            what = "added" if name not in before else "replaced" if name in found else "gone"
            once = " (from one recording: what moves between two is not known)"
            print(f"{name}: {what}{once if count == 1 else ''}")
    print(f"{len(found)} frozen, {len(known.keys() - found)} not yet: {FROZEN}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
