"""stress-ng's command line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from acceptance.tools import reading

_NAME = re.compile(r"^[a-z][a-z0-9-]*$")


def argv(
    binary: str,
    *,
    seconds: int,
    stressor: str = "cpu",
    workers: int = 0,
    options: Mapping[str, str] | None = None,
    temp_path: str | None = None,
) -> tuple[str, ...]:
    """The command line of one verified stressor. `workers` 0 means one for each logical CPU.

    `options` are long options without their dashes; without any, the `cpu` stressor runs all of its methods. `temp_path` is a
    writable directory: stress-ng refuses to start where it cannot write, even for a stressor that writes nothing.
    Raises ValueError for what would not run: a time below a second, a negative number of workers, a name that is none.
    """
    if seconds < 1 or workers < 0:
        raise ValueError(
            f"stress-ng needs at least 1 second and no negative number of workers, not {seconds} and {workers}"
        )
    chosen = {"cpu-method": "all"} if options is None and stressor == "cpu" else dict(options or {})
    for name in (stressor, *chosen):
        if not _NAME.match(name):
            raise ValueError(f"'{reading.quote(name)}' is no name of a stress-ng option")
    words = [binary, f"--{stressor}", str(workers)]
    for name, value in chosen.items():
        words += [f"--{name}", value]
    words += ["--verify", "--metrics-brief", "--timeout", f"{seconds}s"]
    if temp_path is not None:
        words += ["--temp-path", temp_path]
    return tuple(words)
