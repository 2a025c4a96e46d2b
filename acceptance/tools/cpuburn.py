"""A `cpuburn` program, run when the machine file names one. Two families share the name.

The classic programs (burnP5, burnP6, burnK6, burnK7, burnBX, burnMMX; Robert Redelmeier's cpuburn
1.4) load one CPU each, print nothing, run until they are stopped and check their own arithmetic:
exit code 254 is an integer or memory error, 255 one of the floating point or MMX unit (README of
cpuburn 1.4a). Any other cpuburn (patrickmn/cpuburn in Go: `-n` is the number of cores) loads all
CPUs and checks nothing: it heats the machine for the checks of temperature and throttling.

There is no text to parse, so only the exit is judged. Reading: `cpuburn_time`, s, component `cpu`.
"""

from __future__ import annotations

from pathlib import PurePath

from acceptance.core.message import Message, Values, english
from acceptance.core.parts import CPU
from acceptance.tools.reading import Reading, ToolOutput

TOOL = "cpuburn"
_CLASSIC = frozenset({"burnP5", "burnP6", "burnK6", "burnK7", "burnBX", "burnMMX"})
_FOUND = {
    254: Message(english("integer_error", "an integer or memory error")),
    255: Message(english("floating_point_error", "an error of the floating point or MMX unit")),
}
# Negative return codes are signals that wrong arithmetic causes: SIGILL, SIGBUS, SIGFPE, SIGSEGV.
_SIGNALS = {-4: "SIGILL", -7: "SIGBUS", -8: "SIGFPE", -11: "SIGSEGV"}


def is_classic(binary: str) -> bool:
    """Whether the program checks its own arithmetic."""
    return PurePath(binary).name in _CLASSIC


def argv(binary: str, *, threads: int | None = None) -> tuple[str, ...]:
    """The command line of one process.

    `threads` None leaves the number to the program: all CPUs, or one for a classic program.

    Raises ValueError for a classic program with more than one thread: start one process for each
    CPU instead.
    """
    if threads is None or (threads == 1 and is_classic(binary)):
        return (binary,)
    if is_classic(binary) or threads < 1:
        raise ValueError(
            f"{PurePath(binary).name} cannot run {threads} threads: start one process for each CPU"
        )
    return (binary, "-n", str(threads))


def judge(binary: str, *, returncode: int, timed_out: bool, seconds: float) -> ToolOutput:
    """Judge a run that was meant to last until its deadline.

    `returncode` is negative for a signal, as in the standard library.

    A program that still runs at the deadline is a *pass*; for a program that is not classic, that
    only means that the CPUs were loaded. An earlier end is a *fail* if the exit reports an error of
    the CPU, else an *error*: the load did not last.
    """
    values: Values = {"name": PurePath(binary).name, "ran": f"{seconds:.4g}"}
    if timed_out:
        code = (
            english(
                "cpuburn_checked",
                "{name} ran for {ran} s: it checked its arithmetic and found no error",
            )
            if is_classic(binary)
            else english(
                "cpuburn_loaded",
                "{name} ran for {ran} s: it loaded the CPUs; it checks nothing itself",
            )
        )
        return ToolOutput(
            TOOL,
            "pass",
            Message(code, values),
            (Reading("cpuburn_time", "s", {CPU: seconds}),),
        )
    if is_classic(binary) and returncode in _FOUND:
        return ToolOutput(
            TOOL,
            "fail",
            Message(
                english("cpuburn_found", "{name} found {what} after {ran} s (exit code {code})"),
                {**values, "what": _FOUND[returncode], "code": returncode},
            ),
        )
    if returncode in _SIGNALS:
        return ToolOutput(
            TOOL,
            "fail",
            Message(
                english("cpuburn_died", "{name} died of {signal} after {ran} s"),
                {**values, "signal": _SIGNALS[returncode]},
            ),
        )
    how = (
        Message(english("signal_number", "signal {number}"), {"number": -returncode})
        if returncode < 0
        else Message(english("exit_code", "exit code {code}"), {"code": returncode})
    )
    return ToolOutput(
        TOOL,
        "error",
        Message(
            english(
                "cpuburn_ended",
                "{name} ended by itself after {ran} s ({how}): the load did not last",
            ),
            {**values, "how": how},
        ),
    )
