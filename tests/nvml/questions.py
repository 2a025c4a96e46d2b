"""Asks the binding in a child that has the fake library."""

from __future__ import annotations

import functools
import json
import os
import select
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fake_driver
from forks import Forks

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


@functools.cache
def forks(library: Path) -> Forks:
    """Where the children come from; the loader reads where the library is as it starts."""
    return Forks(
        ["ask_binding", "acceptance.observe.nvml"],
        {**os.environ, **fake_driver.environment(library, library)},
    )


class Child:
    """A program that waits for questions."""

    def __init__(self, library: Path, described: Path, age_s: float | None = None) -> None:
        asked, self._questions = os.pipe()
        self._answers, told = os.pipe()
        self._complaints, said = os.pipe()
        self._forks = forks(library)
        environ = {**os.environ, **fake_driver.environment(library, described, age_s=age_s)}
        self.pid = self._forks.start("ask_binding:main", (asked, told, said), environ)
        for file in (asked, told, said):
            os.close(file)

    def put(self, question: Question) -> None:
        """Ask, without waiting."""
        os.write(self._questions, f"{json.dumps(question)}\n".encode())

    def answers_within(self, seconds: float) -> bool:
        """Whether an answer comes, or the end."""
        return bool(select.select([self._answers], [], [], seconds)[0])

    def answer(self) -> Answer:
        """The next answer, waited for."""
        line = b""
        while not line.endswith(b"\n"):
            more = os.read(self._answers, 1 << 16)
            assert more, "the child has ended"
            line += more
        told: Answer = json.loads(line)
        return told

    def end(self) -> tuple[int, str]:
        """Ask no more, and wait for its end: how it ended, and what it complained about."""
        os.close(self._questions)
        with os.fdopen(self._complaints, encoding="utf-8") as complaints:
            said = complaints.read()
        os.close(self._answers)
        return self._forks.wait(self.pid), said


class Session:
    """A child that has opened the library and is asked again and again."""

    def __init__(self, library: Path, described: Path, age_s: float | None = None) -> None:
        self.child = Child(library, described, age_s)
        assert self.ask(["nvmlInit"]) == [{"value": None}]

    def ask(self, *questions: Question) -> list[Answer]:
        """The answers, in order."""
        found = []
        for question in questions:  # one by one: a pipe that is full both ways would stand still
            self.child.put(question)
            found.append(self.child.answer())
        return found

    def end(self) -> str:
        """End the child; gives what it complained about."""
        return self.child.end()[1]


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
    environ = {**os.environ, **fake_driver.environment(library, described, age_s=age_s)}
    given = "".join(json.dumps(question) + "\n" for question in asked)
    code, out, err = forks(library).run("ask_binding:main", environ, given=given)
    answers = [json.loads(line) for line in out.splitlines()]
    if answers and "error" not in answers[0]:
        answers = answers[1:]
    return Answers(answers, code, err)


def write(folder: Path, document: Any) -> Path:
    """A description of a test's own; a text is written as it is."""
    path = folder / "machine.json"
    path.write_text(
        document if isinstance(document, str) else json.dumps(document), encoding="utf-8"
    )
    return path
