"""A session of a site's own checks, and the checks of `examples/`, on recorded programs."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from pathlib import Path
from typing import Any

import journals
import pytest
from executable import executable
from msgspec.structs import replace
from product_session import forked, worded
from runs import digest, machine_root
from site_box import SiteBox

from acceptance.core.evidence import ToolRan
from acceptance.core.finding import Waiver
from acceptance.core.message import UserError
from acceptance.core.parts import MACHINE
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Body, CheckEnded, Measured, Note, SessionStarted
from acceptance.expect import limit_book, plan_builder
from acceptance.journal import segment
from acceptance.journal.seal import SITE_CHECKS
from acceptance.process import command
from acceptance.run import site_collection
from acceptance.run.site_collection import CollectedSite
from acceptance.session import context as session_context

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "checks"


class Site:
    """Collects a folder and runs its session, each in a fork of this process."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(argv: Any, *, env: Any, cwd: Path, **_: object) -> command.ProgramResult:
            return forked(argv, env, cwd, tmp_path)

        monkeypatch.setattr(command, "run", run)
        self.box = SiteBox(tmp_path / "checks")
        self.run_dir = tmp_path / "run"
        (self.run_dir / "logs").mkdir(parents=True)
        self.root = machine_root(tmp_path / "root")
        self.waivers: tuple[Waiver, ...] = ()
        self.spoil = lambda: None
        self._tmp = tmp_path

    def plan(self, found: CollectedSite) -> Any:
        book = limit_book.class_defaults(found.measurements)
        checks = tuple(
            PlannedCheck(
                check.id,
                check.title,
                check.session,
                check.seconds,
                plan_builder.dues(check, {"machine": (MACHINE,)}, book, {}),
            )
            for check in found.checks
        )
        made = journals.plan(*checks, digest=digest(), waivers=self.waivers)
        return replace(made, site=found.bound)

    def run(self) -> command.ProgramResult:
        """Collect, plan, copy and run."""
        found = site_collection.collect(self.box.folder, Path("/"))
        copy, context = self.run_dir / SITE_CHECKS, self.run_dir / "session-site.json"
        found.folder.write(copy)
        self.spoil()
        session_context.write(
            session_context.SessionContext(
                mode="run",
                root=str(self.root),
                session="site",
                run_dir=str(self.run_dir),
                plan=self.plan(found),
                site=str(copy),
            ),
            context,
        )
        env = session_context.environment(f"session-{secrets.token_hex(8)}")
        return forked(session_context.argv(context, copy), env, self.run_dir, self._tmp)

    @property
    def records(self) -> list[Body]:
        read = segment.read_segment(self.run_dir / "journal-site.jsonl")
        return [worded(entry.body) for entry in read.entries]

    def ends(self) -> dict[str, CheckEnded]:
        return {body.check: body for body in self.records if isinstance(body, CheckEnded)}

    def values(self) -> dict[str, float | None]:
        return {body.measurement: body.value for body in self.records if isinstance(body, Measured)}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def test_each_kind_of_end(site: Site) -> None:
    bodies = {
        "good": None,
        "high": 'check("site_high", 2.0)',
        "single": 'import numpy; check("site_single", numpy.float32(0.5), note="half")',
        "named": 'check("site_named", {"machine": 1})',
        "none": "pass",
        "asserts": "assert 1 == 2",
        "text": 'check("site_text", "fast")',
        "part": 'check("site_part", {"gpu0": 1.0})',
        "other": 'name = "site_good"; check(name, 1.0); check("site_other", 1.0)',
        "skips": 'pytest.skip("no server is named: name one")',
        "xfails": 'check("site_xfails", 0.5); pytest.xfail("known")',
        "nan": 'check("site_nan", float("nan"))',
    }
    bodies["raises"] = 'raise RuntimeError("the mount is gone")'
    for stem, body in bodies.items():
        site.box.check(stem, body)
    done = site.run()
    assert done.returncode == 1, done.stdout
    ends = site.ends()
    outcomes = {name.split(".")[1]: end.outcome for name, end in ends.items()}
    assert outcomes == {
        **dict.fromkeys(("good", "single", "named"), "pass"),
        "high": "fail",
        **dict.fromkeys(("none", "raises", "asserts", "text", "part", "other", "nan"), "error"),
        **dict.fromkeys(("skips", "xfails"), "skip"),
    }
    assert (
        ends["site.raises.fast"].message == "RuntimeError: the mount is gone (line 8 of its file)"
    )
    assert "which is no number" in str(ends["site.text.fast"].message)
    assert "not among the measures" in str(ends["site.other.fast"].message)
    (begun,) = [body for body in site.records if isinstance(body, SessionStarted)]
    found = site_collection.collect(site.box.folder, Path("/"))
    assert (begun.session, begun.site_digest) == ("site", found.bound.digest)


def test_a_measurement_that_no_check_takes_is_a_mistake(site: Site) -> None:
    """Else a limit that somebody wrote down would be held against nothing."""
    site.box.check("mount")
    file = site.box.folder / "mount.toml"
    file.write_text(file.read_text().replace('"site_mount"', '"site_mount", "site_other"'))
    with pytest.raises(UserError, match=r"mount\.toml: no check measures site_other: name it"):
        site_collection.collect(site.box.folder, site.root)


