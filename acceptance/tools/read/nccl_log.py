r"""NCCL's own log, for the transport that NCCL chose for each pair of GPUs.

The parser was written for NCCL 2.18 to 2.30 and this environment of the program that uses NCCL:
`NCCL_DEBUG=INFO`, `NCCL_DEBUG_SUBSYS=INIT,P2P,SHM,NET,NVLS,TUNING` and a `NCCL_DEBUG_FILE` with
`%p`, so that each process writes a file of its own and nothing else writes to it.

Pitfalls. The sender alone reports a transport of P2P and SHM; for NET both ends do. The number in
square brackets behind a rank is NVML's index from 2.18 on, and was the PCI address before. From
2.22 on a communicator connects when a collective first needs it, so its transports come after
`Init COMPLETE`, or never: a pair without a transport is absent here, and who needs it must miss it.
A communicator of two ranks may reach farther than one of all (see diagnosis/transports), so all
data should go over one communicator.

No line says that a log is whole. It is refused if a line is cut; if a rank began and did not become
complete; if a rank is missing; and if rings or trees are connected and one of their ways has no
transport.

A line is of another subsystem, and passed over, if it has the prefix of NCCL's lines and its
message begins like none of those that are read here, names no way from rank to rank and no device
of a rank. Any other line that is not understood raises UnreadableOutput.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from acceptance.core import plain_text
from acceptance.core.message import Message, Values, english
from acceptance.machine.transport import Transport, TransportKind
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import reading

TOOL = "NCCL"

Ends = tuple[str, str]  # the PCI addresses of two GPUs: from, to
RemarkKind = Literal["p2p-disabled", "p2p-disabled-nvlink", "p2p-refused", "warning"]


@dataclass(frozen=True, slots=True)
class Remark:
    """What NCCL says of a pair of GPUs beside its transport, or a warning; `text` is its message.

    "p2p-disabled": the driver has no P2P between them; "p2p-disabled-nvlink": and they have
    NVLinks, which NCCL takes for a hardware fault; "p2p-refused": CUDA offers no peer access.
    """

    kind: RemarkKind
    text: str
    ends: Ends | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm and protocol for a size of a collective, which older versions do not name."""

    collective: str | None
    size_bytes: int
    algorithm: str
    protocol: str


@dataclass(frozen=True, slots=True)
class NcclLog:
    """What the logs of all processes of one program say.

    `version` is "2.28.9+cuda13.0". Each of `communicators` gives the PCI address of every rank's
    GPU, by rank; equal ones are there once, the largest first. `transports` are by the PCI
    addresses of sender and receiver. `multicast` says, by PCI address, whether NVLink multicast
    (NVLS) is available. `choices` are there once each. `environment` has the settings by which the
    environment changed NCCL.
    """

    version: str
    communicators: tuple[tuple[str, ...], ...]
    transports: Mapping[Ends, Transport]
    remarks: tuple[Remark, ...] = ()
    choices: tuple[Choice, ...] = ()
    multicast: Mapping[str, bool] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


_VERSION = re.compile(r"NCCL version (?P<version>\d+\.\d+\.\d+\+cuda\d+\.\d+)")
_LINE = re.compile(
    r"(?:\[[^\]]{1,40}\] )?(?P<host>[\w.-]{1,255}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) "
    r"\[(?P<device>-?\d{1,4})\] (?P<said>.*)"
)
_INFO = re.compile(r"NCCL INFO ?(?P<message>.*)")
_WARN = re.compile(r"\S+:\d+ (?:\(\S+\) )?NCCL WARN ?(?P<message>.*)")
# Two lines in one: the first has lost its end.
_GLUED = re.compile(r"NCCL (?:INFO|WARN)\b")

