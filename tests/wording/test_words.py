"""The wordings of findings: one for every code in every language, whole and with its plurals."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from string import Formatter
from typing import get_args

from cases import each
from hypothesis import given
from hypothesis import strategies as st

import acceptance
from acceptance.core.advice import Presence, Side
from acceptance.core.finding import Finding
from acceptance.core.language import ENGLISH
from acceptance.core.message import Listed, Message, Quantity, Range, Term, Unmeasured, Value
from acceptance.core.parts import Function, Gpu
from acceptance.core.past import DriftReason
from acceptance.reports import languages
from acceptance.wording import words
from acceptance.wording.errors import each_once

PACKAGE = Path(acceptance.__file__).parent
CHINESE = languages.language("zh-CN")
# What makes a finding or a message, and which of its arguments is the code.
MAKERS = {
    "Finding": 2,
    "Message": 0,
    "DriftFinding": 2,
    "MachineChange": 3,  # its values are joined from several places
    "finding": 1,
    "_form": 0,
    "Row": 2,
    "__init__": 0,  # of an error's base
    "_each_of": 0,
    "_with_waived": 0,
    "_mismatch": 0,
    "_clock": 0,
    "unexpected": 0,
    "_untold": 0,
    "matched": 0,
    "repeated_cell": 0,
    "unread": 2,
}
TAKES_APART = {
    *("partition", "rpartition", "split", "rsplit", "splitlines", "replace", "translate"),
    *("removeprefix", "removesuffix", "startswith", "endswith", "find", "rfind", "index", "strip"),
    *("match", "fullmatch", "search", "findall", "finditer", "sub"),
}
# Attributes that hold a sentence of ours, and the calls that make one.
SENTENCES = {"message", "detail", "what"}
# Where the text of an exception is looked at, and it is Python's, SQLite's or anybody's.
SOMEBODY_ELSES = {"machine/toml_place.py", "session/plugin.py"}
SOMEBODY_ELSES |= {"loads/program.py", "expect/site_families.py"}


# The rooms whose errors a report may show: they say codes, which every language words.
CODED = {
    *("diagnosis", "history", "journal", "machine", "notify", "observe", "process", "run"),
    *("session", "station", "suites", "tools", "watch"),
}
# A wrong caller, Python's own kinds, and values that cannot be: no words for a reader.
PYTHONS = {"RuntimeError", "ValueError", "OSError", "PermissionError", "ValidationError"}
# Errors of these rooms that have a sentence, and why no report shows it.
SENTENCE_ERRORS = {
    # they end a command before a run, or one that makes no report, on standard error
    *((room, "UserError") for room in ("machine", "notify", "observe", "run")),
    *((room, "SetupError") for room in ("history", "run", "station")),
    ("run", "KeyboardInterrupt"),
    ("run", "_refused"),
    ("machine", "_error"),
    ("machine", "TomlError"),
    # mistakes in a site's own checks, found before a run
    ("session", "Mistake"),
    # the terminal of one who starts pytest by hand
    ("session", "UsageError"),
}


@cache
def modules() -> list[tuple[str, ast.Module]]:
    return [
        (path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for path in PACKAGE.rglob("*.py")
    ]


@cache
def walk(node: ast.AST) -> list[ast.AST]:
    """A node with all within it: looked through once for all tests."""
    return list(ast.walk(node))


def dotted(node: ast.expr) -> str:
    """What is called, such as `words.of`; of a call's result, `said(.partition`."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return f"{dotted(node.func)}("
    return node.id if isinstance(node, ast.Name) else ""


def is_wording(node: ast.AST) -> bool:
    """Whether this is a code with its English beside it."""
    return isinstance(node, ast.Call) and dotted(node.func) in ("english", "plural")


