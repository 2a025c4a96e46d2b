"""Stands in for stress-ng and stressapptest on a sound machine: `host.py TOOL ARGUMENTS`.

It takes the time that it is asked for, and prints what the tool prints after that.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

STRESS_NG = """\
stress-ng: info:  [4543] setting to a {seconds} second run per stressor
stress-ng: info:  [4543] dispatching hogs: {workers} cpu
stress-ng: metrc: [4543] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [4543]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [4543] cpu               10611      {seconds}.00      {busy}.00      0.00      3535.83        1773.96
stress-ng: info:  [4543] successful run completed in {seconds}.00s
"""  # noqa: E501
STRESSAPPTEST = """\
Log: Commandline - stressapptest {words}
Stats: SAT revision 1.0.6_autoconf, 64 bit binary
Stats: Starting SAT, {mib}M, {seconds} seconds
Stats: Found 0 hardware incidents
Stats: Completed: {moved}.00M in {seconds}.00s 51126.00MB/s, with 0 hardware incidents, 0 errors
Stats: Memory Copy: {moved}.00M at 51126.00MB/s
Stats: File Copy: 0.00M at 0.00MB/s

Status: PASS - please verify no corrected errors
"""


def after(words: Sequence[str], *names: str) -> int:
    """The number behind one of these options."""
    (place,) = (words.index(name) for name in names if name in words)
    return int(words[place + 1].rstrip("s"))


def printed(tool: str, words: Sequence[str]) -> str:
    """What the tool says to its arguments."""
    if tool == "stress-ng":
        seconds, workers = after(words, "--timeout", "-t"), after(words, "--cpu") or os.cpu_count()
        return STRESS_NG.format(seconds=seconds, workers=workers, busy=seconds * (workers or 1))
    seconds, mib, said = after(words, "-s"), after(words, "-M"), " ".join(words)
    return STRESSAPPTEST.format(words=said, seconds=seconds, mib=mib, moved=51126 * seconds)


def main() -> None:
    tool, *words = sys.argv[1:]
    time.sleep(after(words, "--timeout", "-t", "-s"))
    print(printed(tool, words), end="")


if __name__ == "__main__":
    main()
