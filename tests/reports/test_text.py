from __future__ import annotations

import sys

from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.language import ENGLISH
from acceptance.reports import languages, templating
from acceptance.reports import text as reports_text
from acceptance.reports.text import clean, degrees, duration, one_line, quoted_code

SEQUENCES = "\x1b[0m" * 30_000 + "FAULTY"
TOLD = "`x` at 78 degC"


@each(
    "made, shown",
    [
        *(
            (one_line(text), shown)
            for text, shown in (
                ("\x1b[31mred\x1b[0m", "red"),
                ("\x1b]0;a title\x07after", "after"),
                ("\x1b]8;;http://x\x1b\\link", "link"),
                ("bell\x07null\x00", "bell\ufffdnull\ufffd"),
                ("a\r\nb\rc", "a b c"),
                ("\x9b31m", "\ufffd31m"),
                ("exe\u202egpj.", "exe\ufffdgpj."),
                ("\ud800", "\ufffd"),
                (
                    "gpu\u200b0 \ufeffx\u00ad\u200fy \U000e0041",
                    "gpu\ufffd0 \ufffdx\ufffd\ufffdy \ufffd",
                ),
                ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
                ("a\x85b\u2028c\u2029d", "a b c d"),
                ("tab\there", "tab here"),
                ("]]> <b> & \U0001d558", "]]> <b> & \U0001d558"),
                ("x" * 3_000, "x" * 2_000 + "... (1000 more characters)"),
                # what stands behind a flood of sequences is not hidden unsaid
                (SEQUENCES, f"... ({len(SEQUENCES) - 2_000} more characters)"),
            )
        ),
        (clean("y" * 10**7, 10), "y" * 10 + f"... ({10**7 - 10} more characters)"),
        *(
            (duration(seconds), text)
            for seconds, text in (
                *((0, "0 s"), (41.6, "42 s"), (119, "119 s"), (120, "2 min")),
                *((7199, "2 h 0 min"), (7500, "2 h 5 min")),
            )
        ),
        *(
            (quoted_code(text), shown)
            for text, shown in (
                ("run `rigproof plan`: see `a b`", "run 'rigproof plan': see 'a b'"),
                ("`rigproof --machine 'a b'`", "\"rigproof --machine 'a b'\""),
                ("one ` alone", "one ` alone"),
                ("none", "none"),
            )
        ),
        *(
            (degrees(text), shown)
            for text, shown in (
                ("78 degC, its equals 65 degC", "78 \u00b0C, its equals 65 \u00b0C"),
                ("degC", "\u00b0C"),
                ("degCelsius and nodegC", "degCelsius and nodegC"),
            )
        ),
        (reports_text.sentence(TOLD, reports_text.UNICODE), "'x' at 78 \u00b0C"),
        (reports_text.sentence(TOLD, reports_text.ASCII), "'x' at 78 degC"),
        # the blank after a label is the language's
        (templating.gap(ENGLISH), " "),
        (templating.gap(languages.language("zh-CN")), ""),
    ],
)
def test_a_text(made: str, shown: str) -> None:
    assert made == shown


def test_a_flood_of_sequences_alone_is_short() -> None:
    assert len(clean("\x1b[0m" * 10**7)) < 100


def test_what_is_printable_is_left_as_it_is() -> None:
    """`clean` passes it on unseen: nothing in it is what is looked for in the rest."""
    printable = "".join(
        letter for letter in map(chr, range(sys.maxunicode + 1)) if letter.isprintable()
    )
    assert len(printable) > 100_000
    assert clean(f"{printable}\n", 2 * len(printable)) == f"{printable}\n"


@given(st.text(st.characters() | st.sampled_from("\x1b[]\x07\x00\r\n\u202e")))
def test_nothing_harmful_is_left(text: str) -> None:
    shown = one_line(text)
    assert shown.isprintable() or all(
        letter.isprintable() or letter in " \xa0" or ord(letter) > 0x9F for letter in shown
    )
    assert "\n" not in shown
    assert "\x1b" not in clean(text)
    shown.encode("utf-8")


@each(
    "text, shown",
    [
        ("see `a < b` now", "see <code>a &lt; b</code> now"),
        ("<b>`</b> alone", "&lt;b&gt;`&lt;/b&gt; alone"),
        ("`78 degC`", "<code>78 \u00b0C</code>"),
    ],
)
def test_a_page_shows_code_as_code(text: str, shown: str) -> None:
    page = templating.environment("acceptance.reports.page").from_string("{{ text }}")
    assert page.render(text=text) == shown
    foreign = templating.environment("acceptance.reports.page").from_string("{{ text | verbatim }}")
    assert "<code>" not in foreign.render(text=text)
