from __future__ import annotations

import contextlib
import fcntl
import io
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from machine_tree import Tree
from raising import raising

from acceptance.core.evidence import Scratch
from acceptance.core.limit import GIB
from acceptance.core.message import Message
from acceptance.core.parts import Part
from acceptance.core.record import Note
from acceptance.machine.inventory import Disk
from acceptance.machine.machine_file import DeclaredScratch
from acceptance.machine.scratch_place import HOME
from acceptance.run import scratch
from acceptance.run.scratch import ScratchError, ScratchFolders
from acceptance.wording import words

MACHINE = "0123456789abcdef"
OWNER = f"rigproof\n{MACHINE}\n{os.geteuid()}\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A machine on which the folder `data` is a disk of its own, and `more` another."""
    tree = Tree(tmp_path / "root")
    lines = ["27 1 8:0 / / rw - ext4 /dev/sda rw"]
    for name, disk, minor in (("data", "sdb", 16), ("more", "sdc", 32)):
        (tmp_path / name).mkdir()
        lines.append(f"{28 + minor} 27 8:{minor} / {tmp_path / name} rw - ext4 /dev/{disk} rw")
    for disk, minor in (("sda", 0), ("sdb", 16), ("sdc", 32)):
        tree.disk(disk, f"pci0000:00/0000:00:17.0/ata{minor}/host1")
        folder = f"sys/devices/pci0000:00/0000:00:17.0/ata{minor}/host1/block/{disk}"
        tree.link(f"sys/dev/block/8:{minor}", folder)
    tree.write("proc/self/mountinfo", "\n".join(lines) + "\n")
    tree.write("etc/machine-id", f"{MACHINE}\n")
    return tree


