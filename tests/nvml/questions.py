"""Asks the binding in a child that has the fake library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fake_driver

INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
TIMED_OUT = 10
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
Question = list[Any]
Answer = dict[str, Any]


@dataclass(frozen=True)
class Answers:
    """One answer a question, as ask_binding.py prints them."""

    answers: list[Answer]
    returncode: int
    stderr: str

    def values(self) -> list[Any]:
        """What was given, for questions that must not be refused."""
        return values(self.answers)


def values(answers: list[Answer]) -> list[Any]:
    """What was given, for questions that must not be refused."""
    return [answer["value"] for answer in answers]


def start(library: Path, described: Path, age_s: float | None = None) -> subprocess.Popen[str]:
    """A child that waits for questions."""
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("ask_binding.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **fake_driver.environment(library, described, age_s=age_s)},
    )


class Session:
    """A child that has opened the library and is asked again and again."""

    def __init__(self, library: Path, described: Path, age_s: float | None = None) -> None:
        self.child = start(library, described, age_s)
        assert self.ask(["nvmlInit"]) == [{"value": None}]

    def ask(self, *questions: Question) -> list[Answer]:
        """The answers, in order."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        found = []
        for question in questions:  # one by one: a pipe that is full both ways would stand still
            self.child.stdin.write(json.dumps(question) + "\n")
            self.child.stdin.flush()
            found.append(json.loads(self.child.stdout.readline()))
        return found

    def end(self) -> str:
        """End the child; gives what it complained about."""
        return self.child.communicate(timeout=20)[1]


def ask(
    library: Path,
    described: Path,
    *questions: Question,
    age_s: float | None = None,
) -> Answers:
    """The answers of a child of their own, after it opened the library (which is an answer only
    where it failed).
    """
    asked = [["nvmlInit"], *questions]
    child = start(library, described, age_s)
    out, err = child.communicate(
        "".join(json.dumps(question) + "\n" for question in asked), timeout=60
    )
    answers = [json.loads(line) for line in out.splitlines()]
    if answers and "error" not in answers[0]:
        answers = answers[1:]
    return Answers(answers, child.returncode, err)


def write(folder: Path, document: Any) -> Path:
    """A description of a test's own; a text is written as it is."""
    path = folder / "machine.json"
    path.write_text(
        document if isinstance(document, str) else json.dumps(document), encoding="utf-8"
    )
    return path
