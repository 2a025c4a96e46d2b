"""The commands in the pages: each is one that can be typed.

What rigproof is given is read by its own parser, what make is given by make. What needs no GPU, no
cluster and no root is run, in a temporary folder with a recorded run. Other programs are named
here, with the reason why they are not run.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from thoroughness import some

from acceptance.cli.options import Parser
from acceptance.cli.parser import VERBS, parser

ROOT = Path(__file__).resolve().parent.parent

# Programs in blocks of commands that no test runs, each with the reason.
OTHERS = {
    "docker": "needs a container engine; tests/containers run it",
    "chmod": "as root, of a folder that is not here",
    "chown": "the same",
    "cd": "of the shell; part of a line that begins with git",
    "git": "fetches the repository, whose address is not known here",
    "kubectl": "asks a cluster",
    "nvidia-smi": "needs NVIDIA's driver",
    "salloc": "needs Slurm; what it starts is read",
    "python": "needs the files of an image; tests run the script",
    "scontrol": "needs Slurm; tests/fleet run the daemons (make test-slurm)",
}
# Programs that start what follows them.
STARTERS = ("sudo", "salloc", "uvx", "pipx")


@dataclass(frozen=True)
class Command:
    """A command of a page: its words, and whether it stands in a sentence, where arguments may be
    left out.
    """

    page: str
    line: int
    words: tuple[str, ...]
    in_sentence: bool = False

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {shlex.join(self.words)}"


# --- reading the pages ---


def pages() -> list[Path]:
    """The pages that users read, in the order of their names."""
    named = subprocess.run(
        ["git", "ls-files", "-z", "--", "README*.md", "CONTRIBUTING.md", "docs/*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [ROOT / name for name in sorted(named.split("\0")) if name]


def split(line: str) -> Iterator[tuple[str, ...]]:
    """The commands of one line of a shell, without redirections and comments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    skipped = False
    for word in (*lexer, ";"):
        if word in ("&&", "||", ";", "|", "&"):
            if words:
                yield tuple(words)
            words = []
        elif word in (">", ">>", "<", "2>"):
            skipped = True
        elif skipped:
            skipped = False
        else:
            words.append(word)


def commands(text: str, page: str) -> Iterator[Command]:
    """Every command of a page: of its blocks for a shell, and what its sentences name."""
    for block in MarkdownIt("commonmark").enable("table").parse(text):
        line = (block.map or [0])[0] + 1
        if block.type in ("fence", "code_block"):
            typed = block.content.replace("\\\n", " ").splitlines()
            if block.info.split()[:1] in SHELLS:
                for number, one in enumerate(typed, line + 1):
                    for words in split(one.removeprefix("$ ")):
                        yield Command(page, number, words)
        for part in block.children or ():
            if part.type == "code_inline" and NAMED.match(part.content):
                bare = part.content.replace("[", "").replace("]", "").replace("...", "")
                words = tuple(shlex.split(bare))
                if words[0] in VERBS:
                    words = ("rigproof", *words)
                yield Command(page, line, words, in_sentence=True)


SHELLS = (["sh"], ["bash"], ["console"])
_VERB = "|".join(VERBS)
TYPED = re.compile(rf"(\$ )?(sudo )?(\.venv/bin/)?(rigproof ({_VERB}|--)|make [a-z-]+( |$))")
NAMED = re.compile(
    rf"(sudo )?((\.venv/bin/)?rigproof (?!FAIL)\S|make [a-z]|(fleet|baseline|schedule|image) [a-z]"
    rf"|({_VERB}) --)"
)


def unmarked(text: str, page: str) -> Iterator[str]:
    """Commands in blocks that do not say that they are for a shell."""
    for block in MarkdownIt("commonmark").parse(text):
        if block.type in ("fence", "code_block") and block.info.split()[:1] not in SHELLS:
            for typed in filter(TYPED.match, block.content.splitlines()):
                yield f"{page}:{(block.map or [0])[0] + 1}: {typed}: begin the block with ```sh"


def own(command: Command) -> tuple[str, ...] | None:
    """What rigproof is given by a command, or None where it is another program's."""
    for at, word in enumerate(command.words):
        if word in ("rigproof", ".venv/bin/rigproof"):
            return command.words[at + 1 :]
        if at == 0 and word not in STARTERS:
            return None
    return None


