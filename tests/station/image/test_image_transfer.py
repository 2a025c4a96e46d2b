"""The image as a file: what `save` writes, `load` takes, and nothing else."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest
from command import answer
from engine_stub import LABELS, calls

from acceptance.station.image import build


@pytest.fixture
def ours(stub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The tag of this rigproof's image, which the engine can build; in a folder of its own."""
    want = build.wanted()
    (stub / "labels").write_text(json.dumps({**LABELS, "org.rigproof.inputs": want.digest}))
    monkeypatch.chdir(tmp_path)
    return want.tag


def image_call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    return answer(capsys, "image", *words)


def test_what_was_saved_is_loaded_elsewhere(
    stub: Path, ours: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = image_call(capsys, "save", "image.tar")
    identity = f"{ours} sha256:{ours.replace(':', '_')}\n"
    assert (code, out) == (0, identity)
    assert "building the image" in err
    assert image_call(capsys, "save", "image.tar") == (0, identity, "")
    (stub / "images" / ours.replace(":", "_")).unlink()
    assert image_call(capsys, "load", "image.tar") == (0, identity, "")
    assert len(calls(stub, "build")) == 1
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"image.tar"}


def test_a_file_is_written_whole_or_not_at_all(
    stub: Path, ours: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "image.tar").write_text("before")
    (stub / "save-fails").touch()
    code, _, err = image_call(capsys, "save", "image.tar")
    assert (code, err.splitlines()[-1].endswith("no space left")) == (3, True)
    assert (tmp_path / "image.tar").read_text() == "before"
    assert not list(tmp_path.glob(".image*"))
    (stub / "size").write_text(str(shutil.disk_usage(tmp_path).free * 2))
    code, _, err = image_call(capsys, "save", "image.tar")
    assert (code, "are free there: make room" in err) == (3, True)
    calls_so_far = calls(stub, "image")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("image.tar")
    (tmp_path / "astray").symlink_to("nowhere")
    for name in ("/dev/null", "/dev/stdout", "pipe", "link", "astray"):
        code, _, err = image_call(capsys, "save", name)
        assert (code, "is no plain file, and is not replaced: give" in err) == (3, True), name
    assert ((tmp_path / "pipe").is_fifo(), (tmp_path / "link").is_symlink()) == (True, True)
    assert calls(stub, "image") == calls_so_far  # refused before the engine is asked for anything
    for name in (".", "no/folder/x"):
        code, _, err = image_call(capsys, "save", name)
        assert (code, "give the name of a file" in err) == (3, True)


def test_another_file_is_not_loaded(
    stub: Path, ours: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def archive(*tags: str) -> str:
        (tmp_path / "manifest.json").write_text(json.dumps([{"RepoTags": list(tags)}]))
        with tarfile.open(tmp_path / "x.tar", "w") as file:
            file.add(tmp_path / "manifest.json", "manifest.json")
        return "x.tar"

    def odd(index: bytes | None) -> str:
        """An archive whose index is this text, or a link to itself."""
        member = tarfile.TarInfo("manifest.json")
        member.linkname, member.type = "manifest.json", tarfile.SYMTYPE
        if index is not None:
            member.size, member.type = len(index), tarfile.REGTYPE
        with tarfile.open(tmp_path / "odd.tar", "w") as file:
            file.addfile(member, io.BytesIO(index or b""))
        return "odd.tar"

    (tmp_path / "rubbish").write_text("PNG")
    for made, told in (
        (lambda: "none.tar", "is no file"),
        (lambda: "rubbish", "is no image, or not a whole one"),
        (lambda: odd(None), "is no image, or not a whole one"),
        (lambda: odd(b"[" * 100_000), "is no image, or not a whole one"),
        (lambda: odd(b'[{"RepoTags": 1}]'), "is no image, or not a whole one"),
        (lambda: archive("rigproof:0123456789ab"), f"and this rigproof needs {ours}: save it"),
        (lambda: archive("debian:13"), "holds debian:13"),
        (archive, "holds no image with a name"),
        (lambda: archive(ours, "debian:13"), "also holds debian:13"),
    ):
        code, out, err = image_call(capsys, "load", made())
        assert (code, out, told in err, err.count("\n")) == (3, "", True, 1), err
    assert not (stub / "calls").exists() or not calls(stub, "load")


def test_a_full_disk_is_said_before_anything_is_loaded(
    stub: Path, ours: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert image_call(capsys, "save", "image.tar")[0] == 0
    (stub / "info").write_text(json.dumps({"DockerRootDir": str(tmp_path), "DriverStatus": None}))
    with (tmp_path / "image.tar").open("ab") as file:
        file.truncate(shutil.disk_usage(tmp_path).free - int(7e9))
    code, _, err = image_call(capsys, "load", "image.tar")
    assert (code, "image.tar: the image cannot be loaded: it needs " in err) == (3, True)
    assert not calls(stub, "load")


def test_an_image_that_its_name_belies_is_told(
    stub: Path, ours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert image_call(capsys, "save", "image.tar")[0] == 0
    (stub / "labels").write_text(json.dumps(LABELS))
    code, _, err = image_call(capsys, "load", "image.tar")
    assert (code, f"'docker image rm {ours}'" in err) == (3, True)
