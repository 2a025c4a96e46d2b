"""The machine's birth certificate from the command line: making a run the baseline, and showing it."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from acceptance import clock, fixtures
from acceptance.history import certificate
from acceptance.judge import noise
from acceptance.judge.language import ENGLISH, Language
from acceptance.reports import certificate_terminal, plain_json
from acceptance.reports.terminal import Terminal


def accept(
    run_dir: Path,
    out: Path | None,
    screen: Terminal,
    *,
    replace: bool,
    language: Language = ENGLISH,
    root: Path = Path("/"),
) -> None:
    """Make a run the baseline of this machine, and say so. Without `out` it lies beside the run's folder.

    Raises BaselineRefused, BaselineUnsound, JournalError, UnreadableRun or NoiseFileError.
    """
    book = noise.read(fixtures.locate("noise.toml"))
    done = certificate.accept(run_dir, out or run_dir.resolve().parent, book, replace=replace, root=root)
    former = str(done.former) if done.former else None
    found = done.baseline.certificate
    certificate_terminal.accepted(found, screen, already=done.already, former=former, language=language)
    screen.path(str(done.baseline.path))


def show(out: Path, screen: Terminal, *, as_json: bool, language: Language = ENGLISH, root: Path = Path("/")) -> None:
    """Print the baseline of this machine. Raises BaselineRefused where there is none, and BaselineUnsound."""
    machine_id = clock.machine_id(root)
    found = certificate.needed(out, machine_id)
    if as_json:
        plain = {"sha256": found.sha256, "certificate": msgspec.to_builtins(found.certificate)}
        sys.stdout.buffer.write(plain_json.render(plain, sys.stdout.encoding))
        return
    former = [one.certificate for one in certificate.former(out, machine_id)]
    certificate_terminal.show(found.certificate, found.sha256, former, screen, language)