def literals(node: ast.expr, function: ast.AST) -> Iterator[str | None]:
    """The texts that an argument may be; a name is looked up where its function sets it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Call) and is_wording(node):
        yield from literals(node.args[0], function)
    elif isinstance(node, ast.IfExp):
        yield from literals(node.body, function)
        yield from literals(node.orelse, function)
    elif isinstance(node, ast.Name):
        given_ = [
            one.value
            for one in walk(function)
            if isinstance(one, ast.Assign)
            and any(isinstance(to, ast.Name) and to.id == node.id for to in one.targets)
        ]
        for value in given_:
            yield from literals(value, function)
        if not given_:
            yield None
    else:
        yield None


@cache
def functions(tree: ast.Module) -> list[ast.AST]:
    """The functions, and the module without them."""
    outside = [one for one in tree.body if not isinstance(one, ast.FunctionDef | ast.ClassDef)]
    return [
        *(one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)),
        ast.Module(outside, []),
    ]


@cache
def told_errors() -> Set[str]:
    """The names of the errors whose first argument is a code."""
    bases = [
        (one.name, {dotted(to) for to in one.bases})
        for _, tree in modules()
        for one in walk(tree)
        if isinstance(one, ast.ClassDef)
    ]
    found: set[str] = set()
    more = {"Coded"}
    while more - found:
        found |= more
        more = {name for name, of in bases if of & found}
    return found


@cache
def codes() -> dict[str, set[str]]:
    """The codes that the product makes, each with the modules that do."""
    found: dict[str, set[str]] = {}
    errors = told_errors()
    for name, tree in modules():
        for function in functions(tree):
            for call in walk(function):
                if not isinstance(call, ast.Call):
                    continue
                maker = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
                place = 0 if maker in errors else MAKERS.get(maker)
                if place is None or len(call.args) <= place:
                    continue
                for code in literals(call.args[place], function):
                    if code is not None and re.fullmatch(r"[a-z]+(_[a-z]+)*", code):
                        found.setdefault(code, set()).add(name)
    return found


def fields(form: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(form) if name is not None}


def optional(form: str) -> list[set[str]]:
    """The names of the values in each part that is left out without them."""
    return sorted((fields(part) for part in re.findall(r"\[([^\[\]]*)\]", form)), key=sorted)


def test_every_code_has_its_sentence() -> None:
    made = codes().keys() | set(get_args(DriftReason)) | {one.value for one in Unmeasured}
    assert {"outside_limit", "never_ran", "part_missing", "drifted", "and_more"} <= made
    assert made <= words.sentences().keys()


def test_the_forms_of_a_plural_have_the_same_values() -> None:
    for code, forms in words.sentences().items():
        for form in forms:
            assert fields(form) == fields(forms[0]), code


def test_what_is_not_known_is_left_out_alike_in_every_language() -> None:
    for code, forms in words.sentences().items():
        for form in (*forms, CHINESE.translations.pgettext(code, forms[0])):
            rest = re.sub(r"\[[^\[\]]*\{[^\[\]]*\]", "", form)
            assert not {"[", "]"} & set(rest), (code, form)
            assert optional(form) == optional(forms[0]), (code, form)


def test_what_is_said_again_is_said_once() -> None:
    one, other = Message("nights", {"n": 1}), Message("nights", {"n": 2})
    assert each_once([one, other, one]) == (one, other)


def test_a_number_of_things_has_its_plural() -> None:
    assert [words.message(Message("nights", {"n": n})) for n in (0, 1, 2)] == [
        "0 nights",
        "1 night",
        "2 nights",
    ]
    assert [words.message(Message("days", {"n": n})) for n in (1.0, 1.5, 21)] == [
        "1 day",
        "1.5 days",
        "21 days",
    ]
    assert words.message(Message("nights", {"n": 1}), CHINESE) == "1 夜"


@each(
    "value, told",
    [
        ("text {0} %s", "text {0} %s"),
        (3, "3"),
        (0.123456, "0.1235"),
        (Quantity(99.99999, "GB/s"), "100 GB/s"),
        (Quantity(99.99999, "GB/s", exact=True), "99.99999 GB/s"),
        (Quantity(2.0, "count", exact=True), "2.0"),
        (Range("W", 1.0, 5.0), "1 .. 5 W"),
        (Range("W", 5.0, 5.0), "= 5 W"),
        (Term("kernel"), "kernel"),
        (Message("nights", {"n": 2}), "2 nights"),
        (("a", Message("nights", {"n": 1}), "b"), "a; 1 night; b"),
        ((), ""),
        (Listed(("a", Term("b"))), "a, b"),
        (Listed(("a", "b"), 3), "a, b and 3 more"),
        (Listed(()), ""),
        (Message(""), ""),
        (Message("two_lines", {"text": "a\n b"}), "two_lines: a b"),
    ],
)
def test_a_value_in_words(value: Value, told: str) -> None:
    assert words.message(Message("note", {"text": value})) == told


def test_a_term_and_what_stands_in_a_message_are_in_the_readers_language() -> None:
    told = Message("fact_of", {"fact": Term("kernel"), "part": "gpu0"})
    assert words.message(told, CHINESE) == f"gpu0 的 {CHINESE.text('kernel')}"
    named = Message("facts_unread", {"facts": Listed((told, "x"), 2), "date": "2026-01-01"})
    assert words.message(named, CHINESE).endswith(f"{CHINESE.text('kernel')}、x 等，另有 2 个")  # noqa: RUF001


def test_a_value_outside_its_limit_in_chinese() -> None:
    finding = Finding(
        "fail",
        "link.copy",
        "outside_limit",
        {
            "measured": Quantity(3.0, "GB/s"),
            "note": "limit, note",
            "limit": Range("GB/s", 10.0),
            "basis": "half of the peak",
        },
        "copy_h2d",
        Gpu(0),
    )
    assert words.of(finding, CHINESE) == (
        "gpu0 的 copy_h2d：测得 3 GB/s（limit, note），"  # noqa: RUF001
        "限值 >= 10 GB/s；依据：half of the peak"  # noqa: RUF001
    )
    assert words.of(finding) == (
        "copy_h2d on gpu0: measured 3 GB/s (limit, note), limit >= 10 GB/s; basis: half of the peak"
    )


def test_an_event_is_told_by_its_meaning() -> None:
    meaning = Term("The GPU no longer answers on the PCIe bus.")
    values = {"event": "xid 79", "meaning": meaning}
    finding = Finding("fail", "run", "event_on", values, component=Function("0000:01:00.0"))
    assert words.of(finding, CHINESE) == "0000:01:00.0 上的 xid 79：GPU 在 PCIe 总线上不再回应。"  # noqa: RUF001


@given(st.text())
def test_a_text_from_outside_is_handed_on_as_it_came(text: str) -> None:
    for language in (ENGLISH, CHINESE):
        assert text in words.of(Finding("error", "a", "ended", {"text": text}), language)


def test_a_code_of_another_version_is_shown_with_its_values() -> None:
    told = Message("no_such_code", {"of": "gpu0", "n": 2, "took": Quantity(3.0, "s")})
    for language in (ENGLISH, CHINESE):
        assert words.message(told, language) == "no_such_code: gpu0: 2: 3 s"


def given_names(call: ast.Call, place: int, told: bool) -> set[str] | None:
    """The names of the values that a call gives with a code; None where they are not literal."""
    if told:
        names = [one.arg for one in call.keywords]
        return None if None in names else {name for name in names if name}
    values = call.args[place + 1] if len(call.args) > place + 1 else None
    if values is None:
        return set() if not call.keywords else None
    if isinstance(values, ast.Dict) and all(isinstance(key, ast.Constant) for key in values.keys):
        return {str(key.value) for key in values.keys if isinstance(key, ast.Constant)}
    return None


def test_every_code_comes_with_the_values_of_its_wording() -> None:
    """Where its values stand beside it."""
    english, errors, seen = words.sentences(), told_errors(), 0
    for name, tree in modules():
        if name == "baseline/changes.py":  # joins the values of a change from two places
            continue
        for function in functions(tree):
            for call in walk(function):
                if not isinstance(call, ast.Call):
                    continue
                maker = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
                told = maker in errors
                place = 0 if told else MAKERS.get(maker)
                if place is None or maker == "_form" or len(call.args) <= place:
                    continue
                given_ = given_names(call, place, told)
                if given_ is None:
                    continue
                for code in literals(call.args[place], function):
                    if code not in english:
                        continue
                    seen += 1
                    about = set() if told or maker == "Message" else {"measurement", "component"}
                    due = fields(re.sub(r"\[[^\[\]]*\]", "", english[code][0])) - about
                    assert due <= given_ <= fields(english[code][0]) | {"n"}, (name, code)
    assert seen > 30


# --- nobody takes a sentence of ours apart ---


def is_sentence(node: ast.AST, held: Set[str] = frozenset()) -> bool:
    """Whether an expression is a sentence of ours, or is made of one; `held` are names of some."""
    if isinstance(node, ast.Name) and node.id in held:
        return True
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            called = dotted(one.func)
            if called.startswith(("words.of", "words.message", "words.text", "said(")):
                return True
            if called == "str" and one.args and dotted(one.args[0]) == "error":
                return True
        if isinstance(one, ast.Attribute) and one.attr in SENTENCES:
            return True
    return False


@cache
def holding(function: ast.AST) -> Set[str]:
    """The names that hold a sentence of ours in a function."""
    held: set[str] = set()
    for node in walk(function):
        if isinstance(node, ast.Assign | ast.NamedExpr) and is_sentence(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            held |= {one.id for to in targets for one in ast.walk(to) if isinstance(one, ast.Name)}
    return held


def taken_apart(function: ast.AST) -> Iterator[str]:
    """The places in a function where a sentence of ours is taken apart.

    They are calls on one, on a name that holds one, or that are given one.
    """
    held = holding(function)
    for node in walk(function):
        called = node.func if isinstance(node, ast.Call) else None
        if not isinstance(called, ast.Attribute) or called.attr not in TAKES_APART:
            continue
        assert isinstance(node, ast.Call)
        touched = [called.value, *node.args]
        if any(is_sentence(one, held) for one in touched):
            yield ast.unparse(node)


def test_no_module_takes_a_sentence_of_ours_apart() -> None:
    found = {
        (name, place)
        for name, tree in modules()
        for function in functions(tree)
        for place in taken_apart(function)
    }
    assert {name for name, _ in found} == SOMEBODY_ELSES


@each(
    "code",
    [
        "def f(one): return words.of(one).partition(': ')",
        "def f(one):\n text = words.message(one)\n return re.match('x', text)",
        "def f(error): return str(error).split()[0]",
        "def f(body): return body.message.replace('a', 'b')",
    ],
)
def test_the_rule_finds_it(code: str) -> None:
    assert list(taken_apart(ast.parse(code).body[0]))


def test_sentences_are_compared_nowhere() -> None:
    comparing = set()
    for name, tree in modules():
        for function in functions(tree):
            held = holding(function)
            for node in walk(function):
                if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
                    whole = isinstance(node.comparators[0], ast.Tuple | ast.Set)
                    sides = (node.left, *node.comparators)
                    if not whole and any(is_sentence(one, held) for one in sides):
                        comparing.add(name)
    assert comparing == set()


def is_literal_sentence(node: ast.AST) -> bool:
    """Whether an expression holds a text of several words that stands in the code."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and " " in node.value.strip()
    return not is_wording(node) and any(map(is_literal_sentence, ast.iter_child_nodes(node)))


