"""Wrong results, as loads print them and as all others read them: a union told apart by `check`.

Each kind is a struct whose fields are the keys of the printed object, in their order. `check` is a
field, and no tag of msgspec's, because several checks have one shape. A text of hexadecimal digits
is a word of memory or an element, two digits a byte.

The names of the counts stand beside the kinds that belong to them; contracts take them from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from acceptance.core import parts
from acceptance.core.dtype import GEMM_READINGS, CpuDtype, DtypeName
from acceptance.core.message import Coded, Message, english
from acceptance.core.parts import Component, Core, Pair
from acceptance.core.strict import Strict, Text

Whole = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Positive = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Bit = Annotated[int, Meta(ge=0, lt=128)]
Hex = Annotated[str, Meta(pattern=r"\A[0-9a-fA-F]{1,32}\Z")]
BootSeconds = Annotated[float, Meta(gt=-1e12, lt=1e12)]  # seconds since boot
Index = Annotated[tuple[Whole, ...], Meta(min_length=1)]


class UnusableLine(Coded, ValueError):
    """A line of a load is not as its kind must be; msgspec hands it on as the cause of its own."""


def why(error: Exception) -> str | Message:
    """Why a line cannot be used: its kind's message, or what json or msgspec says."""
    if isinstance(error, UnusableLine):
        return error.message
    cause = error.__cause__
    return cause.message if isinstance(cause, UnusableLine) else str(error)


class _Kind(Strict, frozen=True, omit_defaults=True):
    """Base of the structs: keys that are not printed have their default."""


class WrongElement(_Kind, frozen=True, kw_only=True):
    """One wrong element or word, at a byte `address` of the tested memory.

    `index` is its place in the result; a word of memory has none.
    """

    index: tuple[Whole, ...] = ()
    address: Whole
    expected: Hex
    got: Hex
    xor: Hex

    @property
    def expected_bits(self) -> int:
        """The bits that were due."""
        return int(self.expected, 16)

    @property
    def got_bits(self) -> int:
        """The bits that are there."""
        return int(self.got, 16)

    @property
    def xor_bits(self) -> int:
        """The bits that differ."""
        return int(self.xor, 16)


class WrongPlace(_Kind, frozen=True, kw_only=True):
    """One wrong element of a result by its bits."""

    index: Index
    expected: Hex
    got: Hex
    xor: Hex


class WrongValue(_Kind, frozen=True, kw_only=True):
    """One wrong element of a result by its value, written as Python writes numbers.

    `index` is its row alone where the whole row is wrong. `expected` is absent where it is unknown.
    """

    index: Index
    expected: Text | None = None
    got: Text | None = None


class CopiedWord(_Kind, frozen=True, kw_only=True):
    """One wrong word of a copy beside the burn, by its number in the piece."""

    word: Whole
    expected: Hex
    got: Hex
    xor: Hex | None = None


class TransferredWord(_Kind, frozen=True, kw_only=True):
    """One wrong word of a copy of the copy load, by its number in the buffer."""

    index: Whole
    expected: Hex
    got: Hex
    xor: Hex


class _Wrong(_Kind, frozen=True, kw_only=True):
    """Base of the kinds; COUNTS are those of a kind whose wrong results are all counted alike."""

    COUNTS: ClassVar[tuple[str, ...]] = ()

    @property
    def counts(self) -> tuple[str, ...]:
        """The counts that it may belong to: the one of these that its check measures."""
        return self.COUNTS

    @property
    def code(self) -> str:
        """The code of its event: the check, unless the kind says another."""
        return str(msgspec.structs.asdict(self)["check"])


class _OfComponent(_Wrong, frozen=True, kw_only=True):
    """Base of the kinds that name a component, by the load's own names."""

    component: Component


# Of products in a number format: of the matrix load, the burn, and the three checks of the load
# that comes and goes, which has one count for all formats.
BURN_MISCOMPARES = "burn_{}_miscompares"
_OF_POWER = ("power_step_miscompares", "power_pulses_miscompares", "power_ladder_miscompares")


