"""Compare the training runs of equal GPUs bit by bit: who differs, where, and whether it repeats.

A GPU that differs is run again alone (`suspects`). What it does not repeat is transient: an error
that comes and goes. What it repeats, and no equal GPU has, is persistent. Of two GPUs alone either
may be the wrong one, so both are run again, and one that does not repeat its bits clears the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core.message import Listed, Message, Values, english, known
from acceptance.core.parts import Component
from acceptance.loads.miscompare import DifferingRun, DigestDifference, DigestFormat, DigestPart
from acceptance.loads.train import digest_log
from acceptance.loads.train.digest_log import TrainingRuns
from acceptance.loads.train.shapes import FORMAT_NAMES

Siblings = Mapping[str, Sequence[Component]]
Runs = Mapping[Component, TrainingRuns]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A GPU that differs from equal ones, those of its model, in one format.

    `beside` is an equal GPU with other bits: one of the majority of `most` GPUs of `of`. Where no
    bits have a majority (`tied`), no GPU is cleared.
    """

    gpu: Component
    model: str
    format: DigestFormat
    beside: Component
    most: int
    of: int
    tied: bool


@dataclass(frozen=True, slots=True)
class DigestAgreement:
    """In how many formats each GPU has other bits than its equals, and the first difference.

    A GPU is absent where no equal one has a run. `troubles` say why GPUs of one model could not be
    compared.
    """

    differing: Mapping[Component, float] = field(default_factory=dict)
    notes: Mapping[Component, Message | None] = field(default_factory=dict)
    troubles: tuple[Message, ...] = ()


def _groups(runs: Runs, siblings: Siblings) -> list[tuple[str, dict[Component, TrainingRuns]]]:
    """The GPUs of each model that have a run, two and more."""
    found = [
        (model, {one: runs[one] for one in names if one in runs})
        for model, names in siblings.items()
    ]
    return [(model, group) for model, group in found if len(group) > 1]


def _unlike(model: str, group: Runs) -> Message | None:
    """Why the runs of these GPUs cannot be compared, or None."""
    versions = {name: one.versions for name, one in group.items()}
    if len(set(versions.values())) == 1:
        return None
    named = tuple(
        Message(
            english(
                "training_versions",
                "{gpu} {library}, cuBLAS {cublas}, {multiprocessors} multiprocessors",
            ),
            {
                "gpu": str(name),
                "library": one.library,
                "cublas": one.cublas,
                "multiprocessors": one.multiprocessors,
            },
        )
        for name, one in versions.items()
    )
    return Message("libraries_differ", {"model": model, "libraries": Listed(named)})


def suspects(runs: Runs, siblings: Siblings) -> tuple[Suspect, ...]:
    """The GPUs whose first run differs from that of most equal GPUs, by format.

    Where no bits have a majority, all GPUs with leading bits are suspects too.
    """
    return tuple(
        suspect
        for model, group in _groups(runs, siblings)
        if _unlike(model, group) is None
        for dtype in next(iter(group.values())).first
        for suspect in _of_format(model, dtype, group)
    )


def _of_format(model: str, dtype: DigestFormat, group: Runs) -> list[Suspect]:
    bits = {name: one.first[dtype].summaries for name, one in group.items()}
    votes = Counter(bits.values())
    if len(votes) == 1:
        return []
    (best, most), (second, next_most), *_ = votes.most_common()
    tied = next_most == most
    found = []
    for name, own in bits.items():
        if own != best or tied:
            other = second if own == best else best
            beside = next(one for one, told in bits.items() if told == other)
            found.append(Suspect(name, model, dtype, beside, most, len(group), tied))
    return found


def judge(runs: Runs, again: Runs, siblings: Siblings) -> DigestAgreement:
    """Compare the first runs, and attribute what differs by the runs of the suspects alone.

    `again` lacks a suspect whose second run did not end.
    """
    differing: dict[Component, float] = {}
    notes: dict[Component, list[Message]] = {}
    troubles = []
    for model, group in _groups(runs, siblings):
        if trouble := _unlike(model, group):
            troubles.append(trouble)
        else:
            differing |= dict.fromkeys(group, 0.0)
    found = suspects(runs, siblings)
    for one in found:
        if not _cleared(one, found, runs, again):
            differing[one.gpu] += 1.0
            notes.setdefault(one.gpu, []).append(_attributed(one, runs, again))
    return DigestAgreement(
        differing,
        {
            gpu: Message("note", {"text": tuple(notes[gpu])}) if gpu in notes else None
            for gpu in differing
        },
        tuple(troubles),
    )