def sentence_errors(tree: ast.AST, told: Set[str]) -> Iterator[str]:
    """The names of the errors that are raised with a sentence; a code with values is none."""
    for node in walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else None
        if not isinstance(call, ast.Call):
            continue
        named = dotted(call.func).rpartition(".")[2]
        # The values of a code may have several words, such as a line's name.
        given_ = call.args if named in told else [*call.args, *(one.value for one in call.keywords)]
        if any(is_literal_sentence(one) for one in given_ if not is_message(one)):
            yield named


def literal_sentences(function: ast.FunctionDef) -> Iterator[str]:
    """The texts of several words that a function holds, its docstrings left out."""
    aside = {one.value for one in ast.walk(function) if isinstance(one, ast.Expr)}
    aside |= {text for one in ast.walk(function) if is_wording(one) for text in ast.walk(one)}
    for one in ast.walk(function):
        if isinstance(one, ast.Constant) and one not in aside and is_literal_sentence(one):
            yield str(one.value)


def test_no_function_of_diagnosis_holds_a_sentence() -> None:
    """So that none returns one as a note: what a pattern looks like is a code with values."""
    found = {
        (name, one.name, sentence)
        for name, tree in modules()
        if name.startswith("diagnosis/")
        for one in walk(tree)
        if isinstance(one, ast.FunctionDef)
        for sentence in literal_sentences(one)
        if sentence not in (*get_args(Side), *get_args(Presence))  # keys of the families' data
    }
    assert found == set()


