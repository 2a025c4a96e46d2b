"""The images that faults are played in: rigproof's own, with replayed tools over it, and for
each fault one layer more.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import docker.errors
import gpu_box
import msgspec

from acceptance.station.container_args import LABEL
from selftest.edits import Document
from selftest.fault import Fault

TOOLS = Path("/opt/rigproof/tools/bin")
MACHINE = Path("/opt/described/machine.json")
PYTHON = "/opt/rigproof/venv/bin/python"
LOCK = Path("/run/lock/rigproof-selftest.lock")
NULL = os.makedev(1, 3)
NODES = (*(f"nvidia{number}" for number in range(8)), "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
# Our loads are programs too: the interpreter that starts one is the place where another comes in
# its stead.
WRAPPER = f"""\
#!/bin/bash
load=${{3#*\\"load\\":\\"}}
faults={TOOLS}/replay/loads.json
if [ "$1 $2" = "-m acceptance.loads" ] && [ -f $faults ] && grep -q "\\"${{load%%\\"*}}\\":" $faults; then
    exec -a "$0" "$0.real" {TOOLS}/replay/load.py "$3"
fi
exec -a "$0" "$0.real" "$@"
"""  # noqa: E501


class ImageTrouble(Exception):
    """An image could not be made; the message is one sentence."""


@dataclass(frozen=True)
class Images:
    """Makes and removes them.

    `base` is rigproof's image with the replayed tools, made by `open_images`.
    """

    client: docker.DockerClient
    base: str

    def of(
        self, home: Path, fault: Fault, described: Document | None, programs: Callable[[Path], None]
    ) -> str:
        """The image of one fault that is played in `home`: the described machine, and what
        `programs` puts on PATH.
        """
        tag = f"rigproof-selftest:{os.getpid()}-{home.name}"
        context = home / "image"
        tools = context / f"fault{TOOLS}"
        (tools / "replay").mkdir(parents=True)
        programs(tools)
        if described is not None:
            machine = context / f"fault{MACHINE}"
            machine.parent.mkdir(parents=True)
            machine.write_text(json.dumps(described), encoding="utf-8")
        (tools / "replay/faults.json").write_text(json.dumps(dict(fault.tools)), encoding="utf-8")
        (tools / "replay/loads.json").write_bytes(msgspec.json.encode(fault.loads))
        build(self.client, context, tag, f"FROM {self.base}", "COPY fault/ /", *fault.image_steps)
        return tag

    def remove(self, tag: str) -> None:
        """Remove the image of a fault."""
        with contextlib.suppress(docker.errors.DockerException):
            self.client.images.remove(tag, force=True)

    def kill(self, run_id: str) -> None:
        """Kill the container of a run, as an engine that gives up does."""
        for found in self.running(run_id):
            found.kill()

    def running(self, run_id: str) -> list[Any]:
        """The containers of a run in which something runs."""
        found: list[Any] = self.client.containers.list(filters={"label": f"{LABEL}={run_id}"})
        return found


def build(client: docker.DockerClient, context: Path, tag: str, *steps: str) -> None:
    """Build an image from a folder. Raises ImageTrouble."""
    (context / "Dockerfile").write_text("\n".join(steps) + "\n", encoding="utf-8")
    try:
        client.images.build(path=str(context), tag=tag, rm=True, network_mode="none")
    except (docker.errors.DockerException, TypeError) as error:
        raise ImageTrouble(f"the self-test's image {tag} could not be made: {error}") from error


@contextlib.contextmanager
def open_images(
    client: docker.DockerClient, built: str, home: Path, recordings: Path
) -> Iterator[Images]:
    """Images over rigproof's own, `built`, for as long as they are wanted; and device nodes that
    do no harm, which the engine looks for.
    """
    context = home / "base"
    context.mkdir(parents=True)
    gpu_box.install(context / "tools", f"{PYTHON}.real", {}, inside=TOOLS)
    shutil.copytree(recordings / "burn", context / "tools/replay/recordings")
    (context / "python").write_text(WRAPPER, encoding="utf-8")
    (context / "python").chmod(0o755)
    tag = f"rigproof-selftest:base-{os.getpid()}"
    steps = (
        "USER 0:0",
        f"RUN mv {PYTHON} {PYTHON}.real",
        f"COPY python {PYTHON}",
        f"COPY tools {TOOLS}",
        f"ENV RIGPROOF_FAKE_NVML={MACHINE}",
    )
    with _nodes():
        build(client, context, tag, f"FROM {built}", *steps)
        images = Images(client, tag)
        try:
            yield images
        finally:
            images.remove(tag)


@contextlib.contextmanager
def _nodes() -> Iterator[None]:
    """What /dev/null is, under the names of GPUs that this machine does not have: the engine looks
    for them in the machine's own /dev.

    Self-tests side by side share them; the last one takes them away, and those that a killed one
    left.
    """
    with LOCK.open("w") as shared:
        fcntl.flock(shared, fcntl.LOCK_SH)
        try:
            for path in (Path("/dev", name) for name in NODES):
                with contextlib.suppress(FileExistsError):
                    os.mknod(path, 0o020666, NULL)
                    path.chmod(0o666)
            yield
        finally:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for path in (Path("/dev", name) for name in NODES):
                    if path.exists() and path.stat().st_rdev == NULL:
                        path.unlink()