def _of_format(dtype: DtypeName) -> tuple[str, ...]:
    return (*(one.format(dtype) for one in (GEMM_READINGS[2], BURN_MISCOMPARES)), *_OF_POWER)


class _OfFormat(_OfComponent, frozen=True, kw_only=True):
    """Base of the kinds that are of products in one number format of a GPU."""

    dtype: DtypeName

    @property
    def counts(self) -> tuple[str, ...]:
        """Those of its kind, else of its format."""
        return self.COUNTS or _of_format(self.dtype)

    @property
    def code(self) -> str:
        """The format."""
        return self.dtype


# Of products of a core, which do not say their format where they have one count each.
CORE_MISCOMPARES: Mapping[CpuDtype, str] = {
    "float64": "cpu_gemm_miscompares_f64",
    "float32": "cpu_gemm_miscompares_f32",
}


class WrongProduct(_OfFormat, frozen=True, kw_only=True):
    """One product of a burn with elements that differ from the expected result.

    `made_s` and `found_s` are seconds since boot. `of` is the number of elements of the result,
    `stride` the usual distance of the wrong ones in elements, `bits` how often each bit differs
    among the first of them. The keys from `stride` on are printed all together, or not at all where
    the product was right when it was read again.
    """

    check: Literal["ring"]
    shape: Text
    iteration: Whole
    lap: Whole
    made_s: BootSeconds
    found_s: BootSeconds
    elements: Whole
    of: Whole
    nan: Whole
    infinite: Whole
    slot: Whole
    stride: Positive | UnsetType | None = UNSET
    span: tuple[Whole, Whole] | None = None
    xor_or: Hex = ""
    xor_and: Hex = ""
    bits: Mapping[Bit, Whole] = field(default_factory=dict)
    first: tuple[WrongElement, ...] = ()

    def __post_init__(self) -> None:
        told = {
            self.stride is not UNSET,
            self.span is not None,
            *map(bool, (self.xor_or, self.xor_and, self.bits, self.first)),
        }
        if len(told) > 1:
            raise UnusableLine(
                english("described_in_part", "it tells only a part of its places and bits")
            )

    @property
    def described(self) -> bool:
        """Whether its wrong elements were seen again, with their places and bits."""
        return bool(self.first)

    @property
    def distance(self) -> int | None:
        """The stride; None where the product is not described, or has none."""
        return None if self.stride is UNSET else self.stride

    @property
    def width(self) -> int:
        """The bits of an element; 0 where the product is not described."""
        return 4 * len(self.xor_or)

    @property
    def differing(self) -> int:
        """The bits that differ in any of the first wrong elements."""
        return int(self.xor_or or "0", 16)

    @property
    def columns(self) -> int | None:
        """The length of a row of the result (rows x columns x depth).

        None where the shape does not give it.
        """
        sides = self.shape.split("x")
        return (
            int(sides[1])
            if len(sides) == 3
            and all(side.isdecimal() for side in sides)
            and int(sides[0]) * int(sides[1]) == self.of
            else None
        )


class ChangedInputs(_OfFormat, frozen=True, kw_only=True):
    """An operand that changed while products were made: its digest before and after."""

    check: Literal["inputs"]
    lap: Whole
    operand: Text
    expected: Text
    got: Text


class LapMismatch(_OfFormat, frozen=True, kw_only=True):
    """A first product, made again, that has another digest than the first time.

    A burn says in which lap and of which shape; the matrix load how many elements are odd.
    """

    check: Literal["again"]
    shape: Text | None = None
    lap: Whole | None = None
    expected: Text
    got: Text
    nan: Whole | None = None
    infinite: Whole | None = None


ReferenceKind = Literal["normal", "whole"]


class WrongReference(_OfFormat, frozen=True, kw_only=True):
    """A first product that differs from float64 ("normal") or exact whole numbers ("whole").

    `rows` were compared. Only a burn says the shape.
    """

    check: ReferenceKind
    rows: Whole
    elements: Whole
    nan: Whole
    infinite: Whole
    first: tuple[WrongValue, ...]
    shape: Text | None = None


