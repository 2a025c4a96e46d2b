"""The folders that the storage tests write in: chosen, announced, made, and removed again.

In a folder of the user lies `.rigproof`, which is ours alone (0700), with the folder `run-<id>` of
one run, `kept` for the file that stays for the nights, and `owner`, which says whose it is. Nothing
else there is ever opened. Every name is opened below an open folder and never through a symbolic
link, so that nobody can lead a removal elsewhere; what belongs to another user or lies on another
mount is left alone, and said.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from acceptance.core import message, regular_file
from acceptance.core.evidence import Scratch
from acceptance.core.message import Listed, Message, Text, Value, english
from acceptance.core.parts import Component
from acceptance.core.plan import matches_patterns
from acceptance.core.record import Note
from acceptance.journal import clock
from acceptance.machine import scratch_place
from acceptance.machine.filesystem import Filesystem
from acceptance.machine.inventory import Disk
from acceptance.machine.machine_file import DeclaredScratch
from acceptance.machine.scratch_place import HOME, KEPT, RUN_PREFIX, SEALED, keeps
from acceptance.observe import filesystem
from acceptance.observe.sysfs import SysfsError
from acceptance.run import site_folder
from acceptance.wording.errors import WordedError, said

_OWNER = "owner"
# The checks that read or write files of their own.
CHECKS = (
    "storage.kept",
    "storage.write",
    "storage.verify",
    "storage.read",
    "storage.write_random",
    "storage.keep",
    "storage.memmap",
    "storage.feed",
    "storage.checkpoint",
    "storage.full_cache",
)
_OWNER_BYTES = 4096  # many times what an owner file holds
_DEEPEST = 8  # folders in each other; ours are two
_SHOWN = 3  # names in a message
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ScratchError(WordedError):
    """Nothing can be tested in a folder; the message is one sentence with the cure.

    `index` is its number among those of the machine file.
    """

    index = 0


def due(checks: Sequence[str], only: Sequence[str]) -> bool:
    """Whether a selected check needs a folder."""
    return any(one in CHECKS and (not only or matches_patterns(one, only)) for one in checks)


def find(
    declared: Sequence[DeclaredScratch], profile: str, out: Path, root: Path = Path("/")
) -> tuple[Scratch, ...]:
    """The folders of a run, of the machine file or else the run's own; nothing is written.

    Raises ScratchError where one cannot be used.
    """
    # The folder of the runs may not be there yet.
    own = next(one for one in (out.absolute(), *out.absolute().parents) if one.is_dir()).resolve()
    wanted = tuple(declared) or (DeclaredScratch(str(own)),)
    found: list[Scratch] = []
    shared: dict[Component, str] = {}
    budgets = scratch_place.budgets(profile, wanted)
    for index, (one, budget) in enumerate(zip(wanted, budgets, strict=True)):
        try:
            seen, sealed_bytes = _seen(one, budget.all_bytes, root)
            component = scratch_place.component(seen.disks, seen.block, seen.kind)
            if other := shared.get(component):
                raise ScratchError(
                    english(
                        "scratch_twice",
                        "{path} is on the same disk as {other} ({component}): name one folder for "
                        "each disk",
                    ),
                    path=one.path,
                    other=other,
                    component=str(component),
                )
        except ScratchError as error:
            error.index = index
            raise
        shared[component] = one.path
        found.append(
            Scratch(
                path=one.path,
                component=component,
                mount=seen.mount,
                kind=seen.kind,
                source=seen.source,
                disks=seen.disks,
                layers=seen.layers,
                free_bytes=seen.free_bytes,
                write_bytes=budget.all_bytes,
                kept_bytes=budget.kept_bytes,
                keep=one.keep,
                sealed_bytes=sealed_bytes if one.keep else 0,
            )
        )
    return tuple(found)


def _seen(declared: DeclaredScratch, need_bytes: int, root: Path) -> tuple[Filesystem, int]:
    """The filesystem of a folder that can be used, and the size of the file kept there.

    Raises ScratchError for any other.
    """
    path = Path(declared.path)
    with _folder(path) as folder:
        try:
            seen = filesystem.read(path, root)
        except (SysfsError, OSError) as error:
            raise ScratchError(
                english(
                    "scratch_unseen",
                    "the filesystem of {path} cannot be looked at ({why}): name another folder as "
                    "path of a scratch table in the machine file",
                ),
                path=str(path),
                why=said(error),
            ) from error
        if why := scratch_place.suitable(seen, declared.allow, need_bytes, declared.path):
            raise ScratchError("clauses", why=(why,))
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True):
            raise ScratchError(
                english(
                    "scratch_unwritable",
                    "{path} cannot be written by {user}: change its permissions, or name another "
                    "folder as path of a scratch table in the machine file",
                ),
                path=str(path),
                user=site_folder.user_name(os.geteuid()),
            )
        # What others left there is found before the run, not in it.
        with contextlib.suppress(FileNotFoundError):
            _require_own(os.stat(HOME, dir_fd=folder, follow_symlinks=False), path, folder)
        return seen, _sealed_bytes(folder)


def _sealed_bytes(folder: int) -> int:
    """The size of the file that an earlier run kept in a user's folder; 0 where there is none.

    Anything else of that name is none of ours, and is not opened.
    """
    with contextlib.ExitStack() as opened:
        for name in (HOME, KEPT):
            try:
                folder = os.open(name, _FOLDER, dir_fd=folder)
            except OSError:
                return 0
            opened.callback(os.close, folder)
        try:
            found = os.stat(SEALED, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return 0
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        return found.st_size if ours else 0


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[int]:
    """The user's folder, open. Raises ScratchError where it is something else."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise ScratchError(
                english(
                    "scratch_is_link", "{path} is a symbolic link (to {to}): name the folder itself"
                ),
                path=str(path),
                to=str(path.readlink()),
            )
        opened = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise ScratchError(
            english("scratch_missing", "{path} does not exist: make the folder, or mount its disk"),
            path=str(path),
        ) from error
    except NotADirectoryError as error:
        raise ScratchError(
            english(
                "scratch_no_folder", "{path} is no folder: name a folder on the disk to be tested"
            ),
            path=str(path),
        ) from error
    except OSError as error:
        raise ScratchError("scratch_unseen", path=str(path), why=str(error.strerror)) from error
    try:
        owner = os.fstat(opened).st_uid
        if os.geteuid() != 0 and owner not in (0, os.geteuid()):
            raise ScratchError(
                english(
                    "scratch_of_other",
                    "{path} belongs to {owner}: name a folder of your own, such as one made in it",
                ),
                path=str(path),
                owner=site_folder.user_name(owner),
            )
        yield opened
    finally:
        os.close(opened)


