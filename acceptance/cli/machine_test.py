"""One test of the machine, from lock to verdict, for `accept` and `nightly`."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from acceptance.cli import options as cli_options
from acceptance.cli import run_options
from acceptance.core.language import Language
from acceptance.core.message import Message, UserError
from acceptance.core.parts import parse
from acceptance.journal import run_folder
from acceptance.journal.run import Run
from acceptance.machine import gpu as machine_gpu
from acceptance.machine import gpu_selection
from acceptance.observe import draft, filesystem
from acceptance.reports.terminal import Terminal
from acceptance.run import idle_gate, lock, outputs, planning, signals, supervisor, unfinished
from acceptance.run.planning import PreparedRun
from acceptance.run.profile import IdlePolicy
from acceptance.run.recall import SECONDS_PER_DAY, HistoryRecall
from acceptance.station import preflight
from acceptance.station.base import HostStation
from acceptance.station.options import Options


def arguments(parser: argparse.ArgumentParser, profile: str) -> None:
    """Add the arguments of a test, which has the profile unless another is named."""
    run_options.arguments(parser, profile)
    parser.add_argument(
        "--run-dir-file",
        metavar="FILE",
        type=cli_options.path,
        help="write the path of the run folder to FILE; FILE is removed if no run starts",
    )
    if isinstance(parser, cli_options.Parser):
        parser.on_error = _forget_given


def run_test(
    options: Options, screen: Terminal, language: Language, nights: IdlePolicy | None = None
) -> Run:
    """Test the machine.

    With `nights`, a machine that is in use is not tested.
    """
    hidden = gpu_selection.refuse_outside(options.gpus, os.environ)
    with (
        signals.interruptible(),
        lock.MachineLock(options.root) as held,
        supervisor.output_folder(options.out),
    ):
        screen.say_messages([run_folder.left_in(options.out)], "yellow")
        # Leftovers of an earlier run go first: a process of it would occupy memory.
        closed = unfinished.close_all(options.out, held.last_run(), options.root)
        screen.say_messages(closed, "yellow")
        memory = HistoryRecall(options.out, options.root)
        prepared = planning.prepare(options)
        screen.say_messages(prepared.alarm, "bold red")
        users = idle_gate.find_users(prepared, nights) if nights else ()
        where, remark = (
            (HostStation(), None)
            if users
            else preflight.choose(
                options, prepared.plan, prepared.inventory, screen.say, prepared.scratches
            )
        )
        recalled = memory.recall(prepared, where, time.time() / SECONDS_PER_DAY)
        prepared = replace(prepared, plan=recalled.plan, notes=(*prepared.notes, *recalled.notes))
        skipped = recalled.postponement(users, nights.most_skipped) if nights and users else None
        run_dir = _new_run_dir(options)
        held.claim(run_dir)
        outputs.link_latest(run_dir)
        if skipped:
            screen.say_messages((note.text for note in recalled.notes), "yellow")
            run = idle_gate.postpone(prepared, run_dir, skipped, language)
        else:
            run_options.show_plan(
                screen,
                prepared,
                remark,
                hidden,
                *(note.text for note in prepared.notes),
                details=False,
            )
            _draft(prepared, run_dir, screen, language)
            _say_what_a_hangup_does(screen, options, run_dir, language)
            try:
                screen.start(
                    prepared.plan,
                    {
                        parse(gpu.pci_address): gpu.name
                        for gpu in machine_gpu.gpus(prepared.inventory)
                    },
                )
                way = recalled.postpone_later(nights.most_skipped) if nights else None
                run = supervisor.Supervisor(
                    prepared, where, run_dir, screen.entry, language, way, live=screen.watched
                ).run()
            finally:
                screen.stop()
        screen.say_messages([memory.keep(run)], "yellow")
        _tell_readers(options.out, screen)
        return run


def _tell_readers(out: Path, screen: Terminal) -> None:
    """Write which FAILs of the runs in a folder do not stand any more, for the node's readers."""
    from acceptance.fleet import reader_file  # after a run: what it imports takes time

    screen.say_messages([reader_file.write_machine(out, datetime.now(UTC))[2]], "yellow")


