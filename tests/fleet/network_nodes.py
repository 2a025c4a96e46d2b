"""Nodes of a network on this host: network namespaces that a switch joins, with links that can be
slow or dead. The wire is so slow that a turn takes nearly two seconds: then the tenths of a second
that two busy processors take away stay far below the limit of 20 %.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

ENVIRONMENT = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
WIRE_MBIT, SLOW_MBIT = 30, 12
# Between the program of a node and rigproof: it cuts a link after the first reading, and adds
# arguments on one node.
LAUNCHER = """\
import subprocess, sys
name, *argv = sys.argv[1:]
argv += {more}.get(name, [])
program = subprocess.Popen([*{inside}, name, *argv], stdout=subprocess.PIPE, text=True)
for line in program.stdout:
    if name in {cut} and "collective_all_reduce" in line:
        subprocess.run(["ip", "-n", name, "link", "set", "direct", "down"], check=True)
    print(line, end="", flush=True)
code = program.wait()
sys.exit(code if code >= 0 else 128 - code)
"""


def missing() -> str | None:
    """Why no such network can be made here; None where it can."""
    gone = [one for one in ("ip", "tc") if shutil.which(one, path=ENVIRONMENT["PATH"]) is None]
    if gone:
        return f"{', '.join(gone)} not installed: apt-get install iproute2"
    return None if os.geteuid() == 0 else "network namespaces need root"


def command(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, env=ENVIRONMENT, timeout=30)
    assert done.returncode == 0, f"{argv}: {done.stderr}"


def wire(namespace: str, device: str, mbit: int) -> None:
    """Send at this rate at most. The queue holds all of it, as a lost packet would cost 200 ms."""
    shape = ("root", "tbf", "rate", f"{mbit}mbit", "burst", "16kb", "limit", "16mb")
    command("tc", "-n", namespace, "qdisc", "add", "dev", device, *shape)


class Network:
    """Nodes at one switch; `leave` removes all of it."""

    def __init__(
        self,
        count: int,
        folder: Path,
        inside: Sequence[str] = ("ip", "netns", "exec"),
        started: Callable[[str], int] | None = None,
    ) -> None:
        """`inside` runs a command on a node whose name follows it; `started` starts the node and
        gives the id of a process there. Without it a node is its network alone.
        """
        self.folder, self.inside, self.started = folder, tuple(inside), started
        self.made: list[str] = []
        self.nodes = tuple(f"rigproof{os.getpid()}n{number}" for number in range(1, count + 1))
        self.switch = f"rigproof{os.getpid()}switch"
        self.more: dict[str, Sequence[str]] = {}
        self.cut: list[str] = []
        try:
            self._make(self.switch)
            command("ip", "-n", self.switch, "link", "add", "bridge", "type", "bridge")
            command("ip", "-n", self.switch, "link", "set", "bridge", "up")
            for number, node in enumerate(self.nodes, 1):
                self._make(node)
                self._join(number, node)
        except BaseException:
            self.leave()
            raise

    def _make(self, namespace: str) -> None:
        if self.started is None or namespace == self.switch:
            command("ip", "netns", "add", namespace)
        else:
            command("ip", "netns", "attach", namespace, str(self.started(namespace)))
        self.made.append(namespace)

    def _join(self, number: int, node: str) -> None:
        port = f"port{number}"
        peer = ("peer", "name", "eth0", "netns", node)
        command("ip", "-n", self.switch, "link", "add", port, "type", "veth", *peer)
        command("ip", "-n", self.switch, "link", "set", port, "master", "bridge", "up")
        command("ip", "-n", node, "link", "set", "lo", "up")
        command("ip", "-n", node, "address", "add", f"{self.address(node)}/24", "dev", "eth0")
        command("ip", "-n", node, "link", "set", "eth0", "up")
        wire(node, "eth0", WIRE_MBIT)

    def address(self, node: str) -> str:
        return f"10.77.0.{self.nodes.index(node) + 1}"

    def link(self, first: str, second: str, mbit: int) -> None:
        """A wire of their own between two nodes; without it there is none between them."""
        peer = ("peer", "name", "direct", "netns", second)
        command("ip", "-n", first, "link", "add", "direct", "type", "veth", *peer)
        for here in (first, second):
            command("ip", "-n", here, "link", "set", "direct", "up")
        for here, there in ((first, second), (second, first)):
            way = (f"{self.address(there)}/32", "dev", "direct", "src", self.address(here))
            command("ip", "-n", here, "route", "add", *way)
            lost = ("blackhole", f"{self.address(there)}/32", "metric", "100")
            command("ip", "-n", here, "route", "add", *lost)
            wire(here, "direct", mbit)

    def launcher(self) -> Path:
        path = self.folder / "launcher.py"
        path.write_text(LAUNCHER.format(more=self.more, cut=self.cut, inside=self.inside))
        return path

    def files(self) -> tuple[Path, Path]:
        """The list of nodes, and the table of their addresses."""
        nodes, addresses = self.folder / "nodes.txt", self.folder / "addresses.csv"
        nodes.write_text("".join(f"{node}\n" for node in self.nodes))
        rows = "".join(f"{node},{self.address(node)}\n" for node in self.nodes)
        addresses.write_text(f"machine,address\n{rows}")
        return nodes, addresses

    def leave(self) -> None:
        for namespace in self.made:
            subprocess.run(["ip", "netns", "delete", namespace], env=ENVIRONMENT, timeout=30)
