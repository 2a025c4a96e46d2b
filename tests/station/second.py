"""A second engine beside the machine's own, which tests may kill; and an image that is small
enough to be carried there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import box
from known import known
from rig import wait_for

from acceptance.process import command
from acceptance.station.image.record import ImageRef

# Of the image what a session needs that loads nothing but the processor; torch and its libraries
# stay behind.
LEFT_BEHIND = (
    "torch",
    "torchgen",
    "nvidia",
    "triton",
    "cuda",
    "sympy",
    "networkx",
    "mpmath",
    "functorch",
    "_cuda_bindings_redirector.pth",
)
PATH = (
    "/opt/rigproof/harness/bin:/opt/rigproof/venv/bin:/opt/rigproof/tools/bin:"
    "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
)


@dataclass
class Second:
    """An engine of our own: no bridge, no packet filter, all its files in one folder."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None
    started: list[int] = field(default_factory=list)

    @property
    def socket(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    def start(self) -> None:
        argv = [
            command.find("dockerd"),
            *("--host", self.socket),
            *("--data-root", f"{self.folder}/data"),
            *("--exec-root", f"{self.folder}/exec"),
            *("--pidfile", f"{self.folder}/pid"),
            # Where the machine's own engine uses the system's containerd, so does this one.
            *(
                "--containerd-namespace",
                "rigproof-test",
                "--containerd-plugins-namespace",
                "rigproof-test-plugins",
            ),
            *("--bridge", "none", "--iptables=false"),
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        self.started.append(self.process.pid)
        wait_for(self._answers, 60.0)

    def _answers(self) -> bool:
        argv = ["docker", "--host", self.socket, "version"]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    def kill(self) -> None:
        """As a crash would."""
        known(self.process).kill()
        known(self.process).wait()

    def stop(self) -> None:
        """Stop it, and whatever of it a crash has left: every process that names its folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
            self.kill()
        end = time.monotonic() + 10.0
        while (left := self._left()) and time.monotonic() < end:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for place in sorted(
            (one for one in mounts if one.startswith(f"{self.folder}/")), reverse=True
        ):
            subprocess.run(["umount", "--lazy", place], check=False)

    def _left(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if f"{self.folder}/exec".encode() in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
        return found


def carry(built: ImageRef, address: str, tag: str) -> None:
    """Bring the image to another engine, without its large parts."""
    packages = "opt/rigproof/venv/lib/python3*/site-packages"
    without = [f"--exclude=./{packages}/{name}" for name in LEFT_BEHIND]
    without += [f"--exclude=./{name}/*" for name in ("proc", "sys", "dev", "tmp")]
    tar = ["-C", "/", "-c", *without, "."]
    give = [
        "docker",
        "run",
        "--rm",
        "--network",
        "none",
        "--user",
        "0:0",
        "--entrypoint",
        "tar",
        built.tag,
        *tar,
    ]
    take = ["docker", "--host", address, "import", "--change", f"ENV PATH={PATH}", "-", tag]
    with subprocess.Popen(give, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as giving:
        taken = subprocess.run(take, stdin=giving.stdout, capture_output=True, check=False)
    assert (giving.returncode, taken.returncode) == (0, 0), taken.stderr
    box.engine("image", "inspect", tag, host=address)