def record_postponed(
    options: Options, screen: Terminal, language: Language, nights: IdlePolicy, reason: Message
) -> Run:
    """Record a night that was not run because another rigproof run has the machine.

    The machine's lock is not held, so only this run's own folder and the history are written; the
    history allows two writers. `latest` and the runs without a verdict are left alone: they may be
    the other run's.
    """
    with signals.interruptible(), supervisor.output_folder(options.out):
        memory = HistoryRecall(options.out, options.root)
        prepared = planning.prepare(options)
        recalled = memory.recall(prepared, HostStation(), time.time() / SECONDS_PER_DAY)
        prepared = replace(prepared, plan=recalled.plan, notes=(*prepared.notes, *recalled.notes))
        skipped = recalled.postponement((reason,), nights.most_skipped)
        run_dir = _new_run_dir(options)
        screen.say_messages((note.text for note in recalled.notes), "yellow")
        run = idle_gate.postpone(prepared, run_dir, skipped, language)
        screen.say_messages([memory.keep(run)], "yellow")
        return run


def _say_what_a_hangup_does(
    screen: Terminal, options: Options, run_dir: Path, language: Language
) -> None:
    """Say, before anything heats, what becomes of the run when its terminal goes away."""
    if not signals.has_terminal():
        return
    if not signals.ended_at_logout(options.root):
        screen.say(
            language(
                "Ctrl-C stops this run. If its terminal is closed or the connection is "
                "lost, it goes on and writes its verdict to:"
            )
        )
        screen.path(str(run_dir))
        return
    outside = (
        "systemd-run --scope"
        if os.geteuid() == 0
        else "loginctl enable-linger; systemd-run --user --scope"
    )
    screen.say(
        language(
            "A lost connection or a logout ends this run: systemd ends all programs of a "
            "login here (KillUserProcesses). To let it go on, stop it with Ctrl-C and "
            "start it with:"
        ),
        "bold yellow",
    )
    # By make, too, rigproof's own line has all that was set.
    typed = sys.argv if Path(sys.argv[0]).name == "rigproof" else sys.orig_argv
    screen.path(f"{outside} {shlex.join(typed)}")


def forget(file: Path | None) -> None:
    """Remove the run-dir file of an earlier run, which must not be taken for this run's.

    A verb does this first: if its other arguments are wrong, no run is started either. Raises
    UserError.
    """
    try:
        if file is not None:
            file.unlink(missing_ok=True)
    except OSError as error:
        text = f"--run-dir-file {file}: cannot be written ({error.strerror})"
        raise UserError(f"{text}: give the name of a file in a folder of yours") from error


def _forget_given(words: Sequence[str]) -> None:
    """Remove the run-dir file where other arguments are no arguments: no run starts."""
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        option, equals, value = word.partition("=")
        if option == "--run-dir-file" and (name := value if equals else following):
            with contextlib.suppress(UserError, ValueError):
                forget(Path(name))


def _new_run_dir(options: Options) -> Path:
    """Make the folder of a new run, and write its path to --run-dir-file if given."""
    run_dir = supervisor.new_run_dir(options.out)
    if options.run_dir_file is not None:
        run_folder.write_whole(
            options.run_dir_file,
            os.fsencode(run_dir) + b"\n",
            then=run_folder.START_AGAIN,
            mode=0o644,
        )
    return run_dir


def _draft(prepared: PreparedRun, run_dir: Path, screen: Terminal, language: Language) -> None:
    """Draft a machine file if none was given."""
    if prepared.machine is None:
        drafted = run_dir / "machine.toml"
        run_folder.write_whole(
            drafted,
            draft.render(prepared.inventory, filesystem.on_disks(prepared.options.root)).encode(
                "utf-8"
            ),
            then=run_folder.START_AGAIN,
        )
        screen.say(
            language(
                "no machine file was given: one was drafted from what was found, to be "
                "corrected by hand:"
            )
        )
        screen.path(str(drafted))
