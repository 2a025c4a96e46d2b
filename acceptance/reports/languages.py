"""The languages of reports.

Each but English has catalogues in fixtures/locale: the sentences of the code (rigproof.po), and
the texts of data files (data.po).
"""

from __future__ import annotations

import gettext
import io
from collections.abc import Mapping
from pathlib import Path

from acceptance import resources
from acceptance.core import regular_file
from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import SetupError, Text, UserError
from acceptance.wording import words

_CODES = {"en": "en", "zh-cn": "zh-CN", "zh": "zh-CN", "zh-sg": "zh-CN", "zh-hans": "zh-CN"}
CODES = ("en", "zh-CN")


def language(code: str) -> Language:
    """One language by its code. Raises SetupError."""
    if code == ENGLISH.code:
        return ENGLISH
    folder = resources.locate("locale") / code.replace("-", "_") / "LC_MESSAGES"
    return Language(code, _read(folder / "rigproof.po"), _read(folder / "data.po"))


def _read(path: Path) -> gettext.GNUTranslations:
    """The translations of one file as their translator wrote it (ADR 0019)."""
    # imported here: whoever reads English needs no catalogue
    from babel.messages import mofile, pofile

    compiled = io.BytesIO()
    try:
        text = io.BytesIO(regular_file.read(path, regular_file.SMALL_RECORD))
        mofile.write_mo(compiled, pofile.read_po(text, abort_invalid=True))
    except OSError as refusal:
        raise SetupError(resources.unreadable(path, refusal)) from refusal
    # not UTF-8, not a .po file, or a wrong header
    except (ValueError, LookupError, pofile.PoFileError) as refusal:
        raise SetupError(f"{path.name}: {refusal}") from refusal
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def choose(given: str | None, environ: Mapping[str, str]) -> Language:
    """The given language, else that of the locale, else English.

    There is no file for Traditional Chinese. Raises UserError if the given language is
    unknown.
    """
    if given is not None:
        code = _CODES.get(given.replace("_", "-").lower())
        if code is None:
            raise UserError(
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


def said(told: Text, language: Language = ENGLISH) -> str:
    """A text of a data file in the reader's language, or a message; otherwise as `words.text`."""
    return language.text(told) if isinstance(told, str) else words.message(told, language)