def test_the_rule_finds_a_text_that_is_returned() -> None:
    told = "def f(n):\n 'A docstring.'\n return 'many', f'One bit of {n}', Message('a_code')"
    function = ast.parse(told).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert list(literal_sentences(function)) == ["One bit of "]


def is_message(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "Message"


def test_errors_that_a_report_may_show_say_no_sentence() -> None:
    told = told_errors()
    found = {
        (room, error)
        for name, tree in modules()
        if (room := name.partition("/")[0]) in CODED
        for error in sentence_errors(tree, told)
        if error not in PYTHONS
    }
    assert found == SENTENCE_ERRORS


@each(
    "code, error",
    [
        ("raise ToolError('it ran and proved nothing')", ["ToolError"]),
        ("raise ToolError(f'it ran for {seconds} s')", ["ToolError"]),
        ("raise proof.Other(why='it ran and proved nothing')", ["Other"]),
        ("raise UnreadableOutput(TOOL, line, 'a row is torn')", ["UnreadableOutput"]),
        ("raise UnreadableOutput(TOOL, line, Message('row', {'line': 'Result ='}))", []),
        ("raise ToolError('clauses', why=('Result = x',))", []),
    ],
)
def test_the_rule_finds_a_sentence(code: str, error: list[str]) -> None:
    told = {"ToolError", "UnreadableOutput"}
    assert list(sentence_errors(ast.parse(code), told)) == error


def test_findings_are_worded_by_those_who_print_them() -> None:
    """Nothing that judges imports the words, but for texts in English alone."""
    views = "fleet/views"  # the rest of its room judges
    using = {
        views if name.startswith(f"{views}/") else name.partition("/")[0]
        for name, tree in modules()
        if any(
            isinstance(node, ast.ImportFrom)
            and node.module == "acceptance.wording"
            and any(one.name == "words" for one in node.names)
            for node in walk(tree)
        )
    }
    english = {"observe", "notify", "run", "station"}  # for texts in English alone
    printing = {"cli", views, "history", "reports", "session", "wording"}
    assert using == printing | english


def test_the_first_wrong_result_stands_beside_its_count_once() -> None:
    note = Message("wrong_result_at", {"where": Listed(("dtype f64",))})
    values = {"measured": Quantity(1, "count")}
    counted = Finding("fail", "c", "outside_limit", values, "m", Gpu(0), note=note)
    assert words.note_beside(counted) is note
    with_first = Finding(
        "fail", "c", "outside_limit", {**values, "first": note}, "m", Gpu(0), note=note
    )
    assert words.note_beside(with_first) is None
