"""kubectl, with the user's own configuration and context."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.message import english
from acceptance.core.verdict import VerdictWord
from acceptance.fleet.kubernetes import FAILED, SELECTOR, VERDICT
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.wording.errors import WordedError, WordedUserError

PROGRAM = "kubectl"
_SECONDS = 120.0
_SECONDS_PER_OBJECT = 1.0  # a client may be held to some requests a second
_MOST = 512 * regular_file.MIB  # 10,000 nodes with the images that each holds are 200 MB
_LIST = "list.json"
# The names of the file that makes a folder a kustomization.
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# kustomize prints YAML alone; a patch that changes nothing prints either form.
_UNCHANGED = ("patch", "--local", "--type", "merge", "-p", "{}")
# Keys are sorted, and no other line of an object begins so.
_OBJECT = re.compile("^(?:---\n)?(?=apiVersion:)", re.MULTILINE)


def kustomization(folder: Path) -> str:
    """The objects of a kustomization as JSON, one after the other. The cluster is not asked.

    Raises WordedUserError where the folder is no kustomization, WordedError, and CommandError
    where kubectl cannot run, as all functions here.
    """
    if not any((folder / name).is_file() for name in _KUSTOMIZATIONS):
        raise WordedUserError(
            english(
                "kubernetes_no_kustomization",
                "{path}: holds no kustomization.yaml: give the folder of your kustomization on "
                "top of deploy/kubernetes, such as deploy/kubernetes/overlays/least",
            ),
            path=str(folder),
        )
    return _run(*_UNCHANGED, "-o", "json", "-k", str(folder))


def get(kind: str, *more: str) -> str:
    """The objects of one kind, as JSON."""
    return _run("get", kind, "-o", "json", *more)


def jobs(namespace: str | None) -> str:
    """The Jobs of ours, as JSON."""
    return get("jobs", "-l", SELECTOR, *(("-n", namespace) if namespace else ()))


def apply(objects: str, count: int) -> None:
    """Apply objects, which are one document of JSON."""
    with tempfile.TemporaryDirectory(prefix="rigproof-") as folder:
        path = Path(folder, _LIST)
        path.write_text(objects, encoding="utf-8")
        _run("apply", "-f", str(path), seconds=_SECONDS + count * _SECONDS_PER_OBJECT)


def label(names: Sequence[str], word: VerdictWord) -> tuple[str, ...]:
    """The arguments that label nodes with the word of their verdict."""
    return ("label", "nodes", *names, f"{VERDICT}={word}", "--overwrite")


def taint(names: Sequence[str], *, remove: bool = False) -> tuple[str, ...]:
    """The arguments that keep new pods from failed nodes, or let them come again.

    Pods that run stay.
    """
    return (
        "taint",
        "nodes",
        *names,
        f"{FAILED}:NoSchedule-" if remove else f"{FAILED}=:NoSchedule",
    )


def mark(argv: Sequence[str]) -> None:
    """Label or taint nodes."""
    _run(*argv, seconds=_SECONDS + len(argv) * _SECONDS_PER_OBJECT)


def yaml(objects: str, count: int) -> str:
    """Objects, which are one document of JSON, as YAML for people. The cluster is not asked."""
    with tempfile.TemporaryDirectory(prefix="rigproof-") as folder:
        path = Path(folder, _LIST)
        path.write_text(objects, encoding="utf-8")
        seconds = _SECONDS + count * _SECONDS_PER_OBJECT
        text = _run(*_UNCHANGED, "-o", "yaml", "-f", str(path), seconds=seconds)
    # kubectl prints objects of a List one after the other, and nothing between them.
    return _OBJECT.sub("---\n", text)


def _run(*argv: str, seconds: float = _SECONDS) -> str:
    done = command.run(
        (command.find(PROGRAM), *argv), deadline=Deadline.after(seconds), cap_bytes=_MOST
    )
    what = " ".join(argv[:2])
    if done.returncode != 0 or done.timed_out:
        why = done.last_lines(3) or done.describe()
        raise WordedError(
            english("kubectl_failed", "kubectl {what} failed ({why})"), what=what, why=why
        )
    if done.truncated:
        raise WordedError(
            english("kubernetes_unread", "what kubectl {what} printed is not understood ({why})"),
            what=what,
            why="it is cut off",
        )
    return done.stdout
