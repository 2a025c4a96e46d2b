from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from raising import raising

from acceptance.expect.collected import CollectedCheck, Measures
from acceptance.journal import provenance
from acceptance.process import command
from acceptance.run import check_cache, planning
from acceptance.session import context
from acceptance.session.context import Answer

COPY = Measures("copy", "GB/s", "gpu")
ANSWER = Answer("d1", (CollectedCheck("gpu.copy", "Copies.", "load", (COPY,), 2.0, load="copy"),))


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's caches; nothing is in it yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def kept(base: Path) -> Path:
    """A file in which ANSWER is kept."""
    check_cache.keep(ANSWER)
    (file,) = (base / "rigproof").iterdir()
    assert check_cache.read("d1") == ANSWER
    return file


def test_a_list_is_for_its_user_alone(kept: Path) -> None:
    assert [one.stat().st_mode & 0o777 for one in (kept, kept.parent)] == [0o600, 0o700]


@pytest.mark.parametrize("what", ["digest", "python", "pytest"])
def test_a_list_under_the_name_of_another_is_not_taken(
    kept: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """What a file says of itself counts, not what it is called."""
    wanted = "d2" if what == "digest" else "d1"
    if what == "python":
        monkeypatch.setattr(sys, "version", "3.99.0 (main)")
    elif what == "pytest":
        monkeypatch.setattr(check_cache, "_pytest_version", lambda: "99.0")
    assert check_cache.read(wanted) is None
    shutil.copy(kept, kept.with_name(check_cache._name(wanted)))
    assert check_cache.read(wanted) is None


def test_a_list_that_was_damaged_is_not_taken(kept: Path) -> None:
    sound = kept.read_bytes()
    for at in range(len(sound)):
        kept.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        assert check_cache.read("d1") is None, at
    for content in (b"", sound[:-1], sound + b"\n", sound[:64], sound * 2, b"\xff" * 100):
        kept.write_bytes(content)
        assert check_cache.read("d1") is None, content
    check_cache.keep(ANSWER)
    assert kept.read_bytes() == sound
    assert check_cache.read("d1") == ANSWER


@pytest.mark.parametrize("change", [{"extra": 1}, {"answer": {"digest": "d1"}}, {"python": 3}])
def test_a_list_of_another_shape_is_not_taken(kept: Path, change: dict[str, object]) -> None:
    held = msgspec.json.decode(kept.read_bytes().partition(b"\n")[2])
    text = msgspec.json.encode({**held, **change})
    kept.write_bytes(check_cache._sum(text) + b"\n" + text)
    assert check_cache.read("d1") is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_can_write_is_not_taken(kept: Path, mode: int) -> None:
    kept.chmod(mode)
    assert check_cache.read("d1") is None
    kept.chmod(0o600)
    assert check_cache.read("d1") == ANSWER
    kept.parent.chmod(mode | 0o110)
    assert check_cache.read("d1") is None
    check_cache.keep(Answer("d2", ()))
    assert list(kept.parent.iterdir()) == [kept], "nothing is added to such a folder"


def test_another_users_list_is_not_taken(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is left in another user's home."""
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert check_cache.read("d1") is None
    check_cache.keep(Answer("d2", ()))
    assert list(kept.parent.iterdir()) == [kept]
    shutil.rmtree(kept.parent)
    check_cache.keep(ANSWER)
    assert not kept.parent.exists()


def test_links_and_pipes_are_not_followed(kept: Path) -> None:
    other = kept.rename(kept.parent.parent / "elsewhere")
    kept.symlink_to(other)
    assert check_cache.read("d1") is None
    kept.unlink()
    os.mkfifo(kept, 0o600)
    assert check_cache.read("d1") is None
    other.rename(kept)
    assert check_cache.read("d1") == ANSWER
    kept.parent.symlink_to(kept.parent.rename(kept.parent.with_name("away")))
    assert check_cache.read("d1") is None


PLACES: dict[str, Callable[[pytest.MonkeyPatch, Path], object]] = {
    "nowhere": lambda patch, base: patch.setenv("XDG_CACHE_HOME", str(base / "not/there")),
    "homeless": lambda patch, _: (
        patch.delenv("XDG_CACHE_HOME"),
        patch.setattr(Path, "home", raising(RuntimeError("Could not determine home directory."))),
    ),
    "in the way": lambda _, base: (base / "rigproof").write_text(""),
    "without pytest": lambda patch, _: patch.setitem(sys.modules, "_pytest._version", None),
}


def test_the_home_is_taken_where_no_folder_for_caches_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in (None, "", "caches"):  # one that is no whole path does not count
        if given is None:
            monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        else:
            monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert check_cache.folder() == tmp_path / ".cache/rigproof"
    check_cache.keep(ANSWER)
    assert check_cache.read("d1") == ANSWER


@pytest.mark.parametrize("place", PLACES)
def test_where_nothing_can_be_kept_nothing_is(
    base: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    assert (check_cache.read("d1"), list(base.iterdir())) == (None, []), "looking leaves nothing"
    PLACES[place](monkeypatch, base)
    check_cache.keep(ANSWER)
    assert check_cache.read("d1") is None


def test_a_full_disk_leaves_no_draft(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "rename", raising(OSError(28, "No space left on device")))
    check_cache.keep(Answer("d2", ()))
    assert list(kept.parent.iterdir()) == [kept]


def test_only_the_newest_lists_stay(kept: Path) -> None:
    (kept.parent / "other").write_text("somebody else's")
    (kept.parent / f"{check_cache.PREFIX}1.draft").write_text("left behind")
    for place, name in enumerate(sorted(kept.parent.glob("checks-*"))):
        os.utime(name, (place, place))
    for number in range(check_cache.MOST):
        check_cache.keep(Answer(f"n{number}", ()))
    assert len(list(kept.parent.glob("checks-*"))) == check_cache.MOST
    assert all(check_cache.read(f"n{number}") for number in range(check_cache.MOST))
    assert (kept.parent / "other").exists()


# --- what a plan makes of it ---


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Every program that planning starts."""
    started: list[tuple[str, ...]] = []

    def start(argv: list[str], **settings: object) -> command.RunningProgram:
        started.append(tuple(argv))
        return begun(argv, **settings)  # type: ignore[arg-type]

    begun = command.start
    monkeypatch.setattr(command, "start", start)
    return started


def test_checks_are_collected_once(
    base: Path, counted: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def collect(digest: str, count: int) -> None:
        monkeypatch.setattr(provenance, "package_digest", lambda: digest)
        answering(monkeypatch, replace(ANSWER, digest=digest))
        assert planning.collect(Path("/")) == replace(ANSWER, digest=digest)
        assert len(counted) == count

    collect("d1", 1)
    collect("d1", 1)
    (file,) = (base / "rigproof").iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    collect("d1", 2)  # a damaged list is made anew, once
    collect("d1", 2)
    collect("d2", 3)  # as that of another package


def answering(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    """A pytest that collects this."""
    text = msgspec.json.encode(answer)
    program = f"open('answer.json', 'wb').write({text!r})"
    monkeypatch.setattr(context, "argv", lambda _: ["python3", "-c", program])


def test_a_package_that_was_changed_meanwhile_is_not_kept(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, ANSWER)
    monkeypatch.setattr(provenance, "package_digest", lambda: "d0")
    assert planning.collect(Path("/")) == ANSWER
    assert list(base.iterdir()) == []
    monkeypatch.setattr(provenance, "package_digest", lambda: "d1")
    assert planning.collect(Path("/")) == ANSWER
    assert check_cache.read("d1") == ANSWER
