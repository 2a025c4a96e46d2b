"""Diagnose wrong results: their kind, the evidence in numbers, and the usual cause. Pure.

Places, bits, repetition and heat tell the kinds apart. Results that fit no kind are "many",
incompletely reported ones "unknown".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from acceptance.diagnosis import ring_pattern
from acceptance.diagnosis.ring_pattern import right_moments_of
from acceptance.diagnosis.signature import GpuHeat, Signature
from acceptance.diagnosis.vram_pattern import vram_signature
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

_MEANS: Mapping[str, str] = {
    "inputs": "the memory that holds the operands changed: bad memory of the GPU, and every "
    "product after it proves nothing of the chip; "
    "look at row remapping and ECC, and run the vram load",
    "repeatable": "a datapath that is wrong for good, a wrong kernel or a driver's fault, and no "
    "passing one: run again with another "
    "driver; if it stays, replace the card",
    "unrepeatable": (
        "a result that changes between two makings of it: unsteady power, clocks or "
        "heat, or "
        "memory that forgets: run longer"
    ),
    "memory bit": (
        "a cell of the memory that is stuck: ECC that is off or exhausted lets it "
        "through; "
        "replace the card"
    ),
    "one bit once": "a transient in memory or datapath, of which one alone proves no defect of a "
    "part: run longer; if it comes back, "
    "compare places and bits",
    "scattered bits": "single bits at ever other places: marginal memory, clock or supply; "
    "without overclocking and with other power "
    "cables, run again",
    "address line": "an address line of the memory, or what spreads addresses over its channels: "
    "words are stored or fetched elsewhere; "
    "replace the card",
    "datapath": (
        "one unit of the chip, a lane or a line of a bus is wrong: replace the card if "
        "it is so "
        "without overclocking"
    ),
    "not a number": (
        "broken arithmetic or a word that was lost: what compares by a difference lets it pass"
    ),
    "read back right": (
        "what is stored is right and was read or compared wrong: the way from memory, or a cache"
    ),
    "copies": (
        "the link changes data on its way: reseat the card, leave the riser out, look at "
        "PCIe "
        "replays and AER or NVLink errors"
    ),
    "lost copies": "what is written goes nowhere; to a peer, access was granted that does not "
    "work: "
    "a VM that joins GPUs falsely, ACS or an IOMMU between them, a patched driver",
    "many": (
        "no single place or bit explains it: look at power, heat and clocks first, then at "
        "memory with the vram load"
    ),
    "thermal": "the chip or its memory computes wrong when hot: airflow, fan, paste and pads, "
    "then clocks; if it is cool by the sheet, "
    "replace the card",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The diagnosis of wrong results.

    `kind` is a word or two, `sentence` the evidence and its usual meaning, on one line.
    """

    kind: str
    sentence: str


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
        return Diagnosis("unknown", "nothing wrong was told of, so there is nothing to say")
    wrong: list[Diagnosable] = []
    for number, fact in enumerate(facts, start=1):
        if not isinstance(fact, Diagnosable):
            of = f"wrong result {number} of {len(facts)}" if len(facts) > 1 else "the wrong result"
            unclear = (
                fact.reason
                if isinstance(fact, UnreadMiscompare)
                else f"its check is {fact.check!r}, which is none of a burn or of the memory test"
            )
            return Diagnosis("unknown", f"{of} cannot be judged by its looks: {unclear}")
        wrong.append(fact)
    known = list(zip_longest(wrong, heat[: len(wrong)]))
    look = _signature(known, right)
    text = f"{look.words}: {look.evidence}{_others(wrong, look.of)}. Usually {_MEANS[look.kind]}"
    return Diagnosis(look.kind, " ".join(text.split()))


def right_moments(facts: Sequence[WrongResult]) -> tuple[float, ...]:
    """Moments, in seconds since boot, at which products of these facts' format were right.

    Spread evenly; none where they are unknown.
    """
    if not all(isinstance(one, Diagnosable) for one in facts):
        return ()
    return right_moments_of([one for one in facts if isinstance(one, WrongProduct)])


