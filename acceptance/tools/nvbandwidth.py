"""NVIDIA's nvbandwidth: its command line, and what its text or JSON is worth (versions 0.1 to 0.10).

It copies 512 MiB between host and GPU and between GPUs, 16 times a sample, by copy engine (`_ce`) or by a kernel (`_sm`), takes the
median of the samples, and compares what arrived with the pattern that was sent: wrong data ends it with an ASSERT, and that is a *fail*
here. How it misleads: an unknown testcase and one that does not apply leave the exit code 0; a latency stands in the same kind of
matrix as a bandwidth, and has a SUM too; a host buffer that is small or on the far socket looks like a bad slot; with
`--skipVerification` nothing is compared, and the text does not say so.

Readings are named as the testcase (`host_to_device_memcpy_ce`), in GB/s (1e9), in ns for those with `latency` in their name. Figures that
the tool prints as N/A are absent, never 0. Components:

- `gpu0`: host and GPU, or one GPU with all others (`all_to_one`, `one_to_all`), or the GPU with itself (`device_local_copy`, which
  counts one direction).
- `gpu0->gpu1`: row 0, column 1 of `device_to_device` testcases, as printed. Which way the data goes: in `..._write_...` from the row
  to the column, in `..._read_...` from the column to the row. The arrow printed above the matrix says the reverse, up to 0.8 at least.
- A bidirectional copy between GPUs gives three readings since 0.6: `<testcase>_read1`, `_read2` and `_total`, or `_write1` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from acceptance.tools import cuda_error, nvbandwidth_json, nvbandwidth_text, reading
from acceptance.tools.nvbandwidth_matrix import TOOL as TOOL
from acceptance.tools.nvbandwidth_matrix import Found
from acceptance.tools.reading import ToolOutput, UnreadableOutput

_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
# A kernel prints the first for each wrong word; the host then gives up with the second.
_MISCOMPARE = re.compile(r"Invalid value when checking the pattern|ASSERT in expression h_errorFlag")
_ASSERT = re.compile(r"\bASSERT in expression\b")


def argv(
    binary: str, *, testcases: Sequence[str], json: bool = True, buffer_mib: int = 512, samples: int = 3
) -> tuple[str, ...]:
    """The command line. `buffer_mib` is the size of each copy in MiB, `samples` how many the median is taken of.

    Raises ValueError for no testcase (it would run all of them), a name that is none, a buffer or a count of samples below 1.
    """
    if not testcases or not all(_NAME.match(name) for name in testcases):
        raise ValueError(f"nvbandwidth needs names of testcases, not {list(testcases)}")
    if buffer_mib < 1 or samples < 1:
        raise ValueError(f"nvbandwidth needs at least 1 MiB and 1 sample, not {buffer_mib} and {samples}")
    words = (binary, "-t", *testcases, "-b", str(buffer_mib), "-i", str(samples))
    return (*words, "-j") if json else words


def _waived(found: Found) -> str:
    named = [name for name in found.waived if name]
    nameless = len(found.waived) - len(named)
    said = named + ([f"{nameless} that the text does not name"] if nameless else [])
    return f"; waived: {', '.join(said)}" if said else ""


def parse(text: str) -> ToolOutput:
    """Read nvbandwidth's text or its JSON, whichever it is.

    *fail* is wrong data, or a fault of the hardware that CUDA names. *pass* needs at least one testcase with figures, and none that died,
    was unknown, was cut, moved nothing, or gainsays its own sum or the list of devices. Raises UnreadableOutput.
    """
    lines = reading.tool_lines(text)
    wrong = next((line for line in lines if _MISCOMPARE.search(line)), None)
    if wrong is not None:
        return ToolOutput(TOOL, "fail", f"wrong data arrived: '{reading.quote(wrong)}'")
    trouble = cuda_error.died(lines) or cuda_error.find(lines)
    if trouble is not None:
        return ToolOutput(TOOL, "fail" if trouble.hardware else "error", trouble.reason)
    asserted = next((line for line in lines if _ASSERT.search(line)), None)
    if asserted is not None:
        return ToolOutput(TOOL, "error", f"it died: '{reading.quote(asserted)}'")
    joined = "\n".join(lines)
    found = nvbandwidth_json.read(joined) if nvbandwidth_json.holds(joined) else nvbandwidth_text.read(lines)
    if found is None:
        reason = cuda_error.not_started(lines)
        if reason is None:
            raise UnreadableOutput(TOOL, reading.first_line(text), "the text holds no line of nvbandwidth")
        return ToolOutput(TOOL, "error", reason)
    why = found.trouble()
    # What can be read beside an error stays in sight; it decides nothing.
    readings = tuple(matrix.reading() for matrix in found.matrices if matrix.trouble(None) is None)
    if why is not None:
        return ToolOutput(TOOL, "error", f"{why}{_waived(found)}", readings)
    many = "matrix" if len(readings) == 1 else "matrices"
    reason = f"measured {len(readings)} {many}{_waived(found)}"
    return ToolOutput(TOOL, "pass", reason, readings, gpus=found.gpus, driver=found.driver)