def _repeats(one: Suspect, runs: Runs, again: Runs) -> bool | None:
    """Whether a suspect gave the same bits each time; None where its second run did not end."""
    if one.gpu not in again:
        return None
    first, second = runs[one.gpu], again[one.gpu]
    own = first.differing_in(one.format) + second.differing_in(one.format)
    return not own and first.first[one.format] == second.first[one.format]


def _cleared(one: Suspect, found: Sequence[Suspect], runs: Runs, again: Runs) -> bool:
    """Whether the others of a tie that do not repeat explain it, and this GPU repeats its bits.

    Then all that repeat must have the same ones.
    """
    if not one.tied or not _repeats(one, runs, again):
        return False
    beside = [other for other in found if (other.model, other.format) == (one.model, one.format)]
    steady = {
        runs[other.gpu].first[one.format].summaries
        for other in beside
        if _repeats(other, runs, again)
    }
    unknown = any(_repeats(other, runs, again) is None for other in beside)
    return not unknown and len(steady) == 1


def _attributed(one: Suspect, runs: Runs, again: Runs) -> Message:
    own, beside = runs[one.gpu].first[one.format], runs[one.beside].first[one.format]
    first = digest_log.difference(beside, own)
    assert first is not None  # their summaries differ
    where = _where(one.format, first.step, first.part, first.tensor, first.kind, first.bit)
    majority: Values = {} if one.tied else {"most": one.most, "of": one.of}
    difference = Message(
        english("digest_difference", "{where}, beside {beside}[, as {most} of {of} have it]"),
        {"where": where, "beside": str(one.beside), **majority},
    )
    values: Values = {"difference": difference}
    match _repeats(one, runs, again):
        case None:
            return Message(
                english(
                    "digest_unexplained",
                    "{difference}; its run alone did not end, so whether it repeats them is "
                    "unknown",
                ),
                values,
            )
        case False:
            return Message(
                english(
                    "digest_transient", "transient: {difference}; it does not repeat its own bits"
                ),
                values,
            )
    return Message("digest_persistent_of_two" if one.tied else "digest_persistent", values)


def _where(
    dtype: DigestFormat,
    step: int,
    part: DigestPart,
    tensor: str,
    kind: DigestDifference,
    bit: int | None,
) -> Message:
    """The first difference: format, step, tensor and kind."""
    values: Values = {
        "format": FORMAT_NAMES[dtype],
        "step": step + 1,
        "place": _place(part, tensor),
        "kind": _kind(kind, bit),
    }
    return Message(
        english("digest_where", "{format} from step {step} on, first {place}, {kind}"), values
    )


def _place(part: DigestPart, tensor: str) -> Message:
    match part:
        case "loss":
            return Message(english("digest_in_loss", "in the loss"))
        case "gradient":
            return Message(
                english("digest_in_gradient", "in the gradient of {tensor}"), {"tensor": tensor}
            )
        case "weight":
            return Message(
                english("digest_in_weight", "in the weights {tensor}"), {"tensor": tensor}
            )
    return Message(english("digest_in_moment", "in a moment of {tensor}"), {"tensor": tensor})


def _kind(kind: DigestDifference, bit: int | None) -> Message:
    match kind:
        case "bit":
            return Message(
                english("digest_one_bit", "as one flipped bit {bit} of one element"), known(bit=bit)
            )
        case "not_finite":
            return Message(english("digest_not_finite", "values that are no finite numbers"))
    return Message(english("digest_several", "several bits"))


def repeats_note(differing: Sequence[DifferingRun]) -> Message:
    """What the first repeat with other bits than the first run differs in, and how many follow."""
    one, *others = differing
    where = _where(one.format, one.step, one.part, one.tensor, one.kind, one.bit)
    more = len(others) or None
    return Message(
        english(
            "digest_repeat_differs",
            "transient: run {repeat} differs from the first: {where}[; so do {more} more]",
        ),
        known(repeat=one.repeat + 1, where=where, more=more),
    )
