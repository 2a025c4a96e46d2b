"""Translation of report sentences by gettext; the key is the English sentence."""

from __future__ import annotations

import gettext
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the reports.

    `code` is as in HTML's `lang` (`en`, `zh-CN`). `translations` is for the sentences of the code,
    `texts` for those of data files, by the English text. What has no translation stays English.
    Measurements, components, the kernel's lines and commands are the same in every language.

    A sentence is a literal where it is used: `pybabel extract` collects the literals. Each
    `{name}` in it is replaced by the value of that name; values are never formats themselves.
    """

    code: str
    translations: gettext.NullTranslations = field(default_factory=gettext.NullTranslations)
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __call__(self, sentence: str, /, **values: object) -> str:
        """The sentence in this language. Without values its braces are plain text."""
        return _filled(self.translations.gettext(sentence), values)

    def ngettext(self, one: str, many: str, /, n: int, **values: object) -> str:
        """The form for `n` things: English has `one` and `many`. `{n}` is the number."""
        return self.translations.ngettext(one, many, n).format(n=n, **values)

    def pgettext(self, key: str, sentence: str, /, **values: object) -> str:
        """The sentence as it is said under this key, where its words alone are ambiguous."""
        return _filled(self.translations.pgettext(key, sentence), values)

    def text(self, english: str, /) -> str:
        """A text of a data file: the title of a check, the meaning of an event. Never a format."""
        return self.texts.get(english, english)


def _filled(sentence: str, values: Mapping[str, object]) -> str:
    return sentence.format(**values) if values else sentence


def N_(sentence: str, /) -> str:
    """The sentence itself: marks one in a table, which a Language translates later."""
    return sentence


ENGLISH = Language("en")
