"""Translation of report sentences; the key is the English sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the reports.

    `code` is as in HTML's `lang` (`en`, `zh-CN`); `words` maps English sentences to this language.
    Measurements, components, the kernel's lines and commands are the same in every language.
    """

    code: str
    words: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __call__(self, text: str, /, **values: object) -> str:
        """The sentence in this language, or in English where it has no translation.

        `{name}` in it is replaced by the value of that name.
        """
        words = self.words.get(text, text)
        return words.format(**values) if values else words


ENGLISH = Language("en")
