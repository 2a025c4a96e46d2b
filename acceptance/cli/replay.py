"""`rigproof replay`: play a finished run in the live view."""

from __future__ import annotations

import argparse

from acceptance.cli import closing, options
from acceptance.core.parts import parse
from acceptance.journal import run as journal_run
from acceptance.machine import gpu as machine_gpu
from acceptance.reports.text import duration
from acceptance.run import live_feed

_FRAMES = 5.0  # nothing is measured meanwhile that drawing could disturb
_CURE = "give a number, such as 8 for eight times as fast, or max to play it at once"
_TIMES = options.numbers(float, 0, 1e6, f"speed: {_CURE}")


def speed(text: str) -> float:
    """How many times faster a run is played; 0 at once."""
    return 0.0 if text == "max" else _TIMES(text)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof replay`."""
    options.run_dir(parser)
    parser.add_argument(
        "--speed",
        metavar="X",
        type=speed,
        help=(
            "how many times faster than it ran; 0 or max plays it at once (default: so that it "
            "takes about a minute)"
        ),
    )
    options.language(parser)


def run(args: argparse.Namespace) -> int:
    """Play a run; returns the exit code of its verdict, as `judge` does.

    Raises JournalError, and OSError when standard output is closed.
    """
    language, screen = closing.output(args)
    found = journal_run.read(args.run_dir)
    times = live_feed.usual_speed(found.seconds) if args.speed is None else args.speed
    lasted = duration(found.seconds)
    told = {"run": found.verdict.run_id, "profile": found.plan.profile, "time": lasted}
    if not times:
        screen.say(language("replay of {run}: {profile}, {time}, at once", **told))
    else:
        shown = f"{times:.3g}"
        screen.say(
            language(
                "replay of {run}: {profile}, {time}, {speed} times as fast; Ctrl-C stops it",
                **told,
                speed=shown,
            )
        )
    screen.say_messages((*found.torn, *found.troubles), "yellow")
    names = {parse(gpu.pci_address): gpu.name for gpu in machine_gpu.gpus(found.inventory)}
    clock, played = live_feed.RunClock(times or None), live_feed.Playback(found)
    try:
        screen.start(found.plan, names, clock.now_s, _FRAMES)
        live_feed.play(played.entries(), clock, (screen.entry,), lambda: screen.failure is not None)
    finally:
        screen.stop()
    screen.say_messages(played.troubles, "yellow")
    code = closing.show_verdict(screen, found)
    return closing.after_output(screen, code)