class WrongRepeat(_OfComponent, frozen=True, kw_only=True):
    """A later product that differs from the first one, of the matrix loads of GPU and processor.

    A GPU's has its format, and the part of the load after which it was compared; a core's its
    number and the seconds since the start.
    """

    dtype: DtypeName | None = None
    check: Literal["repeat"]
    after: Text | None = None
    product: Whole | None = None
    seconds: BootSeconds | None = None
    elements: Whole
    nan: Whole
    infinite: Whole | None = None
    first: tuple[WrongPlace, ...]

    @property
    def counts(self) -> tuple[str, ...]:
        """Those of its format, or of processors."""
        return tuple(CORE_MISCOMPARES.values()) if self.dtype is None else _of_format(self.dtype)

    @property
    def code(self) -> str:
        """The format, where it has one."""
        return self.dtype or self.check


COPY_MISCOMPARES, PEER_MISCOMPARES = "burn_copy_miscompares", "burn_peer_miscompares"
OWN_COPY_MISCOMPARES, OWN_PEER_MISCOMPARES = "copy_own_miscompares", "copy_own_p2p_miscompares"
CopyCheck = Literal["copy_h2d", "copy_d2h", "copy_p2p"]
TransferCheck = Literal[
    "copy_own_h2d",
    "copy_own_d2h",
    "copy_own_h2d_bidirectional",
    "copy_own_d2h_bidirectional",
    "copy_own_h2d_pageable",
    "copy_own_d2h_pageable",
    "copy_own_d2d",
    "copy_own_p2p",
]


class WrongCopy(_OfComponent, frozen=True, kw_only=True):
    """A copy beside the burn with wrong words.

    `unwritten` counts those that still hold their value from before the copy; older loads do not
    tell it.
    """

    check: CopyCheck
    found_s: BootSeconds | None = None
    words: Whole
    unwritten: Whole | None = None
    first: tuple[CopiedWord, ...]

    @property
    def counts(self) -> tuple[str, ...]:
        """That of the copies to peers, or of the others."""
        return (PEER_MISCOMPARES if self.check == "copy_p2p" else COPY_MISCOMPARES,)

    @property
    def code(self) -> str:
        """Whether it went to a peer."""
        return "peer" if self.check == "copy_p2p" else "copy"


class WrongTransfer(_OfComponent, frozen=True, kw_only=True):
    """A copy of the copy load with wrong words; `check` is the reading of its path.

    `beside` marks one of the other direction. `unwritten` counts words that nothing was written to.
    """

    check: TransferCheck
    copy: Whole
    beside: bool = False
    words: Whole
    unwritten: Whole
    first: tuple[TransferredWord, ...]

    @property
    def counts(self) -> tuple[str, ...]:
        """That of the copies to peers, or of the others."""
        return (OWN_PEER_MISCOMPARES if self.check == "copy_own_p2p" else OWN_COPY_MISCOMPARES,)

    @property
    def code(self) -> str:
        """Whether it went to a peer."""
        return "peer" if self.check == "copy_own_p2p" else "copy"


CollectiveCheck = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_receive"
]
ElementType = Literal["f32", "bf16", "f16", "i32"]
CollectiveVariant = Literal["default", "p2p_off", "multicast"]
COLLECTIVE_MISCOMPARES = "collective_miscompares"
PATH_MISCOMPARES = "collective_send_receive_miscompares"
DISAGREEMENTS = "collective_disagreements"


def of_variant(name: str, variant: CollectiveVariant) -> str:
    """The name of a reading, or of a log, in a variant of the load of collectives."""
    return name if variant == "default" else f"{name}_{variant}"


class WrongCollective(_OfComponent, frozen=True, kw_only=True):
    """A collective operation of `size` bytes with wrong elements at one GPU, its destination.

    The component of a send-receive is the path. `unwritten` counts elements that still hold what
    was there before the operation.
    """

    check: CollectiveCheck
    format: ElementType
    arm: CollectiveVariant
    size: Positive
    turn: Whole
    elements: Positive
    unwritten: Whole
    first: Annotated[tuple[WrongValue, ...], Meta(min_length=1)]

    @property
    def counts(self) -> tuple[str, ...]:
        """That of its variant, of paths or of GPUs."""
        path = self.check == "send_receive"
        return (of_variant(PATH_MISCOMPARES if path else COLLECTIVE_MISCOMPARES, self.arm),)


