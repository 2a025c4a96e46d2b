"""Every sentence that a user of rigproof can meet, by the module that says it: what `docs/messages.md` lists.

    python tests/messages.py    writes the list anew

It is read from the source: what is given to errors, to records that become lines of a report (findings, skips, notes, events), to the
terminal and to argparse, what is handed on to one of these, and whatever else has four words or more. What stands in for a value is in
braces.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

HERE = Path(__file__).resolve().parents[1]
LIST = HERE / "docs/messages.md"
# Loads are programs of their own: what they say is quoted by the check that ran them. Questions to a database are no sentences.
LEFT_OUT = ("acceptance/loads/", "acceptance/_fixtures/", "acceptance/history/reading.py")
HEAD = """# Every message

What a user of rigproof can meet, by the module that says it; what stands in for a value is in braces. It is made from the source
(`python tests/messages.py` writes it anew) and a test compares the two: whoever adds or changes a sentence reads it here once, as the
person at the bench would. Does it say what is wrong, in words of that person? Does it name the cure, or the next thing to type?
"""

# Where a message is given: the name that is called, and which of its arguments hold text.
Places = tuple[int | str, ...]
SINKS: dict[str, Places] = {
    "Finding": (2, "text"),
    "_finding": (3, "text"),
    "Skipped": (1, "reason"),
    "Note": (0, "text"),
    "note": (0,),
    "Event": (3, 4, "meaning", "action"),
    "RunEnded": (1, "detail"),
    "RunClosed": (3, "detail"),
    "SessionEnded": (2, "detail"),
    "skip": (0, "reason"),
    "fail": (0,),
    "say": (0,),
    "_say": (0,),
    "language": (0,),
    "_language": (0,),
    "add_argument": ("help",),
    "add_parser": ("help", "description", "epilog"),
    "_Parser": ("description", "epilog"),
    "verb": (1,),
    "ArgumentTypeError": (0,),
}
# Whatever has so many words is a sentence, wherever it stands, unless it is a pattern or a format.
_SENTENCE = 4
_WORD = re.compile(r"(?<![{\w])[a-z]{2,}(?![\w}(])", re.IGNORECASE)
_NO_TEXT = re.compile(
    r"\(\?|\w\|\w|\\[a-zA-Z.]|\n\n|--[a-z]+=|^[#.]|[|^*+$]\]?\)|\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|GLOB)\b"
)
# An attribute of this name is said later: why something that runs beside the checks went wrong.
SAID_LATER = frozenset({"failure", "_trouble", "_silent", "reason"})


def errors(modules: Sequence[Module]) -> frozenset[str]:
    """The names of all errors of ours: of those that end a verb with a sentence, and of those that a check or a note repeats."""
    bases = {
        node.name: [getattr(base, "id", getattr(base, "attr", "")) for base in node.bases]
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
    }
    found = {"Exception", "BaseException", "ValueError", "OSError", "RuntimeError"}
    before = 0
    while before != len(found):
        before = len(found)
        found |= {name for name, parents in bases.items() if found & set(parents)}
    return frozenset(found & set(bases))


@dataclass
class Module:
    """One module: its path, its tree and that tree's nodes, and which function each of them stands in."""

    path: str
    tree: ast.Module
    nodes: list[ast.AST]
    function: dict[ast.AST, ast.FunctionDef] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Module:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = cls(str(path.relative_to(HERE)), tree, list(ast.walk(tree)))
        for function in [node for node in found.nodes if isinstance(node, ast.FunctionDef)]:
            for node in ast.walk(function):
                found.function[node] = function  # the innermost comes last
        return found