_RANK = re.compile(
    r"(?:\[Rank \d{1,6}\] )?(?:nccl\w+ )?comm 0x[0-9a-f]+ rank (?P<rank>\d{1,6}) "
    r"nranks (?P<ranks>\d{1,6}) cudaDev (?P<cuda>\d{1,4})(?: nvmlDev (?P<nvml>\d{1,4}))? "
    r"busId (?P<bus>[0-9a-f]{1,16}) commId (?P<id>0x[0-9a-f]{1,16}) - "
    r"Init (?P<state>START|COMPLETE)"
)
_END = re.compile(
    r"(?:nccl\w+ )?comm 0x[0-9a-f]+ rank \d{1,6} nranks \d{1,6} cudaDev \d{1,4} "
    r"(?:nvmlDev \d{1,4} )?busId [0-9a-f]{1,16} - (?:Destroy|Abort) COMPLETE"
)
_RING = re.compile(r"Channel (?P<channel>\d\d+)/(?P<channels>\d\d+) :(?P<ranks>(?: +\d{1,6})+)")
_WAY = re.compile(
    r"Channel (?P<channel>\d\d+)(?:/(?P<connection>[01]))? : "
    r"(?P<first>\d{1,6})\[(?P<from>[0-9a-f]{1,16})\] -> "
    r"(?P<second>\d{1,6})\[(?P<to>[0-9a-f]{1,16})\] "
    r"(?:(?P<net_end>\[send\]|\[receive\]) )?via (?P<via>.+)"
)
_TREES = re.compile(
    r"Trees(?P<trees>(?: \[\d{1,4}\] (?:-?\d{1,6}/){2}-?\d{1,6}->\d{1,6}->-?\d{1,6})+)(?P<cut>.*)"
)
_TREE = re.compile(r"\[(\d+)\] (-?\d+)/(-?\d+)/(-?\d+)->(\d+)->(-?\d+)")
_DISABLED = re.compile(
    r"P2P is disabled between (?P<nvlink>NVLINK )?connected GPUs (?P<first>\d{1,4}) and "
    r"(?P<second>\d{1,4})\. .+"
)
_REFUSED = re.compile(
    r"(?:Could not enable P2P|peer query failed) between dev \d{1,4}\(=(?P<first>[0-9a-f]{1,16})\) "
    r"and dev \d{1,4}\(=(?P<second>[0-9a-f]{1,16})\)"
)
_MULTICAST = re.compile(
    r"NVLS multicast support is (?P<lacking>not )?available on dev (?P<device>\d{1,4})"
    r"(?: \(NVLS_NCHANNELS \d+\)|, transport \w+, symmetric multimem \w+)?"
)
_CHOICE = re.compile(
    r"(?:(?P<collective>\w+): )?(?P<bytes>\d{1,20}) Bytes -> Algo (?P<algorithm>\w+) proto "
    r"(?P<protocol>\w+)(?: time [\d.]+| channel\{Lo\.\.Hi\}=\{\d+\.\.\d+\}(?: .*)?)"
)
_CONNECTED = re.compile(r"Connected all (?P<what>rings|trees)(?:, use ring PXN \d+ GDR \d+)?")
_SET = re.compile(r"(?P<name>NCCL_\w+) set by environment to(?: (?P<value>.*?))?\.?")

# A transport in NCCL's words, without its kind.
_WAYS: tuple[tuple[TransportKind, re.Pattern[str]], ...] = (
    ("P2P", re.compile(r"P2P/((?:direct pointer|IPC|CUMEM|MNNVL)(?:/read)?(?:/CE)?)")),
    ("indirect", re.compile(r"P2P/(indirect/\d+\[[0-9a-f]+\](?:/read)?)")),
    ("SHM", re.compile(r"SHM/((?:direct|CE)/(?:direct|CE))")),
    (
        "NET",
        re.compile(
            r"NET/([\w .:-]+/\d+(?:\(\d+\))?(?:/GDRDMA(?:\(PCI\))?)?(?:/flush=\w+)?(?:/Shared)?)"
        ),
    ),
)

# NCCL cuts a line after 1023 characters, such as one with very many trees.
_LONGEST = 1000

# How the messages begin that are read here, and what besides no line of another subsystem has.
_OURS = re.compile(
    r"Channel |Ring \d|Coll(?:Net)? \d|Trees |P2P is disabled|Could not enable P2P"
    r"|peer query failed|NVLS multicast|Connected all |NCCL version "
    r"|.*(?:\d\] ?->|-> ?\d+\[|\[(?:send|receive)\]|\bvia (?:P2P|SHM|NET|COLLNET|direct)"
    r"|cudaDev |- Init |Init (?:START|COMPLETE)|Bytes -> )"
)

# In the order of NCCL's own numbers, which older versions print instead.
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")


