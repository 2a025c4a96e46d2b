from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine_stub import Build, calls

from acceptance.core.message import SetupError
from acceptance.process import command
from acceptance.station.image import __main__ as main
from acceptance.station.image import engine as engines
from acceptance.station.image import record


def test_bases_are_pulled_and_the_image_built_once(
    build: Build, stub: Path, said: list[str]
) -> None:
    (stub / "registry").touch()
    first = build()
    assert (first.built, first.base, first.commit) == (True, "some/base:1", None)
    assert first.id == "sha256:" + first.tag.replace(":", "_")
    assert [line.split()[1] for line in calls(stub, "pull")] == [
        "nvidia/cuda:12.8.1-base-ubuntu24.04",
        "debian:trixie-slim",
    ]
    assert "    0 s  [1/1] RUN something" in said
    assert not build().built
    assert len(calls(stub, "build")) == 1


def test_a_build_that_fails_shows_its_last_lines_and_its_log(
    build: Build, stub: Path, tmp_path: Path
) -> None:
    (stub / "build-fails").touch()
    with pytest.raises(SetupError) as caught:
        build()
    assert str(caught.value).startswith(
        "the image could not be built: `docker build` ended with exit code 1 after "
    )
    assert str(caught.value).endswith("Step 1/1 : RUN something\nE: the last line")
    (log,) = (tmp_path / "logs").glob("image-????????????.log")
    assert str(log) in str(caught.value)


def test_proxies_and_mirrors_go_in_by_name_and_by_environment(
    build: Build, stub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://u:secret@127.0.0.1:1")
    monkeypatch.setenv("DEBIAN_MIRROR", "http://mirror.example/debian")
    monkeypatch.setenv("DOCKER_BUILDKIT", "1")
    build()
    (argv,) = calls(stub, "build")
    assert "--network host" in argv
    assert "--build-arg http_proxy --build-arg HTTP_PROXY" in argv
    assert "--build-arg DEBIAN_MIRROR" in argv
    assert "secret" not in argv
    environment = (stub / "environment").read_text().splitlines()
    assert {
        "http_proxy=http://u:secret@127.0.0.1:1",
        "DEBIAN_MIRROR=http://mirror.example/debian",
        "DOCKER_BUILDKIT=0",
    } <= set(environment)


def test_buildkit_is_taken_where_the_client_has_it(build: Build, stub: Path) -> None:
    (stub / "has-buildx").touch()
    build()
    assert "--progress plain" in calls(stub, "build")[0]
    assert "DOCKER_BUILDKIT=1" in (stub / "environment").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "permission denied while trying to connect",
            r"refuses this user: let yourself in with `sudo usermod -aG docker \$USER`",
        ),
        (
            "Cannot connect to the Docker daemon. Is it running?",
            r"no container engine answers \(Cannot connect.*sudo make engine",
        ),
    ],
)
def test_an_engine_that_does_not_serve_says_the_cure(
    build: Build, stub: Path, text: str, message: str
) -> None:
    (stub / "down").write_text(text)
    with pytest.raises(SetupError, match=message):
        build()


def test_an_engine_that_hangs_is_given_up_on(
    build: Build, stub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stub / "mute").touch()
    monkeypatch.setattr(engines, "_ASK_S", 0.1)
    with pytest.raises(SetupError, match="does not answer within 0 s: start it again"):
        build()


def test_without_a_client_there_is_no_engine(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(program: str, package: str | None = None) -> str:
        raise command.ProgramMissing(program)

    monkeypatch.setattr(command, "find", missing)
    with pytest.raises(
        SetupError,
        match=r"there is no container engine: install and start one with "
        r"`sudo apt install docker\.io` \(in a checkout: `sudo make engine`\)",
    ):
        build()


@pytest.mark.parametrize(
    ("address", "local"),
    [
        (None, True),
        ("unix:///x", True),
        ("/run/x.sock", True),
        ("tcp://h:2375", False),
        ("ssh://h", False),
    ],
)
def test_a_socket_file_is_an_engine_of_this_host(
    stub: Path, monkeypatch: pytest.MonkeyPatch, address: str | None, local: bool
) -> None:
    if address:
        monkeypatch.setenv("DOCKER_HOST", address)
    assert engines.find().local is local


def test_the_bridge_is_asked_for_its_mtu(stub: Path) -> None:
    assert engines.find().bridge_mtu() == (True, 1500)
    (stub / "no-bridge").touch()
    assert engines.find().bridge_mtu() == (False, None)


def test_provenance_shows_a_version_that_is_not_the_pinned_one(build: Build) -> None:
    shown = build().provenance()
    assert shown["image_versions"] == (
        "gpu-burn 1.0-1, nvbandwidth 0.10-1 (pinned: 0.9-1), python3 3.12.3-0ubuntu2, "
        "stress-ng 1.2 (not pinned)"
    )
    assert shown["image_base"] == "some/base:1 (Debian GNU/Linux 13 (trixie))"
    assert "image_commit" not in shown


def test_an_image_that_is_not_ours_is_refused(stub: Path) -> None:
    engine = engines.find()
    with pytest.raises(SetupError, match="there is no image a:1 here"):
        record.inspect(engine, "a:1")
    (stub / "images/a_1").write_text("null")
    with pytest.raises(
        SetupError, match=r"a:1 is no image of rigproof: it has no label 'org.rigproof.inputs'"
    ):
        record.inspect(engine, "a:1")
    (stub / "images/a_1").write_text((stub / "labels").read_text())
    (stub / "image.json").write_text(json.dumps({"base": 1}))
    with pytest.raises(SetupError, match="a:1 does not tell what is in it"):
        record.inspect(engine, "a:1")


def test_the_command_line_prints_what_the_image_is(
    build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = str(tmp_path / "cli")
    assert main.main(["--logs", logs]) == 0
    assert main.main(["--logs", logs]) == 0
    out, err = capsys.readouterr()
    assert "image_base=some/base:1 (Debian GNU/Linux 13 (trixie))" in out
    assert "rigproof: built in " in err
    assert "rigproof: the image is here: rigproof:" in err


def test_the_command_line_says_in_one_sentence_why_there_is_no_image(
    stub: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stub / "down").write_text("Cannot connect")
    assert main.main([]) == 3
    assert capsys.readouterr().err.startswith(
        "rigproof: no container engine answers (Cannot connect)"
    )


def test_the_command_line_lays_out_the_context_for_other_builders(tmp_path: Path) -> None:
    assert main.main(["--context", str(tmp_path / "context")]) == 0
    assert (tmp_path / "context/containers/Dockerfile").is_file()
    assert (tmp_path / "context/build/ca.crt").is_file()
