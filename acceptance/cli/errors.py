"""Exceptions that end a verb with one sentence.

Imported only when one was raised, because it imports many modules.
"""

from __future__ import annotations

from acceptance import resources
from acceptance.cli import compare, history
from acceptance.cli.read import NoRecording
from acceptance.core import collection, verdict
from acceptance.expect import measurements, sheet
from acceptance.history import drift_rules, noise
from acceptance.history.errors import BaselineRefused, BaselineUnsound, HistoryError
from acceptance.journal import reader, segment
from acceptance.machine import change_rules, gpu_selection, machine_file
from acceptance.notify import targets
from acceptance.notify.schedule import installation
from acceptance.observe import draft, sysfs
from acceptance.process import command
from acceptance.reports import advice, languages, po_file
from acceptance.run import lock, planning, profile, signals, supervisor
from acceptance.station import base, gpu_grant
from acceptance.station.image.engine import ImageError

# A mistake in the user's arguments or files: exit code 2.
USER_ERRORS: tuple[type[BaseException], ...] = (
    machine_file.MachineFileError,
    collection.PlanError,
    profile.ProfileError,
    gpu_selection.SelectionError,
    base.StationError,
    supervisor.OutputError,
    lock.MachineBusy,
    lock.LockError,
    draft.DraftError,
    languages.UnknownLanguage,
    reader.NoRun,
    NoRecording,
    compare.NoComparison,
    history.NoHistory,
    BaselineRefused,
    targets.TargetError,
    installation.ScheduleError,
)
# A fault of rigproof or the machine: exit code 3, and the machine stays unjudged.
SYSTEM_ERRORS: tuple[type[BaseException], ...] = (
    signals.UserInterrupt,
    command.CommandError,
    segment.JournalError,
    verdict.UnreadableRun,
    planning.PreparationError,
    ImageError,
    gpu_grant.GrantError,
    measurements.MeasurementFileError,
    sheet.SheetError,
    noise.NoiseFileError,
    change_rules.ChangeFileError,
    drift_rules.DriftFileError,
    resources.FixtureMissing,
    advice.AdviceFileError,
    po_file.BrokenCatalogue,
    sysfs.SysfsError,
    BaselineUnsound,
    HistoryError,
)
