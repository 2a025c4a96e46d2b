"""The languages of reports.

Each has a file of fixtures/causes (causes and cures of events, texts of data files) and, but for
English, a folder of fixtures/measurements (causes and cures) and a catalogue of fixtures/locale
(the sentences).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from acceptance import resources
from acceptance.core.language import ENGLISH, Language
from acceptance.expect import measurements
from acceptance.reports import advice, po_file
from acceptance.reports.advice import Catalogue

_CODES = {"en": "en", "zh-cn": "zh-CN", "zh": "zh-CN", "zh-sg": "zh-CN", "zh-hans": "zh-CN"}
CODES = ("en", "zh-CN")


class UnknownLanguage(Exception):
    """An unknown language was requested; the message is one sentence that names the known ones."""


@functools.cache
def catalogue(code: str) -> Catalogue:
    """What is said in one language.

    Raises AdviceFileError, MeasurementFileError or FixtureMissing.
    """
    families = measurements.shipped()
    if code == ENGLISH.code:
        said = advice.in_english(families)
    else:
        said = advice.translated(resources.locate("measurements") / code, families)
    return advice.read(resources.locate("causes") / f"{code}.toml", said)


def language(code: str) -> Language:
    """One language by its code. Raises AdviceFileError, BrokenCatalogue or FixtureMissing."""
    found = catalogue(code)
    if code == ENGLISH.code:
        return ENGLISH
    folder = resources.locate("locale") / code.replace("-", "_") / "LC_MESSAGES"
    texts = {**found.profiles, **found.events, **found.titles, **found.facts}
    return Language(code, po_file.read(folder / "rigproof.po"), texts)


def choose(given: str | None, environ: Mapping[str, str]) -> Language:
    """The given language, else that of the locale, else English.

    There is no file for Traditional Chinese. Raises UnknownLanguage if the given language is
    unknown.
    """
    if given is not None:
        code = _CODES.get(given.replace("_", "-").lower())
        if code is None:
            raise UnknownLanguage(
                f"--lang {given}: there is no such language; there are {' and '.join(CODES)}"
            )
        return language(code)
    # The first that is set decides, as POSIX says of the locale.
    locale = next(
        (value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := environ.get(name))), ""
    )
    return language(
        _CODES.get(locale.partition(".")[0].partition("@")[0].replace("_", "-").lower(), "en")
    )
