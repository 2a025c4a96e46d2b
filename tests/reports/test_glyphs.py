from __future__ import annotations

from cases import each

from acceptance.reports.text import ASCII, UNICODE, Glyphs, glyphs_for, plain_locale


@each(
    "encoding, drawn",
    [
        ("utf-8", UNICODE),
        ("UTF-8", UNICODE),
        ("utf-16", UNICODE),
        ("ascii", ASCII),
        ("latin-1", ASCII),
        ("gb18030", ASCII),
        ("", ASCII),
    ],
)
def test_what_a_stream_can_carry_is_drawn(encoding: str, drawn: Glyphs) -> None:
    assert glyphs_for(encoding) is drawn


@each(
    "environ, plain",
    [
        ({"LC_ALL": "C"}, True),
        ({"LC_ALL": "POSIX", "LANG": "en_GB.UTF-8"}, True),
        ({"LC_ALL": "C.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "C"}, True),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, False),
        ({"LANG": "de_DE.UTF-8"}, False),
        ({}, False),
    ],
)
def test_a_locale_that_asks_for_ascii(environ: dict[str, str], plain: bool) -> None:
    assert plain_locale(environ) is plain


def test_the_plain_ones_are_ascii() -> None:
    assert "".join((ASCII.degree, ASCII.more, ASCII.between, ASCII.spinner)).isascii()