def _require_own(found: os.stat_result, path: Path, folder: int) -> None:
    """Raise ScratchError where `.rigproof` is not ours, or not of the same device."""
    home = str(path / HOME)
    if not stat.S_ISDIR(found.st_mode):
        raise ScratchError(
            english(
                "scratch_home_no_folder",
                "{home} is no folder and was not made by rigproof: move it away, or name another "
                "folder as path of a scratch table in the machine file",
            ),
            home=home,
        )
    if found.st_uid != os.geteuid():
        raise ScratchError(
            english(
                "scratch_home_of_other",
                "{home} belongs to {owner}: run rigproof as {owner}, or remove it where no run of "
                "theirs uses it",
            ),
            home=home,
            owner=site_folder.user_name(found.st_uid),
        )
    if site_folder.others_may_write(found):
        raise ScratchError(
            english(
                "scratch_home_open",
                "others may write into {home}, which rigproof makes for itself alone: look at "
                "what is in it, and remove it",
            ),
            home=home,
        )
    if found.st_dev != os.fstat(folder).st_dev:
        raise ScratchError(
            english(
                "scratch_home_mounted",
                "{home} is a mount of its own: unmount it, or name another folder as path of a "
                "scratch table in the machine file",
            ),
            home=home,
        )


def announce(scratches: Sequence[Scratch]) -> tuple[Message, ...]:
    """What will be written where, one message a folder, to be said before the run."""
    return tuple(_announced(one) for one in scratches)


