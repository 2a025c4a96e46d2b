"""nvbandwidth's JSON (`-j`), with whatever stands before and after it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, NoReturn

from acceptance.tools import reading
from acceptance.tools.nvbandwidth_matrix import TOOL, Found, Matrix, gpu_entry, part
from acceptance.tools.reading import UnreadableOutput

_ROOT = re.compile(r'\{\s*"nvbandwidth"\s*:')
# A cell is a C++ stream's default: six significant digits, in a string. Two decimals are granted as well.
_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$")
_HALF_DIGIT = 5e-6
_HALF_CENT = 0.005
_Row = tuple[float | None, ...]
_PARTS = {"read": ("read1", "read2", "total"), "write": ("write1", "write2", "total")}


def holds(text: str) -> bool:
    """Whether the text is nvbandwidth's JSON."""
    return _ROOT.search(text) is not None


def _no_constant(word: str) -> NoReturn:
    raise UnreadableOutput(TOOL, word, "a figure is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnreadableOutput(TOOL, reading.shown(pairs), "a key comes twice in one object")
    return found


def _need(holder: dict[str, Any], key: str, kind: type, where: str) -> Any:
    """The value of a key that must be there, of its type. Raises UnreadableOutput."""
    value = holder.get(key)
    if not isinstance(value, kind):
        raise UnreadableOutput(TOOL, reading.shown(value), f"{where} needs '{key}' as {kind.__name__}")
    return value


def _cell(value: object, name: str) -> float | None:
    if value == "N/A":
        return None
    if isinstance(value, str) and _NUMBER.match(value):
        return reading.number(TOOL, value, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return reading.number(TOOL, str(value), str(value))
    raise UnreadableOutput(TOOL, reading.shown(value), f"a cell of {name} is no figure")


def _matrices(testcase: dict[str, Any], name: str) -> list[Matrix]:
    description = _need(testcase, "bandwidth_description", str, name).strip()
    shown = _need(testcase, "bandwidth_matrix", list, name)
    if not shown or not all(isinstance(row, list) and row and len(row) == len(shown[0]) for row in shown):
        raise UnreadableOutput(TOOL, description, f"the matrix of {name} has no rows, or rows of unequal length")
    rows = [tuple(_cell(value, name) for value in row) for row in shown]
    total = _cell(testcase.get("sum"), name)
    if total is None:
        raise UnreadableOutput(TOOL, description, f"{name} needs 'sum' as a number")
    names: Sequence[str] = (part(name, description),)
    width = len(rows[0])
    # Until 0.8 the three matrices of a bidirectional copy between GPUs stand under one another; sum is that of the last.
    if "device_to_device_bidirectional" in name and len(rows) == 3 * width:
        names = [f"{name}_{part}" for part in _PARTS["write" if "_write_" in name else "read"]]
        _added_up(name, *(rows[width * place : width * (place + 1)] for place in range(3)))
    each = len(rows) // len(names)
    found = []
    for index, one in enumerate(names):
        block = tuple(rows[index * each : (index + 1) * each])
        slack = sum(_rounded(value) for row in block for value in row)
        found.append(Matrix(one, description, block, total if index == len(names) - 1 else None, slack))
    _extremes(testcase, found[-1])
    return found


def _extremes(testcase: dict[str, Any], last: Matrix) -> None:
    """Nothing, where `min`, `max` and `average` (of `--verbose`) are those of the cells of the last matrix.

    The tool takes N/A for 0 in its minimum, and leaves it out of its average. Raises UnreadableOutput.
    """
    cells = [value for row in last.rows for value in row]
    figures = [value for value in cells if value is not None]
    if not figures:
        return
    due = {
        "min": [min(figures)] + [0.0] * (None in cells),
        "max": [max(figures)],
        "average": [sum(figures) / len(figures)],
    }
    for key, values in due.items():
        printed = _cell(testcase[key], last.name) if key in testcase else None
        if printed is not None and not any(abs(printed - value) <= 2 * _rounded(value) for value in values):
            why = f"{last.name} says {key} {printed:.2f} and its figures make {values[0]:.2f}: a figure was changed"
            raise UnreadableOutput(TOOL, last.description, why)


def _rounded(value: float | None) -> float:
    """How far a printed figure may be from what was measured."""
    return max(_HALF_CENT, _HALF_DIGIT * abs(value or 0.0))


def _added_up(name: str, one: Sequence[_Row], other: Sequence[_Row], both: Sequence[_Row]) -> None:
    """Nothing, where each figure of `both` is those of the two directions added; `sum` vouches for the last matrix alone.

    Raises UnreadableOutput.
    """
    for cells in zip(chain(*one), chain(*other), chain(*both), strict=True):
        first, second, total = (value or 0.0 for value in cells)
        if abs(first + second - total) > sum(map(_rounded, cells)):
            why = (
                f"{name}: both directions are {first + second:.2f} and the total says {total:.2f}: a figure was changed"
            )
            raise UnreadableOutput(TOOL, "", why)


def _testcase(found: Found, testcase: object) -> None:
    if not isinstance(testcase, dict):
        raise UnreadableOutput(TOOL, reading.shown(testcase), "a testcase is no object")
    name = _need(testcase, "name", str, "a testcase")
    status = _need(testcase, "status", str, name)
    said = testcase.get("error")
    if status == "Waived":
        found.waived.append(name)
    elif status == "Running" and not said:
        found.unfinished[name] = None
    elif status != "Passed" or said:
        words = [word for word in (status, said) if isinstance(word, str) and word]
        found.errors.append(f"{name} could not run: '{reading.quote(': '.join(words) or 'no status')}'")
    else:
        for matrix in _matrices(testcase, name):
            found.add(matrix)


def read(text: str) -> Found:
    """What the JSON says. Raises UnreadableOutput, also for JSON that is cut."""
    starts = [match.start() for match in _ROOT.finditer(text)]
    if len(starts) != 1:
        raise UnreadableOutput(TOOL, "", f"the text holds {len(starts)} outputs: give one run at a time")
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)
    try:
        whole, _ = decoder.raw_decode(text, starts[0])
    except (ValueError, RecursionError) as error:
        raise UnreadableOutput(TOOL, text[-80:], f"the JSON is cut or damaged ({type(error).__name__})") from error
    root = _need(whole, "nvbandwidth", dict, "the output")
    found = Found()
    if isinstance(root.get("error"), str) and root["error"].strip():
        found.errors.append(f"it could not run: '{reading.quote(root['error'])}'")
    if root.get("GPU Device list") is not None:
        entries = _need(root, "GPU Device list", list, "the output")
        gpus = [gpu_entry(entry) if isinstance(entry, str) else None for entry in entries]
        for place, (entry, gpu) in enumerate(zip(entries, gpus, strict=True)):
            if gpu is None or gpu.index != place:
                raise UnreadableOutput(
                    TOOL, reading.shown(entry), "a listed device has an unknown form or the wrong number"
                )
        found.devices, found.gpus = len(entries), tuple(gpu for gpu in gpus if gpu is not None)
    if isinstance(driver := root.get("Driver Version"), str):
        found.driver = driver
    if root.get("testcases") is not None:
        for testcase in _need(root, "testcases", list, "the output"):
            _testcase(found, testcase)
    return found
