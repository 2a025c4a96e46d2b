"""The base images of the stages: from the registry, or bootstrapped from Debian's packages.

The latter replaces them where no registry can be reached.

A build's progress on the screen: steps, elapsed time, and lines of our own scripts.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acceptance.core import plain_text
from acceptance.core.message import SetupError
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station.image import recipe
from acceptance.station.image.engine import BuildEngine
from acceptance.wording import words

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CLASSIC = re.compile(r"Step (\d+/\d+) : (.*)")
_BUILDKIT = re.compile(r"#\d+ \[(?!internal\b|auth\b)([^\]]+)\] (.*)")
# steps that take no time
_SILENT = re.compile(r"(ARG|ENV|USER|WORKDIR|CMD|LABEL)\b")
_NOISE = re.compile(
    r"--->|Removing intermediate container|DEPRECATED:|BuildKit is currently "
    r"disabled|environment-variable\."
)
_OURS = re.compile(r"(?:#\d+ [\d.]+ )?rigproof: (.*)")
QUIET_S = 30.0
POLL_S = 0.1  # between two polls of a running program
_WIDTH = 100


def plain(line: str) -> str:
    """A line without colours, and with only the last text of a progress bar."""
    return _ANSI.sub("", line).rstrip().rpartition("\r")[2].strip()


def worth_showing(line: str) -> str | None:
    """The user's text for a line of the build's output; None where there is nothing to show.

    A line is shown where a step begins, or where our own scripts print something.
    """
    text = plain(line)
    if ours := _OURS.fullmatch(text):
        return ours[1]
    if step := _CLASSIC.fullmatch(text) or _BUILDKIT.fullmatch(text):
        return (
            None if _SILENT.match(step[2]) else f"[{step[1]}] {' '.join(step[2].split())}"[:_WIDTH]
        )
    return None


def tail(texts: Sequence[str], count: int = 8) -> str:
    """The last lines with content."""
    lines = [
        plain_text.shortened(plain(line), 200)
        for text in texts
        for line in text.splitlines()
        if _telling(line)
    ]
    return "\n".join(lines[-count:])


def _telling(line: str) -> bool:
    return bool(plain(line)) and not _NOISE.match(plain(line))


@dataclass(slots=True)
class Progress:
    """Shows the progress with the elapsed seconds, and a sign of life after a quiet time."""

    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)
    shown: float = field(init=False)
    latest: str = ""
    # BuildKit prints a step's name again after another step's output
    told: set[str] = field(default_factory=set)
    heard: bool = False

    def __post_init__(self) -> None:
        self.began = self.shown = self.clock()

    def take(self, lines: Iterable[str]) -> None:
        """Process lines of output."""
        for line in lines:
            self.heard = True
            self.latest = plain(line) if _telling(line) else self.latest
            if (text := worth_showing(line)) and text not in self.told:
                self.told.add(text)
                self._show(text)

    def tick(self) -> None:
        """Show a sign of life where nothing was shown for QUIET_S seconds."""
        if self.clock() - self.shown >= QUIET_S:
            self._show(f"... {self.latest}"[:_WIDTH])

    def _show(self, text: str) -> None:
        self.shown = self.clock()
        self.say(f"{self.shown - self.began:5.0f} s  {text}")


def follow(
    running: command.RunningProgram,
    progress: Progress,
    *,
    first_sign_s: float | None = None,
) -> command.ProgramResult:
    """Wait for a program, and show its progress.

    With `first_sign_s`, a program that has printed nothing in that many seconds is ended: the
    server that it waits for does not answer.
    """
    try:
        while not running.poll() and not running.deadline.passed():
            progress.take(running.new_lines())
            progress.tick()
            if (
                first_sign_s is not None
                and not progress.heard
                and progress.clock() - progress.began > first_sign_s
            ):
                running.stop()
            time.sleep(POLL_S)
    except BaseException:  # Ctrl-C: leave nothing running
        running.stop()
        raise
    done = running.wait()
    progress.take(running.new_lines())
    return done


BOOTSTRAPPED = "rigproof-base:trixie"
ANSWER_S = 60.0  # a registry that is silent for this long counts as unreachable
PULL_S = 900.0
BOOTSTRAP_S = 900.0


@dataclass(frozen=True, slots=True)
class Bases:
    """References of the stages' base images."""

    base: str
    tools_base: str


