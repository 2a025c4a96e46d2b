"""Translation of report sentences; the key is the English sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Language:
    """`code` as in HTML's `lang` (`en`, `zh-CN`); `words` has the sentence of this language by the
    English one.

    What is measured, named or quoted (measurements, components, the kernel's lines, commands) is
    the same in every language.
    """

    code: str
    words: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __call__(self, text: str, /, **values: object) -> str:
        """The sentence in this language, or as it stands where there is none; `{name}` in it is
        the value of that name.
        """
        words = self.words.get(text, text)
        return words.format(**values) if values else words


ENGLISH = Language("en")
