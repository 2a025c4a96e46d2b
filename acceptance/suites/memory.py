"""The RAM under load."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from acceptance.loads.protocol import LoadOutput
from acceptance.session.check import Check
from acceptance.suites.fixtures import host_tools
from acceptance.tools.load_output import LoadFailed
from acceptance.tools.reading import ToolOutput


@pytest.mark.session("load")
@pytest.mark.costs(4.0, load="memory_bandwidth")
@pytest.mark.measures(
    "memory_copy",
    "memory_triad",
    "memory_copy_miscompares",
    "memory_triad_miscompares",
)
def test_bandwidth(
    memory_bandwidth: Callable[[], LoadOutput],
    check: Check,
    record_miscompares: Callable[[LoadFailed, str, str], None],
) -> None:
    """Copy and triad over arrays several times the caches, all cores at once, the result read back
    and compared.

    Measured: bytes that the program moves (copy two arrays, triad three) over wall time. Not
    measured: the lines a processor fetches before it overwrites them.
    """
    try:
        output = memory_bandwidth()
    except LoadFailed as failed:
        record_miscompares(failed, "memory_copy_miscompares", "memory")
        raise
    for name in (
        "memory_copy",
        "memory_triad",
        "memory_copy_miscompares",
        "memory_triad_miscompares",
    ):
        check(
            name,
            {
                reading.component: reading.value
                for reading in output.readings
                if reading.name == name
            },
        )


@pytest.mark.session("load")
# a GiB takes 0.3 s to fill, in a VM up to 2
@pytest.mark.costs(3.0, load="stressapptest", per_gib=1.0)
@pytest.mark.measures("stressapptest_errors", "stressapptest_copy", "memory_tested")
def test_stressapptest(stressapptest_run: ToolOutput, check: Check) -> None:
    """A declared share of the free RAM filled with patterns, moved about, and compared, by
    stressapptest.

    Measured: blocks that changed, and how much RAM was filled. Not measured: the RAM that the
    system itself occupies.
    """
    failed = stressapptest_run.outcome == "fail"
    errors = {"memory": host_tools.memory_errors(stressapptest_run)}
    check("stressapptest_errors", errors, notes={"memory": stressapptest_run.reason})
    rate = {} if failed else dict(stressapptest_run.reading("stressapptest_copy"))
    check(
        "stressapptest_copy",
        rate,
        skipped={"memory": "no rate counts from a run that found wrong data"},
    )
    tested = {} if failed else dict(stressapptest_run.reading("stressapptest_tested"))
    check(
        "memory_tested",
        tested,
        skipped={"memory": "a run that found wrong data did not go over all of it"},
    )
