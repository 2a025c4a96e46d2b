"""The contract of the burn of one GPU; `load` says what it measures and what not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta

from acceptance.core.dtype import DtypeName
from acceptance.core.message import Listed, Values, english
from acceptance.core.parts import Gpu, Pair
from acceptance.loads import contract
from acceptance.loads.contract import OWN, Due, Seconds, Unproved
from acceptance.loads.gemm.contract import MULTIPLYING
from acceptance.loads.miscompare import BURN_MISCOMPARES, COPY_MISCOMPARES, PEER_MISCOMPARES
from acceptance.loads.protocol import LoadOutput, LoadTable

# Readings with their units: of each format (`{}`), of the GPU, and of its way to each peer.
READINGS = {"burn_{}": "TFLOP/s", "burn_{}_kept": "ratio", BURN_MISCOMPARES: "count"}
PLAIN_READINGS = {"burn_{}_plain": "TFLOP/s", "burn_{}_verified_ratio": "ratio"}
OF_GPU = {"burn_filled": "ratio", "burn_copied": "GiB", COPY_MISCOMPARES: "count"}
OF_PEER = {"burn_peer_copied": "GiB", PEER_MISCOMPARES: "count"}

LAPS = "burn_laps"
LAP_COLUMNS = ("lap", "format", "TFLOP/s", "products", "seconds", "from s", "to s")
LAP_ROWS = 500  # most rows in the table of laps; of more turns it has the first and last 250
DIGESTS = "burn_digests"
DIGEST_COLUMNS = ("format", "shape", "inputs", "result")
COURSES = "burn_courses"
COURSE_COLUMNS = ("format", "products", "from s", "to s", "TFLOP/s")

WORKED = 0.95  # least share of the requested time that the turns take together
LEAST_LAPS = 2  # rates and digests are compared with those of an earlier lap
# `fault` describes them.
FAULTS = ("bit", "stuck", "ulp17", "nan", "inf", "repeat", "unwritten", "input", "hang", "lost")
_FAULT = rf"^({'|'.join(FAULTS)}|slow:([1-9]|[1-8][0-9]|90))$"
_DIGEST = re.compile(r"[0-9a-f]{16}")

Dtypes = Annotated[
    tuple[DtypeName, ...], Meta(min_length=1, description="number formats, which take turns")
]
Peers = Annotated[
    int, Meta(ge=0, le=31, description="how many of the other GPUs it sees are copied to")
]
Fault = Annotated[
    str, Meta(pattern=_FAULT, description=f"{', '.join(FAULTS)} or slow:PERCENT, 1 to 90")
]
ProductKey = tuple[str, str]  # a product's format and shape


class Ask(contract.Ask, tag="burn", frozen=True, kw_only=True):
    """Burn one GPU with products of matrices, every one of them verified."""

    dtypes: Dtypes
    seconds: Annotated[Seconds, Meta(description="of burn, all formats together")]
    peers: Peers = 0
    plain: Annotated[
        bool, Meta(description="time the same products without verifying too, half of each turn")
    ] = False
    inject: Fault | None = None

    # With `plain` other readings are due.
    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"plain"})
    CLEARED: ClassVar[frozenset[str]] = MULTIPLYING

    def __post_init__(self) -> None:
        contract.require_each_once("dtypes", self.dtypes)

    def readings(self) -> Mapping[str, str]:
        """What is measured of each format, with its unit."""
        return {**READINGS, **(PLAIN_READINGS if self.plain else {})}

    def due(self, output: LoadOutput) -> Due:
        """Readings of the GPU, of its peers and of each format, or that the GPU lacks it; tables.

        Raises Unproved where the GPU lacks them all.
        """
        peers = [Pair(OWN, Gpu(number)) for number in range(1, self.peers + 1)]
        due = Due(
            readings={
                **{(name, OWN): unit for name, unit in OF_GPU.items()},
                **{(name, peer): unit for peer in peers for name, unit in OF_PEER.items()},
            },
            choices=[
                {(name.format(dtype), OWN): unit for name, unit in self.readings().items()}
                for dtype in self.dtypes
            ],
            tables={
                LAPS: LAP_COLUMNS,
                DIGESTS: DIGEST_COLUMNS,
                **({COURSES: COURSE_COLUMNS} if self.plain else {}),
            },
        )
        if not due.measured(output):
            raise Unproved(english("load_without_format", "measured no format"))
        return due

    def least_s(self, output: LoadOutput) -> float:
        """The whole burn."""
        return self.seconds

    def prove(self, output: LoadOutput) -> None:
        """Raise Unproved for missing, short and overlapping turns, and digests of no use."""
        laps = output.parameters.get("laps")
        if type(laps) is not int or laps < LEAST_LAPS:
            raise Unproved(
                english("load_laps", "told of {laps} laps, and at least {least} are due"),
                laps=repr(laps),
                least=LEAST_LAPS,
            )
        library = output.parameters.get("library")
        if not isinstance(library, str) or not library:
            raise Unproved(english("load_library_untold", "does not say with which library it ran"))
        due = self.due(output)
        measured = due.measured(output)
        formats = [
            dtype
            for dtype, units in zip(self.dtypes, due.choices, strict=True)
            if units in measured
        ]
        turns = contract.table(output, LAPS)
        _require_formats(turns, formats)
        _require_order(turns)
        _require_turns(turns, laps, formats, self.seconds)
        _require_formats(contract.table(output, DIGESTS), formats)
        digests(output)


def digests(output: LoadOutput) -> dict[ProductKey, ProductKey]:
    """Digests of a burn's products, (inputs, result), by format and shape.

    Raises Unproved for a missing table, an invalid digest, and a repeated product.
    """
    found: dict[ProductKey, ProductKey] = {}
    for row in contract.table(output, DIGESTS).rows:
        dtype, shape, inputs, result = (str(cell) for cell in row)
        if not (_DIGEST.fullmatch(inputs) and _DIGEST.fullmatch(result)) or (dtype, shape) in found:
            product = {"format": dtype, "shape": shape, "inputs": inputs, "result": result}
            raise Unproved(
                english(
                    "load_digest",
                    "has no digest of {format} {shape} that can be used: {inputs}, {result}",
                ),
                **product,
            )
        found[dtype, shape] = inputs, result
    return found


def _require_formats(table: LoadTable, formats: Sequence[str]) -> None:
    """Raise Unproved unless the table has rows of exactly the measured formats."""
    rows = {str(row[table.columns.index("format")]) for row in table.rows}
    if others := sorted(rows ^ set(formats)):
        listed = {"formats": Listed(tuple(formats)), "others": Listed(tuple(others))}
        raise Unproved(
            english(
                "load_table_differs",
                "measured {formats}, and its table {table} differs in {others}",
            ),
            table=table.name,
            **listed,
        )


def _require_order(turns: LoadTable) -> None:
    """Raise Unproved unless each turn takes time and begins after the end of the previous one."""
    ended_s = 0.0
    for lap, dtype, *_, from_s, to_s in turns.rows:
        if not (isinstance(from_s, float) and isinstance(to_s, float) and ended_s <= from_s < to_s):
            times = {"start": str(from_s), "end": str(to_s), "before": str(ended_s)}
            raise Unproved(
                english(
                    "load_turn",
                    "tells of {format} in lap {lap} from {start} to {end} s, after {before} s",
                ),
                format=str(dtype),
                lap=str(lap),
                **times,
            )
        ended_s = to_s


def _require_turns(turns: LoadTable, laps: int, formats: Sequence[str], seconds: float) -> None:
    """Raise Unproved unless each format had its turn in each lap and the turns took long enough.

    Of a thinned table, the rows at both ends are checked.
    """
    listed = [(int(lap), str(dtype)) for lap, dtype, *_ in turns.rows if isinstance(lap, float)]
    count, half = laps * len(formats), LAP_ROWS // 2
    # As ranges, not lists: the load's number of laps may be any number.
    places = [*range(half), *range(count - half, count)] if count > LAP_ROWS else range(count)
    if listed != [(place // len(formats), formats[place % len(formats)]) for place in places]:
        counts: Values = {"turns": len(listed), "formats": len(formats), "laps": str(laps)}
        raise Unproved(
            english(
                "load_turns",
                "tells of {turns} turns, which are not those of {formats} formats in {laps} laps",
            ),
            **counts,
        )
    worked_s = sum(spent for _, _, _, _, spent, *_ in turns.rows if isinstance(spent, float))
    due_s = seconds * len(listed) / count
    if worked_s < WORKED * due_s:
        raise Unproved(
            english("load_worked", "worked for {worked} s of the {due} s that it was to"),
            worked=f"{worked_s:.1f}",
            due=f"{due_s:g}",
        )
