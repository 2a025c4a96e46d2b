"""The pytest plugin: collection for the plan, marks, the `check` fixture, the journal segment."""

from __future__ import annotations

import gc
import os
import sys
from collections import defaultdict
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from acceptance.core.evidence import AnyBody
from acceptance.core.message import Coded, Gap, Listed, Message, Texts, Unmeasured, english
from acceptance.core.plan import segment_of
from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Note,
    Outcome,
    SessionStarted,
    Skipped,
)
from acceptance.core.verdict import worst
from acceptance.expect import site_sheets
from acceptance.journal import clock, provenance, segment
from acceptance.session import collection, site
from acceptance.session import context as session_context
from acceptance.session.check import Check, CheckSkipped, ErrorInLines, Judged, Violation
from acceptance.session.collection import check_id
from acceptance.session.fixtures import SessionFixtures
from acceptance.wording import words

MARKS = (
    "session(name): where the check runs: host-before, gpu-load (loads only GPUs), host-load (only "
    "processors, RAM and disks, beside gpu-load), load (by itself), host-after",
    "measures(*names): the measurements of the check, each as its family has it",
    "costs(seconds, load=None, extra_load=None, per_gib=0.0, per_gib_of_a_core=0.0, per_gpu=0.0, "
    "per_pair=0.0, per_turn=0.0, slack=0.0, slack_per_gib=0.0, last=False): "
    "calculated seconds of the check, beside those of the named load ({name} in it is "
    "a parameter of the test) and of an extra load, which the check makes only where the profile "
    "names it, for each GiB that is filled, for each GiB that one core fills where all cores fill "
    "side by side, for each GPU and each ordered pair of GPUs tested, and for each turn of the "
    "GPUs that share the way to the host; slack is how much longer its programs may take, "
    "slack_per_gib that for each GiB, last marks one that runs after all others",
    "follows(*checks, load=None): the checks of sessions before it that this one is judged from, "
    "of which one must be in the plan; load='any' names every check of the load sessions, "
    "load='gpus' those that keep the GPUs at work",
    "gate: when this check can not be judged, nothing after it is run",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the only option, the path of this session's context."""
    parser.addoption(
        "--rigproof-context",
        metavar="FILE",
        type=Path,
        default=None,
        help="context of a rigproof session",
    )
    gc.disable()  # until all is loaded: nothing of it is garbage


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks and, with a context, the plugin of its mode."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    path: Path | None = config.getoption("--rigproof-context")
    if path is None:
        raise pytest.UsageError(
            "these checks are started by rigproof: run `rigproof accept`, or `make accept`"
        )
    try:
        context = session_context.read(path)
    except (OSError, ValueError) as error:  # msgspec's and UTF-8's decoding errors are ValueErrors
        raise pytest.UsageError(f"{path}: is no context of a rigproof session ({error})") from error
    config.stash[collection.IS_SITE] = context.site is not None
    if context.mode == "collect":
        config.pluginmanager.register(collection.Collector(context), "rigproof-session")
        assert context.answer is not None
        # of no run: they are named, and none is set up
        provided = SessionFixtures(context, Path(context.answer).parent, {}, lambda _: None)
    else:
        running = _Session(context, config)
        config.pluginmanager.register(running, "rigproof-session")
        provided = running.provided
    fixtures = provided if context.site is None else site.SiteFixtures(provided)
    config.pluginmanager.register(fixtures, "rigproof-fixtures")


def pytest_collection_finish() -> None:
    """Exempt the loaded objects from garbage collection, which would cost time at the end."""
    gc.freeze()
    gc.enable()


class _Session:
    """Mode `run`: one session's share of the plan, journalled."""

    def __init__(self, context: session_context.SessionContext, config: pytest.Config) -> None:
        assert context.run_dir is not None
        assert context.session is not None
        assert context.plan is not None
        self.context = context
        self._config = config
        self.run_dir = Path(context.run_dir)
        self.share = {check.id: check for check in context.share()}
        self._outcomes: list[tuple[Outcome, Texts]] = []
        self._codes: defaultdict[Outcome, set[str]] = defaultdict(set)
        self._gap: Gap | None = None
        self._seconds = 0.0
        os.nice(context.niceness)  # its programs inherit it
        try:
            self.journal = segment.Writer(
                self.run_dir / segment_of(context.session),
                Path(context.root),
                context.run_id,
                context.machine_id,
            )
        except segment.JournalError as error:
            _give_up(error, config)
        self.provided = SessionFixtures(context, self.run_dir, self.share, self.write)

    def write(self, body: AnyBody) -> None:
        """Write a record; a journal that cannot be written ends the session and its loads."""
        try:
            self.journal.write(body)
        except segment.JournalError as error:
            _give_up(error, self._config)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out the files of rigproof's own that hold no check of this session."""
        suite = collection_path.suffix == ".py" and self.context.site is None
        other = all(name.partition(".")[0] != collection_path.stem for name in self.share)
        return (suite and other) or None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep this session's share of the checks, in the plan's order.

        Stops the session before any load where the package or its checks differ from the plan's.
        """
        assert self.context.session is not None
        assert self.context.plan is not None
        found = {check_id(item): item for item in items}
        digest = provenance.package_digest()
        own = None if self.context.site is None else collection.digest_of(Path(self.context.site))
        self.write(SessionStarted(self.context.session, digest, tuple(found), own))
        missing = tuple(name for name in self.share if name not in found)
        plan, limits = self.context.plan, self.context.limits
        differences = (
            (
                own != plan.site_digest(self.context.session),
                Message(
                    english(
                        "site_files_differ",
                        "the files of the site's own checks differ from the plan's: somebody "
                        "changed the run's copy of them; find out who can write to the output "
                        "folder, and start again",
                    )
                ),
            ),
            (
                missing,
                Message(
                    english("checks_missing", "the checks {checks} of the plan are not in it"),
                    {"checks": Listed(missing)},
                ),
            ),
            (
                digest != plan.digest or len(found) != len(items),
                Message(
                    english(
                        "files_differ",
                        "its files differ from the plan's: was it updated meanwhile, or is the "
                        "image of another build? Start again",
                    )
                ),
            ),
            (
                limits is not None and not site_sheets.is_same(limits),
                Message(
                    english(
                        "limits_differ",
                        "its limits differ from the plan's: were they changed meanwhile? Start "
                        "again",
                    )
                ),
            ),
        )
        if why := next((message for differs, message in differences if differs), None):
            refused = Message(
                english("session_refused", "session {session} refused to start: {why}"),
                {"session": self.context.session, "why": why},
            )
            self.write(Note(refused, trouble=True))
            pytest.exit(
                f"this rigproof is not the one that made the plan: {words.message(why)}",
                session_context.REFUSED,
            )
        items[:] = [found[name] for name in self.share]
        for item in items:
            item.add_marker(
                pytest.mark.timeout(session_context.check_limit_s(self.share[check_id(item)]))
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Clear the state of the previous check."""
        self._outcomes, self._seconds = [], 0.0
        self._codes.clear()
        self._gap = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Journal the beginning and the end of each check."""
        name = check_id(item)
        self.write(CheckStarted(name))
        result = yield
        outcome = worst(kind for kind, _ in self._outcomes)
        message = _lines([text for kind, text in self._outcomes if kind == outcome and text])
        if outcome == "skip":
            # a site's own check skips itself in pytest's way, and says itself what it cannot have
            why = Unmeasured.NOT_OFFERED if self._gap is None else self._gap.why
            self.write(Skipped(name, message, why=why))
        codes = tuple(sorted(self._codes[outcome]))
        self.write(CheckEnded(name, outcome, message, self._seconds, codes))
        if session_context.ends_run(self.share[name], outcome, fail_fast=self.context.fail_fast):
            item.session.shouldstop = f"{name} did not pass, so nothing after it is run"
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Refuse a load on a GPU that is gone, before a fixture starts it."""
        self.provided.refuse_lost(self.share[check_id(item)])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record the outcome of a phase.

        Only the exception that `check` itself raises is a fail; any other, a timeout included, is
        an error.
        """
        report = yield
        self._seconds += report.duration
        raised = call.excinfo.value if call.excinfo else None
        if report.skipped:
            assert raised is not None
            self._gap = raised.gap if isinstance(raised, CheckSkipped) else None
            lost = self._gap is not None and self._gap.why is Unmeasured.NO_ANSWER
            self._outcomes.append(("error" if lost else "skip", sentence(raised)))
        elif raised is not None:
            fail = isinstance(raised, Violation)
            outcome: Outcome = "fail" if fail else "error"
            self._outcomes.append((outcome, self._told(raised)))
            if isinstance(raised, Judged):
                self._codes[outcome].update(raised.codes)
        # a failure without an exception: a test that was expected to fail and did not
        elif report.failed:
            self._outcomes.append(("error", str(report.longrepr)))
        else:
            self._outcomes.append(("pass", ""))
        return report

    def _told(self, error: BaseException) -> Texts:
        """What an exception says; of a site's own check also where it was raised."""
        told = sentence(error)
        if self.context.site is None or not isinstance(told, str):
            return told
        line = collection.line_in(error, Path(self.context.site))
        return f"{told} (line {line} of its file)" if line else told

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """After the body of a check, judge its readings, then require that its GPUs were at work.

        The judgement is one failure that names every fault found.
        """
        begin_s = clock.boot_s()
        result = yield
        check = pyfuncitem.funcargs.get("check")
        if isinstance(check, Check):
            check.conclude()
        self.provided.require_work(self.share[check_id(pyfuncitem)], begin_s)
        return result


def _lines(texts: Sequence[Texts]) -> Texts:
    """What the phases of a check say; an empty text where they say nothing."""
    flat = tuple(text for one in texts for text in (one if isinstance(one, tuple) else (one,)))
    return flat[0] if len(flat) == 1 else flat or ""


def sentence(error: BaseException) -> Texts:
    """What an exception says: its message, or its own text.

    An unexpected exception in one line; the traceback stays in the session's log.
    """
    if isinstance(error, CheckSkipped):
        return error.gap.reason
    if isinstance(error, Coded | ErrorInLines):
        return error.message
    if isinstance(error, pytest.skip.Exception):
        return str(error)
    text = " ".join(str(error).split()) or type(error).__name__
    # A suite is loaded by file path, so its own exceptions are recognized by that path.
    module = sys.modules.get(type(error).__module__)
    own = Path(getattr(module, "__file__", None) or "/").is_relative_to(
        session_context.SUITES.parent
    )
    known = own or type(error).__module__.startswith("acceptance.")
    return text if known else f"{type(error).__name__}: {text}"


def _give_up(error: segment.JournalError, config: pytest.Config) -> NoReturn:
    """End the session with one sentence: nothing counts without its journal.

    Its programs die with it.
    """
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is not None:  # else the sentence would end in a capture file that nobody reads
        capture.suspend_global_capture(in_=True)
    sys.stderr.write(f"rigproof: {error}\n")
    sys.stderr.flush()
    os._exit(session_context.NO_JOURNAL)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the segment."""
    plugin = config.pluginmanager.get_plugin("rigproof-session")
    if isinstance(plugin, _Session):
        plugin.journal.close()
