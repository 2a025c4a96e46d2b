from __future__ import annotations

from pathlib import Path

import journals
import pytest
from product_session import Product

from acceptance.core.message import Unmeasured
from acceptance.core.parts import Gpu
from acceptance.core.plan import LimitSet, PlannedCheck, SiteSheet
from acceptance.core.record import CheckEnded, CheckStarted, Measured, Note, SessionStarted, Skipped
from acceptance.expect import limit_version
from acceptance.session import context

PASSES = """
@copy
def test_copy(check):
    "Copies."
    check("copy", {Gpu(0): 120.0})
"""


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Product:
    return Product(tmp_path, monkeypatch)


def owed(
    name: str, *, seconds: float = 1.0, gate: bool = False, components: tuple[str, ...] = (Gpu(0),)
) -> PlannedCheck:
    return journals.check(
        name, *(journals.due("copy", one) for one in components), seconds=seconds, gate=gate
    )


def test_every_way_in_which_a_check_may_end(product: Product) -> None:
    product.suite(
        "link",
        """
@pytest.fixture
def broken():
    raise RuntimeError("a tool\\nbroke")

@pytest.fixture
def broken_afterwards():
    yield
    raise RuntimeError("cannot clean up")

@pytest.fixture
def missing():
    pytest.skip("nvbandwidth is not installed: install it")

@copy
def test_passes(check):
    "Passes."
    check("copy", {Gpu(0): 120.0})

@copy
def test_fails(check):
    "Fails, and names every fault."
    check("copy", {Gpu(0): 50.0, Gpu(1): 60.0})

@copy
def test_has_a_gap(check):
    "Measures one of two."
    check("copy", {Gpu(0): 120.0})

@copy
def test_raises(check):
    "Raises in its body."
    check("copy", {Gpu(0): 50.0})
    raise KeyError("slip")

@copy
def test_asserts(check):
    "An assertion is no verdict on the hardware."
    assert False, "never mind"

@copy
def test_setup(broken, check):
    "Its fixture raises."

@copy
def test_teardown(broken_afterwards, check):
    "Passes, and then its fixture raises."
    check("copy", {Gpu(0): 120.0})

@copy
def test_fails_and_breaks(broken_afterwards, check):
    "Fails, and then its fixture raises."
    check("copy", {Gpu(0): 50.0})

@copy
def test_skips(missing, check):
    "Its tool is missing."

@pytest.mark.xfail(strict=True)
@copy
def test_expected_to_fail(check):
    "Passes against expectation, whatever that means."
    check("copy", {Gpu(0): 120.0})

@copy
def test_hangs(check):
    "Hangs."
    import time
    time.sleep(600)

@copy
def test_exits(check):
    "Tries to leave."
    raise SystemExit(0)

@copy
def test_after_all_that(check):
    "The session goes on."
    check("copy", {Gpu(0): 120.0})
""",
    )
    two = (Gpu(0), Gpu(1))
    plan = product.plan(
        owed("link.passes"),
        owed("link.fails", components=two),
        owed("link.has_a_gap", components=two),
        owed("link.raises"),
        owed("link.asserts"),
        owed("link.setup"),
        owed("link.teardown"),
        owed("link.fails_and_breaks"),
        owed("link.skips"),
        owed("link.expected_to_fail"),
        owed(
            "link.hangs", seconds=-47.7
        ),  # the belt allows a minute more than expected: here 0.4 s
        owed("link.exits"),
        owed("link.after_all_that"),
    )
    done = product.run(plan)
    assert done.returncode == 1, done.stdout
    ended = {body.check: body for body in product.journalled() if isinstance(body, CheckEnded)}
    told = {
        name.removeprefix("link."): (body.outcome, body.message) for name, body in ended.items()
    }
    fault = "copy on {}: measured {} GB/s, limit >= 100 GB/s; basis: a basis"
    assert told.pop("hangs")[0] == "error"
    assert told.pop("expected_to_fail") == ("error", "[XPASS(strict)] ")
    assert told == {
        "passes": ("pass", ""),
        "fails": ("fail", f"{fault.format(Gpu(0), 50)}\n{fault.format(Gpu(1), 60)}"),
        "has_a_gap": ("error", "copy on gpu1 was not measured"),
        "raises": ("error", "KeyError: 'slip'"),
        "asserts": ("error", "AssertionError: never mind"),
        "setup": ("error", "RuntimeError: a tool broke"),
        "teardown": ("error", "RuntimeError: cannot clean up"),
        "fails_and_breaks": ("fail", fault.format(Gpu(0), 50)),
        "skips": ("skip", "nvbandwidth is not installed: install it"),
        "exits": ("error", "SystemExit: 0"),
        "after_all_that": ("pass", ""),
    }
    assert "Timeout" in ended["link.hangs"].message
    bodies = product.journalled()
    assert bodies[0] == SessionStarted("load", product.digest, tuple(one.id for one in plan.checks))
    assert (
        Skipped(
            "link.skips",
            "nvbandwidth is not installed: install it",
            why=Unmeasured.NOT_OFFERED,
        )
        in bodies
    )
    # In the plan's order, each begun and ended once, with its values in between.
    marks = [body.check for body in bodies if isinstance(body, CheckStarted | CheckEnded)]
    assert marks == [one.id for one in plan.checks for _ in range(2)]
    start = bodies.index(CheckStarted("link.raises"))
    assert bodies[start + 1] == Measured("link.raises", "copy", Gpu(0), "GB/s", 50.0)


