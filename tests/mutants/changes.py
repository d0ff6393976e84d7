"""The changes of a source file that its tests should notice, each of a single place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
# Nothing within these says what the program does: types, what is written to our own log, sizes of caches.
_NO_BEHAVIOUR = re.compile(
    r"(_?log(ger)?|logging|warnings)\.|(functools\.)?(lru_)?cache\b|TypeVar\(|Literal\[|cast\(|(dataclasses\.)?dataclass\("
)
# Keywords that say as little, by the calls that they stand in: how a field may be given, as its type; the names of
# threads, for debuggers; that lengths are equal, which is asserted and not decided; what a help calls a value; whether
# Textual's footer, which no screen has, shows a key; how a text ends where Rich prints it, which is nowhere; whether a
# Static parses what it is given where that is a Text, which is never parsed.
_KEYWORDS = {
    "metavar": "",
    "kw_only": r"field\(",
    "name": r"threading\.Thread\(",
    "strict": r"zip\(",
    "show": r"Binding\(",
    "end": r"Text(\.assemble)?\(",
    "markup": r"Static\((id=|classes=|markup=|hint\b|Text\()",
}
# How long something is waited for, or kept: a little longer is as good.
_DURATION = re.compile(r"_?[A-Z_]+_(S|SECONDS|NS)")
# A clock is never at one instant exactly when it is asked, and no time that has passed is one duration exactly.
_CLOCK = re.compile(r"\btime\.(time|monotonic)\(\)|\b_?[A-Z_]+_(S|SECONDS|NS)\b")
# A limit, or how much is read at once: one more, or one less, is as good.
_LIMIT = re.compile(r"\b_?(MOST|MAX|MIN|LONGEST|LARGEST|MANY|TRIES)(_[A-Z_]+)?\b")
_LARGE = 1000
_WORDING = re.compile(r"[A-Za-z,;:]+ [A-Za-z,;:]+ ")


@dataclass(frozen=True)
class Change:
    """A change of one place.

    Attributes:
        before: the statement, or the head of it.
        after: the same, changed.
        lines: those of which a test must run one, so that it may notice.
        names: what the place defines, where it runs as the module is imported; None anywhere else.
        text: the whole module, changed.
    """

    before: str
    after: str
    lines: range
    names: tuple[str, ...] | None
    text: str


@dataclass(frozen=True)
class _Place:
    """A node, where it hangs, and the statement that it belongs to."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    statement: ast.stmt
    names: tuple[str, ...] | None

    @property
    def owner(self) -> ast.stmt | ast.ExceptHandler:
        """The statement, or the `except` of it."""
        return self.parent if isinstance(self.parent, ast.ExceptHandler) and self.field == "type" else self.statement

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


class Changes:
    """All changes of a file; each is made only when it is asked for."""

    def __init__(self, source: str) -> None:
        self._tree = ast.parse(source)
        self._found = [(place, new) for place in _places(self._tree) for new in _alternatives(place)]

    def __len__(self) -> int:
        return len(self._found)

    def line(self, number: int) -> int:
        """Return the line of what is changed."""
        place = self._found[number][0]
        return getattr(place.node, "lineno", place.statement.lineno)

    def statement(self, number: int) -> int:
        """Return the line of the statement that is changed."""
        return self._found[number][0].statement.lineno

    def __getitem__(self, number: int) -> Change:
        place, new = self._found[number]
        owner = place.node if isinstance(place.node, ast.ExceptHandler) else place.owner
        last = getattr(place.node, "end_lineno", None) or _head_end(place.statement)
        if isinstance(place.node, ast.stmt):
            last = _head_end(place.node)
        before = _head(owner)
        place.put(new)
        try:
            after = _head(new if place.node is owner else owner)
            text = ast.unparse(self._tree)
        finally:
            place.put(place.node)
        if isinstance(new, ast.ExceptHandler):
            after = f"{after} raise"
        return Change(before, after, range(owner.lineno, last + 1), place.names, text)


def _head_end(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    return statement.lineno if body else (statement.end_lineno or statement.lineno)


def _head(node: ast.AST) -> str:
    if isinstance(node, ast.ExceptHandler):
        return f"except {ast.unparse(node.type) if node.type else ''}:"
    lines = ast.unparse(node).splitlines() or [""]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return " ".join(lines[: len(node.decorator_list) + 1])
    return lines[0] if hasattr(node, "body") else "\\n".join(lines)


def _places(tree: ast.Module) -> Iterator[_Place]:
    def walk(node: ast.AST, statement: ast.stmt | None, names: tuple[str, ...] | None) -> Iterator[_Place]:
        for name, value in ast.iter_fields(node):
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(child, ast.AST) or _says_nothing(child, node, name):
                    continue
                own = child if isinstance(child, ast.stmt) else statement
                inside = names
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and name == "body":
                    inside = None
                elif names is not None and isinstance(child, ast.stmt):
                    inside = (*(names if isinstance(node, ast.ClassDef) else ()), *_defined(child))
                if own is not None:
                    yield _Place(child, node, name, index if isinstance(value, list) else None, own, inside)
                yield from walk(child, own, inside)

    return walk(tree, None, ())


def _defined(statement: ast.stmt) -> tuple[str, ...]:
    targets = [*getattr(statement, "targets", []), getattr(statement, "target", None)]
    found = [node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)]
    return (*found, *([name] if isinstance(name := getattr(statement, "name", None), str) else []))


