"""The rules of mutation: each takes a node and gives what may stand in its place. Pure."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping

Words = Mapping[str, str]
Rule = Callable[[ast.AST, ast.AST, str, bool, Words], Iterator[ast.AST]]

# What a reversed judgement says. In the judge's words, and in those of events.
OUTCOMES: Words = {
    "fail": "pass",
    "error": "pass",
    "skip": "pass",
    "warn": "pass",
    "waived": "fail",
    "FAIL": "PASS",
    "UNJUDGED": "PASS",
}
SEVERITIES: Words = {"fatal": "info", "error": "info", "warning": "info", "info": "fatal"}

# The opposite first, then the neighbour, where there is one.
_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.GtE: (ast.Lt, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Methods that put a finding, or what leads to one, where it is kept.
_KEEPS = frozenset({"append", "extend", "add", "update", "insert", "appendleft", "setdefault"})
CONDITIONS = ("test", "ifs")  # the fields of if, while, conditional expressions and comprehensions
_DECIDES = (ast.Compare, ast.BoolOp)


def compared(
    node: ast.AST, _parent: ast.AST, field: str, _table: bool, _words: Words
) -> Iterator[ast.AST]:
    """A comparison turned round, and one that takes the bound in or leaves it out.

    A whole condition is not turned round: it is forced both ways, and what notices that notices
    this.
    """
    if isinstance(node, ast.Compare):
        whole = field in CONDITIONS and len(node.ops) == 1
        for index, operator in enumerate(node.ops):
            for other in _COMPARED[type(operator)][int(whole) :]:
                new = copy.deepcopy(node)
                new.ops[index] = other()
                yield new


def joined(
    node: ast.AST, _parent: ast.AST, _field: str, _table: bool, _words: Words
) -> Iterator[ast.AST]:
    """`and` for `or`, and back."""
    if isinstance(node, ast.BoolOp):
        new = copy.deepcopy(node)
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield new


def negated(
    node: ast.AST, parent: ast.AST, field: str, _table: bool, _words: Words
) -> Iterator[ast.AST]:
    """A `not` taken away, or added to a part of an `and` or `or` that is no comparison: those,
    and whole conditions, see above.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        if field not in CONDITIONS:
            yield copy.deepcopy(node.operand)
    elif (
        isinstance(node, ast.expr)
        and not isinstance(node, (*_DECIDES, ast.Constant))
        and isinstance(parent, ast.BoolOp)
    ):
        yield ast.UnaryOp(ast.Not(), copy.deepcopy(node))


def forced(
    node: ast.AST, _parent: ast.AST, field: str, _table: bool, _words: Words
) -> Iterator[ast.AST]:
    """A condition that is always true, and one that never is."""
    if isinstance(node, ast.expr) and field in CONDITIONS and not isinstance(node, ast.Constant):
        yield ast.Constant(True)
        yield ast.Constant(False)


def silenced(
    node: ast.AST, _parent: ast.AST, _field: str, _table: bool, _words: Words
) -> Iterator[ast.AST]:
    """A statement that refuses or reports, taken away."""
    if isinstance(node, ast.Raise | ast.AugAssign):
        yield ast.Pass()
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom):
        # Still a generator: without this the missing word would be told by a TypeError, and not by
        # its absence.
        yield ast.Expr(ast.YieldFrom(ast.Tuple([], ast.Load())))
    elif (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr in _KEEPS
    ):
        yield ast.Pass()


def spoken(
    node: ast.AST, _parent: ast.AST, _field: str, _table: bool, words: Words
) -> Iterator[ast.AST]:
    """An outcome's word replaced by a better one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in words:
        yield ast.Constant(words[node.value])


def numbered(
    node: ast.AST, _parent: ast.AST, _field: str, _table: bool, _words: Words
) -> Iterator[ast.AST]:
    """A number made larger (whole ones by one, others doubled), and zero."""
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        value = node.value
        yield ast.Constant(value + 1 if isinstance(value, int) else value * 2 or 1.0)
        if value not in (0, 0.0):
            yield ast.Constant(0 if isinstance(value, int) else 0.0)


def counted(
    node: ast.AST, _parent: ast.AST, _field: str, _table: bool, _words: Words
) -> Iterator[ast.AST]:
    """A sum that is a difference, a product that is a quotient, and the like."""
    if isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
        if isinstance(node.left, ast.JoinedStr) or isinstance(node.right, ast.JoinedStr):
            return
        new = copy.deepcopy(node)
        new.op = _COUNTED[type(node.op)]()
        yield new


def chosen(
    node: ast.AST, _parent: ast.AST, _field: str, _table: bool, _words: Words
) -> Iterator[ast.AST]:
    """The smallest for the largest, any for all, and back."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SWAPPED:
        new = copy.deepcopy(node)
        new.func = ast.Name(_SWAPPED[node.func.id], ast.Load())
        yield new


def shortened(
    node: ast.AST, parent: ast.AST, field: str, table: bool, _words: Words
) -> Iterator[ast.AST]:
    """A table that lacks one of its entries: mappings anywhere, sets and rows where a name of
    the module is given them.
    """
    if isinstance(node, ast.Dict) and len(node.keys) > 0:
        for index in range(len(node.keys)):
            new = copy.deepcopy(node)
            del new.keys[index], new.values[index]
            yield new
    elif (
        isinstance(node, ast.Set | ast.Tuple | ast.List)
        and table
        and field not in ("targets", "slice")
    ):
        if isinstance(parent, ast.Subscript) or isinstance(getattr(node, "ctx", None), ast.Store):
            return
        for index in range(len(node.elts)):
            shorter = copy.deepcopy(node)
            del shorter.elts[index]
            if shorter.elts or not isinstance(shorter, ast.Set):
                yield shorter


def exchanged(
    node: ast.AST, _parent: ast.AST, _field: str, table: bool, _words: Words
) -> Iterator[ast.AST]:
    """A table in which two neighbours have each other's value.

    What is spread into it by `**` is no entry.
    """
    if isinstance(node, ast.Dict) and table:
        for index in range(len(node.values) - 1):
            if None in node.keys[index : index + 2]:
                continue
            new = copy.deepcopy(node)
            new.values[index : index + 2] = [new.values[index + 1], new.values[index]]
            yield new


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        compared,
        joined,
        negated,
        forced,
        silenced,
        spoken,
        numbered,
        counted,
        chosen,
        shortened,
        exchanged,
    )
}