REPEATS_DIFFER = "digest_repeats_differ"
DigestFormat = Literal["bf16", "f16", "tf32", "f32"]
DigestPart = Literal["loss", "gradient", "weight", "first_moment", "second_moment"]
# One bit of one element; elements that are finite in one run alone; or more bits, of one element or
# of several.
DigestDifference = Literal["bit", "not_finite", "several"]


class DifferingRun(_OfComponent, frozen=True, kw_only=True):
    """A repeat of a training run that has other digests than the first.

    `step`, `part` and `tensor` are of the first digest that differs, of `digests` in all; `kind`
    is how, with the `bit` of a single one. Steps and repeats count from 0, the first run is 0.
    """

    check: Literal["digest_repeat"]
    format: DigestFormat
    repeat: Positive
    step: Whole
    part: DigestPart
    tensor: Text
    kind: DigestDifference
    bit: Bit | None = None
    digests: Positive

    COUNTS: ClassVar[tuple[str, ...]] = (REPEATS_DIFFER,)


VECTOR_MISCOMPARES = "elementwise_miscompares"


class WrongVector(_OfComponent, frozen=True, kw_only=True):
    """A batch of elementwise products of vectors of `elements`, of which `wrong` are wrong.

    `index` is the first of those.
    """

    check: Literal["elementwise"]
    elements: Whole
    batch: Whole
    wrong: Whole
    index: Whole
    expected: float
    got: Text

    COUNTS: ClassVar[tuple[str, ...]] = (VECTOR_MISCOMPARES,)


VRAM_MISCOMPARES = "vram_miscompares"
# Of a socket's own RAM, and of another one's.
RAM_MISCOMPARES = ("memory_random_miscompares", "memory_random_remote_miscompares")


class WrongMemory(_OfComponent, frozen=True, kw_only=True):
    """Words that one pass over the memory of a GPU ("vram") or of a socket ("ram") found wrong.

    `bits` is how often each bit differs, among the first `bits_of` words where those are fewer than
    all. `address_bits` are the address lines at fault, where the test could determine them.
    """

    check: Literal["vram", "ram"]
    pattern: Text
    number: Whole = field(name="pass")
    found_s: BootSeconds
    words: Whole
    bits: Annotated[Mapping[Bit, Whole], Meta(min_length=1)]
    xor_or: Hex
    xor_and: Hex
    first: Annotated[tuple[WrongElement, ...], Meta(min_length=1)]
    bits_of: Whole | None = None
    address_bits: tuple[Whole, ...] = ()

    @property
    def differing(self) -> int:
        """The bits that differ in any of the wrong words."""
        return int(self.xor_or, 16)

    @property
    def counts(self) -> tuple[str, ...]:
        """That of the memory that was tested."""
        return (
            (VRAM_MISCOMPARES,)
            if self.check == "vram"
            else (RAM_MISCOMPARES[isinstance(self.component, Pair)],)
        )


class WrongFirstProduct(_OfComponent, frozen=True, kw_only=True):
    """A core's first product that fails the check by integers; `found` says how.

    `first` are wrong elements, or numbers of wrong rows.
    """

    check: Literal["exact"]
    found: Text
    elements: Whole | None = None
    rows: Whole | None = None
    nan: Whole | None = None
    first: tuple[WrongValue | Whole, ...] = ()

    COUNTS: ClassVar[tuple[str, ...]] = tuple(CORE_MISCOMPARES.values())


PARALLEL_MISCOMPARES, PARALLEL_DISAGREEMENTS = "parallel_miscompares", "parallel_disagreements"


class DifferingDigests(_Wrong, frozen=True, kw_only=True):
    """Results that differ between parts, by digest: first products of cores, or of GPUs."""

    check: Literal["digest"]
    found: Text
    digests: Mapping[Text, tuple[Component, ...]]

    @property
    def counts(self) -> tuple[str, ...]:
        """Those of processors, or of every variant between GPUs: it does not say its own."""
        if any(isinstance(one, Core) for parts in self.digests.values() for one in parts):
            return tuple(CORE_MISCOMPARES.values())
        variants: tuple[CollectiveVariant, ...] = get_args(CollectiveVariant)
        return (*(of_variant(DISAGREEMENTS, one) for one in variants), PARALLEL_DISAGREEMENTS)


