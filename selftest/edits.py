"""The described machine with a fault's edits in it. Pure."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from selftest.fault import NvmlEdit

Document = dict[str, Any]


def edited(document: Document, edits: Sequence[NvmlEdit], *, inside: bool) -> Document:
    """The document as programs of the host see it, or with `inside` those of the container.

    Raises ValueError for what is not there.
    """
    found = copy.deepcopy(document)
    for edit in edits:
        if inside or not edit.inside:
            _edit(found, edit)
    return found


def _edit(document: Document, edit: NvmlEdit) -> None:
    gpus: list[Document] = document["gpus"]
    if edit.remove_gpus:
        document["gpus"] = [gpu for index, gpu in enumerate(gpus) if index not in edit.remove_gpus]
        pairs = document.get("pairs", {})
        document["pairs"] = {"every": pairs["every"]} if "every" in pairs else {}
    elif edit.after_s is not None:
        step: Document = {"after_s": edit.after_s}
        given: Document = {
            "gpu": edit.gpu,
            "set": edit.set or None,
            "grow": edit.grow or None,
            "xid": edit.xid,
        }
        step |= {key: value for key, value in given.items() if value is not None}
        document["timeline"] = sorted(
            [*document.get("timeline", []), step], key=lambda one: float(one["after_s"])
        )
    elif edit.machine:
        document.update(edit.set)
    elif edit.pair is not None:
        document.setdefault("pairs", {}).setdefault(edit.pair, {}).update(edit.set)
    elif edit.link is not None:
        for gpu in _chosen(gpus, edit.gpu):
            gpu["links"] = [*gpu.get("links", ()), {"link": edit.link, **edit.set}]
    else:
        for gpu in _chosen(gpus, edit.gpu):
            gpu.update(edit.set)


def _chosen(gpus: list[Document], index: int | None) -> list[Document]:
    if index is not None and index >= len(gpus):
        raise ValueError(f"there is no GPU {index} in a machine of {len(gpus)}")
    return gpus if index is None else [gpus[index]]
