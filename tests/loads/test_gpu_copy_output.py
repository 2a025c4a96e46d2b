"""The copy load's command line as the suites build it."""

from __future__ import annotations

from pathlib import Path

from acceptance.loads.copy.load import arguments
from acceptance.tools.load_output import gpu_copy_argv


def test_the_load_reads_the_command_line_that_is_built() -> None:
    argv = gpu_copy_argv(
        "python3", seconds=1, mib=64, turns=("/run/logs/turns", "gpu4"), inject="wrong"
    )
    assert argv[:3] == ("python3", "-m", "acceptance.loads.copy.load")
    options = arguments().parse_args(argv[3:])
    assert (options.seconds, options.mib, options.inject) == (1.0, 64, "wrong")
    assert (options.turns, options.link) == (Path("/run/logs/turns"), "gpu4")


def test_what_is_not_asked_is_left_to_the_load() -> None:
    argv = gpu_copy_argv("python3", seconds=0.5)
    assert argv[3:] == ("--seconds", "0.5")
    options = arguments().parse_args(argv[3:])
    assert (options.mib, options.inject) == (512, None)
    assert (options.turns, options.link) == (None, None)
