"""Reader of gettext's .po files, so that a language runs as its translator wrote it.

There is no compiled copy that could be missing or older than its source (ADR 0019).
"""

from __future__ import annotations

import gettext
import io
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from acceptance.core import regular_file
from acceptance.core.message import SetupError

_LINE = re.compile(
    r'(?:(?P<field>msgctxt|msgid|msgid_plural|msgstr|msgstr\[\d\]) )?"(?P<text>(?:[^"\\]|\\.)*)"'
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"\\": "\\", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
# gettext's separators inside a key and a text of a .mo file
_CONTEXT, _FORMS = "\x04", "\0"


def read(path: Path) -> gettext.GNUTranslations:
    """The translations of one file. Raises SetupError if anything is wrong.

    Comments are skipped, obsolete entries with them. An entry without a translation is left out.
    """
    try:
        text = regular_file.read(path, regular_file.SMALL_RECORD).decode("utf-8")
        return gettext.GNUTranslations(io.BytesIO(_mo_file(dict(_messages(text)))))
    except OSError as refusal:
        raise SetupError(
            f"{_shown(path)}: cannot be read ({refusal.strerror}): install rigproof again"
        ) from refusal
    except (ValueError, LookupError) as refusal:  # not UTF-8, not a .po file, or a wrong header
        raise SetupError(f"{_shown(path)}: {refusal}") from refusal


def _shown(path: Path) -> str:
    return "/".join(path.parts[-3:])  # locale, LC_MESSAGES and domain


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """Key and text of every translated entry, as a .mo file has them."""
    keys = set()
    for number, entry in _entries(text):
        forms = [entry[name] for name in sorted(entry) if name.startswith("msgstr")]
        plural = entry.get("msgid_plural")
        names = {"msgid", "msgstr"}
        if plural is not None:
            names = {"msgid", "msgid_plural", *(f"msgstr[{index}]" for index in range(len(forms)))}
        if entry.keys() - {"msgctxt"} != names:
            raise ValueError(f"line {number}: an entry is not whole")
        key = entry["msgid"] if plural is None else _FORMS.join((entry["msgid"], plural))
        if "msgctxt" in entry:
            key = f"{entry['msgctxt']}{_CONTEXT}{key}"
        if key in keys:
            raise ValueError(f"line {number}: an entry stands twice")
        keys.add(key)
        if all(forms):
            yield key, _FORMS.join(forms)


def _entries(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The fields of every entry, and the number of its first line."""
    entry: dict[str, str] = {}
    first, name = 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None or not (match["field"] or name):
            raise ValueError(f"line {number}: is not a line of a .po file: {line!r}")
        if "msgid" in entry and match["field"] in ("msgctxt", "msgid"):
            yield first, entry
            entry = {}
        first = first if entry else number
        name = match["field"] or name
        if match["field"] and name in entry:
            raise ValueError(f"line {number}: {name} stands twice")
        entry[name] = entry.get(name, "") + _ESCAPE.sub(_unescaped, match["text"])
    yield first, entry


def _unescaped(match: re.Match[str]) -> str:
    if match[1] not in _ESCAPED:
        raise ValueError(f"{match[0]} is no escape of a .po file")
    return _ESCAPED[match[1]]


def _mo_file(messages: Mapping[str, str]) -> bytes:
    """The messages in the form that the standard library's gettext reads."""
    pairs = sorted((key.encode(), text.encode()) for key, text in messages.items())
    texts = [key for key, _ in pairs] + [text for _, text in pairs]
    head = struct.Struct("<7I")  # magic, revision, entries, keys at, texts at, no hash table
    table = struct.Struct("<2I")  # length, offset
    entries, offset = b"", head.size + table.size * len(texts)
    for text in texts:
        entries += table.pack(len(text), offset)
        offset += len(text) + 1
    texts_at = head.size + table.size * len(pairs)
    return (
        head.pack(0x950412DE, 0, len(pairs), head.size, texts_at, 0, 0)
        + entries
        + b"".join(text + b"\0" for text in texts)
    )