def goals(command: Command) -> tuple[str, ...] | None:
    """What make is given by a command, or None."""
    words = command.words[command.words[0] == "sudo" :]
    return words[1:] if words[:1] == ("make",) else None


# --- holding them against rigproof and make ---


class Refused(Exception):
    """What the parser said of a command."""


def parse(given: Sequence[str], *, whole: bool = True) -> argparse.Namespace:
    """The arguments as rigproof's own parser takes them; not whole: some may be left out.

    Raises Refused with the parser's sentence.
    """

    def refuse(_: Parser, message: str) -> None:
        raise Refused(message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Parser, "error", refuse)
        top = parser(given)
        for inner in () if whole else parsers(top):
            for one in (*inner._actions, *inner._mutually_exclusive_groups):
                one.required = False
        return top.parse_args(given)


def parsers(top: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of its verbs."""
    yield top
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


def refusal(given: Sequence[str], *, in_sentence: bool) -> str | None:
    """Why rigproof would refuse the arguments, or None where it would take them.

    A word in capitals stands for a value of the reader's; a sentence may leave arguments out.
    """
    if list(given) in (["--version"], ["--help"]):
        return None
    try:
        parse(given, whole=not in_sentence)
    except Refused as why:
        message = str(why)
        if re.search(r"'[A-Z][A-Z_]*'", message):
            return None
        if in_sentence and re.search("expected (one|at least)", message):
            return None
        return message
    return None


ALL = [
    found
    for path in pages()
    for found in commands(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
]


def test_rigproof_takes_what_the_pages_say() -> None:
    """A block of commands names rigproof, make, or a program of the list, and says that it is one
    of commands.
    """
    texts = {path.name: path.read_text(encoding="utf-8") for path in pages()}
    assert [found for name, text in texts.items() for found in unmarked(text, name)] == []
    assert [*unmarked("```\nrigproof accept\n```", "page.md")]
    wrong = [
        f"{one}: {why}"
        for one in ALL
        if (given := own(one)) is not None
        and (why := refusal(given, in_sentence=one.in_sentence)) is not None
    ]
    assert not wrong, "\n".join(wrong)
    others = [one for one in ALL if own(one) is None and goals(one) is None]
    programs = {one.words[1] if one.words[0] == "sudo" else one.words[0] for one in others}
    assert programs - set(OTHERS) == set(), "add it to OTHERS, with the reason"
    assert (len(texts) > 40, len(ALL) - len(others) > 130) == (True, True)


def test_make_takes_what_the_pages_say() -> None:
    """make itself reads each, and rigproof's parser what make would call."""
    wrong = []
    given = {found for one in ALL if (found := goals(one))}
    for words in some(sorted(given), 20):
        told = ["make", "-n", *(word.replace("<run>", "latest") for word in words)]
        done = subprocess.run(
            told, cwd=ROOT, env={"PATH": os.defpath}, capture_output=True, text=True, check=False
        )
        typed = done.stdout.replace("\\\n", " ")
        started = re.findall(r"^\.venv/bin/rigproof (.*)", typed, re.MULTILINE)
        whys = [refusal(next(split(one)), in_sentence=False) for one in started]
        whys += [done.stderr.strip()] if done.returncode else []
        wrong += [f"{shlex.join(told)}: {why}" for why in whys if why is not None]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("```sh\nrigproof accept --machin x.toml --profil\n```", "--profil"),
        ("```sh\nrigproof report RUN --cards x.svg\n```", "--cards"),
        ("```sh\nrigproof acept\n```", "acept"),
        ("```sh\nrigproof accept --station dokcer\n```", "dokcer"),
        ("```sh\nrigproof verify\n```", "required"),
        ("See `rigproof fleet submit --slurn X`.", "--slurn"),
        ("See `fleet gather`.", "gather"),
    ],
)
def test_a_wrong_command_is_found(text: str, told: str) -> None:
    (one,) = commands(text, "page.md")
    why = refusal(own(one) or (), in_sentence=one.in_sentence)
    assert why is not None
    assert told in why