def _says_nothing(node: ast.AST, parent: ast.AST, name: str) -> bool:
    if isinstance(node, ast.keyword) and re.match(_KEYWORDS.get(node.arg or "", "$"), ast.unparse(parent)):
        return True
    if name in ("annotation", "returns", "format_spec", "type_comment"):
        return True
    if isinstance(node, ast.Constant) and (isinstance(parent, ast.Expr | ast.JoinedStr)):
        return True
    if isinstance(node, ast.If) and re.match(r"if (TYPE_CHECKING|typing.TYPE_CHECKING|__name__)\b", _head(node)):
        return True
    if isinstance(node, ast.Assign | ast.AnnAssign) and all(map(_DURATION.fullmatch, _defined(node) or [""])):
        return True
    if isinstance(node, ast.Assign | ast.AnnAssign) and re.match(r"__\w+__\b", ast.unparse(node)):
        return True
    target = node.value if isinstance(node, ast.Expr) else node
    return isinstance(target, ast.Call | ast.Subscript) and bool(_NO_BEHAVIOUR.match(ast.unparse(target)))


def _alternatives(place: _Place) -> Iterator[ast.AST]:
    node, parent = place.node, place.parent
    match node:
        case ast.Compare(ops=ops):
            text = ast.unparse(node)
            others = slice(1, None) if _CLOCK.search(text) or _LIMIT.search(text) else slice(None)
            for number, op in enumerate(ops):
                for other in _COMPARED[type(op)][others]:
                    changed = [*ops[:number], other(), *ops[number + 1 :]]
                    yield ast.Compare(node.left, changed, node.comparators)
        case ast.BoolOp(op=op):
            yield ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), node.values)
        case ast.BinOp(op=op) if type(op) in _COMPUTED:
            yield ast.BinOp(node.left, _COMPUTED[type(op)](), node.right)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant():
            yield from _other_constants(node, place.statement)
        case ast.Return(value=value) if value is not None and not (isinstance(value, ast.Constant) and not value.value):
            yield ast.Return(ast.Constant(None))
        case ast.Break() | ast.Continue() | ast.AugAssign():
            yield ast.Pass()
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield ast.Pass()
        case (
            ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_])
            | ast.AnnAssign(target=ast.Attribute(), value=ast.expr())
        ) if not _is_declaration(place):
            yield ast.Pass()
        case ast.ExceptHandler() if not isinstance(node.body[0], ast.Raise):
            yield ast.ExceptHandler(node.type, node.name, [ast.Raise()])
    if isinstance(parent, ast.ExceptHandler) and isinstance(node, ast.Tuple):
        for left_out in node.elts:
            yield ast.Tuple([kept for kept in node.elts if kept is not left_out], ast.Load())
    if (place.field in ("test", "ifs") and not isinstance(node, ast.Compare | ast.Constant)) and not (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ):
        yield ast.UnaryOp(ast.Not(), node)  # type: ignore[arg-type]


def _is_declaration(place: _Place) -> bool:
    """Tell whether an attribute only gets its type and an empty value, as its object is made."""
    value = getattr(place.node, "value", None)
    is_empty = isinstance(value, ast.Constant) and not value.value
    return is_empty and isinstance(place.parent, ast.FunctionDef) and place.parent.name == "__init__"


def _is_limit(statement: ast.stmt) -> bool:
    names = _defined(statement) if isinstance(statement, ast.Assign | ast.AnnAssign) else ()
    if not names or not all(name.isupper() for name in names):
        return False
    if all(map(_LIMIT.fullmatch, names)):
        return True
    try:
        return eval(ast.unparse(statement.value), {"__builtins__": {}}) >= _LARGE  # type: ignore[union-attr]
    except Exception:
        return False


def _other_constants(node: ast.Constant, statement: ast.stmt) -> Iterator[ast.AST]:
    value: Any = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float) and not _is_limit(statement):
        yield ast.Constant(value + 1)
    elif isinstance(value, bytes):
        yield ast.Constant(b"" if value else b"x")
    # What is only read by a person may be worded in many ways.
    elif isinstance(value, str) and not isinstance(statement, ast.Raise) and not _WORDING.search(value):
        yield ast.Constant("" if value else "x")