def test_the_plans_share_is_run_in_the_plans_order(product: Product) -> None:
    product.suite(
        "link",
        f"""
@pytest.mark.parametrize("path", ["pinned", "pageable"])
@pytest.mark.measures("gpu_model_differs")
def test_fast(path, check, planned):
    "Copies, and compares a fact that nothing declared."
    assert planned.id == f"link.fast[{{path}}]"
    check(f"copy_{{path}}", {{Gpu(0): 120.0}})
    check("gpu_model_differs", {{Gpu(0): 1.0}})
{PASSES}
{PASSES.replace("copy(", "afterwards(")}
""",
    )
    fast = [
        journals.check(f"link.fast[{path}]", journals.due(f"copy_{path}"))
        for path in ("pageable", "pinned")
    ]
    other = PlannedCheck("link.afterwards", "title", "host-after", 1.0, (journals.due(),))
    assert product.run(product.plan(owed("link.copy"), *fast, other)).returncode == 0
    assert list(product.outcomes()) == ["link.copy", "link.fast[pageable]", "link.fast[pinned]"]
    assert set(product.outcomes().values()) == {"pass"}
    found = ("link.fast[pinned]", "link.fast[pageable]", "link.copy", "link.afterwards")
    assert product.journalled()[0] == SessionStarted("load", product.digest, found)
    measured = [body.measurement for body in product.journalled() if isinstance(body, Measured)]
    assert measured == ["copy", "copy_pageable", "copy_pinned"]


def test_a_gate_that_cannot_be_judged_ends_the_session(product: Product) -> None:
    closed = PASSES.replace("copy(", "closed(").replace('    check("', '    raise OSError("')
    product.suite("link", PASSES.replace("copy(", "open(") + closed + PASSES)
    plan = product.plan(
        owed("link.open", gate=True), owed("link.closed", gate=True), owed("link.copy")
    )
    done = product.run(plan)
    assert done.returncode == 2
    assert "link.closed did not pass, so nothing after it is run" in done.stdout
    assert product.outcomes() == {"link.open": "pass", "link.closed": "error"}


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_failure_lets_the_others_run_unless_it_shall_fail_fast(
    product: Product, fail_fast: bool
) -> None:
    closed = PASSES.replace("copy(", "closed(").replace("120.0", "1.0")
    product.suite("link", closed + PASSES)
    product.fail_fast = fail_fast
    plan = product.plan(owed("link.closed", gate=True), owed("link.copy"))
    assert product.run(plan).returncode == (2 if fail_fast else 1)
    ran = {"link.closed": "fail"} if fail_fast else {"link.closed": "fail", "link.copy": "pass"}
    assert product.outcomes() == ran


