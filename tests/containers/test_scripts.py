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


DEBIAN_ROW = "http://m/debian {}/contrib amd64 Packages"
UBUNTU_ROW = "http://m/ubuntu noble/main amd64 Packages"


@pytest.mark.parametrize(
    ("suite", "name", "offered", "place", "said", "used"),
    [
        ("trixie", "gpu-burn", ["2.0-1", "1.0-1"], DEBIAN_ROW.format("trixie"), "", "1.0-1"),
        (
            *("sid", "nvbandwidth", ["0.11-1", "0.10-1"], DEBIAN_ROW.format("sid")),
            *("nvbandwidth 0.9-1 is gone from sid: taking 0.11-1\n", "0.11-1"),
        ),
        (
            *("trixie", "gpu-burn", ["1.0-1"], DEBIAN_ROW.format("sid")),
            *("gpu-burn is not in the package archive for trixie\n", None),
        ),
        ("ubuntu:24.04", "python3", ["3.12.3-0ubuntu2"], UBUNTU_ROW, "", "3.12.3-0ubuntu2"),
        (
            *("ubuntu:26.04", "python3", ["3.12.3-0ubuntu2"], UBUNTU_ROW),
            *("python3 is not pinned for ubuntu:26.04: taking", "3.12.3-0ubuntu2"),
        ),
        ("trixie", "fails", ["1"], DEBIAN_ROW.format("trixie"), "E: Unable to locate", None),
    ],
)
def test_the_version_that_is_taken(
    stage: Path, suite: str, name: str, offered: list[str], place: str, said: str, used: str | None
) -> None:
    rows = "".join(f"  {name} | {version} | {place}\n" for version in offered)
    (stage / f"madison-{name}").write_text(rows)
    done = run(stage, "take", "install", suite, name)
    assert said in done.stderr
    assert (done.returncode, bool(done.stderr)) == (int(used is None), bool(said))
    if used is not None:
        assert f"apt-get install -y -qq {name}={used}" in (stage / "calls").read_text()
        (record,) = (stage.parent / "root/opt/rigproof/pins").iterdir()
        assert record.read_text().split("\t")[-1] == f"{used}\n"


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
PLAIN = "# x\ndeb http://own/debian trixie main\n"
SIGNED = "deb [arch=amd64 signed-by=/k.gpg] http://own/debian trixie main\n"
OF_UBUNTU = "Types: deb\nURIs: http://own/ubuntu/\nSigned-By: /u.gpg\n"
WHOLE = "trixie main contrib non-free\n"
SID = "sid main contrib non-free\n"
NAMED = {"DEBIAN_MIRROR": "http://m/debian", "DEBIAN_SID_MIRROR": "http://s/debian"}


def base(stage: Path, name: str, text: str, release: str = DEBIAN) -> Path:
    apt = stage.parent / "root/etc/apt"
    (apt / name).write_text(text)
    (stage.parent / "root/etc/os-release").write_text(release)
    return apt


@pytest.mark.parametrize(
    ("name", "text", "suites", "variables", "sources"),
    [
        # from the base's own mirror
        (
            *("sources.list.d/debian.sources", DEB822, ("trixie",), {}),
            f"deb [signed-by=/k.gpg] http://own/debian {WHOLE}",
        ),
        (
            *("sources.list.d/debian.sources", DEB822, ("sid",), {}),
            f"deb [signed-by=/k.gpg check-valid-until=no] http://own/debian {SID}",
        ),
        ("sources.list", PLAIN, ("trixie",), {}, f"deb http://own/debian {WHOLE}"),
        (
            "sources.list",
            PLAIN,
            ("sid",),
            {},
            f"deb [check-valid-until=no] http://own/debian {SID}",
        ),
        (
            *("sources.list", SIGNED, ("trixie",), {}),
            f"deb [signed-by=/k.gpg] http://own/debian {WHOLE}",
        ),
        # from mirrors that were named
        ("sources.list", PLAIN, ("trixie",), NAMED, f"deb http://m/debian {WHOLE}"),
        (
            *("sources.list", PLAIN, ("sid",), NAMED),
            f"deb [check-valid-until=no] http://s/debian {SID}",
        ),
        ("sources.list", PLAIN, (), NAMED, "deb http://m/debian trixie main\n"),
        (
            *("sources.list.d/ubuntu.sources", OF_UBUNTU, ()),
            {"UBUNTU_MIRROR": "http://m/ubuntu", "DEBIAN_MIRROR": "http://not/this"},
            "".join(
                f"deb [signed-by=/u.gpg] http://m/ubuntu {suite} main universe\n"
                for suite in ("noble", "noble-updates", "noble-security")
            ),
        ),
    ],
)
def test_where_suites_come_from(
    stage: Path,
    name: str,
    text: str,
    suites: tuple[str, ...],
    variables: dict[str, str],
    sources: str,
) -> None:
    apt = base(stage, name, text, UBUNTU if "ubuntu" in name else DEBIAN)
    assert run(stage, "sources", *suites, **variables).returncode == 0
    assert (apt / "sources.list").read_text() == sources
    assert list((apt / "sources.list.d").iterdir()) == []


def test_the_bases_own_sources_stay_and_added_archives_go(stage: Path) -> None:
    apt = base(stage, "sources.list.d/ubuntu.sources", OF_UBUNTU, UBUNTU)
    (apt / "sources.list.d/cuda.list").write_text("deb http://vendor/cuda /\n")
    assert run(stage, "sources").returncode == 0
    assert [path.name for path in (apt / "sources.list.d").iterdir()] == ["ubuntu.sources"]


def test_a_base_without_sources_is_refused(stage: Path) -> None:
    base(stage, "sources.list", "")
    done = run(stage, "sources")
    assert done.returncode != 0
    assert done.stderr.startswith("rigproof: the base image names no package source")


@pytest.mark.parametrize(("content", "used"), [("", False), ("certificates", True)])
def test_the_hosts_certificates_are_used_where_there_are_some(
    stage: Path, content: str, used: bool
) -> None:
    """By apt, and by pip."""
    apt = base(stage, "sources.list", PLAIN)
    (stage / "ca.crt").write_text(content)
    run(stage, "sources")
    assert ("CAInfo" in (apt / "apt.conf.d/00rigproof").read_text()) is used
    shutil.copy(RECIPE / "pip", stage)
    (stage / "venv/bin").mkdir(parents=True)
    executable(
        stage / "venv/bin/python", '#!/bin/sh\necho "${PIP_CERT-None} ${PIP_INDEX_URL-None}"\n'
    )
    done = run(stage, "pip", str(stage / "venv"), "install", "x", PIP_CERT="", PIP_INDEX_URL="")
    assert done.stdout == f"{stage / 'ca.crt' if used else ''} None\n"
