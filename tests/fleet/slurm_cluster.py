"""A real Slurm in a folder: munge, a controller, and several nodes on this host.

Nothing of it touches a Slurm that is installed here: its key, sockets, ports and state are its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo", "sbatch", "scontrol", "squeue", "scancel")
_CONF = """\
ClusterName=rigproof
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
MailProg=/bin/true
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n.spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
MpiDefault=none
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
ReturnToService=0
SlurmdTimeout=4
MessageTimeout=2
KillWait=20
Licenses={licences}
PropagateResourceLimits=NONE
{more}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Why no Slurm can be started here; None where one can."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    gone = [one for one in PROGRAMS if shutil.which(one, path=path) is None]
    if gone:
        return (
            f"{', '.join(gone)} not installed: apt-get install munge slurmctld slurmd slurm-client"
        )
    return None if os.geteuid() == 0 else "a Slurm of several nodes on one host needs root"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def until(true: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something is true; fail where it does not become so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.1)


@dataclass
class Cluster:
    """A Slurm with the nodes n1, n2, ... of one processor each."""

    folder: Path
    count: int = 4
    licences: str = "rigproof:2"
    more: str = ""
    daemons: list[int] = field(default_factory=list)

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    def start(self) -> None:
        """Start all daemons, and wait until each node is idle."""
        host = socket.gethostname().split(".")[0]
        ports = free_ports(self.count + 1)
        nodes = "\n".join(
            f"NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 "
            "RealMemory=100 State=UNKNOWN"
            for number, port in enumerate(ports[1:], 1)
        )
        (self.folder / "state").mkdir()
        self.conf.write_text(
            _CONF.format(
                host=host,
                ports=ports,
                folder=self.folder,
                licences=self.licences,
                more=self.more,
                nodes=nodes,
            )
        )
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        own = {name: f"--{name}={self.folder}/munge.{end}" for name, end in _MUNGE.items()}
        self._daemon("munged", "--force", *own.values())
        until((self.folder / "munge.sock").exists, 10, "munged's socket")
        self.start_controller()
        for number in range(1, self.count + 1):
            self.boot(f"n{number}")
        self.until_states({f"n{number}": "idle" for number in range(1, self.count + 1)})

    def start_controller(self) -> None:
        """Start the controller; it goes on with what it has saved."""
        self._daemon("slurmctld")

    def stop_controller(self) -> None:
        """End the controller as its service does, and wait until it is gone."""
        pid = int((self.folder / "slurmctld.pid").read_text())
        os.kill(pid, signal.SIGTERM)
        until(lambda: not Path(f"/proc/{pid}").exists(), 20, "the end of the controller")

    def boot(self, node: str) -> None:
        """Start the daemon of one node."""
        self._daemon("slurmd", "-N", node)

    def kill(self, node: str) -> None:
        """What a node does that loses its power: its daemon and its job's processes are gone."""
        os.kill(int((self.folder / f"{node}.pid").read_text()), signal.SIGKILL)
        for own in self.processes_of(node):
            os.kill(own, signal.SIGKILL)

    def processes_of(self, node: str) -> list[int]:
        """The processes of the jobs of one node of this cluster, its slurmstepd first."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                environment = path.read_bytes().split(b"\0")
            except OSError:
                continue
            wanted = {f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={self.conf}".encode()}
            if wanted <= set(environment):
                found.append(int(path.parent.name))
        return found

    def stop(self) -> None:
        """End everything that was started."""
        subprocess.run(["scancel", "--me"], env=self.env(), timeout=20, capture_output=True)
        for node in range(1, self.count + 1):
            for pid in self.processes_of(f"n{node}"):
                _kill(pid)
        for path in sorted(self.folder.glob("*.pid"), reverse=True):
            _kill(int(path.read_text() or 0))

    def env(self) -> dict[str, str]:
        """The environment in which Slurm's commands ask this cluster."""
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        return {**os.environ, "SLURM_CONF": str(self.conf), "PATH": path}

    def ask(self, *argv: str) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(argv, env=self.env(), timeout=30, capture_output=True, text=True)
        assert done.returncode == 0, done
        return done.stdout

    def states(self) -> dict[str, str]:
        """The whole state of each node, as sinfo shows it."""
        lines = self.ask("sinfo", "-N", "-h", "-O", "NodeList:20,StateComplete:80").splitlines()
        return dict(line.split() for line in lines)

    def until_states(self, wanted: dict[str, str], seconds: float = 30.0) -> None:
        """Wait until these nodes are in these states."""
        until(
            lambda: wanted.items() <= self.states().items(),
            seconds,
            f"{wanted}",
        )

    def _daemon(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [program, *arguments], env=self.env(), timeout=30, capture_output=True, text=True
        )
        assert done.returncode == 0, done


_MUNGE = {
    "key-file": "key",
    "socket": "sock",
    "pid-file": "pid",
    "log-file": "log",
    "seed-file": "seed",
}


def _kill(pid: int) -> None:
    if pid:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