@pytest.mark.parametrize("folder", [False, True])
def test_other_files_than_the_planned_ones_stop_the_session(site: Site, *, folder: bool) -> None:
    """A folder that a file makes when it is imported is another file, too."""
    site.box.check("mount")

    def spoil() -> None:
        copy = site.run_dir / SITE_CHECKS
        if folder:
            (copy / "made").mkdir()
        else:
            (copy / "mount.py").write_text((site.box.folder / "mount.py").read_text() + "\n")

    site.spoil = spoil  # type: ignore[method-assign]
    assert site.run().returncode == session_context.REFUSED
    assert not site.ends()
    (note,) = [body for body in site.records if isinstance(body, Note)]
    assert note.trouble
    assert "files of the site's own checks differ from the plan's" in str(note.text)


def test_what_a_check_may_use(site: Site) -> None:
    site.box.check(
        "uses",
        'done = program("/bin/sh", "-c", "echo $A; exit 3", env={"A": "b"}, exits=(3,))\n'
        '    assert (done.stdout, machine, inventory) == ("b\\n", None, None)\n'
        '    (tmp_path / "x").write_text(settings["word"])\n'
        "    say(str(tmp_path))\n"
        '    check("site_uses", 0.5)',
    )
    path = site.box.folder / "uses.py"
    path.write_text(
        path.read_text().replace(
            "(check)", "(check, program, machine, inventory, settings, say, tmp_path)"
        )
    )
    path = site.box.folder / "uses.toml"
    path.write_text(path.read_text() + '\n[settings]\nword = "w"\n')
    site.box.check("fails", 'check("site_fails", program("/bin/sh", "-c", "exit 3").seconds)')
    site.box.check("hangs", 'check("site_hangs", program("/bin/sleep", "60", seconds=0.2).seconds)')
    for stem in ("fails", "hangs"):
        path = site.box.folder / f"{stem}.py"
        path.write_text(path.read_text().replace("(check)", "(check, program)"))
    site.run()
    ends = site.ends()
    assert ends["site.uses.fast"].outcome == "pass", ends["site.uses.fast"].message
    assert [ends[f"site.{one}.fast"].outcome for one in ("fails", "hangs")] == ["error", "error"]
    told = [str(worded(ends[f"site.{one}.fast"]).message) for one in ("fails", "hangs")]  # type: ignore[attr-defined]
    assert "exit code 3" in told[0]
    assert "sleep" in told[1]
    (note,) = [body for body in site.records if isinstance(body, Note)]
    assert not Path(str(note.text)).exists()
    ran = [body.check for body in site.records if isinstance(body, ToolRan)]
    assert sorted(ran) == ["site.fails.fast", "site.hangs.fast", "site.uses.fast"]


@pytest.fixture
def example(site: Site) -> Site:
    for path in EXAMPLES.iterdir():
        if path.is_file():
            site.box.write(path.name, path.read_text())
    return site


def set_up(site: Site, stem: str, old: str, new: str) -> None:
    path = site.box.folder / f"{stem}.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


NVCC = """#!/bin/sh
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
printf '#!/bin/sh\\nprintf "elements=16777216\\\\nwrong=%s\\\\nseconds=0.02\\\\n"\\n' > "$out"
chmod +x "$out"
"""


@pytest.mark.parametrize(("wrong", "cuda"), [("0", "pass"), ("3", "fail")])
def test_the_examples_on_a_site_where_all_is_well_but_for_a_result_in_cuda(
    example: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, cuda: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "bin").mkdir()
    nvcc = tmp_path / "bin" / "nvcc"
    executable(nvcc, NVCC % wrong)
    monkeypatch.setenv("PATH", f"{nvcc.parent}{os.pathsep}{os.environ['PATH']}")
    set_up(example, "network_mount", 'mount = "/data"', f'mount = "{tmp_path / "data"}"')
    set_up(example, "network_mount", "must_be_mount = true", "must_be_mount = false")
    set_up(example, "network_mount", "mib = 256", "mib = 4")
    set_up(example, "network_mount", "low = 100\n", "low = 0.02\n")
    set_up(example, "network_mount", "low = 0.5\n", "low = 0.02\n")
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        set_up(
            example,
            "licence_server",
            'server = ""',
            f'server = "127.0.0.1:{server.getsockname()[1]}"',
        )
        example.run()
    assert {name: end.outcome for name, end in example.ends().items()} == {
        "site.cuda_program.saxpy": cuda,
        "site.licence_server.answers": "pass",
        "site.network_mount.rates": "pass",
    }
    assert example.values()["site_cuda_wrong"] == float(wrong)
    assert not list((tmp_path / "data").iterdir())


def test_the_examples_on_a_site_where_nothing_is(
    example: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if shutil.which("nvcc", path="/usr/local/sbin:/usr/sbin:/sbin"):
        pytest.skip("nvcc is in a folder of the system")
    set_up(example, "network_mount", 'mount = "/data"', f'mount = "{tmp_path}"')
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    set_up(example, "licence_server", 'server = ""', f'server = "127.0.0.1:{port}"')
    example.run()
    ends = example.ends()
    assert {name: end.outcome for name, end in ends.items()} == {
        "site.cuda_program.saxpy": "skip",
        "site.licence_server.answers": "error",
        "site.network_mount.rates": "error",
    }
    assert "nvidia-cuda-toolkit" in str(ends["site.cuda_program.saxpy"].message)
    assert "start the licence server" in str(ends["site.licence_server.answers"].message)
    assert "is not mounted: mount it" in str(ends["site.network_mount.rates"].message)
