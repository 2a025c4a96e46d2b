"""Model sheets: one TOML file a GPU model, strictly read, and the search for a card's sheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from acceptance import resources
from acceptance.core.dtype import PEAKS, DtypeName, gemm_names, native_dtypes
from acceptance.core.limit import Limit
from acceptance.core.message import Message, SetupError, english
from acceptance.core.nearest import nearest
from acceptance.core.strict import Strict, Text
from acceptance.loads.train.rates import TRAINING_RATES, TRAINING_SHARES
from acceptance.machine.toml_place import Path as Place

# Letters whose own names begin with a vowel: "an H200", "an RTX 4090", "an L4", but "a B200", "a
# V100", "a T4".
_VOWEL_NAMES = frozenset("AEFHILMNORSX")
_VOWELS = frozenset("AEIOU")


def with_article(name: str) -> Message:
    """A name with "a" or "an" before it, in languages that have them.

    A first word of capitals and digits is read letter by letter, any other as a word.
    """
    first = name.partition(" ")[0]
    sounds = _VOWEL_NAMES if first == first.upper() else _VOWELS
    return Message(
        english("an_item", "an {name}")
        if first[:1].upper() in sounds
        else english("a_item", "a {name}"),
        {"name": name},
    )


# A file of the same folder that is no sheet: the architectures for models without one.
NO_SHEET = "architectures.toml"
LOCAL_COPY = "copy_own_d2d"
PATTERN_COPY = "vram_copy"  # the same copy, before and after the patterns over the memory
# Collective operations of all GPUs, over the way that NCCL takes by itself.
Collective = Literal[
    "collective_all_reduce",
    "collective_all_gather",
    "collective_reduce_scatter",
    "collective_all_to_all",
    "collective_broadcast",
]
COLLECTIVES: tuple[Collective, ...] = get_args(Collective)

Count = Annotated[int, msgspec.Meta(ge=1, le=10**9)]
Figure = Annotated[float, msgspec.Meta(gt=0, le=10**9)]  # infinity is not allowed
# A share below this would ask for next to nothing, and one above 1 for more than a product reaches.
Share = Annotated[float, msgspec.Meta(ge=0.1, le=1)]


class SheetMemory(Strict, frozen=True):
    """`[memory]` of a sheet.

    `gib` is the most that the driver may show, `pin_gbps` the rate of one data pin, `bandwidth_gbs`
    GB/s.
    """

    gib: Figure
    type: Text
    bus_bits: Count
    pin_gbps: Figure
    bandwidth_gbs: Figure


class SheetPeak(Strict, frozen=True):
    """`[peak]` of a sheet: dense peaks in TFLOP/s, int8 in TOP/s.

    fp16, bf16 and tf32 are those of the tensor cores with FP32 accumulation. None: the model does
    not have the format, or no source gives its peak.
    """

    fp32: Figure
    fp16: Figure
    fp64: Figure | None = None
    fp64_tensor: Figure | None = None
    tf32: Figure | None = None
    bf16: Figure | None = None
    fp8: Figure | None = None
    int8: Figure | None = None

    def by_dtype(self) -> dict[str, float]:
        """The peak of each format that the model has, in TFLOP/s."""
        return {
            dtype: known[0]
            for dtype, keys in PEAKS.items()
            if (known := [value for key in keys if (value := getattr(self, key)) is not None])
        }


class SheetThermal(Strict, frozen=True):
    """`[thermal]` of a sheet: degrees Celsius, as far as a source gives them.

    The card's own values take precedence.
    """

    source: Text
    max_operating_c: Figure | None = None
    slowdown_c: Figure | None = None
    shutdown_c: Figure | None = None


class SheetNvLink(Strict, frozen=True):
    """`[nvlink]` of a sheet.

    `links` is how many the driver lists, `link_gbs` the published rate of one link in one direction
    in GB/s. `active` are the healthy numbers of active links: all of them on a board that is wired
    to others; 0, or the number that bridges carry, on a card that takes bridges.
    """

    generation: Count
    links: Count
    link_gbs: Figure
    active: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(min_length=1)]

    def full(self) -> int:
        """How many links are active on a fully connected card."""
        return max(self.active)


class SheetLimit(Strict, frozen=True):
    """`[[limit]]` of a sheet: the least that a sound card of this model reaches.

    A value below `warn_low` is a warning.
    """

    measurement: Text
    unit: Text
    low: Figure
    basis: Text
    warn_low: Figure | None = None

    def limit(self) -> Limit:
        """The row as a Limit; raises ValueError as Limit does."""
        return Limit(self.unit, self.basis, low=self.low, warn_low=self.warn_low)


class SheetCollective(Strict, frozen=True):
    """`[[collective]]` of a sheet: the least bus bandwidth in GB/s of so many sound cards.

    It is for cards with all their NVLinks, or over PCI Express for a model without NVLink.
    """

    measurement: Collective
    gpus: Annotated[int, msgspec.Meta(ge=2)]
    low: Figure
    basis: Text


class SheetTraining(Strict, frozen=True):
    """`[[training]]` of a sheet: rates of one card that were published, counted as ours are.

    `measurement` is the layer or step: a name ending in `_forward` is of the forward pass alone.
    `tflops` are those of `batch`, in the same order. Where the source tells no shape, `sequence`
    and `batch` are absent and `tflops` is one value, the best that it gives.
    """

    measurement: Text
    format: DtypeName
    tflops: Annotated[tuple[Figure, ...], msgspec.Meta(min_length=1)]
    source: Text
    sequence: Count | None = None
    batch: tuple[Count, ...] = ()


class SheetShare(Strict, frozen=True):
    """`[[share]]` of a sheet: the least share of the card's own matrix product in a layer or step.

    A value below `warn_low` is a warning.
    """

    measurement: Text
    low: Share
    basis: Text
    warn_low: Share | None = None

    def limit(self) -> Limit:
        """The row as a Limit; raises ValueError as Limit does."""
        return Limit("ratio", self.basis, low=self.low, warn_low=self.warn_low)


@dataclass(frozen=True, slots=True)
class Published:
    """One published rate in TFLOP/s; without a shape, the best of its source."""

    dtype: DtypeName
    tflops: float
    sequence: int | None = None
    batch: int | None = None


class Sheet(Strict, frozen=True):
    """One GPU model. `source` says in one sentence where its values come from.

    `boost_mhz` is the clock of the peaks, `nvml_max_sm_mhz` the highest that NVML reports. `p2p`
    says whether two such cards can read each other's memory; "bridge" means over an NVLink bridge
    only, "nvlink" over NVLinks that lead from card to card as the board has them, and without any
    as board and processors allow. `ecc` means that it leaves the factory with ECC on. `half_rate`
    marks tensor cores that run at half their rate with FP32 accumulation. `doubtful` names facts on
    which sources differ, and `exempt` peaks that do not follow SM x clock x operations per clock,
    each with the reason. `aliases` are names that people give the model and that its other names do
    not make (`gpu_names`).
    """

    name: Text
    nvml_names: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    pci_ids: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern="^10de:[0-9a-f]{4}$")], ...],
        msgspec.Meta(min_length=1),
    ]
    architecture: Text
    compute_capability: Annotated[str, msgspec.Meta(pattern="^[0-9]{1,2}[.][0-9]$")]
    sm: Count
    cuda_cores: Count
    boost_mhz: Figure
    tdp_w: Figure
    p2p: Literal["yes", "no", "bridge", "nvlink"]
    source: Text
    memory: SheetMemory
    peak: SheetPeak
    nvml_max_sm_mhz: Figure | None = None
    pcie_gen: Count | None = None
    pcie_width: Count | None = None
    ecc: bool = False
    half_rate: bool = False
    thermal: SheetThermal | None = None
    nvlink: SheetNvLink | None = None
    aliases: tuple[Text, ...] = ()
    doubtful: dict[str, Text] = msgspec.field(default_factory=dict)
    exempt: dict[str, Text] = msgspec.field(default_factory=dict)
    limit: tuple[SheetLimit, ...] = ()
    collective: tuple[SheetCollective, ...] = ()
    training: tuple[SheetTraining, ...] = ()
    share: tuple[SheetShare, ...] = ()

    def __hash__(self) -> int:
        return hash(self.name)

    def published(self, measurement: str) -> tuple[Published, ...]:
        """The published rates of a layer or step on a card of this model."""
        return tuple(
            Published(row.format, tflops, row.sequence, batch)
            for row in self.training
            if row.measurement == measurement
            for tflops, batch in zip(row.tflops, row.batch or (None,), strict=True)
        )

    @property
    def origin(self) -> Message:
        """The sheet, as the origin of limits."""
        return Message("sheet_of", {"model": self.name})

    @property
    def card(self) -> Message:
        """One card of the model, for the reader of a basis."""
        return with_article(self.name)

    def doubt(self, key: str) -> str | None:
        """Why a fact such as "sm" or "memory.gib" is doubtful, or None.

        A doubtful table makes all its facts doubtful.
        """
        return self.doubtful.get(key) or self.doubtful.get(key.partition(".")[0])


def _facts(table: msgspec.Struct) -> Iterator[str]:
    """Every key that has a value, of the table and of its inner tables: "memory", "memory.gib"."""
    for key in table.__struct_fields__:
        value = getattr(table, key)
        if value is not None and key not in ("limit", "collective", "training", "share"):
            yield key
        if isinstance(value, msgspec.Struct):
            yield from (f"{key}.{inner}" for inner in _facts(value))


Problem = tuple[Place, str]  # the key at fault, and what is wrong


def problem(sheet: Sheet) -> Problem | None:
    """The first problem that types cannot express, or None."""
    known = set(_facts(sheet))
    for key in sheet.doubtful:
        if key not in known:
            return ("doubtful", key), f"doubtful.{key} is no fact of this sheet{_meant(key, known)}"
    for key in sheet.exempt:
        if f"peak.{key}" not in known:
            peaks = [one.removeprefix("peak.") for one in known if one.startswith("peak.")]
            return ("exempt", key), f"exempt.{key} is no peak of this sheet{_meant(key, peaks)}"
    if sheet.thermal is not None and not known & {
        f"thermal.{key}_c" for key in ("max_operating", "slowdown", "shutdown")
    }:
        return ("thermal",), "thermal holds no temperature"
    link = sheet.nvlink
    active: Place = ("nvlink", "active")
    if link is not None and link.active not in ((link.full(),), (0, link.full())):
        return active, "nvlink.active must be one number, or 0 and one number"
    if link is not None and not 0 < link.full() <= link.links:
        return active, f"nvlink.active is {link.full()}, of {link.links} links"
    groups = [(row.measurement, row.gpus) for row in sheet.collective]
    for at, (measurement, count) in enumerate(groups):
        if (measurement, count) in groups[:at]:
            return (
                ("collective", at),
                f"collective {measurement} of {count} GPUs stands twice",
            )
    return _training_problem(sheet) or _limit_problem(sheet)


def _meant(name: str, names: Iterable[str]) -> str:
    return "".join(f": did you mean {one}?" for one in nearest(name, names))


def _training_problem(sheet: Sheet) -> Problem | None:
    """The first problem of the published rates and of the floors of shares, or None."""
    peaks, rows = sheet.peak.by_dtype(), set[tuple[str, str, int | None]]()
    for at, row in enumerate(sheet.training):
        text, place = f"training {row.measurement}", ("training", at)
        if row.measurement not in TRAINING_RATES:
            meant = _meant(row.measurement, TRAINING_RATES)
            return place, f"{text}: no layer and no step{meant}"
        if (key := (row.measurement, row.format, row.sequence)) in rows:
            return place, f"{text} in {row.format} at sequence {row.sequence} stands twice"
        if (row.sequence is None) != (not row.batch) or len(row.tflops) != max(1, len(row.batch)):
            told = "as many batches as rates, with a sequence, or one rate with neither"
            return place, f"{text}: {told}"
        if list(row.batch) != sorted(set(row.batch)):
            return place, f"{text}: the batches are not in their order"
        peak = peaks.get(row.format)
        if peak is None or max(row.tflops) > peak:
            told = f"{max(row.tflops):g} TFLOP/s are more than the peak of {row.format}"
            return place, f"{text}: {told}"
        rows.add(key)
    shares = [row.measurement for row in sheet.share]
    for at, share in enumerate(sheet.share):
        text, place = f"share {share.measurement}", ("share", at)
        if share.measurement not in TRAINING_SHARES:
            meant = _meant(share.measurement, TRAINING_SHARES)
            return place, f"{text}: no share of a layer or of a step{meant}"
        if share.measurement in shares[:at]:
            return place, f"{text} stands twice"
        try:
            share.limit()
        except ValueError as error:
            return place, f"{text}: {error}"
    return None


def _limit_problem(sheet: Sheet) -> Problem | None:
    """The first problem of the limits, or None.

    Each must be a valid limit, once, of a measurement that is taken on this model.
    """
    pairs = [gemm_names(dtype) for dtype in native_dtypes(sheet.compute_capability)]
    units = {LOCAL_COPY: "GB/s", **{name: "TFLOP/s" for pair in pairs for name in pair}}
    found: dict[str, float] = {}
    places: dict[str, Place] = {}
    for at, row in enumerate(sheet.limit):
        text, place = f"limit for {row.measurement}", ("limit", at)
        if row.measurement not in units:
            told = f"no sheet limits that on compute capability {sheet.compute_capability}"
            return place, f"{text}: {told}{_meant(row.measurement, units)}"
        if row.measurement in found:
            return place, f"{text} stands twice"
        if row.unit != units[row.measurement]:
            told = f"it is measured in {units[row.measurement]}, not in {row.unit}"
            return place, f"{text}: {told}"
        try:
            row.limit()
        except ValueError as error:
            return place, f"{text}: {error}"
        found[row.measurement], places[row.measurement] = row.low, place
    for short, sustained in pairs:
        if (short in found) != (sustained in found):
            one = places.get(short) or places[sustained]
            return one, f"limit for {short}: {sustained} and it stand together or not at all"
        if short in found and found[short] <= found[sustained]:
            told = f"a hot card is slower, so it must be above that for {sustained}"
            return places[short], f"limit for {short}: {told}"
    return None


def read(path: Path) -> Sheet:
    """The sheet in a file. Raises SetupError, naming the file and the key."""
    sheet = resources.read(path, Sheet)
    if wrong := problem(sheet):
        raise SetupError(f"{path.name}: {wrong[1]}")
    return sheet


def read_all(folder: Path) -> tuple[Sheet, ...]:
    """Every sheet of a folder, by file name. Raises SetupError, also where there is none."""
    found = tuple(read(path) for path in sorted(folder.glob("*.toml")) if path.name != NO_SHEET)
    if not found:
        raise SetupError(f"{folder.name}: holds no model sheet")
    return found


def plain(name: str) -> str:
    """A model name without "NVIDIA", which drivers before 470 leave out."""
    return name[7:] if name[:7].casefold() == "nvidia " else name


def find(
    sheets: Sequence[Sheet], *, pci_id: str | None = None, nvml_name: str | None = None
) -> Sheet | None:
    """The only sheet that agrees with all known facts of a card.

    None where no sheet agrees or several do: the choice is never guessed. `pci_id` is "10de:2684",
    `nvml_name` the model as NVML names it. Both must agree where both are given: one id is sold as
    several models (virtual GPUs have the card's id and a name of their own), and one name stands
    for several.
    """
    if pci_id is None and nvml_name is None:
        return None
    fit = [
        sheet
        for sheet in sheets
        if (pci_id is None or pci_id in sheet.pci_ids)
        and (nvml_name is None or plain(nvml_name) in map(plain, sheet.nvml_names))
    ]
    return fit[0] if len(fit) == 1 else None