@dataclass(slots=True)
class Bootstrap:
    """Finds or makes base images.

    `log` is the path of the programs' logs; each adds its own suffix.
    """

    engine: BuildEngine
    log: Path
    say: Callable[[str], None]
    deadline: Deadline
    root: Path = Path("/")
    answer_s: float = ANSWER_S

    def bases(self, base: str, tools_base: str, *, named: bool) -> Bases:
        """The two bases, pulled where they are not here, or replaced by a bootstrapped one.

        `named`: the user asked for this very base, so nothing replaces it. Raises SetupError.
        """
        if why := self._unavailable(base):
            if named:
                raise SetupError(f"the base {base} is not here and cannot be pulled: {why}")
            self._bootstrapped(base, why)
            return Bases(BOOTSTRAPPED, BOOTSTRAPPED)
        if why := self._unavailable(tools_base):
            self._bootstrapped(tools_base, why)
            return Bases(base, BOOTSTRAPPED)
        return Bases(base, tools_base)

    def _unavailable(self, reference: str) -> str | None:
        """None once the image is here, else the reason why it is not available."""
        if self.engine.image_id(reference):
            return None
        self.say(f"pulling {reference}")
        log = self.log.with_name(f"{self.log.name}.pull")
        running = command.start(
            [self.engine.docker, "pull", reference], deadline=self.deadline.sooner(PULL_S), log=log
        )
        watch = Progress(self.say)
        done = follow(running, watch, first_sign_s=self.answer_s)
        if done.returncode == 0:
            return None
        if not watch.heard:
            return f"the registry did not answer within {self.answer_s:.0f} s"
        return (
            f"`docker pull` {words.message(done.describe())}"
            if done.timed_out
            else done.last_lines(1)
        )

    def _bootstrapped(self, instead_of: str, why: str) -> None:
        """Make the Debian base where it is not here yet. Raises SetupError."""
        self.say(
            f"{instead_of} cannot be had ({why}): taking a base bootstrapped from Debian "
            "trixie packages instead"
        )
        if self.engine.image_id(BOOTSTRAPPED):
            return
        if os.geteuid() != 0:
            raise SetupError(
                "a base can be bootstrapped by root only: run `sudo rigproof image build` (in a "
                f"checkout: `sudo make image`) once, or bring {instead_of} here (`docker pull` or "
                "`docker load`), or build on a base that is here: `rigproof image build --base "
                "REF` (make: BASE=REF)"
            )
        debootstrap = self._debootstrap()
        # /tmp may be mounted without devices
        folder = Path(tempfile.mkdtemp(prefix="rigproof-base-", dir="/var/tmp"))
        try:
            self._run(
                recipe.bootstrap(
                    debootstrap, folder / "root", debian_mirror(os.environ, self.root)
                ),
                "debootstrap",
            )
            self._run(
                ["tar", "-C", str(folder / "root"), "-cf", str(folder / "root.tar"), "."], "tar"
            )
            self._run(
                [self.engine.docker, "import", str(folder / "root.tar"), BOOTSTRAPPED], "import"
            )
        finally:
            self._remove(folder)

    def _debootstrap(self) -> str:
        try:
            return command.find("debootstrap")
        except command.ProgramMissing:
            pass
        cure = "install it with your distribution's package manager"
        if shutil.which("apt-get") is None:
            raise SetupError(f"a base is made by debootstrap, which is not installed: {cure}")
        self.say("installing debootstrap from the distribution")
        environment = {"DEBIAN_FRONTEND": "noninteractive"}
        self._run(["apt-get", "update", "-qq"], "apt", environment)
        packages = ["debootstrap", "debian-archive-keyring"]
        self._run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
            "apt",
            environment,
        )
        return command.find("debootstrap")

    def _run(
        self, argv: list[str], name: str, environment: Mapping[str, str] | None = None
    ) -> None:
        log = self.log.with_name(f"{self.log.name}.{name}")
        running = command.start(
            argv, deadline=self.deadline.sooner(BOOTSTRAP_S), log=log, env=environment
        )
        done = follow(running, Progress(self.say))
        if done.returncode != 0:
            raise SetupError(
                f"the base could not be made: `{name}` {words.message(done.describe())}; "
                f"the whole log: {log}\n{done.last_lines()}"
            )

    def _remove(self, folder: Path) -> None:
        """Remove the bootstrapped tree.

        File systems that a stopped debootstrap left mounted in it are unmounted first: they are the
        host's own.
        """
        mounts = mounted_below(
            folder, (self.root / "proc/self/mountinfo").read_text(encoding="utf-8")
        )
        for place in mounts:
            command.run(["umount", "--lazy", place], deadline=Deadline.after(10.0))
        if mounted_below(folder, (self.root / "proc/self/mountinfo").read_text(encoding="utf-8")):
            self.say(f"{folder} is left behind: something is still mounted in it")
            return
        shutil.rmtree(folder)


def mounted_below(folder: Path, mountinfo: str) -> list[str]:
    """Mount points in a folder, the deepest first, from the kernel's mountinfo."""
    places = [line.split()[4] for line in mountinfo.splitlines()]
    return sorted(
        (place for place in places if place.startswith(f"{folder}/")), key=len, reverse=True
    )


def debian_mirror(environment: Mapping[str, str], root: Path) -> str | None:
    """The mirror to bootstrap from; None for debootstrap's default.

    The one that the user named, else this host's own if it runs Debian.
    """
    if named := environment.get("DEBIAN_MIRROR"):
        return named
    try:
        release = (root / "etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return None
    if not re.search(r'^ID="?debian"?$', release, re.MULTILINE):
        return None
    for name, pattern in (
        ("etc/apt/sources.list.d/debian.sources", r"^URIs:\s*(\S+)"),
        ("etc/apt/sources.list", r"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)"),
    ):
        try:
            text = (root / name).read_text(encoding="utf-8")
        except OSError:
            continue
        if found := re.search(pattern, text, re.MULTILINE):
            return found[1]
    return None
