"""The verbs that read what was recorded: judge, report, compare, read."""

from __future__ import annotations

from acceptance.arguments import shared, values
from acceptance.arguments.form import Verb

TOOLS = (
    "gpu-burn",
    "deviceQuery",
    "bandwidthTest",
    "p2pBandwidthLatencyTest",
    "nvbandwidth",
    "topo",
    "kernel-log",
    "stress-ng",
    "stressapptest",
)
COMPARED = "Exit codes: 0 nothing is worse than in the first run, 1 something is, 3 a run cannot be read, 2 for a mistake in the call."


def judge(verb: Verb) -> None:
    """`rigproof judge`."""
    shared.recorded(verb("judge", "judge a recorded run again, from its journal"))


def report(verb: Verb) -> None:
    """`rigproof report`."""
    parser = verb("report", "write junit.xml, report.html and verdict.json of a recorded run again")
    shared.recorded(parser)
    parser.add_argument(
        "--textfile", metavar="FILE", type=values.path, help="write its metrics for node-exporter, too (*.prom)"
    )


def compare(verb: Verb) -> None:
    """`rigproof compare`."""
    parser = verb("compare", "show recorded runs side by side, and which differences lie outside the noise", COMPARED)
    parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", type=values.path, help="folders of two runs or more")
    parser.add_argument("--page", metavar="FILE", type=values.path, help="write the comparison as a page, too")
    parser.add_argument("--all", action="store_true", help="show what lies within the noise as well")
    shared.language(parser)


def read(verb: Verb) -> None:
    """`rigproof read`."""
    parser = verb("read", "read one recorded output of a tool and say as JSON what it is worth")
    parser.add_argument("tool", metavar="TOOL", choices=TOOLS, help=", ".join(TOOLS))
    parser.add_argument("file", metavar="FILE", type=values.path, help="the recorded output; - for standard input")