def _signature(
    known: Sequence[tuple[Diagnosable, GpuHeat | None]], right: Sequence[GpuHeat]
) -> Signature:
    """The signature of the most telling facts: causes go before their consequences."""
    wrong = [one for one, _ in known]
    inputs = [one for one in wrong if isinstance(one, ChangedInputs)]
    references = [one for one in wrong if isinstance(one, WrongReference)]
    again = [one for one in wrong if isinstance(one, LapMismatch)]
    rings = [(one, own) for one, own in known if isinstance(one, WrongProduct)]
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
    names = " and ".join(dict.fromkeys(one.operand for one in wrong))
    first = wrong[0]
    evidence = f"operand {names}, digest {first.expected} at the start and {first.got} now"
    return Signature("inputs", "The inputs themselves changed", evidence, ChangedInputs)


def _references(wrong: Sequence[WrongReference]) -> Signature:
    first = wrong[0]
    odd = [
        f"{one} {name}" for one, name in ((first.nan, "NaN"), (first.infinite, "infinite")) if one
    ]
    against = "exact whole numbers give" if first.check == "whole" else "float64 gives"
    shape = first.shape or "a product"
    elements = f"{first.elements} element{'s' if first.elements > 1 else ''} of {shape}"
    parts = [f"{elements} ({first.rows} rows were checked) are not what {against}"]
    parts += [*odd, *(f"first {_place(one)}" for one in first.first[:1])]
    evidence = ", ".join(parts)
    return Signature(
        "repeatable",
        f"The first product is wrong already ({len(wrong)} of its checks)",
        evidence,
        WrongReference,
    )


def _place(wrong: CopiedWord | WrongValue) -> str:
    """A wrong element, row or word, and its value."""
    if isinstance(wrong, CopiedWord):
        place = f"word {wrong.word}"
    elif len(wrong.index) == 1:
        place = f"row {wrong.index[0]}"
    else:
        place = f"element {list(wrong.index)}"
    return place if wrong.expected is None else f"{place}: {wrong.got} for {wrong.expected}"


def _unrepeatable(wrong: Sequence[LapMismatch], rings: Sequence[WrongProduct]) -> Signature:
    first = wrong[0]
    evidence = (
        f"{first.shape or 'a product'} gave digest {first.expected} first and {first.got} later, "
        f"{len(wrong)} "
        "times"
    )
    if rings:
        evidence += f"; {len(rings)} products were told wrong that were held against it"
    return Signature(
        "unrepeatable",
        "The same product of the same inputs came out differently in a later lap",
        evidence,
        LapMismatch,
    )


def _copies(wrong: Sequence[WrongCopy]) -> Signature:
    ways = ", ".join(
        f"{one} on {where}"
        for one, where in dict.fromkeys((one.check, one.component) for one in wrong)
    )
    first = wrong[0]
    text = f"{sum(one.words for one in wrong)} words"
    copies = f"copies: {len(wrong)} ({ways})" + "".join(
        f", first {_place(one)}" for one in first.first[:1]
    )
    if all(one.words and one.words == one.unwritten for one in wrong):
        text = f"{text} still hold what lay there before"
        return Signature("lost copies", "The copy never arrived", f"{text}, {copies}", WrongCopy)
    lost = sum(one.unwritten or 0 for one in wrong)
    text += f", {lost} of which still hold what lay there before" if lost else ""
    return Signature("copies", "Data changed while it was copied", f"{text}, {copies}", WrongCopy)


def _others(wrong: Sequence[Diagnosable], of: type) -> str:
    """The other kinds of wrong results beside those of the diagnosis, in words.

    Changed inputs are never among them.
    """
    words = {
        WrongProduct: "products",
        LapMismatch: "products of later laps",
        WrongReference: "first products",
        WrongCopy: "copies",
        WrongMemory: "passes over the memory",
    }
    counts = {kind: sum(isinstance(one, kind) for one in wrong) for kind in words if kind is not of}
    parts = [f"{count} wrong {words[kind]}" for kind, count in counts.items() if count]
    return f"; beside it {', '.join(parts)}" if parts else ""
