"""Diagnose wrong results: their kind, the evidence in numbers, and the usual cause. Pure.

Places, bits, repetition and heat tell the kinds apart. Results that fit no kind are "many",
incompletely reported ones "unknown".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from acceptance.core.message import Listed, Message, Text, Values, english, known, plural
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
    Kind.INPUTS: Message(
        english(
            "means_inputs",
            "the memory that holds the operands changed: bad memory of the GPU, and every product "
            "after it proves nothing of the chip; look at row remapping and ECC, and run the vram "
            "load",
        )
    ),
    Kind.REPEATABLE: Message(
        english(
            "means_repeatable",
            "a datapath that is wrong for good, a wrong kernel or a driver's fault, and no "
            "passing one: run again with another driver; if it stays, replace the card",
        )
    ),
    Kind.UNREPEATABLE: Message(
        english(
            "means_unrepeatable",
            "a result that changes between two makings of it: unsteady power, clocks or heat, or "
            "memory that forgets: run longer",
        )
    ),
    Kind.MEMORY_BIT: Message(
        english(
            "means_memory_bit",
            "a cell of the memory that is stuck: ECC that is off or exhausted lets it through; "
            "replace the card",
        )
    ),
    Kind.ONE_BIT_ONCE: Message(
        english(
            "means_one_bit_once",
            "a transient in memory or datapath, of which one alone proves no defect of a part: "
            "run longer; if it comes back, compare places and bits",
        )
    ),
    Kind.SCATTERED_BITS: Message(
        english(
            "means_scattered_bits",
            "single bits at ever other places: marginal memory, clock or supply; without "
            "overclocking and with other power cables, run again",
        )
    ),
    Kind.ADDRESS_LINE: Message(
        english(
            "means_address_line",
            "an address line of the memory, or what spreads addresses over its channels: words "
            "are stored or fetched elsewhere; replace the card",
        )
    ),
    Kind.DATAPATH: Message(
        english(
            "means_datapath",
            "one unit of the chip, a lane or a line of a bus is wrong: replace the card if it is "
            "so without overclocking",
        )
    ),
    Kind.NOT_A_NUMBER: Message(
        english(
            "means_not_a_number",
            "broken arithmetic or a word that was lost: what compares by a difference lets it pass",
        )
    ),
    Kind.READ_BACK_RIGHT: Message(
        english(
            "means_read_back_right",
            "what is stored is right and was read or compared wrong: the way from memory, or a "
            "cache",
        )
    ),
    Kind.COPIES: Message(
        english(
            "means_copies",
            "the link changes data on its way: reseat the card, leave the riser out, look at PCIe "
            "replays and AER or NVLink errors",
        )
    ),
    Kind.LOST_COPIES: Message(
        english(
            "means_lost_copies",
            "what is written goes nowhere; to a peer, access was granted that does not work: a VM "
            "that joins GPUs falsely, ACS or an IOMMU between them, a patched driver",
        )
    ),
    Kind.MANY: Message(
        english(
            "means_many",
            "no single place or bit explains it: look at power, heat and clocks first, then at "
            "memory with the vram load",
        )
    ),
    Kind.THERMAL: Message(
        english(
            "means_thermal",
            "the chip or its memory computes wrong when hot: airflow, fan, paste and pads, then "
            "clocks; if it is cool by the sheet, replace the card",
        )
    ),
}
_BESIDE: Mapping[type, Message] = {
    WrongProduct: Message(english("beside_products", "products")),
    LapMismatch: Message(english("beside_later_products", "products of later laps")),
    WrongReference: Message(english("beside_first_products", "first products")),
    WrongCopy: Message(english("beside_copies", "copies")),
    WrongMemory: Message(english("beside_passes", "passes over the memory")),
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
        return Diagnosis(
            Kind.UNKNOWN,
            Message(
                english(
                    "nothing_wrong_told", "nothing wrong was told of, so there is nothing to say"
                )
            ),
        )
    wrong: list[Diagnosable] = []
    for number, fact in enumerate(facts, start=1):
        if not isinstance(fact, Diagnosable):
            why = {"why": _unclear(fact)}
            if len(facts) == 1:
                return Diagnosis(
                    Kind.UNKNOWN,
                    Message(
                        english(
                            "looks_unknown",
                            "the wrong result cannot be matched with a signature: {why}",
                        ),
                        why,
                    ),
                )
            values = {"number": number, "of": len(facts), **why}
            return Diagnosis(
                Kind.UNKNOWN,
                Message(
                    english(
                        "looks_of_one_unknown",
                        "wrong result {number} of {of} cannot be matched with a signature: {why}",
                    ),
                    values,
                ),
            )
        wrong.append(fact)
    found = _signature(list(zip_longest(wrong, heat[: len(wrong)])), right)
    told = known(
        looks=found.looks,
        evidence=found.evidence,
        beside=_others(wrong, found.of),
        means=_MEANS[found.kind],
    )
    return Diagnosis(
        found.kind,
        Message(
            english("diagnosis", "{looks}: {evidence}[; beside it {beside}]. Usually {means}"), told
        ),
    )


def right_moments(facts: Sequence[WrongResult]) -> tuple[float, ...]:
    """Moments, in seconds since boot, at which products of these facts' format were right.

    Spread evenly; none where they are unknown.
    """
    return (
        right_moments_of([one for one in facts if isinstance(one, WrongProduct)])
        if all(isinstance(one, Diagnosable) for one in facts)
        else ()
    )


def _unclear(fact: WrongResult) -> Text:
    """Why a wrong result that is of no kind for a diagnosis cannot be judged."""
    if isinstance(fact, UnreadMiscompare):
        return flat(fact.reason) if isinstance(fact.reason, str) else fact.reason
    return Message(
        english(
            "check_undiagnosed",
            "its check is {check}, which is none of a burn or of the memory test",
        ),
        {"check": repr(fact.check)},
    )


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
        names = Message(
            english("and_operand", "{first} and {next}"), {"first": names, "next": name}
        )
    digests = {"expected": flat(wrong[0].expected), "got": flat(wrong[0].got)}
    evidence = Message(
        english(
            "inputs_evidence", "operand {operands}, digest {expected} at the start and {got} now"
        ),
        {"operands": names, **digests},
    )
    return Signature(
        Kind.INPUTS,
        Message(english("inputs_changed", "The inputs themselves changed")),
        evidence,
        ChangedInputs,
    )


def _references(wrong: Sequence[WrongReference]) -> Signature:
    first = wrong[0]
    whole = first.check == "whole"
    evidence = known(
        elements=Message(
            plural("elements_of", "{n} element of {shape}", "{n} elements of {shape}"),
            {"n": first.elements, "shape": _shape(first.shape)},
        ),
        rows=first.rows,
        against=Message(
            english("by_whole_numbers", "exact whole numbers give")
            if whole
            else english("by_doubles", "float64 gives")
        ),
        nan=first.nan or None,
        infinite=first.infinite or None,
        first=tuple(_place(one) for one in first.first[:1]),
    )
    return Signature(
        Kind.REPEATABLE,
        Message(
            english(
                "first_product_wrong", "The first product is wrong already ({checks} of its checks)"
            ),
            {"checks": len(wrong)},
        ),
        Message(
            english(
                "references_evidence",
                "{elements} ({rows} rows were checked) are not what {against}[, {nan} NaN][, "
                "{infinite} infinite][, first {first}]",
            ),
            evidence,
        ),
        WrongReference,
    )


def _shape(told: str | None) -> Text:
    return flat(told) if told else Message(english("a_product", "a product"))


def _place(wrong: CopiedWord | WrongValue) -> Message:
    """A wrong element, row or word, and its value."""
    values: Values = (
        {}
        if wrong.expected is None
        else {"got": flat(f"{wrong.got}"), "expected": flat(wrong.expected)}
    )
    if isinstance(wrong, CopiedWord):
        return Message(
            english("place_word", "word {word}[: {got} for {expected}]"),
            {"word": wrong.word, **values},
        )
    if len(wrong.index) == 1:
        return Message(
            english("place_row", "row {row}[: {got} for {expected}]"),
            {"row": wrong.index[0], **values},
        )
    return Message(
        english("place_element", "element {element}[: {got} for {expected}]"),
        {"element": f"{list(wrong.index)}", **values},
    )


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
        Message(
            english(
                "later_lap_differs",
                "The same product of the same inputs came out differently in a later lap",
            )
        ),
        Message(
            english(
                "laps_evidence",
                "{shape} gave digest {expected} first and {got} later, {times} times[; {products} "
                "products were reported wrong by comparison with it]",
            ),
            evidence,
        ),
        LapMismatch,
    )


def _copies(wrong: Sequence[WrongCopy]) -> Signature:
    ways = dict.fromkeys((one.check, flat(str(one.component))) for one in wrong)
    lost = sum(one.unwritten or 0 for one in wrong)
    evidence = known(
        words=sum(one.words for one in wrong),
        copies=len(wrong),
        ways=Listed(
            tuple(
                Message(
                    english("copy_on", "{check} on {component}"), {"check": one, "component": on}
                )
                for one, on in ways
            )
        ),
        first=tuple(_place(one) for one in wrong[0].first[:1]),
    )
    if all(one.words and one.words == one.unwritten for one in wrong):
        told = Message(
            english(
                "lost_evidence",
                "{words} words still hold what lay there before, copies: {copies} ({ways})[, "
                "first {first}]",
            ),
            evidence,
        )
        return Signature(
            Kind.LOST_COPIES,
            Message(english("copy_never_arrived", "The copy never arrived")),
            told,
            WrongCopy,
        )
    told = Message(
        english(
            "copies_evidence",
            "{words} words[, {lost} of which still hold what lay there before], copies: {copies} "
            "({ways})[, first {first}]",
        ),
        evidence | known(lost=lost or None),
    )
    return Signature(
        Kind.COPIES,
        Message(english("changed_in_copy", "Data changed while it was copied")),
        told,
        WrongCopy,
    )


def _others(wrong: Sequence[Diagnosable], of: type) -> Listed | None:
    """The other kinds of wrong results beside those of the diagnosis, with their numbers.

    Changed inputs are never among them.
    """
    counts = {
        kind: sum(isinstance(one, kind) for one in wrong) for kind in _BESIDE if kind is not of
    }
    parts = tuple(
        Message(
            english("wrong_beside", "{count} wrong {what}"), {"count": count, "what": _BESIDE[kind]}
        )
        for kind, count in counts.items()
        if count
    )
    return Listed(parts) if parts else None
