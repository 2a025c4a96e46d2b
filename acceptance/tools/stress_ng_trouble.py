"""stress-ng's complaints: which prove a fault of the machine, and which only that it could not work."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from acceptance.tools import reading

# Refusals and shortages, by Linux errno: EPERM EINTR EAGAIN ENOMEM EACCES EBUSY ENODEV ENFILE EMFILE ENOSPC EROFS ENOSYS EOPNOTSUPP
# EDQUOT. Any other (EIO, EINVAL, EFAULT) is an answer that a sound system does not give to a stressor.
_REFUSALS = frozenset({1, 4, 11, 12, 13, 16, 19, 23, 24, 28, 30, 38, 95, 122})
_ERRNO = re.compile(r"errno=(?P<errno>\d{1,4})\b")
_HINDERED = re.compile(
    r"operation not permitted|permission denied|out of memory|cannot allocate memory|no space left|not implemented|not supported"
    r"|resource temporarily unavailable|temp-path|SIGKILL|SIGTERM|\boom\b"
    # The worker was killed before it could close its counters (stress-ng issues 117 and 125): nothing was compared.
    r"|metrics-check|corrupted bogo-ops counter|hash error in bogo-ops",
    re.IGNORECASE,
)
# Signals that wrong arithmetic or a wrong address causes; a kill or a time-out sends others.
_SIGNAL = re.compile(r"terminated (?:on signal|with unexpected signal|by signal)\b.*?(?P<signal>SIG[A-Z]+|\d+|$)")
_FATAL_SIGNALS = frozenset({"SIGSEGV", "SIGILL", "SIGBUS", "SIGFPE", "SIGTRAP", "4", "5", "7", "8", "11"})
_STRESSOR_FAILED = re.compile(r"terminated with an error, exit status=2\b")
_NO_PROOF = re.compile(r"finished prematurely|untrustworthy|bogo-op counters are zero")
_SKIP = re.compile(r"not implemented|skipp(?:ed|ing)|disabled '")


@dataclass(slots=True)
class Trouble:
    """`faults` speak against the machine, `hindrances` against the way it was run; texts as printed, in their order."""

    faults: list[str] = field(default_factory=list)
    hindrances: list[str] = field(default_factory=list)
    stressor_failed: bool = False
    _skips: list[str] = field(default_factory=list)

    def note(self, level: str, text: str) -> None:
        """Sort one line of the levels fail, error and warn."""
        if self._signal(text):
            return
        if level == "fail":
            errno = _ERRNO.search(text)
            refused = errno is not None and int(errno["errno"]) in _REFUSALS
            (self.hindrances if refused or _HINDERED.search(text) else self.faults).append(text)
        elif level == "error":
            if _STRESSOR_FAILED.search(text):
                self.stressor_failed = True  # its own `fail` line says why; where there is none, this must count
            else:
                self.hindrances.append(text)
        elif level == "warn" and _NO_PROOF.search(text):
            self.hindrances.append(text)

    def info(self, text: str) -> None:
        """Keep what an `info` line says about signals and skipped stressors."""
        if not self._signal(text) and not text.startswith("skipped: ") and _SKIP.search(text):
            self._skips.append(text)

    def because(self) -> str:
        """The first line about a skipped stressor, to end a sentence with; empty when there was none."""
        return f" ('{reading.quote(self._skips[0])}')" if self._skips else ""

    def _signal(self, text: str) -> bool:
        match = _SIGNAL.search(text)
        if match is None:
            return False
        (self.faults if match["signal"] in _FATAL_SIGNALS else self.hindrances).append(text)
        return True
