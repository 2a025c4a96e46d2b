"""The GPU model that people mean by a name: `4090` for NVIDIA GeForce RTX 4090. Pure.

A name means a sheet if it is NVML's name of it, the sheet's own name or one of its `aliases`, with
or without "NVIDIA"; else if it has the number of the model, and besides only words of those names
and of the sheet's memory. Case, blanks and hyphens do not matter. Words that are no brand, build,
memory or edition go with the number: "3090" is no "3090 Ti", and "4090 Laptop" no "4090". What
several sheets may be called is never guessed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acceptance.core.message import Listed, Message, UserError, Values, english
from acceptance.core.nearest import nearest
from acceptance.core.plain_text import same_text
from acceptance.expect import sheet
from acceptance.expect.sheet import Sheet
from acceptance.machine.gpu import Gpu

# Words that a name may leave out or add. Without some of them it is the name of several models, and
# so of none.
_BRANDS = frozenset({"nvidia", "geforce", "rtx", "tesla", "quadro", "gpu"})
_EDITIONS = frozenset({"ada", "blackwell", "generation", "edition", "pro", "server", "workstation"})
_BUILD = re.compile(r"pcie|sxm\d?|nvl|ac|\d+gb|hbm\d\w?|gddr\d\w?")
_WORD = re.compile(r"max-q|[^\W_]+")
_MOST_NEAR, _NEAR = 3, 0.5


def _squeezed(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold()).removeprefix("nvidia")


def _spellings(word: str) -> str:
    """A pattern of the ways in which people write such a word."""
    if re.fullmatch(r"\d+gb", word):
        return f"{word[:-2]}g(?:i?b)?"
    return f"{word}?" if re.fullmatch(r"sxm\d", word) else re.escape(_squeezed(word) or word)


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of one sheet: whole ones, and a pattern of those that its words make.

    `number` is the word that its model is known by, such as "4090" or "h100". `loose` also fits
    names that leave out words that tell models of one number apart.
    """

    number: str
    whole: frozenset[str]
    words: re.Pattern[str]
    loose: re.Pattern[str]


@functools.lru_cache(1024)
def _made(
    name: str, nvml_names: tuple[str, ...], aliases: tuple[str, ...], gib: float, memory: str
) -> _Names:
    words = [word for one in (name, *nvml_names) for word in _WORD.findall(one.casefold())]
    extra = {word for word in words if word in _BRANDS | _EDITIONS or _BUILD.fullmatch(word)}
    own = list(dict.fromkeys(word for word in words if word not in extra)) or [_squeezed(name)]
    number = next((word for word in own if re.search(r"\d", word)), own[0])
    more = {*extra, f"{gib:g}gb", memory.casefold(), "nvidia", "gpu"}
    if not {"rtx", "quadro"} & extra:
        more.add("tesla")  # what NVIDIA called its cards for computing until 2020
    some, any_of = (
        f"(?:{'|'.join(sorted(map(_spellings, group)))})*" for group in (more, more | {*own})
    )
    return _Names(
        number,
        frozenset(map(_squeezed, (name, *nvml_names, *aliases))),
        re.compile(some + some.join(map(_spellings, own)) + some),
        re.compile(any_of + _spellings(number) + any_of),
    )


def _names(one: Sheet) -> _Names:
    return _made(one.name, one.nvml_names, one.aliases, one.memory.gib, one.memory.type)


def is_nvml_name(text: str, names: Iterable[str | None]) -> bool:
    """Whether a text is one of these names of NVML: "NVIDIA", case and blanks do not matter."""
    plain = sheet.plain(" ".join(text.split()))
    return any(name is not None and same_text(plain, sheet.plain(name)) for name in names)


def meant(text: str, sheets: Sequence[Sheet]) -> tuple[Sheet, ...]:
    """The sheets of the model that a name means: none if it is nobody's, several if it is unclear.

    Where it is unclear, these are all that it may mean.
    """
    name = _squeezed(text)
    if whole := [one for one in sheets if name in _names(one).whole]:
        return tuple(whole)
    if len(found := [one for one in sheets if _names(one).words.fullmatch(name)]) > 1:
        found = [one for one in sheets if _names(one).loose.fullmatch(name)]
    return tuple(found)


def near(text: str, sheets: Sequence[Sheet]) -> tuple[str, ...]:
    """NVML's names that are like a name that is nobody's, the most alike first.

    Those of the same number, where there are any.
    """
    of_number = [one for one in sheets if _names(one).number in _squeezed(text)]
    names = {_short(name): name for one in of_number or sheets for name in one.nvml_names}
    likeness = 0.0 if of_number else _NEAR
    return tuple(names[one] for one in nearest(_short(text), names, _MOST_NEAR, likeness))


def _short(name: str) -> str:
    """A name without the brands, which make all names alike."""
    return re.sub(rf"(?i){'|'.join(sorted(_BRANDS))}", " ", name).strip()


def read(
    text: str, where: str, cards: Iterable[str | None], sheets: Sequence[Sheet]
) -> Message | None:
    """What the reader of a machine file must know of the model that it declares, if anything.

    Nothing of a name that NVML gives a model, or one of these cards. `where` is the key. Raises
    UserError.
    """
    if is_nvml_name(text, cards) or text in (name for one in sheets for name in one.nvml_names):
        return None
    found = meant(text, sheets)
    if len(found) > 1:
        names = [one.nvml_names[0] for one in found]
        if len(set(names)) < len(names):
            names = [one.name for one in found]
        *others, last = names
        told = f"{', '.join(others)} or {last}"
        raise UserError(f"{text!r} may be {told}: write the one that it is")
    if not found:
        values: Values = {"where": where, "name": repr(text)}
        if not (like := near(text, sheets)):
            return Message(
                english(
                    "gpu_model_without_sheet",
                    "{where} is {name}, of which no sheet is known, so it is compared with NVML's "
                    "name as it stands",
                ),
                values,
            )
        return Message(
            english(
                "gpu_model_like",
                "{where} is {name}, of which no sheet is known, so it is compared with NVML's "
                "name as it stands; correct it if it is meant to be {near}",
            ),
            {**values, "near": Listed(like)},
        )
    values = {"where": where, "name": repr(text), "model": Listed(found[0].nvml_names)}
    name = _squeezed(text)
    if others := [
        one.nvml_names[0]
        for one in sheets
        if one is not found[0] and _names(one).words.fullmatch(name)
    ]:
        return Message(
            english(
                "gpu_model_first_of",
                "{where} is {name}, read as {model}; if it is another one ({others}), write that "
                "name",
            ),
            {**values, "others": Listed(tuple(others))},
        )
    return Message(english("gpu_model_read", "{where} is {name}, read as {model}"), values)


def is_of(text: str, gpu: Gpu, sheets: Sequence[Sheet]) -> bool:
    """Whether a card is of the model that a declared name means.

    A name of NVML means cards of that name alone, as does any name that is no sheet's.
    """
    if is_nvml_name(text, [gpu.model]):
        return True
    found = meant(text, sheets)
    if len(found) != 1 or is_nvml_name(text, found[0].nvml_names):
        return False
    card = sheet.find(sheets, pci_id=gpu.device_id, nvml_name=gpu.model)
    return is_nvml_name(gpu.model or "", found[0].nvml_names) and card in (None, found[0])
