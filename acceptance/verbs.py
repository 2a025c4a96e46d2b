"""What each verb of the command line does."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from acceptance import (
    command,
    comparing,
    fixtures,
    gpu_grant,
    journal,
    lock,
    outputs,
    place,
    preparation,
    profile,
    scheduling,
    selection,
    stopping,
    supervisor,
    telling,
    unfinished,
)
from acceptance.image.errors import ImageError
from acceptance.judge import advice, limits, machine, noise, plan, sheet, verdict
from acceptance.judge.language import Language
from acceptance.judge.record import RunClosed, RunEnded
from acceptance.judge.verdict import Verdict
from acceptance.observe import draft, kernel_log, sysfs
from acceptance.observe import inventory as observed
from acceptance.preparation import Options
from acceptance.reports import languages, plain_json, terminal
from acceptance.reports.places import places
from acceptance.reports.text import one_line
from acceptance.schedule.installing import ScheduleError
from acceptance.tools import (
    bandwidth_test,
    device_query,
    gpu_burn,
    nvbandwidth,
    p2p_bandwidth,
    stress_ng,
    stressapptest,
    topo,
)
from acceptance.tools.reading import ToolOutput, UnreadableOutput


class NoRecording(Exception):
    """The file to read is not there; the message is one sentence."""


# A mistake in what the user gave: exit code 2.
USER_ERRORS = (
    machine.MachineFileError,
    plan.PlanError,
    profile.ProfileError,
    selection.SelectionError,
    place.StationError,
    supervisor.OutputError,
    lock.Busy,
    lock.LockError,
    draft.DraftError,
    languages.UnknownLanguage,
    journal.NoRun,
    NoRecording,
    comparing.NoComparison,
    telling.TellingError,
    ScheduleError,
)
# rigproof or the machine got in the way: exit code 3, and the machine stays unjudged.
TROUBLE: tuple[type[BaseException], ...] = (
    stopping.Stopped,
    command.CommandError,
    journal.JournalError,
    verdict.UnreadableRun,
    preparation.PreparationError,
    ImageError,
    gpu_grant.GrantError,
    limits.LimitFileError,
    sheet.SheetError,
    noise.NoiseFileError,
    fixtures.FixtureMissing,
    advice.AdviceFileError,
    sysfs.SysfsError,
)
READERS: dict[str, Callable[[str], ToolOutput]] = {
    "gpu-burn": gpu_burn.parse,
    "deviceQuery": device_query.parse,
    "bandwidthTest": bandwidth_test.parse,
    "p2pBandwidthLatencyTest": p2p_bandwidth.parse,
    "nvbandwidth": nvbandwidth.parse,
    "topo": topo.parse,
    "kernel-log": kernel_log.read,
    "stress-ng": stress_ng.parse,
    "stressapptest": stressapptest.parse,
}
_EXIT = {"pass": 0, "fail": 1, "error": 3}


def _options(given: argparse.Namespace) -> Options:
    return Options(
        given.machine, given.profile, given.station, given.image, given.out, given.only, given.burn, given.gpus
    )


def _language(given: argparse.Namespace) -> Language:
    """The language of page and terminal, asked for first: a wrong one, or a file of ours that is wrong, is told before anything heats."""
    languages.catalogue("en")  # that of JUnit and verdict.json, whatever else is spoken
    return languages.choose(given.lang, os.environ)


def accept(given: argparse.Namespace) -> int:
    """Test the machine: from the lock to the verdict."""
    from acceptance import preflight  # the engine's SDK takes its time to load, and judging or reading needs none of it

    options, language = _options(given), _language(given)
    screen = terminal.Terminal.on_stdout(language)
    hidden = selection.refuse_outside(options.gpus, os.environ)
    with stopping.interruptible(), lock.MachineLock(options.root) as held:
        supervisor.usable(options.out)
        # What an earlier run left behind goes first: it would hold memory, or an old verdict under the name of the newest.
        for sentence in unfinished.close_all(options.out, held.last_run(), options.root):
            screen.say(sentence, "yellow")
        outputs.unlink_latest(options.out)
        prepared = preparation.prepare(options)
        where, remark = preflight.choose(options, prepared.plan, prepared.inventory, screen.say)
        run_dir = supervisor.new_run_dir(options.out)
        held.claim(run_dir)
        outputs.link_latest(run_dir)
        screen.table(prepared.matrix().text())
        screen.plan(prepared.plan, prepared.profile_summary, details=False)
        for line in (remark, hidden):
            if line:
                screen.say(line, "bold yellow")
        if prepared.machine is None:
            drafted = run_dir / "machine.toml"
            outputs.put(drafted, draft.render(prepared.inventory).encode("utf-8"), then="start again")
            screen.say(
                language("no machine file was given: one was drafted from what was found, to be corrected by hand:")
            )
            screen.path(str(drafted))
        try:
            screen.start(prepared.plan, {gpu.pci_address: gpu.name for gpu in observed.gpus(prepared.inventory)})
            found = supervisor.Supervisor(prepared, where, run_dir, screen.entry, language).run()
        finally:
            screen.stop()
        return _close(screen, found, run_dir)


def _close(screen: terminal.Terminal, found: Verdict, run_dir: Path) -> int:
    where = places(journal.read(run_dir))
    names = (outputs.PAGE, outputs.JUNIT, outputs.VERDICT)
    screen.verdict(found, [str(run_dir / name) for name in names if (run_dir / name).is_file()], where)
    return found.exit_code()


def plan_(given: argparse.Namespace) -> int:
    """Show the plan; nothing is run."""
    from acceptance import preflight

    options, language = _options(given), _language(given)
    hidden = selection.refuse_outside(options.gpus, os.environ)
    prepared = preparation.prepare(options)
    remark = preflight.remark(options.station, options.image)
    screen = terminal.Terminal.on_stdout(language)
    screen.table(prepared.matrix().text())
    screen.plan(prepared.plan, prepared.profile_summary, details=True)
    for line in (remark, hidden):
        if line:
            screen.say(line, "bold yellow")
    if screen.failure:
        raise OSError(screen.failure.errno, screen.failure.strerror, "standard output")
    return 0


def inventory(given: argparse.Namespace) -> int:
    """Show the observed machine, or draft a machine file from it."""
    found = observed.observe()
    if given.write is None:
        sys.stdout.buffer.write(plain_json.render(found, sys.stdout.encoding))
    else:
        draft.write(found, given.write)
        told = "drafted from what was found; correct it by hand, then run"
        sys.stdout.write(f"{one_line(f'{given.write}: {told} `rigproof accept --machine {given.write}`', 10_000)}\n")
    return 0


def judge(given: argparse.Namespace) -> int:
    """Fold a recorded run again."""
    return _close(terminal.Terminal.on_stdout(_language(given)), outputs.judge(given.run_dir), given.run_dir)


def report(given: argparse.Namespace) -> int:
    """Write a recorded run's files again. One that never came to its end is closed first, as the next start would."""
    language = _language(given)
    textfile = telling.read(textfile=given.textfile).textfile
    screen = terminal.Terminal.on_stdout(language)
    if not any(isinstance(entry.body, RunEnded | RunClosed) for entry in journal.read(given.run_dir).entries):
        with lock.MachineLock():  # whoever holds it may be writing this very run
            sentence = unfinished.close(given.run_dir)
        if sentence:
            screen.say(sentence, "yellow")
    found = outputs.write(given.run_dir, language)
    if textfile is not None:
        telling.textfile(given.run_dir, textfile)
    return _close(screen, found, given.run_dir)


