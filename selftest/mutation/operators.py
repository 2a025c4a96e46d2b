"""What a mutation of Python source is: one small change to one rule.

Pure: source in, mutations out.

Texts, docstrings, annotations and assertions are left alone: a message may be worded anew without
anybody's judgement changing, and an assertion only tells the type checker what is known. Nothing
inside an f-string is touched for the same reason.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from selftest.mutation import rules

Operator = Callable[[ast.AST, "Place"], Iterator[ast.AST]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the tree a node stands: what is above it, nearest first, and in
    which field of that.
    """

    above: tuple[ast.AST, ...]
    field: str

    @property
    def parent(self) -> ast.AST:
        """The node that holds this one."""
        return self.above[0]

    def in_module_table(self) -> bool:
        """Whether the node is, or lies in, what is assigned to a name of the module."""
        return not any(
            isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda) for node in self.above
        )


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: the node at `number` of `nodes` becomes `new`.

    `text` is the line that it stands on, without indentation.
    """

    rule: str
    number: int
    line: int
    text: str
    before: str
    after: str
    new: ast.AST

    @property
    def change(self) -> str:
        """The change as people read it, and as the list of equivalent mutations names it."""
        return f"{self.before} -> {self.after}"


# Fields in which nothing is mutated: types, and what only decorates.
_TYPES = frozenset({"annotation", "returns", "decorator_list", "bases", "keywords_of_class"})


def nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, Place]]:
    """Every node that may be mutated, in one order for one source."""

    def inside(node: ast.AST, above: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, Place]]:
        for field, value in ast.iter_fields(node):
            if field in _TYPES:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _spared(child):
                    yield child, Place((node, *above), field)
                    yield from inside(child, (node, *above))

    yield from inside(tree, ())


def _spared(node: ast.AST) -> bool:
    if isinstance(
        node,
        ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom | ast.expr_context | ast.operator,
    ):
        return True
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == "Literal"
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def mutations(
    source: str, words: Mapping[str, str], only: frozenset[str] | None = None
) -> tuple[Mutation, ...]:
    """Every mutation of a source, by its place.

    `words` are outcomes and what each is replaced by; `only` names the rules to apply.
    """
    lines = source.splitlines()
    found: list[Mutation] = []
    times: Counter[tuple[int, str, str]] = Counter()
    for number, (node, place) in enumerate(nodes(ast.parse(source))):
        for name, rule in rules.RULES.items():
            if only is not None and name not in only:
                continue
            for new in rule(node, place.parent, place.field, place.in_module_table(), words):
                line = _line(node, place)
                before, after = _shown(node, new)
                if before != after:
                    times[line, before, after] += 1
                    if (
                        times[line, before, after] > 1
                    ):  # the same change again on the same line, further right
                        after = f"{after} ({times[line, before, after]})"
                    found.append(
                        Mutation(name, number, line, lines[line - 1].strip(), before, after, new)
                    )
    return tuple(found)


def _line(node: ast.AST, place: Place) -> int:
    return next(
        one.lineno
        for one in (node, *place.above)
        if isinstance(one, ast.expr | ast.stmt | ast.keyword)
    )


def _shown(node: ast.AST, new: ast.AST) -> tuple[str, str]:
    """A change in words; of a table that lacks an entry, that entry."""
    if isinstance(node, ast.Dict | ast.Set | ast.Tuple | ast.List) and isinstance(new, type(node)):
        entries, left = _entries(node), _entries(new)
        if len(left) < len(entries):
            gone = next(
                place for place, entry in enumerate(entries) if left[place : place + 1] != [entry]
            )
            return entries[gone], "gone"
    return ast.unparse(node), ast.unparse(new)


def _entries(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Dict):
        keys = [ast.unparse(key) if key else "**" for key in node.keys]
        return [
            f"{key}: {ast.unparse(value)}" for key, value in zip(keys, node.values, strict=True)
        ]
    return [ast.unparse(one) for one in getattr(node, "elts", ())]


def apply(source: str, mutation: Mutation) -> ast.Module:
    """The source's tree with one node replaced."""
    tree = ast.parse(source)
    node, place = next(
        found for number, found in enumerate(nodes(tree)) if number == mutation.number
    )
    held = getattr(place.parent, place.field)
    new = ast.copy_location(copy.deepcopy(mutation.new), node)
    if isinstance(held, list):
        held[next(index for index, one in enumerate(held) if one is node)] = new
    else:
        setattr(place.parent, place.field, new)
    return ast.fix_missing_locations(tree)
