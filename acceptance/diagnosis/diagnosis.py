"""Diagnose wrong results: their kind, the evidence in numbers, and the usual cause. Pure.

Places, bits, repetition and heat tell the kinds apart. Results that fit no kind are "many",
incompletely reported ones "unknown".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from acceptance.core.message import Listed, Message, Text, Values, known
from acceptance.diagnosis import ring_pattern
from acceptance.diagnosis.ring_pattern import right_moments_of
from acceptance.diagnosis.signature import GpuHeat, Kind, Signature, flat, vram_signature
from acceptance.loads.miscompare import (
    ChangedInputs,
    CopiedWord,
    LapMismatch,
    UnreadMiscompare,
    WrongCopy,
    WrongMemory,
    WrongProduct,
    WrongReference,
    WrongResult,
    WrongValue,
)

# The kinds of a burn and of the memory test: those that a diagnosis is made of.
Diagnosable = WrongProduct | ChangedInputs | LapMismatch | WrongReference | WrongCopy | WrongMemory

_MEANS: Mapping[Kind, Message] = {
    Kind.INPUTS: Message("means_inputs"),
    Kind.REPEATABLE: Message("means_repeatable"),
    Kind.UNREPEATABLE: Message("means_unrepeatable"),
    Kind.MEMORY_BIT: Message("means_memory_bit"),
    Kind.ONE_BIT_ONCE: Message("means_one_bit_once"),
    Kind.SCATTERED_BITS: Message("means_scattered_bits"),
    Kind.ADDRESS_LINE: Message("means_address_line"),
    Kind.DATAPATH: Message("means_datapath"),
    Kind.NOT_A_NUMBER: Message("means_not_a_number"),
    Kind.READ_BACK_RIGHT: Message("means_read_back_right"),
    Kind.COPIES: Message("means_copies"),
    Kind.LOST_COPIES: Message("means_lost_copies"),
    Kind.MANY: Message("means_many"),
    Kind.THERMAL: Message("means_thermal"),
}
_BESIDE: Mapping[type, Message] = {
    WrongProduct: Message("beside_products"),
    LapMismatch: Message("beside_later_products"),
    WrongReference: Message("beside_first_products"),
    WrongCopy: Message("beside_copies"),
    WrongMemory: Message("beside_passes"),
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The diagnosis of wrong results.

    `told` has the evidence and its usual meaning; texts of a load in it are on one line.
    """

    kind: Kind
    told: Message


def diagnose(
    facts: Sequence[WrongResult],
    heat: Sequence[GpuHeat | None],
    right: Sequence[GpuHeat] = (),
) -> Diagnosis:
    """Diagnose the wrong results of one GPU and one format (or of its copies, or its memory).

    `facts` are the wrong results as a load reported them, `heat` is the GPU's heat when each was
    made, in the same order. `right` is its heat at moments when products were right
    (`right_moments`); without it heat is never given as the cause. Never raises: what could not be
    read of a fact is named in the diagnosis.
    """
    if not facts:
        return Diagnosis(Kind.UNKNOWN, Message("nothing_wrong_told"))
    wrong: list[Diagnosable] = []
    for number, fact in enumerate(facts, start=1):
        if not isinstance(fact, Diagnosable):
            why = {"why": _unclear(fact)}
            if len(facts) == 1:
                return Diagnosis(Kind.UNKNOWN, Message("looks_unknown", why))
            values = {"number": number, "of": len(facts), **why}
            return Diagnosis(Kind.UNKNOWN, Message("looks_of_one_unknown", values))
        wrong.append(fact)
    found = _signature(list(zip_longest(wrong, heat[: len(wrong)])), right)
    told = known(
        looks=found.looks,
        evidence=found.evidence,
        beside=_others(wrong, found.of),
        means=_MEANS[found.kind],
    )
    return Diagnosis(found.kind, Message("diagnosis", told))


def right_moments(facts: Sequence[WrongResult]) -> tuple[float, ...]:
    """Moments, in seconds since boot, at which products of these facts' format were right.

    Spread evenly; none where they are unknown.
    """
    if not all(isinstance(one, Diagnosable) for one in facts):
        return ()
    return right_moments_of([one for one in facts if isinstance(one, WrongProduct)])


def _unclear(fact: WrongResult) -> Text:
    """Why a wrong result that is of no kind for a diagnosis cannot be judged."""
    if isinstance(fact, UnreadMiscompare):
        return flat(fact.reason) if isinstance(fact.reason, str) else fact.reason
    return Message("check_undiagnosed", {"check": repr(fact.check)})


