"""One file for each upstream program: `argv()` and a pure `parse()`; `rigproof read` has TOOLS."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acceptance.tools.reading import ToolOutput


@dataclass(frozen=True, slots=True)
class Tool:
    """A kind of text that `rigproof read` takes by `name`; `file` here has its `parse()`."""

    name: str
    file: str

    def parse(self, text: str) -> ToolOutput:
        """Parse a text of this tool. Raises UnreadableOutput."""
        # Imported here: one text needs one parser, and the kernel log's imports many modules.
        output: ToolOutput = importlib.import_module(f"acceptance.tools.{self.file}").parse(text)
        return output


# In the order of `rigproof read --help`.
TOOLS = (
    Tool("gpu-burn", "gpu_burn"),
    Tool("deviceQuery", "device_query"),
    Tool("bandwidthTest", "bandwidth_test"),
    Tool("p2pBandwidthLatencyTest", "p2p_bandwidth"),
    Tool("nvbandwidth", "nvbandwidth"),
    Tool("topo", "read.topo"),
    Tool("nccl-log", "read.nccl_transports"),
    Tool("nccl-tests", "read.nccl_tests"),
    Tool("kernel-log", "read.kernel_log"),
    Tool("stress-ng", "stress_ng"),
    Tool("stressapptest", "stressapptest"),
    Tool("fio", "fio"),
)

# No program's text: a GPU or disk sheet, as somebody writes it.
SHEET = Tool("sheet", "read.sheet")


def of_argv(argv: Iterable[str]) -> Tool | None:
    """The tool that a command line runs, perhaps behind `nice`; None for another program."""
    names = {PurePath(word).name for word in argv}
    return next((tool for tool in TOOLS if tool.name in names), None)
