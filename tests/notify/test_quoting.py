from __future__ import annotations

import re
import shlex

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

from acceptance.core.message import UserError
from acceptance.notify.schedule import units

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@each(
    "text, quoted",
    [
        ("/usr/bin/rigproof", "/usr/bin/rigproof"),
        ("--out=/a-b_c@d:e,f+g", "--out=/a-b_c@d:e,f+g"),
        ("", '""'),
        ("a b", '"a b"'),
        ('say "x"', '"say \\"x\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("50%", '"50%%"'),
        ("$HOME", '"$$HOME"'),
        (";", '";"'),
        ("it's", '"it\'s"'),
        ("two\nlines\t\x1b", '"two\\x0alines\\x09\\x1b"'),
        ("中文", '"中文"'),
    ],
)
def test_an_argument(text: str, quoted: str) -> None:
    assert units.quote_word(text) == quoted


def test_in_the_programs_path_no_variable_is_replaced() -> None:
    assert units.quote_program("/a $b/50%") == '"/a $b/50%%"'


@given(text=texts)
def test_whatever_an_argument_holds_the_unit_stays_a_line(text: str) -> None:
    quoted = units.quote_word(text)
    assert len(quoted.split("\n")) == 1
    if quoted.startswith('"'):
        # Read as systemd.syntax(7) says: escapes, then doubled signs.
        inner = re.sub(
            r"\\x(..)|\\(.)",
            lambda m: chr(int(m[1], 16)) if m[1] else m[2],
            quoted[1:-1],
            flags=re.DOTALL,
        )
        assert inner.replace("$$", "$").replace("%%", "%") == text
    else:
        assert quoted == text
        assert not set("$%\\\"'; ") & set(text)


@pytest.mark.parametrize("text", ["a\0b", "\udcff"])
def test_what_no_unit_can_hold(text: str) -> None:
    with pytest.raises(UserError, match="holds a character that no unit can hold"):
        units.quote_word(text)


@pytest.mark.parametrize("path", ["/a'b", '/a"b', "/a\\b", "/a\nb", "/\udcff", "/a\0b"])
def test_what_systemd_does_not_start(path: str) -> None:
    with pytest.raises(UserError, match="has a name that systemd does not start"):
        units.quote_program(path)


@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12), min_size=1, max_size=4
    )
)
def test_cron_hands_on_what_the_shell_is_to_read(words: list[str]) -> None:
    line = units.cron_words(words)
    # crontab(5): a percent sign that is not escaped ends the command; of one that is the backslash
    # goes.
    assert not re.search(r"(?<!\\)%", line)
    assert shlex.split(line.replace(r"\%", "%")) == words


@pytest.mark.parametrize("text", ["a\nb", "\x1b", "\udcff"])
def test_what_no_crontab_can_hold(text: str) -> None:
    with pytest.raises(UserError, match="no crontab can hold"):
        units.cron_words(["echo", text])
