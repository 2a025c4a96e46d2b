"""The scripts that fill the stages, on a tree of their own and with an apt that only tells what
it was asked for.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from executable import executable

from acceptance.process import command
from acceptance.process.deadline import Deadline

RECIPE = Path(__file__).resolve().parents[2] / "containers"
PINS = "trixie gpu-burn 1.0-1\nsid nvbandwidth 0.9-1\nubuntu:24.04 python3 3.12.3-*\n"
APT = r"""#!/bin/sh
here=$(dirname "$0")
echo "$(basename "$0") $*" >>"$here/calls"
case "$*" in
"madison "*) cat "$here/madison-$2" 2>/dev/null ;;
install*fails*) echo "E: Unable to locate" >&2; exit 100 ;;
esac
exit 0
"""


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    build = tmp_path / "build"
    build.mkdir()
    for name in ("take", "sources", "clean"):
        shutil.copy(RECIPE / name, build)
    (build / "pins.txt").write_text(PINS)
    (build / "ca.crt").write_text("")
    for name in ("apt-cache", "apt-get"):
        executable(build / name, APT)
    (tmp_path / "root/etc/apt/apt.conf.d").mkdir(parents=True)
    (tmp_path / "root/etc/apt/sources.list.d").mkdir()
    return build


def run(stage: Path, *argv: str, **environment: str) -> command.ProgramResult:
    env = {
        "PATH": f"{stage}:/usr/sbin:/usr/bin:/sbin:/bin",
        "ROOT": str(stage.parent / "root"),
        **environment,
    }
    return command.run(
        ["sh", str(stage / argv[0]), *argv[1:]], deadline=Deadline.after(20.0), env=env
    )


def offer(
    stage: Path,
    name: str,
    *versions: str,
    place: str = "http://m/debian trixie/contrib amd64 Packages",
) -> None:
    with (stage / f"madison-{name}").open("a") as file:
        file.writelines(f"  {name} | {version} | {place}\n" for version in versions)


def record(stage: Path, name: str) -> str:
    return (stage.parent / "root/opt/rigproof/pins" / name).read_text()


def test_the_pinned_version_is_taken(stage: Path) -> None:
    offer(stage, "gpu-burn", "2.0-1", "1.0-1")
    done = run(stage, "take", "install", "trixie", "gpu-burn")
    assert (done.returncode, done.stderr) == (0, "")
    assert "apt-get install -y -qq gpu-burn=1.0-1" in (stage / "calls").read_text()
    assert record(stage, "trixie-gpu-burn") == "trixie\tgpu-burn\t1.0-1\t1.0-1\n"


def test_a_version_that_has_gone_is_said_and_the_newest_taken(stage: Path) -> None:
    offer(
        stage, "nvbandwidth", "0.11-1", "0.10-1", place="http://m/debian sid/contrib amd64 Packages"
    )
    done = run(stage, "take", "install", "sid", "nvbandwidth")
    assert done.stderr == "rigproof: nvbandwidth 0.9-1 is gone from sid: taking 0.11-1\n"
    assert record(stage, "sid-nvbandwidth") == "sid\tnvbandwidth\t0.9-1\t0.11-1\n"


def test_a_version_of_another_suite_is_not_taken(stage: Path) -> None:
    offer(stage, "gpu-burn", "1.0-1", place="http://m/debian sid/contrib amd64 Packages")
    done = run(stage, "take", "install", "trixie", "gpu-burn")
    assert (done.returncode, done.stderr) == (
        1,
        "rigproof: gpu-burn is not in the package archive for trixie\n",
    )


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("ubuntu:24.04", ""),
        ("ubuntu:26.04", "rigproof: python3 is not pinned for ubuntu:26.04: taking"),
    ],
)
def test_the_bases_own_programs_are_pinned_by_its_release(
    stage: Path, place: str, said: str
) -> None:
    offer(stage, "python3", "3.12.3-0ubuntu2", place="http://m/ubuntu noble/main amd64 Packages")
    done = run(stage, "take", "install", place, "python3")
    assert done.returncode == 0
    assert done.stderr.startswith(said)
    assert bool(said) or done.stderr == ""


def test_what_apt_says_when_it_fails_is_shown(stage: Path) -> None:
    offer(stage, "fails", "1")
    done = run(stage, "take", "install", "trixie", "fails")
    assert done.returncode == 1
    assert "E: Unable to locate" in done.stderr


def base(stage: Path, name: str, text: str, release: str) -> Path:
    apt = stage.parent / "root/etc/apt"
    (apt / name).write_text(text)
    (stage.parent / "root/etc/os-release").write_text(release)
    return apt


DEBIAN = "ID=debian\nVERSION_ID=13\nVERSION_CODENAME=trixie\n"
UBUNTU = "ID=ubuntu\nVERSION_ID=24.04\nVERSION_CODENAME=noble\n"
DEB822 = """\
Types: deb
URIs: http://own/debian
Suites: trixie
Signed-By: /k.gpg

