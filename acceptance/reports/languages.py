"""The languages that reports speak, each a file of fixtures/causes: the sentences by the English
ones, and the causes and cures.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from acceptance import resources
from acceptance.core.language import ENGLISH, Language
from acceptance.reports import advice
from acceptance.reports.advice import Catalogue

_CODES = {"en": "en", "zh-cn": "zh-CN", "zh": "zh-CN", "zh-sg": "zh-CN", "zh-hans": "zh-CN"}
CODES = ("en", "zh-CN")


class UnknownLanguage(Exception):
    """A language was asked for that there is not; the message is one sentence
    that names those there are.
    """


@functools.cache
def catalogue(code: str) -> Catalogue:
    """The file of one language. Raises AdviceFileError and FixtureMissing."""
    return advice.read(resources.locate("causes") / f"{code}.toml")


def language(code: str) -> Language:
    """One language by its code. Raises AdviceFileError and FixtureMissing."""
    found = catalogue(code)
    if code == ENGLISH.code:
        return ENGLISH
    return Language(code, {**found.profiles, **found.events, **found.titles, **found.words})


def choose(given: str | None, environ: Mapping[str, str]) -> Language:
    """The language that was asked for, else that of the locale, else English; Traditional Chinese
    is not what the file has.

    Raises UnknownLanguage for one that was asked for and is not there.
    """
    if given is not None:
        code = _CODES.get(given.replace("_", "-").lower())
        if code is None:
            raise UnknownLanguage(
                f"--lang {given}: there is no such language; there are {' and '.join(CODES)}"
            )
        return language(code)
    # The first that is set decides, as for every program (POSIX, locale).
    locale = next(
        (value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := environ.get(name))), ""
    )
    return language(
        _CODES.get(locale.partition(".")[0].partition("@")[0].replace("_", "-").lower(), "en")
    )