ArrayCheck = Literal["copy", "triad"]
ARRAY_MISCOMPARES: Mapping[ArrayCheck, str] = {
    "copy": "memory_copy_miscompares",
    "triad": "memory_triad_miscompares",
}


class WrongArray(_OfComponent, frozen=True, kw_only=True):
    """A pass over a core's arrays of the memory load with wrong elements."""

    check: ArrayCheck
    repeat: Whole
    elements: Whole
    nan: Whole
    first: tuple[WrongPlace, ...]

    @property
    def counts(self) -> tuple[str, ...]:
        """That of its kernel."""
        return (ARRAY_MISCOMPARES[self.check],)


LAYER_MISCOMPARES = "layer_miscompares"


class WrongLayer(_OfFormat, frozen=True, kw_only=True):
    """A tensor of a small transformer layer that differs from float64 by more than its bound.

    `tensor` is "output", "input" or "memory" for the gradient of an input, or a parameter, for its
    gradient. `error` is the largest of the wrong elements, and `bound` the allowed one, as shares
    of the tensor's root mean square and the element; it is absent where all of them are NaN or
    infinite, which `odd` counts.
    """

    check: Literal["layer_reference"]
    layer: Text
    tensor: Text
    elements: Positive
    odd: Whole
    error: float | None = None
    bound: float
    first: Annotated[tuple[WrongValue, ...], Meta(min_length=1)]

    COUNTS: ClassVar[tuple[str, ...]] = (LAYER_MISCOMPARES,)


class WrongLayerRepeat(_OfFormat, frozen=True, kw_only=True):
    """A tensor of a transformer layer in its judged shape whose bits differ from the first time.

    `run` says of which: the timed forward pass, or the one with strict determinism.
    """

    check: Literal["layer_repeat"]
    layer: Text
    tensor: Text
    run: Literal["forward", "strict"]
    elements: Positive
    first: Annotated[tuple[WrongPlace, ...], Meta(min_length=1)]

    COUNTS: ClassVar[tuple[str, ...]] = (LAYER_MISCOMPARES,)


FileCheck = Literal["memmap", "feed", "checkpoint", "kept"]
FILE_MISCOMPARES: Mapping[FileCheck, str] = {
    "memmap": "storage_memmap_miscompares",
    "feed": "storage_feed_miscompares",
    "checkpoint": "storage_checkpoint_miscompares",
    "kept": "storage_kept_errors",
}
FAILED = "storage_failed"


class WrongFile(_OfComponent, frozen=True, kw_only=True):
    """Words of a file that are not what was written: of a block, a window or a piece of it.

    `offset` is the byte of the first wrong word, `block` the number of its block of 4 KiB, `number`
    the pass over the file. `unwritten` counts the wrong `words` that still hold what the memory
    held before the read. Where the content belongs elsewhere, `of_offset` and `of_turn` say where:
    the byte, and the turn of writing.
    """

    check: FileCheck
    file: Text
    number: Whole = field(name="pass")
    block: Whole
    offset: Whole
    words: Positive
    unwritten: Whole
    want: Hex
    got: Hex
    xor: Hex
    of_offset: Whole | None = None
    of_turn: Whole | None = None

    @property
    def counts(self) -> tuple[str, ...]:
        """That of its check."""
        return (FILE_MISCOMPARES[self.check],)


class FailedFile(_OfComponent, frozen=True, kw_only=True):
    """An operation on a file that failed by the disk, with the kernel's name of the error.

    The error "short" is none of the kernel's: the file ends before what was written to it.
    """

    check: Literal["file"]
    operation: Text
    file: Text
    error: Text
    offset: Whole | None = None

    COUNTS: ClassVar[tuple[str, ...]] = (FAILED,)


ParallelCheck = Literal["parallel_loss", "parallel_gradient", "parallel_weights", "parallel_finite"]


