"""What checks declare, and mistakes in rigproof's own suites, each with its file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from product_session import Product

from acceptance.expect import measurements
from acceptance.expect.collected import Measures
from acceptance.expect.loosest import Bounds
from acceptance.loads.work import LOADS, Work
from acceptance.session import collection


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Product:
    return Product(tmp_path, monkeypatch)


def own(name: str) -> Bounds:
    """How far a machine file may go with a measurement, by its family."""
    return measurements.shipped().by_name[name].own


FOLLOWS = '@pytest.mark.measures("copy_h2d")\n@pytest.mark.follows({})'


def test_collecting_describes_and_runs_nothing(product: Product) -> None:
    product.suite(
        "link",
        """
@pytest.mark.gate
@pytest.mark.session("host-before")
@pytest.mark.costs(2.5, load="nvbandwidth", extra_load="gpu_gemm_table", per_gib=0.5,
    per_gib_of_a_core=4.0, per_gpu=2.0, per_pair=0.1, per_turn=0.3,
    slack=120.0, slack_per_gib=1.0, last=True)
@pytest.mark.measures("copy_h2d", "copy_faults")
@pytest.mark.measures("cpu_cores")
def test_everything(check):
    '''One line.

    More lines.
    '''
    raise SystemExit(9)
""",
    )
    done = product.collect()
    assert done.returncode == 0, done.stdout
    (found,) = product.answer()
    assert (found.id, found.title, found.session, found.gate) == (
        "link.everything",
        "One line.",
        "host-before",
        True,
    )
    assert (found.seconds, found.load, found.seconds_per_gib) == (2.5, "nvbandwidth", 0.5)
    assert (found.seconds_per_gpu, found.seconds_per_pair) == (2.0, 0.1)
    assert (found.seconds_per_turn, found.extra_load) == (0.3, "gpu_gemm_table")
    assert found.core_seconds_per_gib == 4.0
    assert (found.slack, found.slack_per_gib, found.last) == (120.0, 1.0, True)
    assert found.measures == (
        Measures("copy_h2d", "GB/s", "gpu", own=own("copy_h2d")),
        Measures("copy_faults", "count", "gpu", waivable=False, own=own("copy_faults")),
        Measures("cpu_cores", "count", "cpu", fact=True, own=own("cpu_cores")),
    )


GOOD = {
    "session": '@pytest.mark.session("host-after")',
    "costs": "@pytest.mark.costs(1.0)",
    "measures": '@pytest.mark.measures("copy_h2d")',
    "def": "def test_copy(check):",
    "title": '    """Copies."""',
    "body": "    assert check",
}
# What is wrong with a check, by the file of it: the line that is other, and a part of the sentence.
WRONG = {
    "title": ({"title": "    pass"}, "has no docstring"),
    "nosession": ({"session": ""}, "has no session"),
    "oddsession": ({"session": '@pytest.mark.session("loud")'}, "has no session: .* host-before"),
    "ofsites": ({"session": '@pytest.mark.session("site")'}, "has no session"),
    "nocosts": ({"costs": ""}, "does not say how long it takes"),
    "noseconds": ({"costs": '@pytest.mark.costs(load="train")'}, "costs is costs"),
    "negative": ({"costs": "@pytest.mark.costs(1.0, per_gib=-1.0)"}, "costs is costs"),
    "oddcosts": ({"costs": "@pytest.mark.costs(1.0, heats=True)"}, "costs is costs"),
    "parameter": (
        {"costs": '@pytest.mark.costs(1.0, load="burn_{mode}")'},
        "a parameter that the test has not .'mode'",
    ),
    "load": ({"costs": '@pytest.mark.costs(1.0, load="burnt")'}, "what the load burnt works on"),
    "extra": (
        {"costs": '@pytest.mark.costs(1.0, extra_load="burnt")'},
        "what the load burnt works on",
    ),
    "nothing": ({"measures": ""}, "measures nothing"),
    "unknown": ({"measures": '@pytest.mark.measures("copy_h2")'}, "'copy_h2', .* mean copy_h2d"),
    "notext": ({"measures": "@pytest.mark.measures(7)"}, "measures 7"),
    "more": ({"measures": '@pytest.mark.measures("copy_h2d", per="gpu")'}, "measures nothing"),
    "twice": (
        {"measures": '@pytest.mark.measures("copy_h2d", "copy_h2d")'},
        "names a measurement twice",
    ),
    "manyloads": ({"measures": FOLLOWS.format('"link.*", load="most"')}, "mark follows names"),
    "oddfollows": ({"measures": FOLLOWS.format('"link.*", of="any"')}, "mark follows names"),
    "number": ({"measures": FOLLOWS.format("7")}, "mark follows names checks"),
    "noload": ({"measures": FOLLOWS.format("load=None")}, "mark follows names checks"),
    "nocheck": ({"def": "def test_copy(programs):", "body": ""}, "does not take the fixture check"),
    "fixture": ({"def": "def test_copy(check, program):"}, "asks for 'program', which is no fix"),
    "undeclared": ({"body": '    check("copy_d2h", {})'}, "'copy_d2h', which it does not declare"),
    "waits": ({"def": "async def test_copy(check):"}, "is asynchronous"),
    **{
        one: (
            {
                "session": f"@pytest.fixture\ndef {one}(): ...\n{GOOD['session']}",
                "def": f"def test_copy(check, {one}):",
            },
            rf"judged from other checks \({one}\): name them with the mark follows",
        )
        for one in collection.EVIDENCE
    },
}


def test_every_mistake_of_our_own_suites_is_said_with_file_and_line(product: Product) -> None:
    for stem, (other, _) in WRONG.items():
        product.suite(stem, "pytestmark = []\n" + "\n".join((GOOD | other).values()))
    product.suite("empty", "")
    product.suite("syntax", "def test_copy(check:")
    done = product.collect()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert not (product.run_dir / "answer.json").exists()
    texts = {**WRONG, "empty": ({}, "holds no check"), "syntax": ({}, "is not Python")}
    mistakes = done.stderr.removeprefix("ERROR: ").split("; ")
    assert len(mistakes) == len(texts)
    for stem, (_, text) in texts.items():
        (own,) = [one for one in mistakes if re.match(rf"{stem}\.py\b", one)]
        assert re.search(text, own), own
        assert stem == "empty" or re.match(rf"{stem}\.py, line \d+: ", own), own


def test_checks_that_follow_others(product: Product) -> None:
    product.suite("link", "\n".join((GOOD | {"session": '@pytest.mark.session("load")'}).values()))
    follows = FOLLOWS.format('"link.copy", load="gpus"')
    shown = "def test_copy(check, earlier_programs):"
    product.suite("after", "\n".join((GOOD | {"measures": follows, "def": shown}).values()))
    assert product.collect().returncode == 0
    after, link = product.answer()
    assert (after.follows, after.follows_load) == (("link.copy",), "gpus")
    assert (link.follows, link.follows_load) == ((), None)
    (product.suites / "link.py").unlink()
    done = product.collect()
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "after.copy follows link.copy, which is no check" in done.stderr


def test_costs_name_their_load_by_a_parameter(product: Product) -> None:
    costs = """@pytest.mark.parametrize("path", ["float"])
@pytest.mark.costs(36.0, load="gpu_burn_{path}", slack=150.0)"""
    more = {"costs": costs, "def": "def test_copy(check, path):"}
    product.suite("link", "\n".join((GOOD | more).values()))
    product.suite("plain", "\n".join(GOOD.values()))
    assert product.collect().returncode == 0
    burn, plain = product.answer()
    assert (burn.id, burn.load, burn.slack) == ("link.copy[float]", "gpu_burn_float", 150.0)
    assert burn.work == LOADS["gpu_burn_float"]
    assert (plain.load, plain.slack, plain.work) == (None, 0.0, Work())
