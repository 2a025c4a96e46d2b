"""The burn and the memory test of one GPU, as the suites run them: their command lines, and what a finished one is worth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from acceptance.command import Completed
from acceptance.loads.protocol import LoadTable
from acceptance.tools.load_output import LoadFailed, LoadOutput, read

# The readings, each with its unit; `{}` is a format.
BURN_READINGS = {"burn_{}": "TFLOP/s", "burn_{}_kept": "ratio", "burn_{}_miscompares": "count"}
BURN_OF_GPU = {"burn_filled": "ratio", "burn_copied": "GiB", "burn_copy_miscompares": "count"}
BURN_OF_PEER = {"burn_peer_copied": "GiB", "burn_peer_miscompares": "count"}
VRAM_READINGS = {"vram_tested": "ratio", "vram_rate": "ratio", "vram_copy": "GB/s", "vram_miscompares": "count"}
LAPS = ("lap", "format", "TFLOP/s", "products", "seconds", "from s", "to s")
DIGESTS = ("format", "shape", "inputs", "result")
PASSES = ("pattern", "passes", "GB/s", "wrong")
# A run of the memory test that left one of them out proves less than its name says.
PATTERNS = (
    "own_address",
    "walking_bits",
    "moving_inversions",
    "random_inverse",
    "march_c",
    "block_move",
    "neighbours",
    "retention",
)
# Of its time: after the first round a pattern that would not end in time is not begun, and the longest of them takes a third of a round.
VRAM_LEAST_SHARE = 0.5
LAP_ROWS = 500  # of the table of laps: of more turns the first and the last 250 are told
WORKED = 0.95  # of the time that was asked: what the turns last together at least
LEAST_LAPS = 2  # a rate is held against that of an earlier lap, and a digest too
OWN = "gpu0"  # what a load calls its own GPU

Key = tuple[str, str]  # a reading's name and component, or a product's format and shape
_DIGEST = re.compile(r"[0-9a-f]{16}")


def burn_argv(
    python: str, *, dtypes: Sequence[str], seconds: float, peers: int = 0, inject: str | None = None
) -> tuple[str, ...]:
    """The command line of the burn of one GPU; `dtypes` are short names, `seconds` the time of all of them together.

    `peers` is how many of the GPUs that it sees after its own it copies to.
    """
    argv = [python, "-m", "acceptance.loads.burn", "--dtypes", ",".join(dtypes), "--seconds", f"{float(seconds)}"]
    argv += ["--peers", str(peers)] if peers else []
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_burn(
    completed: Completed,
    *,
    dtypes: Sequence[str],
    seconds: float,
    peers: int = 0,
    also: Mapping[str, Any] | None = None,
) -> LoadOutput:
    """What the burn printed, if it ran whole and as asked; `also` are parameters that it must have had, such as the GPU's `uuid`.

    Raises LoadFailed as `load_output.read` does, and when a format is neither measured whole nor said to be absent whole, no format is
    measured, a copy or a peer is missing, something else was measured or came in another unit, a table has not a row of each format,
    turns are missing, too short together, or do not follow upon each other in time, no library is named, or wrong results were told of
    and none counted.
    """
    asked = {"dtypes": list(dtypes), "seconds": seconds, "peers": peers, **(also or {})}
    output = read(completed, "burn", asked)
    absent = {(absence.name, absence.component) for absence in output.absences}
    due = {(name, OWN): unit for name, unit in BURN_OF_GPU.items()}
    for peer in range(1, peers + 1):
        due |= {(name, f"{OWN}->gpu{peer}"): unit for name, unit in BURN_OF_PEER.items()}
    offered, lacked = [], set[Key]()
    for dtype in dtypes:
        own = {(name.format(dtype), OWN): unit for name, unit in BURN_READINGS.items()}
        if own.keys() <= absent:
            lacked |= own.keys()
        else:
            offered.append(dtype)
            due |= own
    if not offered:
        raise _failed("measured no format", output)
    _exactly(output, due, lacked)
    laps = output.parameters.get("laps")
    if type(laps) is not int or laps < LEAST_LAPS:
        raise _failed(f"told of {laps!r} laps, and at least {LEAST_LAPS} are due", output)
    if not isinstance(output.parameters.get("library"), str) or not output.parameters["library"]:
        raise _failed("does not say with which library it ran", output)
    _of_each(_table(output, "burn_laps", LAPS), offered, output)
    _in_turn(_table(output, "burn_laps", LAPS), output)
    _whole(_table(output, "burn_laps", LAPS), offered, seconds, output)
    _of_each(_table(output, "burn_digests", DIGESTS), offered, output)
    digests(output)
    _counted(output)
    return output


def digests(output: LoadOutput) -> dict[Key, Key]:
    """The digests of what a burn multiplied and of what came out, (inputs, result), by format and shape.

    Raises LoadFailed for a table that is not there, a cell that is no digest, and a product that stands twice.
    """
    found: dict[Key, Key] = {}
    for row in _table(output, "burn_digests", DIGESTS).rows:
        dtype, shape, inputs, result = (str(cell) for cell in row)
        if not (_DIGEST.fullmatch(inputs) and _DIGEST.fullmatch(result)) or (dtype, shape) in found:
            raise _failed(f"has no digest of {dtype} {shape} that can be used: {inputs}, {result}", output)
        found[dtype, shape] = inputs, result
    return found


def vram_argv(python: str, *, seconds: float, inject: str | None = None) -> tuple[str, ...]:
    """The command line of the memory test of one GPU; in `seconds` it makes as many rounds of its patterns as fit, and one at least."""
    argv = [python, "-m", "acceptance.loads.vram", "--seconds", f"{float(seconds)}"]
    argv += [] if inject is None else ["--inject", inject]
    return tuple(argv)


def read_vram(completed: Completed, *, seconds: float, also: Mapping[str, Any] | None = None) -> LoadOutput:
    """What the memory test printed, if it ran whole and as asked; `also` as in `read_burn`.

    Raises LoadFailed as `load_output.read` does, and when a reading is missing, is another one or came in another unit, a pattern was left
    out, or wrong words were told of and none counted.
    """
    output = read(completed, "vram", {"seconds": seconds, **(also or {})}, least_s=VRAM_LEAST_SHARE * seconds)
    _exactly(output, {(name, OWN): unit for name, unit in VRAM_READINGS.items()}, set())
    rows = _table(output, "vram_passes", PASSES).rows
    if missing := [pattern for pattern in PATTERNS if pattern not in {row[0] for row in rows}]:
        raise _failed(f"made no pass of the pattern {', '.join(missing)}", output)
    for pattern, passes, _, wrong in rows:
        if not isinstance(passes, float) or passes < 1:
            raise _failed(f"made no pass of the pattern {pattern}", output)
        if wrong != 0 and not any(one.value for one in output.readings if one.name == "vram_miscompares"):
            raise _failed(f"found words of the pattern {pattern} wrong and counted none", output)
    _counted(output)
    return output


def _exactly(output: LoadOutput, due: Mapping[Key, str], lacked: set[Key]) -> None:
    """Nothing, when the load measured what is due, each in its unit and none below 0, and nothing else."""
    told = {(one.name, one.component): one for one in output.readings}
    absent = {(one.name, one.component) for one in output.absences}
    if missing := [f"{name} of {where}" for name, where in due if (name, where) not in told]:
        raise _failed(f"did not measure {', '.join(missing)}", output)
    if strangers := sorted((told.keys() | absent) - due.keys() - lacked):
        raise _failed(f"measured what it was not asked for: {', '.join(name for name, _ in strangers)}", output)
    for key, unit in due.items():
        if told[key].unit != unit or told[key].value < 0:
            raise _failed(f"measured {key[0]} as {told[key].value:g} {told[key].unit}, and {unit} are due", output)


def _table(output: LoadOutput, name: str, columns: tuple[str, ...]) -> LoadTable:
    found = next((one for one in output.tables if one.name == name), None)
    if found is None or found.columns != columns:
        told = "printed no table" if found is None else f"printed {', '.join(found.columns)} as the table"
        raise _failed(f"{told} {name}", output)
    return found


def _of_each(table: LoadTable, offered: Sequence[str], output: LoadOutput) -> None:
    """Nothing, when the table has rows of all formats that were measured, and of no others."""
    rows = {str(row[table.columns.index("format")]) for row in table.rows}
    if rows != set(offered):
        told = ", ".join(sorted(rows ^ set(offered)))
        raise _failed(f"measured {', '.join(offered)}, and its table {table.name} differs in {told}", output)


def _in_turn(laps: LoadTable, output: LoadOutput) -> None:
    """Nothing, when each turn takes time and begins after the end of the one before it."""
    ended_s = 0.0
    for lap, dtype, *_, from_s, to_s in laps.rows:
        if not (isinstance(from_s, float) and isinstance(to_s, float) and ended_s <= from_s < to_s):
            raise _failed(f"tells of {dtype} in lap {lap} from {from_s} to {to_s} s, after {ended_s} s", output)
        ended_s = to_s


def _whole(laps: LoadTable, offered: Sequence[str], seconds: float, output: LoadOutput) -> None:
    """Nothing, when each format had its turn in each lap and the turns last as long together as was asked.

    Of a table that was thinned its two ends are looked at.
    """
    rounds = int(output.parameters["laps"])
    turns = [(int(lap), str(dtype)) for lap, dtype, *_ in laps.rows if isinstance(lap, float)]
    count, half = rounds * len(offered), LAP_ROWS // 2
    # Numbered, not listed: what a load says of its laps may be any number.
    places = [*range(half), *range(count - half, count)] if count > LAP_ROWS else range(count)
    due = [(place // len(offered), offered[place % len(offered)]) for place in places]
    if turns != due:
        raise _failed(
            f"tells of {len(turns)} turns, which are not those of {len(offered)} formats in {rounds} laps", output
        )
    worked_s = sum(spent for _, _, _, _, spent, *_ in laps.rows if isinstance(spent, float))
    share = len(turns) / (rounds * len(offered)) if offered else 0.0
    if worked_s < WORKED * seconds * share:
        raise _failed(f"worked for {worked_s:.1f} s of the {seconds * share:g} s that it was to", output)


def _counted(output: LoadOutput) -> None:
    counts = [one.value for one in output.readings if one.name.endswith("_miscompares")]
    if output.miscompares and not any(counts):
        raise _failed("told of wrong results and counted none", output)


def _failed(trouble: str, output: LoadOutput) -> LoadFailed:
    return LoadFailed(f"the load {output.load} {trouble}", output.miscompares)