def _text(data: bytes) -> str:
    """A recorded text: UTF-8, or what its byte order mark says (PowerShell writes UTF-16)."""
    marks = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
    encoding = next((name for mark, name in marks if data.startswith(mark)), "utf-8")
    return data.decode(encoding, errors="replace")


def read(given: argparse.Namespace) -> int:
    """Say what one recorded output is worth."""
    try:
        data = sys.stdin.buffer.read() if str(given.file) == "-" else given.file.read_bytes()
    except OSError as error:
        raise NoRecording(
            f"{given.file}: cannot be read ({error.strerror}): give the file that holds what {given.tool} printed"
        ) from error
    try:
        output = replace(READERS[given.tool](_text(data)), tool=given.tool)
    except UnreadableOutput as error:
        output = ToolOutput(given.tool, "error", str(error))
    sys.stdout.buffer.write(plain_json.render(output.to_json_object(), sys.stdout.encoding))
    return _EXIT[output.outcome]


def compare(given: argparse.Namespace) -> int:
    """Show recorded runs side by side: 0 when none is worse than the first outside the noise, 1 when one is."""
    language = _language(given)
    screen = terminal.Terminal.on_stdout(language)
    found = comparing.show(given.run_dirs, screen, given.page, everything=given.all, language=language)
    return 1 if found.worse else 0


def schedule(given: argparse.Namespace) -> int:
    """Install, remove or show what starts a nightly run; or say how a night ended, which is 3 where somebody could not be told."""
    language = _language(given)
    screen = terminal.Terminal.on_stdout(language)
    if given.what != "failed":
        return scheduling.run(given, screen, language)
    ended, *troubles = scheduling.failed(given, os.environ)
    for sentence in (ended, *troubles):
        screen.say(sentence)
    return 3 if troubles else 0


VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "accept": accept,
    "plan": plan_,
    "inventory": inventory,
    "judge": judge,
    "report": report,
    "compare": compare,
    "schedule": schedule,
    "read": read,
}