# --- nothing is heated ---


OTHER = SiteSheet("models/x.toml", "X", "0" * 64, "", replaces=False)
TWICE = (
    f"{PASSES}\nclass TestAgain:\n    @copy\n    def test_copy(self, check):\n        'Twice.'\n"
)


@pytest.mark.parametrize(
    ("text", "names", "digest", "limits", "why"),
    [
        (PASSES, ["copy"], "another", None, "its files differ from the plan's: "),
        # A container judges by the limits of the plan, the site's sheets among them, or not at all.
        (PASSES, ["copy"], None, ("0" * 64, ()), "its limits differ from the plan's: "),
        (PASSES, ["copy"], None, (None, (OTHER,)), "its limits differ from the plan's: "),
        (PASSES, ["copy"], None, (None, ()), None),
        (PASSES, ["copy", "gone"], None, None, "the checks link.gone of the plan are not in it"),
        (TWICE, ["copy"], None, None, ""),
    ],
)
def test_a_session_that_is_not_the_plans_heats_nothing(
    product: Product,
    text: str,
    names: list[str],
    digest: str | None,
    limits: tuple[str | None, tuple[SiteSheet, ...]] | None,
    why: str | None,
) -> None:
    product.suite("link", text)
    product.digest = digest or product.digest
    if limits is not None:
        version, own = limit_version.shipped()
        product.limits = LimitSet(version, limits[0] or own, "/sheets", limits[1])
    done = product.run(product.plan(*(owed(f"link.{name}") for name in names)))
    assert done.returncode == (0 if why is None else context.REFUSED)
    if why:
        note = product.journalled()[-1]
        assert isinstance(note, Note)
        assert note.trouble
        assert note.text.startswith(f"session load refused to start: {why}")


def test_a_suite_that_cannot_be_imported(product: Product) -> None:
    product.suite("link", PASSES)
    product.suite("other", "import no_such_module")
    done = product.run(product.plan(owed("link.copy"), owed("other.copy")))
    assert done.returncode not in (0, 1)
    assert product.outcomes() == {}


def test_a_journal_that_is_there_already(product: Product) -> None:
    product.suite("link", PASSES)
    (product.run_dir / "journal-load.jsonl").write_text("")
    done = product.run(product.plan(owed("link.copy")))
    assert done.returncode == context.NO_JOURNAL
    told = "cannot be written (File exists): another rigproof is writing there: "
    assert done.stderr.startswith(f"rigproof: {product.run_dir}/journal-load.jsonl: {told}")


# --- what the environment and the folders around it cannot do ---


def test_nothing_stray_changes_what_is_run(
    product: Product, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    product.real = True
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing --no-such-option")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    stray = "import os\nos._exit(0)\n"
    for place in (tmp_path, product.run_dir):  # above the suites, and where the session is started
        (place / "conftest.py").write_text(stray)
        (place / "pytest.py").write_text(stray)
        (place / "sitecustomize.py").write_text(stray)
        (place / "pytest.ini").write_text("[pytest]\naddopts = -k nothing\n")
    product.suite("link", PASSES + PASSES.replace("copy(", "slow(").replace("120.0", "1.0"))
    done = product.run(product.plan(owed("link.copy"), owed("link.slow")))
    assert done.returncode == 1, done.stderr
    assert product.outcomes() == {"link.copy": "pass", "link.slow": "fail"}


def test_without_a_context_there_is_one_sentence(
    product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    product.real = True
    product.suite("link", PASSES)
    argv = [
        word for word in context.argv(product.context) if not word.startswith("--rigproof-context")
    ]
    monkeypatch.setattr(context, "argv", lambda _: argv)
    done = product.start()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.startswith("ERROR: these checks are started by rigproof: ")
    assert not product.context.exists()


def test_a_context_that_cannot_be_read(product: Product) -> None:
    product.context.write_text("rubbish")
    done = product.start()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    told = f"ERROR: {product.context}: is no context of a rigproof session (JSON is malformed"
    assert done.stderr.startswith(told)
    assert "Traceback" not in done.stderr
