"""`rigproof completion`: print the completion of the command line for a shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import shtab

from acceptance import resources
from acceptance.cli import parser as command_line
from acceptance.core.exit_code import PASS
from acceptance.reports import languages
from acceptance.run import profile

SHELLS = ("bash", "zsh", "fish")
_FILES = frozenset({"FILE", "KEY", "PAGE"})
_FOLDERS = frozenset({"DIR", "FOLDER", "RUN"})
_USE = """To use it, once or after an update of rigproof:
  bash  rigproof completion bash > ~/.local/share/bash-completion/completions/rigproof
  zsh   eval "$(rigproof completion zsh)"          in ~/.zshrc, after compinit
  fish  rigproof completion fish > ~/.config/fish/completions/rigproof.fish
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof completion`."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_USE}\n{parser.epilog}"


def run(args: argparse.Namespace) -> int:
    """Print the completion."""
    sys.stdout.write(script(args.shell))
    return PASS


def script(shell: str) -> str:
    """The completion for one of SHELLS, made of the parser with all its verbs.

    Raises UserError where the shipped profiles cannot be read.
    """
    whole = command_line.parser((), whole=True)
    values = {
        "--profile": tuple(profile.read(resources.locate("profiles.toml"))),
        "--lang": languages.CODES,
    }
    for action in _actions(whole):
        names = values.get(next(iter(action.option_strings), ""))
        if names is not None:
            action.choices = names
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return shtab.complete(whole, shell=shell)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Every argument of a parser and of the parsers below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in dict.fromkeys(action.choices.values()):
                yield from _actions(below)
        else:
            yield action
