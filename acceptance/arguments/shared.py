"""Options that several verbs share."""

from __future__ import annotations

import argparse
from pathlib import Path

from acceptance.arguments import values


def language(parser: argparse.ArgumentParser) -> None:
    """In which language page and terminal speak."""
    parser.add_argument(
        "--lang",
        metavar="LANG",
        help="language of page and terminal: en or zh-CN (default: the locale's, else en)",
    )


def out(parser: argparse.ArgumentParser) -> None:
    """Where runs and their history are."""
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=values.path,
        default=Path("reports"),
        help="folder in which each run gets a folder of its own (default: reports)",
    )


def run(parser: argparse.ArgumentParser, profile: str = "accept") -> None:
    """What a run is told, whatever it is for."""
    parser.add_argument(
        "--machine",
        metavar="FILE",
        type=values.path,
        help="machine file: what should be in the machine, limits of its own, and what is accepted as it is",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default=profile,
        help="how much is tested, and for how long: smoke, accept, nightly or soak (default: %(default)s)",
    )
    parser.add_argument(
        "--station",
        choices=("auto", "docker", "host"),
        default="auto",
        help="where loads run: a container, or in place (default: a container where an engine answers)",
    )
    parser.add_argument(
        "--image",
        metavar="REF",
        help="an image that is here, in place of the one of this checkout (such a run is never PASS)",
    )
    out(parser)
    parser.add_argument(
        "--only",
        metavar="EXPR",
        type=values.patterns,
        default=(),
        help="checks by id, subject or shell pattern, with commas: cpu,memory.*",
    )
    parser.add_argument(
        "--gpus",
        metavar="LIST",
        type=values.gpus,
        default=(),
        help="GPUs to test, by index or UUID, with commas (default: all; a run of some of them is no acceptance)",
    )
    parser.add_argument(
        "--burn",
        metavar="SECONDS",
        type=values.seconds,
        help="how long the whole machine burns, in place of the profile's time; burns of single parts last no longer",
    )
    language(parser)


def run_dir_file(parser: argparse.ArgumentParser) -> None:
    """Where a program that starts a run finds which folder it got."""
    parser.add_argument(
        "--run-dir-file",
        metavar="FILE",
        type=values.path,
        help="write this run's folder into FILE; where no run comes about there is no such file afterwards",
    )


def telling(parser: argparse.ArgumentParser) -> None:
    """Whom to tell how a night ended."""
    parser.add_argument(
        "--textfile",
        metavar="FILE",
        type=values.path,
        help="write the verdict and all figures as metrics for node-exporter's textfile collector (*.prom)",
    )
    parser.add_argument(
        "--on-fail",
        metavar="COMMAND",
        help="command for a verdict that is not PASS; it reads verdict.json from its standard input, and no shell starts it",
    )
    parser.add_argument(
        "--webhook", metavar="URL", help="address to which every verdict.json is posted; @FILE for a file that holds it"
    )
    parser.add_argument(
        "--webhook-secret-file",
        metavar="FILE",
        type=values.path,
        help="file with the secret by which the receiver can tell who posted (HMAC-SHA256)",
    )


def nightly(parser: argparse.ArgumentParser) -> None:
    """What a nightly run can be told."""
    run(parser, "nightly")
    run_dir_file(parser)
    parser.add_argument(
        "--most-skipped",
        metavar="N",
        type=values.number,
        help="how many nights in a row on which the machine is in use are a failure (default: the profile's, 7)",
    )
    telling(parser)


def recorded(parser: argparse.ArgumentParser) -> None:
    """One recorded run."""
    parser.add_argument(
        "run_dir", metavar="RUN_DIR", type=values.path, help="folder of the run, such as reports/latest"
    )
    language(parser)