Types: deb
URIs: http://own/security
Signed-By: /s.gpg
"""


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("sources.list.d/debian.sources", DEB822, "signed-by=/k.gpg"),
        ("sources.list", "# x\ndeb http://own/debian trixie main\n", ""),
        (
            "sources.list",
            "deb [arch=amd64 signed-by=/k.gpg] http://own/debian trixie main\n",
            "signed-by=/k.gpg",
        ),
    ],
)
def test_suites_come_from_the_bases_own_mirror(
    stage: Path, name: str, text: str, options: str
) -> None:
    apt = base(stage, name, text, DEBIAN)
    assert run(stage, "sources", "trixie").returncode == 0
    shown = f"[{options}] " if options else ""
    assert (
        apt / "sources.list"
    ).read_text() == f"deb {shown}http://own/debian trixie main contrib non-free\n"
    assert run(stage, "sources", "sid").returncode == 0
    shown = f"[{options} check-valid-until=no] " if options else "[check-valid-until=no] "
    assert (
        apt / "sources.list"
    ).read_text() == f"deb {shown}http://own/debian sid main contrib non-free\n"
    assert list((apt / "sources.list.d").iterdir()) == []


def test_mirrors_that_were_named_come_first(stage: Path) -> None:
    apt = base(stage, "sources.list", "deb http://own/debian trixie main\n", DEBIAN)
    run(stage, "sources", "trixie", DEBIAN_MIRROR="http://m/debian")
    assert (
        apt / "sources.list"
    ).read_text() == "deb http://m/debian trixie main contrib non-free\n"
    run(
        stage,
        "sources",
        "sid",
        DEBIAN_MIRROR="http://m/debian",
        DEBIAN_SID_MIRROR="http://s/debian",
    )
    assert (
        apt / "sources.list"
    ).read_text() == "deb [check-valid-until=no] http://s/debian sid main contrib non-free\n"
    run(stage, "sources", DEBIAN_MIRROR="http://m/debian")
    assert (apt / "sources.list").read_text() == "deb http://m/debian trixie main\n"


def test_an_ubuntu_base_takes_ubuntus_mirror(stage: Path) -> None:
    text = "Types: deb\nURIs: http://own/ubuntu/\nSigned-By: /u.gpg\n"
    apt = base(stage, "sources.list.d/ubuntu.sources", text, UBUNTU)
    run(stage, "sources", UBUNTU_MIRROR="http://m/ubuntu", DEBIAN_MIRROR="http://not/this")
    assert (apt / "sources.list").read_text().splitlines() == [
        f"deb [signed-by=/u.gpg] http://m/ubuntu {suite} main universe"
        for suite in ("noble", "noble-updates", "noble-security")
    ]


def test_the_bases_own_sources_stay_and_added_archives_go(stage: Path) -> None:
    apt = base(
        stage, "sources.list.d/ubuntu.sources", "Types: deb\nURIs: http://own/ubuntu/\n", UBUNTU
    )
    (apt / "sources.list.d/cuda.list").write_text("deb http://vendor/cuda /\n")
    assert run(stage, "sources").returncode == 0
    assert [path.name for path in (apt / "sources.list.d").iterdir()] == ["ubuntu.sources"]


def test_a_base_without_sources_is_refused(stage: Path) -> None:
    base(stage, "sources.list", "", DEBIAN)
    done = run(stage, "sources")
    assert done.returncode != 0
    assert done.stderr.startswith("rigproof: the base image names no package source")


@pytest.mark.parametrize(("content", "used"), [("", False), ("certificates", True)])
def test_the_hosts_certificates_are_used_where_there_are_some(
    stage: Path, content: str, used: bool
) -> None:
    apt = base(stage, "sources.list", "deb http://own/debian trixie main\n", DEBIAN)
    (stage / "ca.crt").write_text(content)
    run(stage, "sources")
    assert ("CAInfo" in (apt / "apt.conf.d/00rigproof").read_text()) is used


@pytest.mark.parametrize(("content", "used"), [("", False), ("certificates", True)])
def test_pip_too_uses_the_hosts_certificates(stage: Path, content: str, used: bool) -> None:
    (stage / "ca.crt").write_text(content)
    shutil.copy(RECIPE / "pip", stage)
    python = stage / "venv/bin/python"
    python.parent.mkdir(parents=True)
    executable(python, '#!/bin/sh\necho "${PIP_CERT-None} ${PIP_INDEX_URL-None} $*"\n')
    done = run(stage, "pip", str(stage / "venv"), "install", "x", PIP_CERT="", PIP_INDEX_URL="")
    certificates = str(stage / "ca.crt") if used else ""
    assert (
        done.stdout
        == f"{certificates} None -m pip --disable-pip-version-check --no-input install x\n"
    )
