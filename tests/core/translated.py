"""A language of a few sentences, for tests of what speaks it."""

from __future__ import annotations

import gettext
from collections.abc import Mapping

from acceptance.core.language import Language


class Sentences(gettext.NullTranslations):
    """Translations from a table; a plural by its form for many."""

    def __init__(self, sentences: Mapping[str, str]) -> None:
        super().__init__()
        self._sentences = sentences

    def gettext(self, message: str) -> str:
        return self._sentences.get(message, message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self._sentences.get(msgid2) or super().ngettext(msgid1, msgid2, n)


def language(sentences: Mapping[str, str], code: str = "xx") -> Language:
    return Language(code, Sentences(sentences))