@pytest.fixture
def data(tree: Tree) -> Path:
    return tree.root.parent / "data"


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every filesystem has room for all."""
    room = SimpleNamespace(f_bavail=500, f_blocks=1000, f_frsize=GIB, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda _path: room)


def find(tree: Tree, *paths: Path, profile: str = "nightly", **more: Any) -> tuple[Scratch, ...]:
    declared = [DeclaredScratch(str(path), **more) for path in paths]
    return scratch.find(declared, profile, tree.root.parent, tree.root)


def one(tree: Tree, data: Path, **changes: Any) -> Scratch:
    return msgspec.structs.replace(find(tree, data)[0], **changes)


def refused(tree: Tree, *paths: Path, **more: Any) -> str:
    with pytest.raises(ScratchError) as caught:
        find(tree, *paths, **more)
    sentence = str(caught.value)
    assert len(sentence.splitlines()) == 1
    return sentence


def told(notes: Iterable[Note | Message]) -> str:
    """What is said, in one text."""
    return "\n".join(words.text(one.text if isinstance(one, Note) else one) for one in notes)


def prepared(tree: Tree, place: Scratch, run_id: str = "r1") -> ScratchFolders:
    """The folders of a run that could all be made."""
    folders = ScratchFolders([place], run_id, tree.root)
    assert list(folders.prepare()) == []
    return folders


def trouble(tree: Tree, place: Scratch) -> str:
    """Why a run cannot make its folder."""
    (note,) = ScratchFolders([place], "r1", tree.root).prepare()
    assert note.trouble
    return words.text(note.text)


# --- which folders ---


@pytest.mark.usefixtures("roomy")
def test_a_declared_folder(tree: Tree, data: Path) -> None:
    (found,) = find(tree, data, profile="accept")
    assert found == Scratch(
        path=str(data),
        component=Part("disk", "sdb"),
        mount=str(data),
        kind="ext4",
        source="/dev/sdb",
        disks=("sdb",),
        layers=(),
        free_bytes=500 * GIB,
        write_bytes=8 * GIB,
        kept_bytes=GIB,
        keep=True,
        sealed_bytes=0,
    )
    assert list(data.iterdir()) == []


def test_without_one_it_is_the_folder_of_the_runs(tree: Tree, tmp_path: Path) -> None:
    missing = tmp_path / "data/not/there/yet"
    (found,) = scratch.find((), "nightly", missing, tree.root)
    assert (found.path, found.component, found.keep) == (
        str(tmp_path / "data"),
        Part("disk", "sdb"),
        True,
    )


@pytest.mark.usefixtures("roomy")
def test_the_bytes_are_shared_out(tree: Tree, tmp_path: Path) -> None:
    found = find(tree, tmp_path / "data", tmp_path / "more", profile="accept", keep=False)
    assert [(str(each.component), each.write_bytes, each.keep) for each in found] == [
        ("disk:sdb", 4 * GIB, False),
        ("disk:sdc", 4 * GIB, False),
    ]


def test_a_link_a_file_a_pipe_a_socket_and_nothing(tree: Tree, data: Path) -> None:
    (data / "link").symlink_to(data)
    (data / "file").write_text("precious")
    os.mkfifo(data / "pipe")
    with socket.socket(socket.AF_UNIX) as opened, contextlib.chdir(data):
        opened.bind("socket")
    before = sorted(data.iterdir())
    assert f"is a symbolic link (to {data})" in refused(tree, data / "link")
    for name in ("file", "pipe", "socket"):
        assert refused(tree, data / name).startswith(f"{data / name} is no folder")
    assert "does not exist" in refused(tree, data / "missing")
    assert "is no folder" in refused(tree, data / "file/below")
    assert sorted(data.iterdir()) == before
    assert (data / "file").read_text() == "precious"


def test_a_folder_behind_more_links_than_the_kernel_follows(tree: Tree, data: Path) -> None:
    (data / "loop").symlink_to("loop")
    assert "cannot be looked at" in refused(tree, data / "loop/below")


def test_a_folder_of_another_user(tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(data, 4321, 4321)
    monkeypatch.setattr(os, "geteuid", lambda: 5432)
    assert "belongs to" in refused(tree, data)
    monkeypatch.setattr(os, "geteuid", lambda: data.stat().st_uid)
    assert find(tree, data)


def test_a_folder_that_cannot_be_written(
    tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert f"{data} cannot be written by " in refused(tree, data)


def test_a_filesystem_that_is_not_suitable(tree: Tree, data: Path) -> None:
    text = (tree.root / "proc/self/mountinfo").read_text()
    tree.write("proc/self/mountinfo", text.replace("ext4 /dev/sdb", "tmpfs tmpfs"))
    assert "no disk of this machine" in refused(tree, data)
    assert find(tree, data, allow=("tmpfs",))
    tree.write("proc/self/mountinfo", text.replace("- ext4 /dev/sdb rw", "- ext4 /dev/sdb ro"))
    assert "read-only" in refused(tree, data)
    assert list(data.iterdir()) == []


def test_a_filesystem_that_is_too_small(
    tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = SimpleNamespace(f_bavail=17, f_blocks=1000, f_frsize=GIB, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda _path: room)
    assert "17 GiB free and 8 GiB are to be written" in refused(tree, data, profile="accept")
    assert find(tree, data, profile="smoke")


def test_a_filesystem_that_the_kernel_does_not_show(tree: Tree, data: Path) -> None:
    (tree.root / "proc/self/mountinfo").unlink()
    assert "mount /proc" in refused(tree, data)


def test_one_disk_named_twice(tree: Tree, tmp_path: Path) -> None:
    below = tmp_path / "data/below"
    below.mkdir()
    with pytest.raises(ScratchError, match=r"is on the same disk as .*data \(disk:sdb\)") as caught:
        find(tree, tmp_path / "data", tmp_path / "more", below)
    assert caught.value.index == 2


def test_which_checks_need_a_folder() -> None:
    ids = ["cpu.gemm[f64]", "storage.smart_health", "storage.verify"]
    assert scratch.due(ids, ())
    assert scratch.due(ids, ("storage",))
    assert not scratch.due(ids, ("cpu", "storage.smart_health"))
    assert not scratch.due(ids[:2], ())


# --- what is said ---


@pytest.mark.usefixtures("roomy")
def test_the_announcement_names_bytes_disk_and_what_stays(tree: Tree, data: Path) -> None:
    assert told(scratch.announce(find(tree, data, profile="accept"))) == (
        f"storage: at most 8 GiB (8,589,934,592 bytes) are written below {data}/.rigproof, 1 GiB "
        "of which stay for the nights, and the rest is removed after the run; it lies on ext4 of "
        f"/dev/sdb, mounted on {data}, disks: sdb, 500 GiB free"
    )
    idle = one(tree, data, disks=(), layers=("crypt", "lvm"))
    sealed = msgspec.structs.replace(idle, sealed_bytes=GIB)
    without, read = map(words.message, scratch.announce([idle, sealed]))
    assert "no data are written" in without
    assert "through crypt, lvm" in without
    assert "disks" not in without
    assert "the 1 GiB that an earlier run sealed there are read" in read


def test_a_folder_whose_disk_is_not_mounted_is_a_warning(tree: Tree, data: Path) -> None:
    mounted = find(tree, data)
    tree.write("proc/self/mountinfo", "27 1 8:0 / / rw - ext4 /dev/sda rw\n")
    missing = find(tree, data)
    assert "/dev/sda, mounted on /, disks: sda" in told(scratch.announce(missing))
    warning = told(scratch.unmounted([*mounted, *missing]))
    assert warning.startswith(f"warning: {data}, a scratch folder of the machine file, lies on ")
    assert f"`findmnt -T {data}`" in warning
    assert scratch.unmounted([msgspec.structs.replace(missing[0], path="/")]) == ()


DISKS = tuple(
    Disk(name, None, None, None, "ssd", "sata", None) for name in ("sda", "sdb", "sdc", "sdd")
)


def untested(places: Sequence[Scratch], disks: Sequence[Disk] = ()) -> list[str]:
    return [words.message(one) for one in scratch.untested(places, disks)]


def test_where_data_are_written_only_other_disks_are_not_tested(tree: Tree, data: Path) -> None:
    place = one(tree, data, write_bytes=GIB)
    assert untested([place]) == untested([place], DISKS[1:2]) == []
    (others,) = untested([place], DISKS)
    assert others.startswith("the speed of disk:sda, disk:sdc, disk:sdd, and whether files on it ")
    assert untested([msgspec.structs.replace(place, disks=())], DISKS) == [], "it may be on any"
    assert untested([], DISKS) == [], "why there is none is said elsewhere"


def test_where_nothing_is_written_and_no_file_is_sealed(tree: Tree, data: Path) -> None:
    place = one(tree, data)
    sealed = msgspec.structs.replace(place, sealed_bytes=GIB)
    writing, reading = untested([place])
    assert writing.startswith("writing to disks, and with it verifying, ")
    assert "from disk:sdb: no file that an earlier run sealed lies there, so reading is" in reading
    assert untested([sealed]) == [writing]
    (_, reading) = untested([msgspec.structs.replace(place, keep=False)])
    assert "from disk:sdb: the machine file says `keep = false`" in reading
    (_, reading) = untested([place, sealed, sealed])
    assert "shares its bytes among so many filesystems leaves none" in reading


# --- making and removing ---


def test_a_run_makes_its_folder_and_leaves_nothing(tree: Tree, data: Path) -> None:
    (data / "users").write_text("precious")
    folders = prepared(tree, one(tree, data))
    assert [place.path for place in folders.made] == [str(data)]
    home = data / HOME
    assert sorted(entry.name for entry in home.iterdir()) == ["owner", "run-r1"]
    assert (home / "owner").read_text() == OWNER
    assert [path.stat().st_mode & 0o777 for path in (home, home / "run-r1")] == [0o700, 0o700]
    (home / "run-r1/big").write_bytes(b"x" * 5000)
    (home / "run-r1/deep").mkdir()
    (home / "run-r1/deep/file").touch()
    for _ in range(2):
        assert folders.remove() == ()
        assert [entry.name for entry in data.iterdir()] == ["users"]


def test_what_is_kept_stays_until_it_is_forgone(tree: Tree, data: Path) -> None:
    first = prepared(tree, one(tree, data))
    (data / HOME / "kept").mkdir()
    (data / HOME / "kept/file").write_bytes(b"y" * 5000)
    assert first.remove() == ()
    assert sorted(entry.name for entry in (data / HOME).iterdir()) == ["kept", "owner"]
    assert prepared(tree, one(tree, data), "r2").remove() == ()
    assert (data / HOME / "kept/file").exists()
    third = ScratchFolders([one(tree, data, keep=False)], "r3", tree.root)
    assert told(third.prepare()).startswith(f"{data / HOME}: removed what an earlier run left")
    assert third.remove() == ()
    assert list(data.iterdir()) == []


CHANGES: dict[str, Callable[[Path], object]] = {
    "a link": lambda at: at.symlink_to(at.rename(at.with_name("other"))),
    "a folder": lambda at: (at.unlink(), at.mkdir()),
    "a pipe": lambda at: (at.unlink(), os.mkfifo(at)),
    "missing": lambda at: at.unlink(),
    "kept is a link": lambda at: at.parent.symlink_to(at.parent.rename(at.parents[1] / "x").name),
    "kept is a file": lambda at: (at.unlink(), at.parent.rmdir(), at.parent.write_text("x")),
}


def seal(data: Path) -> Path:
    """The file that an accepting run keeps."""
    (data / HOME).mkdir(0o700)
    (data / HOME / "kept").mkdir(0o700)
    sealed = data / HOME / "kept/sealed"
    sealed.write_bytes(b"s" * 5000)
    return sealed


def test_the_size_of_the_kept_file_is_told(tree: Tree, data: Path) -> None:
    assert find(tree, data)[0].sealed_bytes == 0
    sealed = seal(data)
    assert find(tree, data)[0].sealed_bytes == 5000
    assert find(tree, data, keep=False)[0].sealed_bytes == 0, "it is removed"
    sealed.write_bytes(b"")
    assert find(tree, data)[0].sealed_bytes == 0


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_kept_file_of_ours_is_none(tree: Tree, data: Path, change: str) -> None:
    CHANGES[change](seal(data))
    assert find(tree, data)[0].sealed_bytes == 0


def test_a_kept_file_of_another_user_is_none(
    tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = seal(data)
    if os.geteuid() == 0:
        os.chown(sealed, 4321, 4321)
    else:
        own = os.stat

        def stat(path: Any, **more: Any) -> Any:
            found = own(path, **more)
            if path != sealed.name:
                return found
            return SimpleNamespace(st_mode=found.st_mode, st_uid=4321, st_size=found.st_size)

        monkeypatch.setattr(os, "stat", stat)
    assert find(tree, data)[0].sealed_bytes == 0


def test_a_run_folder_that_somebody_removed(tree: Tree, data: Path) -> None:
    folders = prepared(tree, one(tree, data))
    (data / HOME / "run-r1").rmdir()
    assert folders.remove() == ()
    assert list(data.iterdir()) == []


def killed(tree: Tree, data: Path, run_id: str = "dead") -> Path:
    """What a run leaves that was killed in the middle."""
    for home in prepared(tree, one(tree, data), run_id)._homes:
        home._open.close()
    run = data / HOME / f"run-{run_id}"
    (run / "file").write_bytes(b"x" * 5000)
    return run


def test_the_next_start_sweeps_by_the_journal(tree: Tree, data: Path, tmp_path: Path) -> None:
    """And so does the next run."""
    killed(tree, data)
    folders = ScratchFolders([one(tree, data)], "r2", tree.root)
    removed = f"{data / HOME}: removed what an earlier run left there (run-"
    assert told(folders.prepare()).startswith(f"{removed}dead, ")
    assert folders.remove() == ()
    for run_id in ("a", "b", "c", "d"):
        # the folder of each lies beside the others: none is removed by the next in this test
        (data / HOME / f"run-{run_id}").mkdir(parents=True)
    (data / HOME).chmod(0o700)
    (data / HOME / "owner").write_text(OWNER)
    places = [one(tree, data, path=str(tmp_path / name)) for name in ("data", "more", "unmounted")]
    assert told(scratch.sweep(places, tree.root)).startswith(f"{removed}a, run-b, ")
    assert list(data.iterdir()) == []
    assert scratch.sweep(places[:2], tree.root) == ()


def test_links_are_removed_and_never_followed(tree: Tree, data: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("precious")
    run = killed(tree, data)
    (run / "folder").symlink_to(precious)
    (run / "link").symlink_to(precious / "file")
    os.link(precious / "file", run / "hard")
    (data / HOME / "run-link").symlink_to(precious)
    os.mkfifo(run / "pipe")
    assert len(scratch.sweep([one(tree, data)], tree.root)) == 1
    assert list(data.iterdir()) == []
    assert (precious / "file").read_text() == "precious"


def test_what_belongs_to_another_user_stays(
    tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = killed(tree, data)
    theirs = run / "theirs"
    theirs.mkdir()
    (theirs / "file").touch()
    own = os.stat

    def stat(path: Any, **more: Any) -> Any:
        found = own(path, **more)
        less = SimpleNamespace(st_uid=found.st_uid + 1, st_mode=found.st_mode)
        return less if path == "theirs" else found

    monkeypatch.setattr(os, "stat", stat)
    (left,) = scratch.sweep([one(tree, data)], tree.root)
    assert f"{data / HOME}: left run-dead, theirs alone" in words.message(left)
    assert ((theirs / "file").exists(), (run / "file").exists()) == (True, False)


def test_what_lies_on_another_mount_stays(
    tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = killed(tree, data)
    (run / "mounted").mkdir()
    (run / "mounted/file").touch()
    own = scratch._place

    def place(folder: int) -> tuple[int, str]:
        mounted = Path(f"/proc/self/fd/{folder}").readlink().name == "mounted"
        return (own(folder)[0], "mnt_id:\t99") if mounted else own(folder)

    monkeypatch.setattr(scratch, "_place", place)
    assert "left mounted, run-dead alone" in told(scratch.sweep([one(tree, data)], tree.root))
    assert (run / "mounted/file").exists()


def test_a_folder_deeper_than_any_of_ours_stays(tree: Tree, data: Path) -> None:
    deep = killed(tree, data).joinpath(*"abcdefghij")
    deep.mkdir(parents=True)
    assert "left a, b, c and " in told(scratch.sweep([one(tree, data)], tree.root))
    assert deep.exists()


def test_a_run_that_is_alive_is_left_alone(tree: Tree, data: Path) -> None:
    place = one(tree, data)
    folders = prepared(tree, place, "alive")
    used = f"another run of rigproof uses {data / HOME}"
    assert used in told(scratch.sweep([place], tree.root))
    assert used in trouble(tree, place)
    assert (data / HOME / "run-alive").is_dir()
    assert folders.remove() == ()


def test_a_folder_that_its_holder_has_just_removed(
    tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, own = one(tree, data), fcntl.flock

    def late(folder: int, how: int) -> None:
        own(folder, how)
        (data / HOME).rmdir()

    monkeypatch.setattr(fcntl, "flock", late)
    assert "another run of rigproof uses" in trouble(tree, place)


FOREIGN: dict[str, Callable[[Path], object]] = {
    "a file": lambda home: (home.rmdir(), home.write_text("precious")),
    "a link": lambda home: home.symlink_to(home.rename(home.with_name("real")).name),
    "open": lambda home: home.chmod(0o777),
    "no owner": lambda home: (home / "file").write_text("precious"),
    "of another machine": lambda home: (home / "owner").write_text(
        OWNER.replace(MACHINE, "f" * 16)
    ),
    "owner is a folder": lambda home: (home / "owner").mkdir(),
    "owner is a link": lambda home: (home / "owner").symlink_to("/etc/hostname"),
}


@pytest.mark.parametrize(
    ("kind", "why", "early"),
    [
        ("a file", "is no folder and was not made by rigproof", True),
        ("a link", "is no folder and was not made by rigproof", True),
        ("open", "others may write into", True),
        *((kind, "was not made by rigproof on this machine", False) for kind in [*FOREIGN][3:]),
    ],
)
def test_a_folder_of_our_name_that_is_not_ours(
    tree: Tree, data: Path, kind: str, why: str, early: bool
) -> None:
    place = one(tree, data)
    (data / HOME).mkdir(0o700)
    FOREIGN[kind](data / HOME)
    before = sorted(data.rglob("*"))
    if early:
        assert why in refused(tree, data)
    else:
        assert find(tree, data)
    assert why in told(scratch.sweep([place], tree.root))
    assert why in trouble(tree, place)
    assert sorted(data.rglob("*")) == before


def test_a_folder_of_our_name_that_is_anothers(
    tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = one(tree, data)
    (data / HOME).mkdir(0o700)
    if os.geteuid() == 0:
        os.chown(data / HOME, 54321, 54321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert f"{data / HOME} belongs to " in refused(tree, data)
    assert "belongs to" in told(scratch.sweep([place], tree.root))
    assert list((data / HOME).iterdir()) == []


def test_a_folder_of_our_name_that_is_a_mount(
    tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / HOME).mkdir(0o700)
    own = os.stat
    seen = own(data / HOME)
    mounted = SimpleNamespace(st_dev=seen.st_dev + 1, st_uid=seen.st_uid, st_mode=seen.st_mode)
    monkeypatch.setattr(
        os, "stat", lambda path, **more: mounted if path == HOME else own(path, **more)
    )
    assert "is a mount of its own" in refused(tree, data)


@pytest.mark.parametrize("owner", [None, "", OWNER[:7]])
def test_a_run_that_was_killed_before_it_had_said_whose_the_folder_is(
    tree: Tree, data: Path, owner: str | None
) -> None:
    place = one(tree, data)
    (data / HOME).mkdir(0o700)
    if owner is not None:
        (data / HOME / "owner").write_text(owner)
    assert scratch.sweep([place], tree.root) == ()
    assert list(data.iterdir()) == []


def test_a_folder_that_was_given_to_this_user(tree: Tree, data: Path) -> None:
    (data / HOME / "kept").mkdir(parents=True)
    (data / HOME / "kept/file").touch()
    (data / HOME).chmod(0o700)
    (data / HOME / "owner").write_text(f"rigproof\n{MACHINE}\n98765\n")
    assert prepared(tree, one(tree, data)).remove() == ()
    assert (data / HOME / "kept/file").exists()


def test_a_disk_that_was_unmounted_between_plan_and_run(tree: Tree, data: Path) -> None:
    place = one(tree, data)
    tree.write("proc/self/mountinfo", "27 1 8:0 / / rw - ext4 /dev/sda rw\n")
    assert f"{data} is now on / and was on {data}" in trouble(tree, place)
    assert list(data.iterdir()) == []
    data.rmdir()
    assert "No such file or directory" in trouble(tree, place)


def test_a_full_disk(tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, own = one(tree, data), os.fdopen

    class Short(io.BytesIO):
        def write(self, content: Any) -> int:
            return len(content) - 1

    def fdopen(file: int, mode: str, *more: Any) -> Any:
        if "w" not in mode:
            return own(file, mode, *more)
        os.close(file)
        return Short()

    monkeypatch.setattr(os, "fdopen", fdopen)
    assert "No space left on device" in trouble(tree, place)


def test_a_disk_that_fails_while_it_is_cleaned(
    tree: Tree, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = one(tree, data)
    folders = prepared(tree, place)
    monkeypatch.setattr(scratch, "_names", raising(OSError(5, "Input/output error")))
    said = f"what an earlier run left below {data} could not be removed: Input/output"
    assert said in told(folders.remove())
    assert "Input/output error" in told(scratch.sweep([place], tree.root))
