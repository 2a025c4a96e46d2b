"""Each rule of mutation, as before and after; and what no rule touches."""

from __future__ import annotations

import ast

from cases import each

from selftest.mutation import operators, rules


def changes(source: str, rule: str, words: rules.Words = rules.OUTCOMES) -> list[str]:
    return [one.change for one in operators.mutations(source, words, frozenset({rule}))]


@each(
    "rule, source, expected",
    [
        ("compared", "x = a < b", ["a < b -> a >= b", "a < b -> a <= b"]),
        ("compared", "x = a >= b", ["a >= b -> a < b", "a >= b -> a > b"]),
        ("compared", "x = a == b", ["a == b -> a != b"]),
        ("compared", "x = a not in b", ["a not in b -> a in b"]),
        ("compared", "x = a is None", ["a is None -> a is not None"]),
        ("compared", "if a <= b:\n    pass", ["a <= b -> a < b"]),
        ("compared", "if a != b:\n    pass", []),
        ("compared", "x = low <= a < high", [
            "low <= a < high -> low > a < high", "low <= a < high -> low < a < high",
            "low <= a < high -> low <= a >= high", "low <= a < high -> low <= a <= high",
        ]),
        ("joined", "x = a and b", ["a and b -> a or b"]),
        ("joined", "x = a or b", ["a or b -> a and b"]),
        ("negated", "x = not a", ["not a -> a"]),
        ("negated", "x = a and f(b)", ["a -> not a", "f(b) -> not f(b)"]),
        ("negated", "if not a:\n    pass", []),
        ("forced", "if a == b:\n    pass", ["a == b -> True", "a == b -> False"]),
        ("forced", "x = [n for n in m if n]", ["n -> True", "n -> False"]),
        ("forced", "x = 1 if a else 2", ["a -> True", "a -> False"]),
        ("forced", "while a:\n    pass", ["a -> True", "a -> False"]),
        ("silenced", "raise ValueError(text)", ["raise ValueError(text) -> pass"]),
        ("silenced", "found.append(text)", ["found.append(text) -> pass"]),
        ("silenced", "found += [text]", ["found += [text] -> pass"]),
        ("silenced", "print(text)", []),
        ("silenced", "def f():\n    yield a", ["yield a -> yield from ()"]),
        ("spoken", "x = 'fail'", ["'fail' -> 'pass'"]),
        ("spoken", "x = 'FAIL' if a else 'UNJUDGED'", ["'FAIL' -> 'PASS'", "'UNJUDGED' -> 'PASS'"]),
        ("spoken", "x = 'failing'", []),
        ("numbered", "x = 3", ["3 -> 4", "3 -> 0"]),
        ("numbered", "x = 0.5", ["0.5 -> 1.0", "0.5 -> 0.0"]),
        ("numbered", "x = 0", ["0 -> 1"]),
        ("numbered", "x = True", []),
        ("counted", "x = a - b", ["a - b -> a + b"]),
        ("counted", "x = a & b", ["a & b -> a | b"]),
        ("chosen", "x = min(a)", ["min(a) -> max(a)"]),
        ("chosen", "x = any(a)", ["any(a) -> all(a)"]),
        ("shortened", "X = {'a': 1, 'b': 2}", ["'a': 1 -> gone", "'b': 2 -> gone"]),
        ("shortened", "X = ('a', 'b')", ["'a' -> gone", "'b' -> gone"]),
        ("shortened", "def f():\n    return ('a', 'b')", []),
        ("numbered", "x = a[1:1]", ["1 -> 2", "1 -> 0", "1 -> 2 (2)", "1 -> 0 (2)"]),
        ("exchanged", "X = {'a': 1, 'b': 2}", ["{'a': 1, 'b': 2} -> {'a': 2, 'b': 1}"]),
        ("exchanged", "X = {**a, **b}", []),
    ],
)  # fmt: skip
def test_a_rule(rule: str, source: str, expected: list[str]) -> None:
    assert changes(source, rule) == expected


def test_severities_have_words_of_their_own() -> None:
    found = changes("x = ['fatal', 'error', 'warning', 'info', 'pass']", "spoken", rules.SEVERITIES)
    assert found == [
        "'fatal' -> 'info'",
        "'error' -> 'info'",
        "'warning' -> 'info'",
        "'info' -> 'fatal'",
    ]


@each(
    "source",
    [
        '"""if 1 < 2 then fail"""',
        'def f(x: Literal["fail", "pass"] = None) -> Literal["error"]:\n    """not 3"""\n',
        'Word = Literal["PASS", "FAIL"]',
        'x = f"{a + 1} of {b if b else 0}"',
        "assert x is not None",
        "if TYPE_CHECKING:\n    import x",
    ],
)
def test_texts_types_and_assertions_are_left_alone(source: str) -> None:
    assert operators.mutations(source, rules.OUTCOMES) == ()


def test_a_mutation_says_where_it_stands() -> None:
    (one,) = operators.mutations(
        "def f(a):\n    if a:\n        return not a\n", rules.OUTCOMES, frozenset({"negated"})
    )
    assert (one.line, one.text, one.change) == (3, "return not a", "not a -> a")


def test_applied_each_mutation_changes_its_own_place_and_nothing_else() -> None:
    source = "def f(a, b):\n    if a < b and a < b:\n        raise ValueError\n    return [1, 1]\n"
    made = [
        ast.unparse(operators.apply(source, one))
        for one in operators.mutations(source, rules.OUTCOMES)
    ]
    assert len(set(made)) == len(made) > 8
    assert ast.unparse(ast.parse(source)) not in made
    for text in made:
        compile(text, "f", "exec")


def test_a_generator_that_says_nothing_is_still_a_generator() -> None:
    source = "def f():\n    yield 1\n"
    (one,) = operators.mutations(source, rules.OUTCOMES, frozenset({"silenced"}))
    names: dict[str, object] = {}
    exec(compile(operators.apply(source, one), "f", "exec"), names)
    assert list(names["f"]()) == []  # type: ignore[operator]