def _announced(scratch: Scratch) -> Message:
    writes, sealed, kept = scratch.write_bytes, scratch.sealed_bytes, scratch.kept_bytes
    values = message.known(
        path=scratch.path,
        kind=scratch.kind,
        mount=scratch.mount,
        source=scratch.source,
        free=regular_file.size(scratch.free_bytes),
        disks=Listed(scratch.disks) if scratch.disks else None,
        layers=Listed(scratch.layers) if scratch.layers else None,
        size=regular_file.size(writes) if writes else None,
        bytes=f"{writes:,}" if writes else None,
        kept=regular_file.size(kept) if writes and kept else None,
        sealed=regular_file.size(sealed) if sealed and not writes else None,
    )
    return Message(
        english(
            "scratch_writes",
            "storage: at most {size} ({bytes} bytes) are written below {path}/.rigproof[, {kept} "
            "of which stay for the nights], and the rest is removed after the run; it lies on "
            "{kind} of {source}, mounted on {mount}[, disks: {disks}][, through {layers}], {free} "
            "free",
        )
        if writes
        else english(
            "scratch_reads",
            "storage: no data are written below {path}/.rigproof[, and the {sealed} that an "
            "earlier run sealed there are read]; it lies on {kind} of {source}, mounted on "
            "{mount}[, disks: {disks}][, through {layers}], {free} free",
        ),
        values,
    )


def unmounted(scratches: Sequence[Scratch]) -> tuple[Message, ...]:
    """The folders of the machine file that lie on the filesystem of `/`, where a disk that should
    be mounted there may be missing."""
    return tuple(
        Message(
            english(
                "scratch_on_root",
                "warning: {path}, a scratch folder of the machine file, lies on the filesystem of "
                "/ ({source}), and the disk of / is what is tested there: if another disk belongs "
                "there, it is not mounted (`findmnt -T {path}`); mount it and start again",
            ),
            {"path": one.path, "source": one.source},
        )
        for one in scratches
        if one.mount == "/" != one.path
    )


def untested(scratches: Sequence[Scratch], disks: Sequence[Disk]) -> tuple[Message, ...]:
    """What a run on these filesystems does not test of the machine's disks, and how to have it."""
    idle = [one for one in scratches if not one.write_bytes]
    found = (
        [
            Message(
                english(
                    "storage_not_written",
                    "writing to disks, and with it verifying, memory maps, feeding and "
                    "checkpoints: this profile writes no data (accept does)",
                )
            )
        ]
        if idle
        else []
    )
    unread = [one for one in idle if not one.sealed_bytes]
    if lacking := _components(one for one in unread if one.keep):
        if keeps(len(scratches)):
            found.append(
                Message(
                    english(
                        "storage_not_sealed",
                        "reading from {disks}: no file that an earlier run sealed lies there, so "
                        "reading is not due; run `rigproof accept` (`make accept`) once, which "
                        "leaves one of 1 GiB for this",
                    ),
                    {"disks": lacking},
                )
            )
        else:
            found.append(
                Message(
                    english(
                        "storage_never_sealed",
                        "reading from {disks}: no file that an earlier run sealed lies there, and "
                        "an accept that shares its bytes among so many filesystems leaves none",
                    ),
                    {"disks": lacking},
                )
            )
    if forgone := _components(one for one in unread if not one.keep):
        found.append(
            Message(
                english(
                    "storage_forgone",
                    "reading from {disks}: the machine file says `keep = false` in its scratch "
                    "table, so that no file stays there to be read",
                ),
                {"disks": forgone},
            )
        )
    tested = {name for one in scratches for name in one.disks}
    others = _components(disk for disk in disks if disk.name not in tested)
    # What the kernel does not show the disks of, such as ZFS, may lie on any of them.
    if others and scratches and all(one.disks for one in scratches):
        found.append(
            Message(
                english(
                    "disks_without_scratch",
                    "the speed of {disks}, and whether files on it stay whole: no tested folder "
                    "lies there (name one as path of a scratch table in the machine file)",
                ),
                {"disks": others},
            )
        )
    return tuple(found)


def _components(parts: Iterable[Scratch | Disk]) -> Listed | None:
    """The names of the components of these, None where there are none."""
    names = tuple(str(one.component) for one in parts)
    return Listed(names) if names else None


@dataclass(slots=True)
class _Swept:
    """What a removal has removed, and what it has left alone."""

    size: int = 0
    left: list[str] = field(default_factory=list)


