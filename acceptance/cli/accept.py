"""`rigproof accept`: test the machine, from the lock to the verdict."""

from __future__ import annotations

import argparse
from dataclasses import replace

from acceptance.cli import closing, machine_test, run_options
from acceptance.reports.terminal import Terminal


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof accept`."""
    machine_test.arguments(parser, "accept")


def run(args: argparse.Namespace) -> int:
    """Test the machine; returns the verdict's exit code."""
    machine_test.forget(args.run_dir_file)
    options, language = (
        replace(run_options.read(args), run_dir_file=args.run_dir_file),
        closing.language_of(args),
    )
    screen = Terminal.on_stdout(language)
    return closing.show_verdict(screen, machine_test.run_test(options, screen, language))