class WrongTraining(_OfComponent, frozen=True, kw_only=True):
    """Parallel training that differs from one card's by more than its bound, at one GPU.

    A loss is of all of them. `difference` is the norm of the difference of a `tensor`, or that of a
    loss, as Python writes numbers; a loss that is no finite number has no bound to exceed.
    """

    check: ParallelCheck
    way: Text
    arm: CollectiveVariant
    accumulation: Positive
    step: Whole
    tensor: Text
    difference: Text
    bound: float

    COUNTS: ClassVar[tuple[str, ...]] = (PARALLEL_MISCOMPARES,)


STEP_MISCOMPARES = "step_miscompares"
StepCheck = Literal["step_reference", "step_start", "step_repeat", "step_finite", "step_falls"]


class WrongStep(_OfComponent, frozen=True, kw_only=True):
    """Numbers of a training step that are wrong: `elements` of a tensor, `of` so many.

    "step_reference": beyond the bound to float64; "step_start": the loss of new weights;
    "step_repeat": other bits when made again; "step_finite": losses, by the number of their step;
    "step_falls": the loss after training.
    """

    check: StepCheck
    model: Text
    option: Text
    tensor: Text
    elements: Positive
    of: Positive
    first: Annotated[tuple[WrongValue, ...], Meta(min_length=1)]

    COUNTS: ClassVar[tuple[str, ...]] = (STEP_MISCOMPARES,)


Miscompare = (
    WrongProduct
    | ChangedInputs
    | LapMismatch
    | WrongReference
    | WrongRepeat
    | WrongCopy
    | WrongTransfer
    | WrongCollective
    | DifferingRun
    | WrongVector
    | WrongMemory
    | WrongFirstProduct
    | DifferingDigests
    | WrongArray
    | WrongLayer
    | WrongLayerRepeat
    | WrongFile
    | FailedFile
    | WrongTraining
    | WrongStep
)
_KINDS: Mapping[str, type[Miscompare]] = {
    check: kind
    for kind in get_args(Miscompare)
    for check in get_args(get_type_hints(kind)["check"])
}


class UnreadMiscompare(Strict, frozen=True):
    """A reported wrong result that is of no known kind or not as its kind must be, and why.

    It still counts against the machine. `given` is its JSON text.
    """

    given: str
    reason: str | Message

    # It does not say which: every count of where its load works.
    counts: ClassVar[tuple[str, ...]] = ()
    code: ClassVar[str] = "result"


WrongResult = Miscompare | UnreadMiscompare


def read(found: Mapping[str, Any]) -> Miscompare:
    """The wrong result in a printed object.

    Raises UnusableLine where its kind is unknown, and msgspec.ValidationError where a key of its
    kind is missing or has another type, or it has another key.
    """
    check = found.get("check")
    kind = _KINDS.get(check) if isinstance(check, str) else None
    if kind is None:
        raise UnusableLine(
            english("check_unknown", "its check is {check}, which is none that is known here"),
            check=repr(check),
        )
    return msgspec.convert(found, kind, str_keys=True, dec_hook=parts.decode)


def read_or_keep(found: Mapping[str, Any]) -> WrongResult:
    """The wrong result in a printed object; an UnreadMiscompare where it cannot be read."""
    try:
        return read(found)
    except (UnusableLine, msgspec.ValidationError) as error:
        return UnreadMiscompare(msgspec.json.encode(found).decode(), why(error))


def component_of(wrong: WrongResult) -> Component | None:
    """The component by the load's own names; None where the wrong result names none."""
    return wrong.component if isinstance(wrong, _OfComponent) else None


def dtype_of(wrong: WrongResult) -> DtypeName | None:
    """The number format of a product of a GPU; None for another wrong result."""
    return wrong.dtype if isinstance(wrong, _OfFormat | WrongRepeat) else None


def details(wrong: WrongResult) -> dict[str, Any]:
    """The printed object of a wrong result, its keys in their order."""
    given = (
        wrong.given
        if isinstance(wrong, UnreadMiscompare)
        else msgspec.json.encode(wrong, enc_hook=parts.encode)
    )
    found: dict[str, Any] = msgspec.json.decode(given)
    return found
