from __future__ import annotations

import textwrap

from cases import each
from load_program import CORES, CPUS, run

from acceptance.loads.cpu.workers import sleep_until

ALL_SPOKE = "for member in team._members: member.connection.poll(20)"


def program(body: str, drive: str) -> tuple[str, str]:
    """A child that forks a team with this body, drives it so, and says on
    standard output how it ended.
    """
    text = "\n".join(
        [
            "import os, signal, sys, time",
            "from acceptance.loads.cpu.cores import parse_cores",
            "from acceptance.loads.cpu import workers",
            "from acceptance.loads.cpu.workers import Team, WorkerLost",
            "workers.END_S = 0.5",
            "def body(core, connection):",
            textwrap.indent(body, "    "),
            "heard = []",
            "def other(core, value): heard.append(value)",
            "try:",
            f"    with Team(parse_cores({CORES!r}), body) as team:",
            textwrap.indent(drive, "        "),
            "except WorkerLost as error: print('lost:', error)",
            "print('heard:', heard)",
        ]
    )
    done = run("-c", text)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_workers_are_pinned_and_told_to_use_one_thread() -> None:
    said, _ = program(
        (
            "connection.send(('state', (sorted(os.sched_getaffinity(0)), "
            "os.environ['OPENBLAS_NUM_THREADS'])))"
        ),
        "print(sorted(team.collect('state', 20, other).values()))",
    )
    assert said.splitlines()[0] == repr([([cpu], "1") for cpu in CPUS])


def test_all_start_at_one_moment_and_are_heard() -> None:
    said, _ = program(
        "connection.send(('ready', None)); connection.send(('done', connection.recv()))",
        (
            "team.collect('ready', 20, other); team.start(lambda moment: moment); "
            "print(len(set(team.collect('done', 20, other).values())))"
        ),
    )
    assert said.splitlines()[0] == "1"


@each(
    "body, said",
    [
        ("os._exit(3)", "ended early with exit code 3"),
        ("raise MemoryError", "ended early with exit code 1"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was ended by signal 11"),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "was ended by signal 9 (the kernel does so when memory runs out)",
        ),
        ("os.close(connection.fileno()); time.sleep(60)", "closed its pipe and did not end"),
    ],
)
def test_a_lost_worker_is_named_with_how_it_ended(body: str, said: str) -> None:
    last = CPUS[-1]
    out, _ = program(
        f"if core.cpu != {last}: time.sleep(60)\n{body}", "team.collect('done', 30, other)"
    )
    assert out.splitlines()[0] == f"lost: the worker on core:{last} {said}"


def test_what_others_found_is_heard_although_one_is_lost() -> None:
    out, _ = program(
        f"connection.send(('miscompare', core.cpu))\nif core.cpu != {CPUS[-1]}: time.sleep(60)",
        f"{ALL_SPOKE}\nteam.collect('done', 20, other)",
    )
    assert "ended early with exit code 0" in out
    assert sorted(eval(out.splitlines()[-1].removeprefix("heard: "))) == CPUS


def test_silence_has_an_end_and_what_was_said_besides_is_heard() -> None:
    out, _ = program(
        "connection.send(('miscompare', 1)); time.sleep(60)",
        f"{ALL_SPOKE}\nteam.collect('done', 0.5, other)",
    )
    assert "has not answered within 0.5 s and was killed" in out
    assert out.splitlines()[-1] == f"heard: {[1] * len(CPUS)}"


def test_a_worker_lost_before_the_start_is_named() -> None:
    out, _ = program(
        "connection.send(('ready', None))",
        (
            "team.collect('ready', 20, other)\nfor member in team._members: "
            "member.process.join()\nteam.start(lambda moment: moment)"
        ),
    )
    assert out.splitlines()[0] == f"lost: the worker on core:{CPUS[0]} ended early with exit code 0"


def test_a_stray_print_of_a_worker_does_not_reach_standard_output() -> None:
    out, err = program(
        "print('stray', flush=True); connection.send(('done', 1))",
        "team.collect('done', 20, other)",
    )
    assert "stray" not in out
    assert "stray" in err


def test_a_moment_that_is_over_is_not_waited_for() -> None:
    sleep_until(0.0)
