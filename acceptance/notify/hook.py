"""The command of --on-fail, started when a night is not PASS.

It gets the verdict on standard input and has a deadline. No shell is involved.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from acceptance.core.message import Message, known
from acceptance.core.verdict import VerdictWord
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.reports.text import one_line

LOG = "on-fail.txt"  # beside the views: what lies in logs/ is sealed before this
CAP_BYTES = 64 * 1024  # of the command's output
RUN_DIR, VERDICT = "RIGPROOF_RUN_DIR", "RIGPROOF_VERDICT"
HEADLINE = "RIGPROOF_HEADLINE"


def start(
    argv: Sequence[str],
    verdict_file: Path,
    word: VerdictWord,
    run_dir: Path | None,
    closing: str,
    deadline: Deadline,
) -> Message | None:
    """Start the command once and wait for it.

    Returns why it failed, or None. The command reads verdict.json from standard
    input. `RIGPROOF_VERDICT` is PASS, FAIL or UNJUDGED, `RIGPROOF_HEADLINE` the run's closing line;
    `RIGPROOF_RUN_DIR` is the run's folder, absent if no run was started. Its output goes to
    `on-fail.txt` in that folder, its errors to `on-fail.txt.err`. Processes that it leaves running
    are ended with it.
    """
    environment = {VERDICT: word, HEADLINE: closing} | (
        {RUN_DIR: str(run_dir)} if run_dir is not None else {}
    )
    log = run_dir / LOG if run_dir is not None else None
    name = one_line(argv[0], 200)
    try:
        done = command.run(
            argv,
            deadline=deadline,
            env=environment,
            log=log,
            cap_bytes=CAP_BYTES,
            stdin=verdict_file,
        )
    except command.CommandError as error:
        return Message("hook_not_run", {"why": error.message})
    if done.returncode == 0 and not done.timed_out:
        return None
    last = one_line(done.last_lines(2), 400) or None
    printed = str(log) if log is not None and done.log_error is None else None
    values = known(command=name, how=done.describe(), last=last, log=printed)
    return Message("hook_failed", values)