def called(node: ast.Call) -> str:
    """The name that is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def texts(node: ast.expr, known: Mapping[str, list[ast.expr]], depth: int = 0) -> Iterator[str]:
    """What an expression says, in every way that it can; a name is followed to what was assigned to it in the same function."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else _stand_in(part) for part in node.values)
        for part in node.values:
            if isinstance(part, ast.FormattedValue) and not isinstance(part.value, ast.Name):
                yield from (text for text in texts(part.value, known, depth) if " " in text.strip())
            elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) and depth < 3:
                for value in known.get(part.value.id, []):
                    yield from (text for text in texts(value, {}, depth + 1) if " " in text.strip())
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body, known, depth)
        yield from texts(node.orelse, known, depth)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from texts(value, known, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = (next(texts(side, known, depth), "{...}") for side in (node.left, node.right))
        yield left + right
    elif isinstance(node, ast.Name) and depth < 3:
        for value in known.get(node.id, []):
            yield from texts(value, {}, depth + 1)
    elif isinstance(node, ast.Tuple | ast.List):
        for value in node.elts:
            yield from texts(value, known, depth)
    elif isinstance(node, ast.Call) and depth < 3:
        for value in known.get(f"{called(node)}()", []):
            yield from texts(value, {}, depth + 1)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from texts(value, known, depth)


def _stand_in(part: ast.expr) -> str:
    """A value's name in braces, short."""
    assert isinstance(part, ast.FormattedValue)
    node = part.value
    while not isinstance(node, ast.Name | ast.Attribute | ast.Constant):
        inner = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        if not inner:
            break
        node = inner[0]
    return f"{{{node.attr if isinstance(node, ast.Attribute) else getattr(node, 'id', '...')}}}"


def assigned(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """What names are given in a function or a module, each with all its values."""
    found: dict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id].append(node.value)
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    for name, value in zip(target.elts, node.value.elts, strict=False):
                        if isinstance(name, ast.Name):
                            found[name.id].append(value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id].append(node.value)
    return found


def given(node: ast.Call, places: Places) -> Iterator[ast.expr]:
    """The arguments of a call at these places."""
    for place in places:
        if isinstance(place, int) and place < len(node.args):
            yield node.args[place]
        yield from (word.value for word in node.keywords if word.arg == place)


def parameters(function: ast.FunctionDef) -> list[str]:
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


class Reader:
    """Reads a module's messages, those too that its own functions hand on."""

    def __init__(self, module: Module, sinks: Mapping[str, Places]) -> None:
        self._module = module
        self._sinks = dict(sinks)
        self._constants = {
            name: values
            for name, values in assigned_at_the_top(module.tree).items()
            if name.isupper() or name[0] == "_"
        }
        self._returned = {f"{function.name}()": _returns(function) for function in set(module.function.values())}
        documented = ast.Module | ast.ClassDef | ast.FunctionDef
        nodes = (node for node in module.nodes if isinstance(node, documented))
        self._docs = {ast.get_docstring(node, clean=False) for node in nodes}
        before = -1
        while before != sum(map(len, self._sinks.values())):
            before = sum(map(len, self._sinks.values()))
            self._hand_on()

    def _calls(self) -> Iterator[tuple[ast.Call, ast.expr]]:
        for node in self._module.nodes:
            if isinstance(node, ast.Call) and called(node) in self._sinks:
                yield from ((node, argument) for argument in given(node, self._sinks[called(node)]))

    def _hand_on(self) -> None:
        for node, argument in list(self._calls()):
            function = self._module.function.get(node)
            if function is None or function.name.startswith("__"):
                continue
            names = {one.id for one in ast.walk(argument) if isinstance(one, ast.Name)}
            for index, name in enumerate(parameters(function)):
                if name in names and name not in ("path", "check", "due", "file", "error"):
                    known = self._sinks.get(function.name, ())
                    if index not in known:
                        self._sinks[function.name] = (*known, index, name)

    def messages(self) -> set[str]:
        """Every message of the module, on one line."""
        found: set[str] = set()
        for node, argument in self._calls():
            found |= set(texts(argument, self._known(node)))
        for node in self._module.nodes:
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Attribute) and target.attr in SAID_LATER for target in node.targets
            ):
                found |= set(texts(node.value, self._known(node)))
        # A single word is said by a report alone, in the language of its reader.
        words = {text for node in self._module.nodes if _is_language(node) for text in texts(node.args[0], {})}
        lines = {" ".join(text.split()) for text in (*found, *self._sentences())}
        parts = {line for line in lines for other in lines if line != other and line in other}
        lines -= parts - found  # a part of a message that is there whole
        return {line for line in lines if " " in line or line in words}

    def _sentences(self) -> Iterator[str]:
        """Whatever else reads as a sentence: it is said by another module than the one that it stands in."""
        for node in self._module.nodes:
            if isinstance(node, ast.JoinedStr | ast.Constant) and not isinstance(getattr(node, "value", ""), bytes):
                for text in texts(node, {}):
                    if len(_WORD.findall(text)) >= _SENTENCE and not _NO_TEXT.search(text) and text not in self._docs:
                        yield text

    def _known(self, node: ast.AST) -> dict[str, list[ast.expr]]:
        function = self._module.function.get(node)
        return {**self._returned, **self._constants, **(assigned(function) if function else {})}


def assigned_at_the_top(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """The constants of a module."""
    return assigned(ast.Module([node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)], []))


def _is_language(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and called(node) in ("language", "_language") and bool(node.args)


def _returns(function: ast.FunctionDef) -> list[ast.expr]:
    """What a function gives back, or yields."""
    given_back = (node for node in ast.walk(function) if isinstance(node, ast.Return | ast.Yield))
    return [node.value for node in given_back if node.value is not None]


@functools.cache
def read() -> tuple[Module, ...]:
    """Every module that says something to a user."""
    paths = sorted((HERE / "acceptance").rglob("*.py"))
    return tuple(Module.read(path) for path in paths if not str(path.relative_to(HERE)).startswith(LEFT_OUT))


@functools.cache
def collect() -> dict[str, list[str]]:
    """Every message by module, in the order of both."""
    modules = read()
    sinks: dict[str, Places] = {**dict.fromkeys(errors(modules), (0, 1, 2)), **SINKS}
    found = {module.path: sorted(Reader(module, sinks).messages()) for module in modules}
    return {path: messages for path, messages in found.items() if messages}


def render() -> str:
    """The list as a page."""
    parts = [HEAD]
    for module, messages in collect().items():
        parts.append(f"\n## {module}\n\n```text\n" + "\n".join(messages) + "\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    LIST.write_text(render(), encoding="utf-8")
