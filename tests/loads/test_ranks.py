from __future__ import annotations

import json
import signal
import textwrap

import pytest
from cases import each
from load_program import CORES, CPUS, forked, gone, run, start, wait_for

from acceptance.loads.protocol import Note, decode
from acceptance.loads.ranks import sleep_until

ALL_SPOKE = "for member in ranks._members: member.connection.poll(20)"


def program(body: str, drive: str) -> tuple[str, str]:
    """A child that forks ranks with this body, drives it so, and says on
    standard output how it ended.
    """
    text = "\n".join(
        [
            "import os, signal, sys, time",
            "from acceptance.loads.cpu.cores import cores_of",
            "from acceptance.loads import ranks as module",
            "from acceptance.loads.ranks import RankLost, Ranks",
            "module.END_S = 0.5",
            "def body(core, connection):",
            textwrap.indent(body, "    "),
            "heard = []",
            "def other(core, value): heard.append(value)",
            "try:",
            f"    with Ranks(cores_of({CORES!r}), body) as ranks:",
            textwrap.indent(drive, "        "),
            "except RankLost as error: print('lost:', error)",
            "print('heard:', heard)",
        ]
    )
    done = forked("-c", text)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


LAST = CPUS[-1]
JOINED = "for member in ranks._members: member.process.join()"
DONE = "ranks.collect('done', 20, other)"
OTHERS_WAIT = f"if core.cpu != {LAST}: time.sleep(60)\n"
HEARD = "print(sorted(ranks.collect('done', 20, other).values()))"


@each(
    "body, drive, said, heard",
    [
        (  # pinned, and told to use one thread
            "own = sorted(os.sched_getaffinity(0)), os.environ['OPENBLAS_NUM_THREADS']\n"
            "connection.send(('done', own))",
            HEARD,
            repr([([cpu], "1") for cpu in CPUS]),
            [],
        ),
        (  # all start at one moment
            "connection.send(('ready', None)); connection.send(('done', connection.recv()))",
            "ranks.collect('ready', 20, other); ranks.start(lambda moment: moment)\n"
            "print(len(set(ranks.collect('done', 20, other).values())))",
            "1",
            [],
        ),
        *(
            (OTHERS_WAIT + body, DONE, f"lost: the worker on core:{LAST} {said}", [])
            for body, said in (
                ("os._exit(3)", "ended early with exit code 3"),
                ("raise MemoryError", "ended early with exit code 1"),
                ("os.kill(os.getpid(), signal.SIGSEGV)", "was ended by signal 11"),
                (
                    "os.kill(os.getpid(), signal.SIGKILL)",
                    "was ended by signal 9 (the kernel does so when memory runs out)",
                ),
                (
                    "os.close(connection.fileno()); time.sleep(60)",
                    "closed its pipe and did not end",
                ),
            )
        ),
        (  # the one that a signal ended is named before one that failed for want of it
            f"if core.cpu != {LAST}: os._exit(1)\nos.kill(os.getpid(), signal.SIGSEGV)",
            f"{JOINED}\n{DONE}",
            f"lost: the worker on core:{LAST} was ended by signal 11",
            [],
        ),
        (  # what others found is heard although one is lost
            f"connection.send(('miscompare', core.cpu))\n{OTHERS_WAIT}",
            f"{ALL_SPOKE}\n{DONE}",
            f"lost: the worker on core:{LAST} ended early with exit code 0",
            CPUS,
        ),
        (  # silence has an end
            "connection.send(('miscompare', 1)); time.sleep(60)",
            f"{ALL_SPOKE}\nranks.collect('done', 0.5, other)",
            "has not answered within 0.5 s and was killed",
            [1] * len(CPUS),
        ),
        (  # lost before the start
            "connection.send(('ready', None))",
            f"ranks.collect('ready', 20, other)\n{JOINED}\nranks.start(lambda moment: moment)",
            f"lost: the worker on core:{CPUS[0]} ended early with exit code 0",
            [],
        ),
    ],
)
def test_what_the_parent_is_told(body: str, drive: str, said: str, heard: list[int]) -> None:
    out, _ = program(body, drive)
    first, last = out.splitlines()
    assert first == said if said.startswith(("lost", "[", "1")) else said in first
    assert sorted(eval(last.removeprefix("heard: "))) == heard