def _signature(
    sampled: Sequence[tuple[Diagnosable, GpuHeat | None]], right: Sequence[GpuHeat]
) -> Signature:
    """The signature of the most telling facts: causes go before their consequences."""
    wrong = [one for one, _ in sampled]
    inputs = [one for one in wrong if isinstance(one, ChangedInputs)]
    references = [one for one in wrong if isinstance(one, WrongReference)]
    again = [one for one in wrong if isinstance(one, LapMismatch)]
    rings = [(one, own) for one, own in sampled if isinstance(one, WrongProduct)]
    memory = [one for one in wrong if isinstance(one, WrongMemory)]
    copies = [one for one in wrong if isinstance(one, WrongCopy)]
    if inputs:
        return _inputs(inputs)
    if references:
        return _references(references)
    if again:
        return _unrepeatable(again, [one for one, _ in rings])
    if rings:
        return ring_pattern.product_signature(rings, right)
    return vram_signature(memory) if memory else _copies(copies)


def _inputs(wrong: Sequence[ChangedInputs]) -> Signature:
    first, *others = (flat(name) for name in dict.fromkeys(one.operand for one in wrong))
    names: Text = first
    for name in others:
        names = Message("and_operand", {"first": names, "next": name})
    digests = {"expected": flat(wrong[0].expected), "got": flat(wrong[0].got)}
    evidence = Message("inputs_evidence", {"operands": names, **digests})
    return Signature(Kind.INPUTS, Message("inputs_changed"), evidence, ChangedInputs)


def _references(wrong: Sequence[WrongReference]) -> Signature:
    first = wrong[0]
    whole = first.check == "whole"
    evidence = known(
        elements=Message("elements_of", {"n": first.elements, "shape": _shape(first.shape)}),
        rows=first.rows,
        against=Message("by_whole_numbers" if whole else "by_doubles"),
        nan=first.nan or None,
        infinite=first.infinite or None,
        first=tuple(_place(one) for one in first.first[:1]),
    )
    return Signature(
        Kind.REPEATABLE,
        Message("first_product_wrong", {"checks": len(wrong)}),
        Message("references_evidence", evidence),
        WrongReference,
    )


def _shape(told: str | None) -> Text:
    return flat(told) if told else Message("a_product")


def _place(wrong: CopiedWord | WrongValue) -> Message:
    """A wrong element, row or word, and its value."""
    values: Values = {}
    if wrong.expected is not None:
        values = {"got": flat(f"{wrong.got}"), "expected": flat(wrong.expected)}
    if isinstance(wrong, CopiedWord):
        return Message("place_word", {"word": wrong.word, **values})
    if len(wrong.index) == 1:
        return Message("place_row", {"row": wrong.index[0], **values})
    return Message("place_element", {"element": f"{list(wrong.index)}", **values})


def _unrepeatable(wrong: Sequence[LapMismatch], rings: Sequence[WrongProduct]) -> Signature:
    first = wrong[0]
    evidence = known(
        shape=_shape(first.shape),
        expected=flat(first.expected),
        got=flat(first.got),
        times=len(wrong),
        products=len(rings) or None,
    )
    return Signature(
        Kind.UNREPEATABLE,
        Message("later_lap_differs"),
        Message("laps_evidence", evidence),
        LapMismatch,
    )


def _copies(wrong: Sequence[WrongCopy]) -> Signature:
    ways = dict.fromkeys((one.check, flat(str(one.component))) for one in wrong)
    lost = sum(one.unwritten or 0 for one in wrong)
    evidence = known(
        words=sum(one.words for one in wrong),
        copies=len(wrong),
        ways=Listed(tuple(Message("copy_on", {"check": one, "component": on}) for one, on in ways)),
        first=tuple(_place(one) for one in wrong[0].first[:1]),
    )
    if all(one.words and one.words == one.unwritten for one in wrong):
        told = Message("lost_evidence", evidence)
        return Signature(Kind.LOST_COPIES, Message("copy_never_arrived"), told, WrongCopy)
    told = Message("copies_evidence", evidence | known(lost=lost or None))
    return Signature(Kind.COPIES, Message("changed_in_copy"), told, WrongCopy)


def _others(wrong: Sequence[Diagnosable], of: type) -> Listed | None:
    """The other kinds of wrong results beside those of the diagnosis, with their numbers.

    Changed inputs are never among them.
    """
    counts = {
        kind: sum(isinstance(one, kind) for one in wrong) for kind in _BESIDE if kind is not of
    }
    parts = tuple(
        Message("wrong_beside", {"count": count, "what": _BESIDE[kind]})
        for kind, count in counts.items()
        if count
    )
    return Listed(parts) if parts else None
