from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import each
from runs import until
from worded import worded

from acceptance.core import regular_file
from acceptance.process import command, orphans
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline

LONG = Deadline.after(86_400.0)  # from the collection on, however long the tests before take
# Leaves its process group, its session and its parent, as a daemon does; then says that it is
# there, and stays.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "w").close()
        time.sleep(600)
    os._exit(0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
"""


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A run id by which every descendant of a test's programs can be found, and
    that none of them outlives.
    """
    monkeypatch.setattr(command, "GRACE_S", 0.3)
    run_id = f"test-{secrets.token_hex(8)}"
    yield run_id
    assert not orphans.sweep(run_id)


def run(*argv: str, mark: str = "", seconds: float = 600.0, **options: object) -> ProgramResult:
    return command.run(
        argv, deadline=Deadline.after(seconds), env={"RIGPROOF_RUN": mark}, **options
    )  # type: ignore[arg-type]


# --- how it ended ---


@pytest.mark.parametrize(
    ("script", "returncode", "told"),
    [
        *((f"exit {code}", code, f"ended with exit code {code} after ") for code in (0, 3, 255)),
        *(
            (f"kill -{number} $$", -number, f"was ended by signal {number} after ")
            for number in map(int, (signal.SIGSEGV, signal.SIGKILL, signal.SIGINT, signal.SIGPIPE))
        ),
    ],
)
def test_its_end_is_handed_on(script: str, returncode: int, told: str) -> None:
    done = run("sh", "-c", script)
    assert (done.returncode, done.timed_out, done.truncated, done.log_error) == (
        *(returncode, False, False, None),
    )
    assert worded(done.describe()).startswith(told)


def test_an_end_that_nobody_saw_yet_is_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a starved machine the thread that waits for the end may run long after it."""
    monkeypatch.setattr(command._Exit, "within", lambda self, seconds: False)
    running = command.start(["true"], deadline=Deadline.after(600.0))
    until(running.poll, "it has ended")
    done = running.wait()
    assert (done.returncode, done.timed_out) == (0, False)


def test_a_deadline_ends_it(mark: str) -> None:
    done = run("sleep", "600", mark=mark, seconds=0.3)
    assert done.timed_out
    assert done.returncode != 0
    assert worded(done.describe()).startswith("did not end within its time and was stopped after ")
    assert orphans.find(mark) == {}


def test_one_whose_time_is_over_is_ended_without_waiting_for_it(mark: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    running = command.start(
        ["sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.05; done'],
        deadline=LONG,
        log=log,
        env={"RIGPROOF_RUN": mark},
    )
    until(lambda: log.exists() and "up\n" in log.read_text(), "it is up")
    running.expire()
    assert not running.poll()
    until(running.poll, "it was killed, and nobody waited")
    assert running.wait().timed_out
    assert orphans.find(mark) == {}


def test_one_that_ended_in_time_stays_so_when_its_time_is_over() -> None:
    running = command.start(["true"], deadline=LONG)
    until(running.poll, "it has ended")
    running.expire()
    done = running.wait()
    assert (done.returncode, done.timed_out) == (0, False)


def late(script: str, mark: str, log: Path) -> ProgramResult:
    """Run a shell script whose time is over as soon as it has said that it is up."""
    running = command.start(
        ["sh", "-c", script], deadline=LONG, log=log, env={"RIGPROOF_RUN": mark}
    )
    until(lambda: log.exists() and "up\n" in log.read_text(), "it is up")
    running.deadline = Deadline.after(0.0)
    return running.wait()


def test_its_time_was_over_before_it_began() -> None:
    with pytest.raises(
        command.CommandError, match="true was not started: its time was over before it began"
    ):
        run("true", seconds=0.0)


# --- its family ---


def test_children_do_not_outlive_it(mark: str) -> None:
    # The child that is left holds the output open: waiting for its end would take ten minutes.
    done = run("sh", "-c", "sleep 600 & sleep 600 & echo done", mark=mark)
    assert (done.returncode, done.stdout, done.truncated) == (0, "done\n", False)
    assert orphans.find(mark) == {}


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ('trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done', "up\nbye\n"),
        ('trap "" TERM; echo up; while :; do sleep 0.05; done', "up\n"),
        ('(trap "" TERM; echo up; sleep 600; sleep 600) & sleep 600', "up\n"),
    ],
    ids=["it is asked", "one that does not listen is killed", "grandchildren end with it"],
)
def test_a_deadline_ends_all_of_it(mark: str, tmp_path: Path, script: str, printed: str) -> None:
    done = late(script, mark, tmp_path / "log")
    assert (done.timed_out, done.stdout, orphans.find(mark)) == (True, printed, {})


@pytest.mark.parametrize("ends", [True, False])
def test_daemons_do_not_outlive_it(mark: str, tmp_path: Path, ends: bool) -> None:
    there = tmp_path / "there"
    code = DAEMON if ends else f"{DAEMON}\ntime.sleep(600)"
    running = command.start(
        [sys.executable, "-c", code, str(there)],
        deadline=LONG,
        env={"RIGPROOF_RUN": mark},
    )
    until(there.exists, "the daemon is there")
    if not ends:
        running.stop()
    done = running.wait()
    assert (done.returncode == 0, done.timed_out) == (ends, False)
    assert orphans.find(mark) == {}


def test_it_has_a_process_group_and_a_session_of_its_own() -> None:
    pid, group, session = run("sh", "-c", "cut -d' ' -f1,5,6 /proc/$$/stat").stdout.split()
    assert pid == group
    assert session not in (str(os.getsid(0)), pid)


# --- what it prints ---


def test_output_and_errors_are_kept_apart(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    done = run("sh", "-c", "echo out; echo err >&2; printf 'no end'", log=log)
    assert (done.stdout, done.stderr) == ("out\nno end", "err\n")
    assert (log.read_text(), (tmp_path / "x.log.err").read_text()) == ("out\nno end", "err\n")


def test_bytes_that_are_no_text() -> None:
    assert run("printf", r"a\377\0b").stdout == "a\N{REPLACEMENT CHARACTER}\0b"


def test_a_flood_is_capped(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    done = run("sh", "-c", "head -c 5000 /dev/zero >&2; echo fine", cap_bytes=1000, log=log)
    assert (done.stdout, len(done.stderr), done.truncated) == ("fine\n", 1000, True)
    assert log.with_name("x.log.err").stat().st_size == 1000
    done = run("sh", "-c", "head -c 1000 /dev/zero", cap_bytes=1000)
    assert (len(done.stdout), done.truncated) == (1000, False)


def test_a_log_that_cannot_be_written_costs_the_log_only(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere/x.log"
    done = run("sh", "-c", "echo out; echo err >&2", log=missing)
    assert (done.returncode, done.stdout, done.stderr, done.truncated) == (
        0,
        "out\n",
        "err\n",
        False,
    )
    assert (
        done.log_error
        == f"{missing}: No such file or directory; {missing}.err: No such file or directory"
    )


def test_a_log_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = regular_file.create
    full = Path("/dev/full")
    monkeypatch.setattr(
        regular_file,
        "create",
        lambda path: full.open("wb", buffering=0) if path.name == "x.log" else real(path),
    )
    done = run(
        "sh",
        "-c",
        "for i in 1 2 3; do echo $i; sleep 0.01; done; echo err >&2",
        log=tmp_path / "x.log",
    )
    assert (done.returncode, done.stdout) == (0, "1\n2\n3\n")
    assert done.log_error == f"{tmp_path / 'x.log'}: No space left on device"
    assert (tmp_path / "x.log.err").read_text() == "err\n"


def test_a_log_where_something_else_stands_is_not_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.log")
    (tmp_path / "x.log.err").symlink_to("/dev/null")
    done = run("sh", "-c", "echo out", log=tmp_path / "x.log")
    assert (done.returncode, done.stdout) == (0, "out\n")
    told = "it is a named pipe, not a file", "it is a device, not a file"
    assert done.log_error == f"{tmp_path / 'x.log'}: {told[0]}; {tmp_path / 'x.log.err'}: {told[1]}"


def test_last_lines() -> None:
    text = "\n".join(f"line {number}" for number in range(9)) + "\r\n\n  \nprogress 1\rprogress 2\n"
    done = ProgramResult(("x",), 0, text, "x" * 300 + " the cause", 1.0)
    *lines, last = done.last_lines(4).split("\n")
    assert lines == ["line 8", "progress 1", "progress 2"]
    assert (len(last), last.endswith("x the cause")) == (200, True)
    assert ProgramResult(("x",), 0, "", "", 1.0).last_lines() == ""


def test_the_last_lines_leave_out_the_frames_of_a_traceback() -> None:
    text = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
    load()
ValueError: one

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 2, in <module>
RuntimeError: CUDA error: an illegal memory access was encountered
  not a frame
"""
    assert ProgramResult(("x",), 1, "", text, 1.0).last_lines().split("\n") == [
        "ValueError: one",
        "During handling of the above exception, another exception occurred:",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "  not a frame",
    ]


# --- what it is given ---


def test_arguments_arrive_as_they_are() -> None:
    words = [
        "two words",
        "",
        "'quoted' \"twice\"",
        "$HOME `id` ; | *",
        "new\nline",
        "ü",
        "--",
        "-x",
    ]
    done = run(sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)
    assert done.stdout == f"{words!r}\n"


def test_a_program_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = run("no-such-program", "x")
    assert (done.returncode, done.stderr) == (127, "no-such-program: No such file or directory\n")


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello\n")
    assert run(str(file)).stderr == f"{file}: Permission denied\n"
    file.chmod(0o755)
    done = run(str(file))
    assert (done.returncode, done.stderr) == (127, f"{file}: Exec format error\n")


@each(
    "argv, folder, why",
    [
        (["true"], "x", r"true could not be started: No such file or directory \(.*/x\)"),
        (["a\0b"], "", r"^'a\\x00b' could not be started: embedded null byte$"),
        (["true", "x" * 10_000_000], "", "true could not be started: Argument list too long"),
    ],
    told=["in a folder that is not there", "a name with a null byte", "too many arguments"],
)
def test_what_cannot_be_started(tmp_path: Path, argv: list[str], folder: str, why: str) -> None:
    with pytest.raises(command.CommandError, match=why):
        run(*argv, cwd=tmp_path / folder)


def test_the_working_directory(tmp_path: Path) -> None:
    assert run("pwd", cwd=tmp_path).stdout == f"{tmp_path}\n"


def test_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "rigproof-test-tool"
    monkeypatch.setenv("PATH", str(tmp_path))
    cure = (
        r"install it with `sudo apt install a-package` \(in a checkout `sudo make tools` installs "
        r"all of them\)"
    )
    with pytest.raises(
        command.ProgramMissing, match=f"^rigproof-test-tool is not installed: {cure}$"
    ):
        command.find("rigproof-test-tool", "a-package")
    with pytest.raises(
        command.ProgramMissing, match=r"^rigproof-test-tool is not installed: put it on PATH$"
    ):
        command.find("rigproof-test-tool")
    tool.write_text("#!/bin/sh\n")
    for name in ("rigproof-test-tool", str(tool)):
        with pytest.raises(command.ProgramMissing) as caught:
            command.find(name, "a-package")
        assert (
            str(caught.value)
            == f"{tool} is there but may not be run: make it executable with `sudo chmod +x {tool}`"
        )
    tool.chmod(0o755)
    assert command.find("rigproof-test-tool") == str(tool)
    monkeypatch.delenv("PATH")
    assert Path(command.find("sh")).name == "sh"


def test_nothing_in_the_environment_steers_python_or_pytest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stray = {
        "PYTEST_ADDOPTS": "-k good",
        "PYTEST_PLUGINS": "stray",
        "PYTHONPATH": "/stray",
        "PYTHONSTARTUP": "/stray.py",
        "PYTHONHOME": "/stray",
        "PYTHONINSPECT": "1",
        "PYTHONOPTIMIZE": "2",
        "PYTHONWARNINGS": "error",
        "PYTHONIOENCODING": "ascii",
        "COVERAGE_PROCESS_START": "x",
        "GIT_DIR": "/stray",
        "LANGUAGE": "de",
    }
    for name, value in stray.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_ALL", "de_DE.ISO-8859-1")
    monkeypatch.setenv("KEPT", "yes, this one")
    lines = command.run(
        ["env"], deadline=LONG, env={"PYTEST_X": "ours", "KEPT_TOO": "a\nb"}
    ).stdout.splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    assert not set(stray) & set(found)
    assert (
        found.items()
        >= {
            "LC_ALL": "C.UTF-8",
            "LANG": "C.UTF-8",
            "KEPT": "yes, this one",
            "PYTEST_X": "ours",
        }.items()
    )


# --- its owner ---

# Starts a family (children of children, a daemon) and waits; ignores and blocks what a careless
# parent might.
OWNER = f"""
import signal, sys
from acceptance.process import command
from acceptance.process.deadline import Deadline
command.GRACE_S = 0.3
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2, signal.SIGCHLD])
deadline = Deadline.after(600)
if sys.argv[1] == "signals":
    sys.stdout.write(command.run(["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"], deadline=deadline).stdout)
    print(command.run(["sh", "-c", "exit 7"], deadline=deadline).returncode)
    print(command.run(["sleep", "600"], deadline=Deadline.after(0.2)).timed_out)
else:
    family = 'sh -c "sleep 600 & sleep 600" & "$@"; sleep 600'
    running = command.start(["sh", "-c", family, "sh", sys.executable, "-c", {DAEMON!r}, sys.argv[2]], deadline=deadline)
    print(running.process.pid, flush=True)
    running.wait()
"""  # noqa: E501


@pytest.fixture
def owner(mark: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has started a family of five or more."""
    there = tmp_path / "there"
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, "family", str(there)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "RIGPROOF_RUN": mark},
    ) as process:
        until(there.exists, "the family is there")
        until(lambda: len(orphans.find(mark)) >= 7, "all of the family is there")
        yield process
        process.kill()


def test_nothing_outlives_an_owner_that_is_killed(mark: str, owner: subprocess.Popen[str]) -> None:
    owner.kill()
    until(lambda: not orphans.find(mark), "the family is gone")


def test_what_is_left_when_the_reaper_itself_is_killed(
    mark: str, owner: subprocess.Popen[str]
) -> None:
    assert owner.stdout is not None
    reaper = int(owner.stdout.readline())
    lines = orphans.find(mark)
    direct = next(pid for pid, line in lines.items() if line.startswith("sh -c sh -c"))
    os.kill(reaper, signal.SIGKILL)
    # The kernel ends its direct child. The others have nobody left to end them, and stay until they
    # are swept up.
    until(lambda: not {reaper, direct} & set(orphans.find(mark)), "the direct child is gone")
    left = orphans.find(mark)
    assert any("sleep 600" in line for line in left.values())
    owner.kill()
    swept = orphans.sweep(mark)
    # Some of them may be dying already, of the death of others: those are not there to be swept.
    assert any("sleep 600" in worded(line) for line in swept)
    assert orphans.find(mark) == {}


def test_signals_ignored_or_blocked_by_its_owner_are_not_in_its_way(mark: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, "signals"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        *status, code, stopped = process.stdout.read().split("\n")[:-1]
    internal = 1 << 31 | 1 << 32  # the C library's own, which its posix_spawn leaves ignored
    masks = {line.split(":\t")[0]: int(line.split(":\t")[1], 16) & ~internal for line in status}
    assert masks == {"SigBlk": 0, "SigIgn": 0}
    assert (code, stopped) == ("7", "True")


def test_an_interrupted_wait_leaves_nothing_running(mark: str) -> None:
    running = command.start(
        ["sh", "-c", "sleep 600 & sleep 600"], deadline=LONG, env={"RIGPROOF_RUN": mark}
    )
    main = threading.main_thread().ident
    assert main is not None

    def waits() -> bool:
        frame = sys._current_frames()[main]
        inner = frame.f_code.co_filename
        while frame.f_back is not None and frame.f_code is not command.RunningProgram.wait.__code__:
            frame = frame.f_back
        return inner == threading.__file__ and frame.f_back is not None

    def interrupt() -> None:
        until(waits, "the main thread waits")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        running.wait()
    thread.join()
    assert running.poll()
    assert orphans.find(mark) == {}


def test_a_reaper_that_hangs_is_killed_with_its_family(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = command.start(
        ["sh", "-c", "sleep 600 & sleep 600"], deadline=LONG, env={"RIGPROOF_RUN": mark}
    )
    until(lambda: len(orphans.find(mark)) == 4, "the family is there")
    running.process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(command, "GRACE_S", -4.9)
    running.stop()
    assert running.wait().returncode == -signal.SIGKILL
    assert orphans.find(mark) == {}


def test_what_it_is_given_to_read(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("two\nlines\n")
    assert run("cat", stdin=tmp_path / "given").stdout == "two\nlines\n"
    assert run("cat").stdout == "", (
        "without a file there is nothing to read, whatever our own standard input is"
    )
    with pytest.raises(
        command.CommandError,
        match=r"cat could not be started: No such file or directory \(.*/gone\)",
    ):
        run("cat", stdin=tmp_path / "gone")


def test_stopping_twice_and_what_has_ended() -> None:
    running = command.start(["sh", "-c", "echo x; exit 4"], deadline=LONG)
    until(running.poll, "it has ended")
    running.stop()
    running.stop()
    assert (running.wait().stdout, running.wait().returncode) == ("x\n", 4)


def test_only_the_main_thread_starts_programs() -> None:
    told: list[BaseException] = []

    def start() -> None:
        try:
            command.start(["true"], deadline=LONG)
        except RuntimeError as error:
            told.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert (
        str(told[0])
        == "command.start belongs to the main thread: the parent-death signal follows the thread"
    )