def test_a_stray_print_of_a_worker_does_not_reach_standard_output() -> None:
    out, err = program(
        "print('stray', flush=True); connection.send(('done', 1))",
        "ranks.collect('done', 20, other)",
    )
    assert "stray" not in out
    assert "stray" in err


def test_a_moment_that_is_over_is_not_waited_for() -> None:
    sleep_until(0.0)


HUNG = """
import json, sys, time
from acceptance.loads import ranks
from acceptance.loads.cpu.cores import cores_of
from acceptance.loads.program import exit_load
ranks.END_S = 0.5
def body(core, connection):
    connection.send(("done", None))
    time.sleep(600)
def main():
    try:
        with ranks.Ranks(cores_of(json.loads(sys.argv[1])), body) as group:
            group.collect("done", 20, lambda core, value: None)
            group._members[-1].process.kill = lambda: None  # as one that hangs in the driver
    except ranks.RankLost as error:
        print(error, flush=True)
        return 1
    return 0
exit_load(main())
"""


def test_a_rank_that_outlives_its_kill_fails_the_load_and_is_not_waited_for() -> None:
    done = forked("-c", HUNG, json.dumps(CORES))
    assert done.returncode == 1
    assert done.stdout == f"the worker on core:{CPUS[-1]} was killed and does not end\n"


GPUS = """
import os, sys, time
from dataclasses import dataclass
from acceptance.loads.protocol import Output
from acceptance.loads.ranks import GpuRank, Ranks
@dataclass(frozen=True)
class OwnGpuRank(GpuRank):
    uuid: str
    def prepare(self):
        assert "torch" not in sys.modules
        os.environ.update({"CUDA_VISIBLE_DEVICES": self.uuid, "RANK": str(self.number)})
def body(rank, connection):
    connection.send(("ready", (os.getpid(), os.environ["CUDA_VISIBLE_DEVICES"])))
    if rank.number == int(sys.argv[1]):
        os._exit(5)
    time.sleep(600)
uuids = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
every = tuple(OwnGpuRank(number, uuid) for number, uuid in enumerate(uuids))
output = Output(sys.stdout)
output.hello("collective", {"gpus": len(every)})
with Ranks(every, body) as ranks:
    for rank, (pid, uuid) in sorted(
        ranks.collect("ready", 20, print).items(), key=lambda one: one[0].number
    ):
        output.note(f"{rank.component} {pid} {uuid}")
    ranks.collect("done", 600, print)
"""
NONE = "-1"  # no rank dies


def ranks_of(said: list[str]) -> list[list[str]]:
    """The component, the process and the GPU of each rank, from the program's stream."""
    return [str(note.text).split() for note in map(decode, said) if isinstance(note, Note)]


def test_each_rank_sees_its_own_gpu_and_none_outlives_the_one_that_died(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c")
    done = run("-c", GPUS, "1")
    assert done.returncode == 1
    assert "RankLost: the worker on gpu1 ended early with exit code 5" in done.stderr
    told = ranks_of(done.stdout.splitlines())
    assert [(name, gpu) for name, _, gpu in told] == [
        ("gpu0", "GPU-a"),
        ("gpu1", "GPU-b"),
        ("gpu2", "GPU-c"),
    ]
    assert all(gone(int(pid)) for _, pid, _ in told)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_rank_outlives_its_program(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    with start("-c", GPUS, NONE) as program:
        assert program.stdout is not None
        told = ranks_of([program.stdout.readline() for _ in range(3)])
        assert len(told) == 2
        program.send_signal(number)
        program.wait(10)
    wait_for(lambda: all(gone(int(pid)) for _, pid, _ in told))