class _Home:
    """Our folder in a user's one: open, ours, and locked against every other run.

    A context. Raises ScratchError where it is not ours or in use, FileNotFoundError where it is not
    there and not to be made, and other OSErrors.
    """

    def __init__(self, path: Path, machine_id: str, *, make: bool) -> None:
        self.path = path / HOME
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as opened:
            self._parent = opened.enter_context(_folder(path))
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(HOME, 0o700, dir_fd=self._parent)
            try:
                self.folder = os.open(HOME, _FOLDER, dir_fd=self._parent)
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise ScratchError("scratch_home_no_folder", home=str(self.path)) from error
                raise
            opened.callback(os.close, self.folder)
            _require_own(os.fstat(self.folder), path, self._parent)
            try:
                fcntl.flock(self.folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ScratchError(
                    english(
                        "scratch_in_use", "another run of rigproof uses {home}: wait for its end"
                    ),
                    home=str(self.path),
                ) from error
            if os.fstat(self.folder).st_nlink == 0:  # its holder has just removed it
                raise ScratchError("scratch_in_use", home=str(self.path))
            # A program that was forked may still have the folder open.
            opened.callback(fcntl.flock, self.folder, fcntl.LOCK_UN)
            self._require_owner(machine_id)
            self._open = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()  # the lock goes with it

    def _require_owner(self, machine_id: str) -> None:
        """Hold the owner file against this machine; written where nothing else is.

        Its user is there for whoever reads it: a folder that was given to another with all that is
        in it (`chown -R`) is that user's.
        """
        named = f"rigproof\n{machine_id}\n".encode()
        due = named + f"{os.geteuid()}\n".encode()
        told = self._owner()
        if told.startswith(named):
            return
        # A run that was killed before it wrote the file left the folder empty.
        if _names(self.folder) - {_OWNER} or due[: len(told)] != told:
            raise ScratchError(
                english(
                    "scratch_home_unknown",
                    "{home} was not made by rigproof on this machine: look at what is in it, and "
                    "move it away",
                ),
                home=str(self.path),
            )
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_OWNER, dir_fd=self.folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(_OWNER, flags, 0o600, dir_fd=self.folder), "wb", 0) as file:
            if file.write(due) != len(due):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _owner(self) -> bytes:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        try:
            with os.fdopen(os.open(_OWNER, flags, dir_fd=self.folder), "rb") as file:
                return file.read(_OWNER_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:  # a link, or a folder
            raise ScratchError("scratch_home_unknown", home=str(self.path)) from error

    def make(self, name: str) -> None:
        """Make a folder in it; one of that name must not be there."""
        os.mkdir(name, 0o700, dir_fd=self.folder)

    def runs(self) -> list[str]:
        """The folders of runs; with the lock held, none of them is alive."""
        return sorted(name for name in _names(self.folder) if name.startswith(RUN_PREFIX))

    def keeps(self) -> bool:
        """Whether an earlier run kept a file in it."""
        return KEPT in _names(self.folder)

    def remove(self, names: Sequence[str]) -> _Swept:
        """Remove these, as far as they are ours and on our mount."""
        swept = _Swept()
        for name in names:
            self._remove(self.folder, name, swept, _DEEPEST)
        return swept

    def _remove(self, within: int, name: str, swept: _Swept, depth: int) -> None:
        try:
            found = os.stat(name, dir_fd=within, follow_symlinks=False)
            if found.st_uid != os.geteuid():
                raise OSError(errno.EPERM, os.strerror(errno.EPERM))
            if not stat.S_ISDIR(found.st_mode):
                os.unlink(name, dir_fd=within)
                swept.size += found.st_blocks * 512 if found.st_nlink == 1 else 0
                return
            if depth == 0:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            folder = os.open(name, _FOLDER, dir_fd=within)
            try:
                if os.fstat(folder).st_uid != os.geteuid() or _place(folder) != _place(within):
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
                for inside in _names(folder):
                    self._remove(folder, inside, swept, depth - 1)
            finally:
                os.close(folder)
            os.rmdir(name, dir_fd=within)
        except FileNotFoundError:
            return
        except OSError:
            swept.left.append(name)

    def leave(self) -> None:
        """Remove our folder where nothing is kept in it."""
        with contextlib.suppress(OSError):
            os.rmdir(KEPT, dir_fd=self.folder)
        if not _names(self.folder) - {_OWNER}:
            os.unlink(_OWNER, dir_fd=self.folder)
            os.rmdir(HOME, dir_fd=self._parent)


def _place(folder: int) -> tuple[int, str]:
    """The device and the mount of an open folder: a bind mount has another mount alone."""
    told = Path(f"/proc/self/fdinfo/{folder}").read_text(encoding="ascii")
    return os.fstat(folder).st_dev, next(
        line for line in told.splitlines() if line.startswith("mnt_id:")
    )


def _names(folder: int) -> set[str]:
    with os.scandir(folder) as entries:
        return {one.name for one in entries}


def _told(path: Path, names: Sequence[str], swept: _Swept) -> Iterator[Message]:
    values: dict[str, Value] = {"home": str(path)}
    if gone := [name for name in names if name not in swept.left]:
        size = regular_file.size(swept.size)
        yield Message(
            english(
                "scratch_swept", "{home}: removed what an earlier run left there ({names}, {size})"
            ),
            {**values, "names": Listed.first(gone, _SHOWN), "size": size},
        )
    if swept.left:
        yield Message(
            english(
                "scratch_left",
                "{home}: left {names} alone, which could not be removed or is not rigproof's own: "
                "look at it, and remove it by hand",
            ),
            {**values, "names": Listed.first(sorted(set(swept.left)), _SHOWN)},
        )


def sweep(previous: Sequence[Scratch], root: Path = Path("/")) -> tuple[Message, ...]:
    """Remove what a run that was killed left in its folders; says what, and what it could not."""
    found: list[Message] = []
    for one in previous:
        try:
            with _Home(Path(one.path), clock.machine_id(root), make=False) as home:
                names = home.runs()
                found += _told(home.path, names, home.remove(names))
                home.leave()
        except FileNotFoundError:
            continue
        except (ScratchError, OSError) as error:
            if isinstance(error, ScratchError) and error.message.code == "scratch_missing":
                continue
            found.append(_unswept(one.path, error))
    return tuple(found)


def _unswept(path: str, error: ScratchError | OSError) -> Message:
    return Message(
        english(
            "scratch_unswept", "what an earlier run left below {path} could not be removed: {why}"
        ),
        {"path": path, "why": _why(error)},
    )


def _why(error: WordedError | OSError) -> Text:
    return str(error.strerror) if isinstance(error, OSError) else error.message


class ScratchFolders:
    """The folders of one run on its filesystems, from `prepare` to `remove`.

    While they are there, a lock tells every other run that this one is alive.
    """

    def __init__(self, scratches: Sequence[Scratch], run_id: str, root: Path = Path("/")) -> None:
        self._scratches = scratches
        self._name = f"{RUN_PREFIX}{run_id}"
        self._root = root
        self._homes: list[_Home] = []
        self.made: tuple[Scratch, ...] = ()  # those that the sessions may use

    def prepare(self) -> Iterator[Note]:
        """Make them, and remove what earlier runs left; yields what the journal must say.

        Where one cannot be made, that is a trouble, and the checks that need it cannot run.
        """
        for one in self._scratches:
            try:
                yield from self._prepare(one)
            except (WordedError, OSError) as error:
                values: dict[str, Value] = {"path": one.path, "why": _why(error)}
                yield Note(
                    Message(
                        english(
                            "scratch_not_made",
                            "no folder for the storage tests could be made below {path}: {why}",
                        ),
                        values,
                    ),
                    trouble=True,
                )

    def _prepare(self, scratch: Scratch) -> Iterator[Note]:
        path = Path(scratch.path)
        now = filesystem.read(path, self._root)
        if (now.mount, now.source) != (scratch.mount, scratch.source):
            values = {"path": scratch.path, "mount": now.mount, "planned": scratch.mount}
            raise ScratchError(
                english(
                    "scratch_moved",
                    "{path} is now on {mount} and was on {planned} when the run was planned: "
                    "mount its disk, and start again",
                ),
                **values,
            )
        home = _Home(path, clock.machine_id(self._root), make=True)
        self._homes.append(home)
        old = [*home.runs(), *([] if scratch.keep else [KEPT] if home.keeps() else [])]
        for told in _told(home.path, old, home.remove(old)):
            yield Note(told)
        home.make(self._name)
        self.made += (scratch,)

    def remove(self) -> tuple[Note, ...]:
        """Remove them, and our folder around each where it keeps nothing; says what is left."""
        found: list[Note] = []
        for home in self._homes:
            with home:
                try:
                    swept = home.remove([self._name])
                    home.leave()
                except OSError as error:
                    found.append(Note(_unswept(str(home.path.parent), error)))
                else:
                    found += map(Note, _told(home.path, (), swept))
        self._homes.clear()
        return tuple(found)
