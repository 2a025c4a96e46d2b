"""What our reader of .po files gives is what Babel's compiler gives, or an error with the line."""

from __future__ import annotations

import gettext
import io
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import write_po
from cases import each
from hypothesis import example, given
from hypothesis import strategies as st

from acceptance.core.message import SetupError
from acceptance.wording import po_file

HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
    '"Plural-Forms: nplurals=1; plural=0;\\n"\n\n'
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\x04"), min_size=1)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "xx/LC_MESSAGES/rigproof.po"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def compiled(catalogue: Catalog) -> gettext.GNUTranslations:
    file = io.BytesIO()
    write_mo(file, catalogue)
    file.seek(0)
    return gettext.GNUTranslations(file)


@example([("key", "{n} night", "{n} nights", "x"), (None, 'a "\\\n\t', None, "b\r")])
@given(st.lists(st.tuples(st.none() | texts, texts, st.none() | texts, texts), max_size=5))
def test_a_catalogue_is_read_as_babel_compiles_it(
    tmp_path_factory: pytest.TempPathFactory,
    entries: list[tuple[str | None, str, str | None, str]],
) -> None:
    catalogue = Catalog(locale="ru", charset="utf-8")
    for context, one, many, told in entries:
        forms = (told, f"{told} few", f"{told} many") if many is not None else told
        if catalogue.get(one, context) is None:  # a sentence has a plural or has none
            catalogue.add(one if many is None else (one, many), forms, context=context)
    file = io.BytesIO()
    write_po(file, catalogue)
    path = written(tmp_path_factory.getbasetemp() / "babel", file.getvalue().decode())
    ours, theirs = po_file.read(path), compiled(catalogue)
    for context, one, many, _ in entries:
        for n in range(12):
            assert ours.ngettext(one, many or one, n) == theirs.ngettext(one, many or one, n)
            if context is not None:
                got, due = (read.npgettext(context, one, many or one, n) for read in (ours, theirs))
                assert got == due
        assert ours.gettext(one) == theirs.gettext(one)
        if context is not None:
            assert ours.pgettext(context, one) == theirs.pgettext(context, one)


def test_comments_line_ends_and_entries_without_a_translation(tmp_path: Path) -> None:
    read = po_file.read(
        written(
            tmp_path,
            HEADER.replace("\n\n", "\r\n\r\n")
            + '#, python-brace-format\nmsgid "a {n}\\t"\nmsgstr ""\n"ein "\n"{n}\\t"\n\n'
            + 'msgid "b"\nmsgstr ""\n#~ msgid "old"\n#~ msgstr "alt"\n',
        )
    )
    assert read.gettext("a {n}\t") == "ein {n}\t"
    assert (read.gettext("b"), read.gettext("old")) == ("b", "old")


@each(
    "text, told",
    [
        ('msgid "a\nmsgstr "b"\n', "line 6: is not a line of a .po file: 'msgid \"a'"),
        ('msgid "a"b"\nmsgstr "b"\n', "line 6: is not a line"),
        ("msgid a\n", "line 6: is not a line"),
        ('msgid "a"\nmsgstr "b"\nmsgstr "c"\n', "line 8: msgstr stands twice"),
        ('msgid "a"\nmsgid "b"\nmsgstr "c"\n', "line 6: an entry is not whole"),
        ('msgid "a"\n', "line 6: an entry is not whole"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr "c"\n', "line 6: an entry is not whole"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] "c"\n', "line 6: an entry is not whole"),
        ('msgid "a"\nmsgstr "b"\n\nmsgid "a"\nmsgstr "b"\n', "line 9: an entry stands twice"),
        ('msgid "a"\nmsgstr "\\x41"\n', r"\x is no escape of a .po file"),
    ],
)
def test_what_is_no_entry_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SetupError) as caught:
        po_file.read(written(tmp_path, HEADER + text))
    assert str(caught.value).startswith(f"xx/LC_MESSAGES/rigproof.po: {told}")


ENTRY = 'msgid "a"\nmsgstr "ä"\n'


@each(
    "content, told",
    [
        (None, r"\(No such file or directory\): install rigproof"),
        (b"# a comment\n", "line 0: an entry is not whole"),
        (b"\xff", "utf-8"),
        *(
            (f"{header}{ENTRY}".encode(), "")
            for header in (
                '"a"\n',  # of no field
                HEADER.replace("plural=0", "plural=n**9"),
                HEADER.replace("plural=0", "0"),
                HEADER.replace("utf-8", "latin-99"),
                "",  # ASCII, then
            )
        ),
    ],
)
def test_a_file_that_is_none_or_has_a_wrong_header_is_named(
    tmp_path: Path, content: bytes | None, told: str
) -> None:
    path = written(tmp_path, "")
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(SetupError, match=rf"^xx/LC_MESSAGES/rigproof\.po: .*{told}"):
        po_file.read(path)