@dataclass(frozen=True, slots=True)
class _Place:
    """A rank's GPU: the process, CUDA's and NVML's number, and the PCI address."""

    pid: str
    cuda: int
    device: str  # as it stands in square brackets behind the rank
    address: str


@dataclass(slots=True)
class _Communicator:
    """A communicator that is being read, by its id; `ranks` is how many it has."""

    ranks: int
    begun: dict[int, _Place] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    rings: dict[int, tuple[int, ...]] = field(default_factory=dict)
    channels: int = 0
    # the ways up and down that each rank sends by, as (channel, from, to)
    trees: dict[int, set[tuple[int, int, int]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Way:
    """One line of a transport."""

    line: str
    channel: int
    sends: bool  # for single sends; rings and trees have connections of their own
    ends: tuple[tuple[int, str], tuple[int, str]]  # rank and device
    kind: TransportKind
    way: str


@dataclass(frozen=True, slots=True)
class _Said:
    """A line: who said it, and what."""

    line: str
    pid: str
    thread: tuple[str, str]
    text: str


@dataclass(slots=True)
class _Text:
    """What the lines say, before it is put together."""

    informed: bool = False  # whether a line of NCCL_DEBUG=INFO is there
    hosts: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)
    communicators: dict[str, _Communicator] = field(default_factory=dict)
    initialising: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    ways: list[_Way] = field(default_factory=list)
    connected: dict[str, Counter[str]] = field(
        default_factory=lambda: {"rings": Counter(), "trees": Counter()}
    )
    disabled: list[tuple[str, re.Match[str]]] = field(default_factory=list)
    refused: list[tuple[str, re.Match[str]]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    warned: str = ""  # the last line of a warning
    choices: list[Choice] = field(default_factory=list)
    multicast: dict[tuple[str, int], tuple[str, bool]] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


def parse(texts: Iterable[str]) -> NcclLog:
    """Parse the logs of all processes of one program, one text for each.

    Raises UnreadableOutput, quoting the line, for a log without ranks, one that is cut, a line that
    contradicts another, and a line that should be understood and is not.
    """
    found = _Text()
    for text in texts:
        lines = reading.tool_lines(text)
        if lines[-1]:
            _refuse(
                lines[-1],
                Message(english("nccl_line_cut", "the log is cut: its last line has no end")),
            )
        for line in filter(None, lines):
            _read_line(found, line)
    if not found.communicators:
        why = (
            Message(
                english(
                    "nccl_log_in_part",
                    "it has lines of NCCL_DEBUG=INFO, so it is only a part of a log, or "
                    "NCCL_DEBUG_SUBSYS does not name INIT",
                )
            )
            if found.informed
            else Message(
                english(
                    "nccl_not_informed",
                    "was NCCL_DEBUG=INFO set, and does NCCL_DEBUG_SUBSYS name INIT?",
                )
            )
        )
        _refuse("", Message(english("nccl_no_rank", "the log names no rank: {why}"), {"why": why}))
    if len(found.versions) != 1:
        _refuse(
            ", ".join(sorted(found.versions)),
            Message(english("nccl_no_version", "the log must name one version of NCCL")),
        )
    if len(found.hosts) > 1:
        _refuse(
            ", ".join(sorted(found.hosts)),
            Message(
                english(
                    "nccl_two_hosts",
                    "the log is of several hosts, and the GPUs of one machine are tested",
                )
            ),
        )
    _check_whole(found)
    communicators = {
        tuple(one.begun[rank].address for rank in range(one.ranks))
        for one in found.communicators.values()
    }
    devices = _devices(found)
    transports = _transports(found, devices)
    return NcclLog(
        version=found.versions.pop(),
        communicators=tuple(sorted(communicators, key=lambda one: (-len(one), one))),
        transports=transports,
        remarks=tuple(_remarks(found, devices)),
        choices=tuple(dict.fromkeys(found.choices)),
        multicast=_multicast(found),
        environment=found.environment,
    )


def _refuse(line: str, why: Message) -> NoReturn:
    raise UnreadableOutput(TOOL, line, why)


def _read_line(found: _Text, line: str) -> None:
    """Store what a line says."""
    if match := _VERSION.fullmatch(line):
        found.versions.add(match["version"])
        return
    head = _LINE.fullmatch(line)
    if head is None:
        _refuse(
            line, Message(english("nccl_line_unknown", "a line of NCCL's log has an unknown form"))
        )
    info, warn = _INFO.fullmatch(head["said"]), _WARN.fullmatch(head["said"])
    match = info or warn
    if match is None or _GLUED.search(match["message"]):
        _refuse(line, Message("nccl_line_unknown"))
    found.hosts.add(head["host"])
    found.informed = found.informed or info is not None
    message = match["message"]
    if warn is not None:
        found.warned = line
        if not _DISABLED.fullmatch(message):
            found.warnings.append(message)
            return
    _read_message(found, _Said(line, head["pid"], (head["pid"], head["tid"]), message))


def _read_message(found: _Text, said: _Said) -> None:
    text = said.text
    if match := _RANK.fullmatch(text):
        _rank(found, said, match)
    elif match := _RING.fullmatch(text):
        _ring(found, said, match)
    elif match := _WAY.fullmatch(text):
        found.ways.append(_way(said.line, match))
    elif match := _TREES.fullmatch(text):
        _trees(found, said, match)
    elif match := _CONNECTED.fullmatch(text):
        found.connected[match["what"]][said.pid] += 1
    elif match := _DISABLED.fullmatch(text):
        found.disabled.append((said.line, match))
    elif match := _REFUSED.fullmatch(text):
        found.refused.append((said.line, match))
    elif match := _VERSION.fullmatch(text):
        found.versions.add(match["version"])
    elif match := _MULTICAST.fullmatch(text):
        at = said.pid, int(match["device"])
        available = match["lacking"] is None
        if found.multicast.get(at, ("", available))[1] != available:
            _refuse(
                said.line,
                Message(
                    english("nccl_contradiction", "a line contradicts another, or comes twice")
                ),
            )
        found.multicast[at] = said.line, available
    elif match := _CHOICE.fullmatch(text):
        found.choices.append(_choice(said.line, match))
    elif match := _SET.fullmatch(text):
        name, value = match["name"], match["value"] or ""
        if found.environment.setdefault(name, value) != value:
            _refuse(said.line, Message("nccl_contradiction"))
    elif _OURS.match(text) and not _END.fullmatch(text):
        code = "nccl_transport_unknown" if " via " in text else "nccl_line_unknown"
        _refuse(said.line, Message(code))


def _rank(found: _Text, said: _Said, match: re.Match[str]) -> None:
    """A rank begins, or is complete: the same rank on the same GPU, in the same thread."""
    rank, ranks = int(match["rank"]), int(match["ranks"])
    one = found.communicators.setdefault(match["id"], _Communicator(ranks))
    address = _address(said.line, match["bus"])
    nvml = match["nvml"]
    place = _Place(said.pid, int(match["cuda"]), match["bus"] if nvml is None else nvml, address)
    known = (match["id"], rank)
    begins = match["state"] == "START"
    if (
        one.ranks != ranks
        or rank >= ranks
        or one.begun.setdefault(rank, place) != place
        or sum(other.address == address for other in one.begun.values()) > 1
        or (said.thread in found.initialising) == begins
        or rank in one.complete
    ):
        _refuse(said.line, Message("nccl_contradiction"))
    if begins:
        found.initialising[said.thread] = known
    elif found.initialising.pop(said.thread) != known:
        _refuse(said.line, Message("nccl_contradiction"))
    else:
        one.complete.add(rank)


def _address(line: str, digits: str) -> str:
    """A PCI address from NCCL's number for it, which has the address's digits and no colons."""
    bits = int(digits, 16)
    domain, bus, slot, function = bits >> 20, bits >> 12 & 0xFF, bits >> 4 & 0xFF, bits & 0xF
    if domain > 0xFFFFFFFF or slot > 0x1F or function > 7:
        _refuse(line, Message(english("nccl_address_unknown", "this is no PCI address")))
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function}"


def _current(found: _Text, said: _Said) -> tuple[_Communicator, int]:
    """The communicator that is being initialised in this thread, and the rank."""
    if said.thread not in found.initialising:
        _refuse(
            said.line,
            Message(
                english(
                    "nccl_of_no_rank", "a line is about a rank or a GPU that no communicator has"
                )
            ),
        )
    name, rank = found.initialising[said.thread]
    return found.communicators[name], rank


def _ring(found: _Text, said: _Said, match: re.Match[str]) -> None:
    one, _ = _current(found, said)
    channel, channels = int(match["channel"]), int(match["channels"])
    ring = tuple(map(int, match["ranks"].split()))
    if (
        sorted(ring) != list(range(one.ranks))
        or channel >= channels
        or channel in one.rings
        or one.channels not in (0, channels)
    ):
        _refuse(said.line, Message("nccl_contradiction"))
    one.channels = channels
    one.rings[channel] = ring


def _trees(found: _Text, said: _Said, match: re.Match[str]) -> None:
    one, rank = _current(found, said)
    ways = set()
    trees = _TREE.findall(match["trees"])
    if match["cut"] and len(said.line) < _LONGEST:
        _refuse(said.line, Message("nccl_line_unknown"))
    for number, (channel, *below, own, above) in enumerate(trees):
        if int(channel) != number or int(own) != rank:
            _refuse(said.line, Message("nccl_contradiction"))
        for other in map(int, (*below, above)):
            if other != -1:
                ways.add((number, rank, other))
    if rank in one.trees or any(other >= one.ranks for _, _, other in ways):
        _refuse(said.line, Message("nccl_contradiction"))
    one.trees[rank] = ways


def _way(line: str, match: re.Match[str]) -> _Way:
    for kind, pattern in _WAYS:
        if way := pattern.fullmatch(match["via"]):
            if (kind == "NET") != (match["net_end"] is not None):
                _refuse(
                    line,
                    Message(
                        english("nccl_transport_unknown", "a transport that is not known here")
                    ),
                )
            first = int(match["first"]), match["from"]
            second = int(match["second"]), match["to"]
            sends = match["connection"] == "1"
            return _Way(line, int(match["channel"]), sends, (first, second), kind, way[1])
    _refuse(line, Message("nccl_transport_unknown"))


def _choice(line: str, match: re.Match[str]) -> Choice:
    names = []
    for word, known in ((match["algorithm"], _ALGORITHMS), (match["protocol"], _PROTOCOLS)):
        number = int(word) if word.isdecimal() and len(word) < 3 else None
        name = known[number] if number is not None and number < len(known) else word.upper()
        if name not in known:
            _refuse(line, Message("nccl_line_unknown"))
        names.append(name)
    return Choice(match["collective"], int(match["bytes"]), *names)


def _check_whole(found: _Text) -> None:
    """Raise UnreadableOutput unless every rank of every communicator is there and complete."""
    # Why initialising failed is in a warning.
    said = found.warned
    for one in found.communicators.values():
        for rank in range(one.ranks):
            if rank not in one.complete:
                code = (
                    english(
                        "nccl_rank_incomplete",
                        "rank {rank} of {ranks} began and did not become complete: its "
                        "initialisation failed, or the log is cut",
                    )
                    if rank in one.begun
                    else english(
                        "nccl_rank_missing",
                        "rank {rank} of {ranks} is missing: a process wrote no log, or the log is "
                        "cut",
                    )
                )
                _refuse(said, Message(code, {"rank": rank, "ranks": one.ranks}))
        if not one.rings or len(one.rings) != one.channels:
            rings = {"rings": len(one.rings), "due": one.channels}
            _refuse(
                said,
                Message(
                    english("nccl_ring_missing", "the log is cut: it has {rings} of {due} rings"),
                    rings,
                ),
            )
        if len(one.trees) != one.ranks:
            _refuse(
                said,
                Message(
                    english("nccl_tree_missing", "the log is cut: not every rank has its trees")
                ),
            )
    if found.initialising:
        _refuse(said, Message("nccl_contradiction"))


def _devices(found: _Text) -> dict[tuple[int, str], str]:
    """The PCI address of each rank and device that a communicator has."""
    devices: dict[tuple[int, str], str] = {}
    addresses: dict[str, str] = {}
    for one in found.communicators.values():
        for rank, place in one.begun.items():
            others = [
                device
                for device, address in addresses.items()
                if (device == place.device) != (address == place.address)
            ]
            if others:
                _refuse(f"[{place.device}] {place.address}", Message("nccl_contradiction"))
            addresses[place.device] = place.address
            devices[rank, place.device] = place.address
    return devices


def _transports(found: _Text, devices: Mapping[tuple[int, str], str]) -> dict[Ends, Transport]:
    """The transport of each pair that has one; all its connections have one kind."""
    kinds: dict[Ends, TransportKind] = {}
    ways: dict[Ends, set[str]] = {}
    there: set[tuple[int, Ends]] = set()
    for way in found.ways:
        if not all(end in devices for end in way.ends):
            _refuse(way.line, Message("nccl_of_no_rank"))
        first, second = (devices[end] for end in way.ends)
        if first == second or kinds.setdefault((first, second), way.kind) != way.kind:
            _refuse(way.line, Message("nccl_contradiction"))
        ways.setdefault((first, second), set()).add(way.way)
        if not way.sends:
            there.add((way.channel, (first, second)))
    _check_connected(found, there)
    return {ends: Transport(kind, tuple(sorted(ways[ends]))) for ends, kind in kinds.items()}


def _check_connected(found: _Text, there: set[tuple[int, Ends]]) -> None:
    """Raise UnreadableOutput if rings or trees are connected, and those of no communicator whole.

    The line does not name its communicator, and one that was not used is not connected.
    """
    for what, counts in found.connected.items():
        if not counts:
            continue
        lacking = [list(_lacking(one, what, counts, there)) for one in found.communicators.values()]
        if all(lacking):
            _refuse(f"Connected all {what}", lacking[0][0])


def _lacking(
    one: _Communicator, what: str, counts: Counter[str], there: set[tuple[int, Ends]]
) -> Iterator[Message]:
    """What is missing of a communicator whose rings or trees are connected."""
    for channel, first, second in sorted(
        _ring_ways(one) if what == "rings" else set().union(*one.trees.values())
    ):
        ends = one.begun[first].address, one.begun[second].address
        if (channel, ends) not in there:
            values: Values = {"channel": channel, "first": ends[0], "second": ends[1]}
            yield Message(
                english(
                    "nccl_way_missing",
                    "the log is cut: channel {channel} has no transport from {first} to {second}",
                ),
                values,
            )
    own = Counter(place.pid for place in one.begun.values())
    for rank, place in sorted(one.begun.items()):
        if counts[place.pid] < own[place.pid]:
            yield Message(
                english("nccl_rank_unconnected", "rank {rank} did not connect, or the log is cut"),
                {"rank": rank},
            )


def _ring_ways(one: _Communicator) -> set[tuple[int, int, int]]:
    return {
        (channel, first, second)
        for channel, ring in one.rings.items()
        for first, second in zip(ring, (*ring[1:], ring[0]), strict=True)
        if first != second
    }


def _remarks(found: _Text, devices: Mapping[tuple[int, str], str]) -> Iterator[Remark]:
    """Each remark once, in order."""
    by_device = {device: address for (_, device), address in devices.items()}
    known = set(devices.values())
    seen: list[Remark] = []
    for line, match in found.disabled:
        if match["first"] not in by_device or match["second"] not in by_device:
            _refuse(line, Message("nccl_of_no_rank"))
        kind: RemarkKind = "p2p-disabled-nvlink" if match["nvlink"] else "p2p-disabled"
        ends = by_device[match["first"]], by_device[match["second"]]
        seen.append(Remark(kind, plain_text.quote(match[0]), ends))
    for line, match in found.refused:
        ends = _address(line, match["first"]), _address(line, match["second"])
        if not known.issuperset(ends):
            _refuse(line, Message("nccl_of_no_rank"))
        seen.append(Remark("p2p-refused", plain_text.quote(match[0]), ends))
    seen += [Remark("warning", plain_text.quote(text)) for text in found.warnings]
    yield from dict.fromkeys(seen)


def _multicast(found: _Text) -> dict[str, bool]:
    places = {
        (place.pid, place.cuda): place.address
        for one in found.communicators.values()
        for place in one.begun.values()
    }
    for at, (line, _) in found.multicast.items():
        if at not in places:
            _refuse(line, Message("nccl_of_no_rank"))
    return {places[at]: available for at, (_, available) in found.multicast.items()}
