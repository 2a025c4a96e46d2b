"""All errors that end a verb with one sentence. Imported when there is one: a verb that goes well needs few of the modules they are in."""

from __future__ import annotations

from acceptance import (
    command,
    comparing,
    fixtures,
    gpu_grant,
    histories,
    journal,
    lock,
    place,
    preparation,
    profile,
    selection,
    stopping,
    supervisor,
    telling,
)
from acceptance.history.baseline_errors import BaselineRefused, BaselineUnsound
from acceptance.history.trouble import HistoryError
from acceptance.image.errors import ImageError
from acceptance.judge import advice, change_rules, drift_rules, limits, machine, noise, plan, sheet, verdict
from acceptance.observe import draft, sysfs
from acceptance.reports import languages
from acceptance.schedule import installing
from acceptance.verbs.read import NoRecording

# A mistake in what the user gave: exit code 2.
USER_ERRORS: tuple[type[BaseException], ...] = (
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
    histories.NoHistory,
    BaselineRefused,
    telling.TellingError,
    installing.ScheduleError,
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
    change_rules.ChangeFileError,
    drift_rules.DriftFileError,
    fixtures.FixtureMissing,
    advice.AdviceFileError,
    sysfs.SysfsError,
    BaselineUnsound,
    HistoryError,
)
