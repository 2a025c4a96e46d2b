"""Translation of report sentences by gettext; the key is the English sentence."""

from __future__ import annotations

import functools
import gettext
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the reports.

    `code` is as in HTML's `lang` (`en`, `zh-CN`). `translations` is for the sentences of the code,
    `texts` for the texts of data files, by the English text. What has no translation stays English.
    Measurements, components, the kernel's lines and commands are the same in every language.

    A sentence is a literal where it is used: `pybabel extract` collects the literals. Each
    `{name}` in it is replaced by the value of that name; values are never formats themselves.
    """

    code: str
    translations: gettext.NullTranslations = field(default_factory=gettext.NullTranslations)
    texts: gettext.NullTranslations = field(default_factory=gettext.NullTranslations)

    def __call__(self, sentence: str, /, **values: str | float) -> str:
        """The sentence in this language. Without values its braces are plain text."""
        return _filled(self.translations.gettext(sentence), values)

    def ngettext(self, one: str, many: str, /, n: int, **values: str | float) -> str:
        """The form for `n` things: English has `one` and `many`. `{n}` is the number."""
        return self.translations.ngettext(one, many, n).format(n=n, **values)

    def pgettext(self, key: str, sentence: str, /, **values: str | float) -> str:
        """The sentence as it is said under this key, where its words alone are ambiguous."""
        return _filled(self.translations.pgettext(key, sentence), values)

    def listed(self, names: Iterable[str], /) -> str:
        """Names in a list."""
        form = self.translations.pgettext("names", "{first}, {next}")
        return _joined(form, names)

    def noted(self, text: str, note: str, /) -> str:
        """A text with a note in brackets."""
        form = self.translations.gettext("{text} ({note})")
        return form.format(text=text, note=note)

    def sentences(self, texts: Iterable[str], /) -> str:
        """Whole sentences one after the other: Chinese has no blank between them."""
        return _joined(self.translations.pgettext("sentences", "{first} {next}"), texts)

    def text(self, english: str, /) -> str:
        """A text of a data file: a likely cause, the meaning of an event. Never a format."""
        # Under the empty text a catalogue has its header.
        return self.texts.gettext(english) if english else english


def _joined(form: str, texts: Iterable[str]) -> str:
    first, *others = [*texts] or [""]
    return functools.reduce(lambda told, one: form.format(first=told, next=one), others, first)


def _filled(sentence: str, values: Mapping[str, str | float]) -> str:
    return sentence.format(**values) if values else sentence


ENGLISH = Language("en")
