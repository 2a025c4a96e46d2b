"""Exceptions that end a verb with one sentence.

Imported only when one was raised, because it imports many modules.
"""

from __future__ import annotations

from pathlib import Path

from acceptance import resources
from acceptance.cli import capacity, compare, fleet_report, history
from acceptance.cli.read import NoRecording
from acceptance.expect import (
    collected,
    site_families,
    site_sheets,
)
from acceptance.fleet import acceptances, due, kubernetes, parquet, slurm
from acceptance.history.errors import BaselineRefused, BaselineUnsound, HistoryError
from acceptance.journal import ownership, reader, segment
from acceptance.machine import gpu_selection, machine_file
from acceptance.notify import targets
from acceptance.notify.schedule import installation
from acceptance.observe import draft, sysfs
from acceptance.process import command
from acceptance.reports import languages
from acceptance.run import (
    lock,
    planning,
    profile,
    safe_folder,
    signals,
    signature,
    site_collection,
    supervisor,
)
from acceptance.station import base, gpu_grant
from acceptance.station.image.engine import ImageError
from acceptance.wording import words
from acceptance.wording.po_file import BrokenCatalogue

# A mistake in the user's arguments or files: exit code 2.
USER_ERRORS: tuple[type[BaseException], ...] = (
    machine_file.MachineFileError,
    site_sheets.SiteSheetError,
    collected.PlanError,
    profile.ProfileError,
    site_families.SiteFileError,
    safe_folder.FolderError,
    site_collection.SiteMistakes,
    gpu_selection.SelectionError,
    base.StationError,
    supervisor.OutputError,
    lock.MachineBusy,
    lock.LockError,
    draft.DraftError,
    languages.UnknownLanguage,
    reader.NoRun,
    signature.SignatureError,
    NoRecording,
    capacity.NoCapacity,
    compare.NoComparison,
    history.NoHistory,
    fleet_report.NoFleet,
    BaselineRefused,
    targets.TargetError,
    installation.ScheduleError,
    due.DueError,
    acceptances.AcceptanceError,
    slurm.SlurmError,
    due.LocationsError,
    parquet.NoDuckdb,
    kubernetes.ManifestError,
)
# A fault of rigproof or the machine: exit code 3, and the machine stays unjudged.
SYSTEM_ERRORS: tuple[type[BaseException], ...] = (
    signals.UserInterrupt,
    command.CommandError,
    slurm.SubmissionError,
    segment.JournalError,
    planning.PreparationError,
    ImageError,
    gpu_grant.GrantError,
    resources.DataFileError,
    BrokenCatalogue,
    sysfs.SysfsError,
    BaselineUnsound,
    HistoryError,
    parquet.NightFileError,
    kubernetes.KubernetesError,
)


def reason(error: OSError) -> str:
    """Why a file cannot be read or written, with the cure where root left it."""
    path = error.filename
    return words.text(ownership.reason(error, Path(path))) if path else error.strerror or str(error)
