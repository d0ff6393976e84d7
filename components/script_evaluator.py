"""Follows the statements of a script in its syntax tree, as far as they decide which arguments it has; nothing is run.

Names are looked up, literals and texts are computed, functions and classes of the script are entered, loops over
literals are repeated; everything else is `UNKNOWN`. A library's calls go to a callback.
"""

from __future__ import annotations

import ast
import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .model import Computed

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
MAX_SECONDS = 0.2
"""Seconds of this thread after which a script is left."""
_MAX_DEPTH, _MAX_ITEMS, _MAX_TEXT = 20, 200, 1_000
# The calls of one function: helpers are called once for each argument.
_MAX_CALLS = 1_000
# Statements of a function that is entered in any case: it may compute a name or a default.
_SHORT = 3
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_TEXT_METHODS = frozenset({"replace", "lower", "upper", "strip", "lstrip", "rstrip", "removeprefix"})
_CONTAINERS: dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "sorted": sorted, "set": sorted}


class TooSlowError(Exception):
    """The time for a script is over."""


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()


@dataclass(frozen=True)
class Imported:
    """A module or a name of one, or a builtin: ``argparse.ArgumentParser``, ``int``."""

    path: str

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.path.rpartition(".")[2]


class Scope:
    """The names of a function or of the module.

    Args:
        outer: The scope around it.
    """

    def __init__(self, outer: Scope | None = None) -> None:
        self.names: dict[str, Any] = {}
        self.outer = outer
        self.returned: list[Any] = []

    def get(self, name: str) -> Any:
        """Return the value of a name; a name that is not assigned is a builtin's."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return Imported(name)


@dataclass(eq=False)
class FunctionValue:
    """A function of the script, with the object that it is bound to."""

    node: Function
    scope: Scope
    bound: Any = None


@dataclass(eq=False)
class ClassValue:
    """A class of the script."""

    node: ast.ClassDef
    scope: Scope


@dataclass(eq=False)
class Instance:
    """An object of a class of the script, or of a library if that has state here.

    Args:
        cls: Its class.
        attributes: Its attributes, and the keyword arguments that it was made with.
        args: The positional ones.
    """

    cls: ClassValue | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    args: Sequence[Any] = ()


@dataclass(frozen=True)
class Call:
    """The evaluated arguments of a call of a library.

    Args:
        node: The call.
        args: Its positional arguments.
        keywords: Its keyword arguments.
    """

    node: ast.Call
    args: list[Any]
    keywords: dict[str, Any]

    def source(self, name: str) -> str:
        """Return the source of a keyword argument."""
        return next((ast.unparse(word.value) for word in self.node.keywords if word.arg == name), "")

    def get(self, position: int, name: str, default: Any = None) -> Any:
        """Return an argument by its position or its name."""
        if len(self.args) > position:
            return self.args[position]
        return self.keywords.get(name, default)

    def value(self, name: str, default: Any = None) -> Any:
        """Return a keyword argument as plain data; `Computed` if it is not known."""
        value = self.keywords.get(name, default)
        # The source of a large file takes long to write.
        return value if is_plain(value) else Computed(self.source(name))


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements of a tree, also those in others, in their order."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        inner = [
            item for name in ("body", "handlers", "cases", "orelse", "finalbody") for item in getattr(node, name, ())
        ]
        waiting += reversed(inner)


def is_plain(value: Any) -> bool:
    """Return whether a value is a number, a text, None, or a list of these."""
    if isinstance(value, (list, tuple)):
        return all(is_plain(item) and not isinstance(item, (list, tuple)) for item in value)
    return value is None or isinstance(value, (str, int, float, bool))


def as_default(value: Any, source: str) -> Any:
    """Return a value as the default of a parameter; `Computed` from its source if it is not plain."""
    return value if is_plain(value) else Computed(source)


class Evaluator:
    """Follows a script.

    Args:
        call: Is called with this object, the object of a method or None, the name of the method or the whole name of a
            library's function, and the call; returns its value.
        decorated: Is called with this object and each function that has decorators.
        resolve: Returns the value of an imported name, or the name itself if it is a library's.
        is_relevant: Returns whether a function of some length is entered.
    """

    def __init__(
        self,
        call: Callable[[Evaluator, Any, str, Call], Any],
        decorated: Callable[[Evaluator, FunctionValue], object],
        resolve: Callable[[Imported], Any],
        is_relevant: Callable[[Function], bool],
    ) -> None:
        self._call_library = call
        self._decorated = decorated
        self.resolved = resolve
        self._is_relevant = is_relevant
        self._calls: dict[Function, int] = {}
        self._depth = 0
        self._until = time.thread_time() + MAX_SECONDS

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Follow statements."""
        for statement in body:
            self.check_time()
            self._statement(statement, scope)

    def check_time(self) -> None:
        """Raise TooSlowError if the time is over."""
        if time.thread_time() > self._until:
            raise TooSlowError

    def is_called(self, node: Function) -> bool:
        """Return whether a function was called."""
        return node in self._calls

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, ast.Expr):
            self.evaluate(node.value, scope)
        elif isinstance(node, ast.Assign):
            value = self.evaluate(node.value, scope)
            for target in node.targets:
                self._bind(target, value, scope)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._bind(node.target, self.evaluate(node.value, scope), scope)
        elif isinstance(node, ast.AugAssign):
            self.evaluate(node.value, scope)
            self._bind(node.target, UNKNOWN, scope)
        elif isinstance(node, ast.Return):
            scope.returned.append(self.evaluate(node.value, scope) if node.value else None)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = FunctionValue(node, scope)
            scope.names[node.name] = function
            if node.decorator_list:
                self._decorated(self, function)
        elif isinstance(node, ast.ClassDef):
            scope.names[node.name] = ClassValue(node, scope)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                path = alias.name if alias.asname else alias.name.partition(".")[0]
                scope.names[alias.asname or path] = Imported(path)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                scope.names[alias.asname or alias.name] = Imported(f"{node.module or ''}.{alias.name}")
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._loop(node, scope)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                value = self.evaluate(item.context_expr, scope)
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, value, scope)
            self.run(node.body, scope)
        else:
            self._blocks(node, scope)

    def _blocks(self, node: ast.AST, scope: Scope) -> None:
        """Follow all branches of a statement, and the expressions in it; of an `if` that can be decided, one branch."""
        if isinstance(node, ast.If) and isinstance(node.test, (ast.Compare, ast.Call)):
            test = self.evaluate(node.test, scope)
            if isinstance(test, bool):
                self.run(node.body if test else node.orelse, scope)
            else:
                self.run([*node.body, *node.orelse], scope)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child, scope)
            elif isinstance(child, ast.stmt):
                self.run([child], scope)
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                self.run(child.body, scope)

    def _loop(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        items = self.evaluate(node.iter, scope)
        known = list(items)[:_MAX_ITEMS] if isinstance(items, (list, tuple, dict)) else [UNKNOWN]
        for item in known:
            self._bind(node.target, item, scope)
            self.run(node.body, scope)
        self.run(node.orelse, scope)

    def _bind(self, target: ast.expr, value: Any, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            known = isinstance(value, (list, tuple)) and len(value) == len(target.elts)
            for position, element in enumerate(target.elts):
                self._bind(element, value[position] if known else UNKNOWN, scope)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, scope)
            if isinstance(owner, Instance):
                owner.attributes[target.attr] = value
        elif isinstance(target, ast.Subscript):
            owner, key = self.evaluate(target.value, scope), self.evaluate(target.slice, scope)
            if isinstance(owner, dict) and isinstance(key, (str, int)):
                owner[key] = value

    def evaluate(self, node: ast.expr, scope: Scope) -> Any:
        """Return the value of an expression; `UNKNOWN` if it is not known."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            value = scope.get(node.id)
            return self.resolved(value) if isinstance(value, Imported) else value
        if isinstance(node, ast.Lambda):
            return FunctionValue(node, scope)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            items = list(self._items(node.elts, scope))
            return tuple(items) if isinstance(node, ast.Tuple) else items
        if (compute := _EVALUATORS.get(type(node))) is not None:
            return compute(self, node, scope)
        # A call may be in an expression of any kind.
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr) and not isinstance(node, ast.GeneratorExp):
                self.evaluate(child, scope)
        return UNKNOWN

    def _items(self, nodes: Sequence[ast.expr], scope: Scope) -> Iterator[Any]:
        for node in nodes:
            value = self.evaluate(node.value if isinstance(node, ast.Starred) else node, scope)
            if isinstance(node, ast.Starred) and isinstance(value, (list, tuple)):
                yield from value
            else:
                yield value

    def _dict(self, node: ast.Dict, scope: Scope) -> Any:
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            item = self.evaluate(value, scope)
            if key is None:
                made |= item if isinstance(item, dict) else {}
            elif isinstance(name := self.evaluate(key, scope), (str, int)):
                made[name] = item
        return made

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self.evaluate(node.operand, scope)
        if isinstance(value, (int, float)) and isinstance(node.op, (ast.USub, ast.UAdd, ast.Not)):
            return {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_}[type(node.op)](value)
        return UNKNOWN

    def _binop(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        compute = _OPERATORS.get(type(node.op))
        both = (left, right)
        numbers = all(isinstance(side, (int, float)) and abs(side) < 1e15 for side in both)
        texts = all(isinstance(side, str) and len(side) < _MAX_TEXT for side in both)
        lists = type(left) is type(right) and all(
            isinstance(side, (list, tuple)) and len(side) < _MAX_ITEMS for side in both
        )
        if isinstance(node.op, ast.Pow) and numbers and abs(left) <= 1000 and 0 <= right <= 20:
            return left**right
        if compute is None or not (numbers or (isinstance(node.op, ast.Add) and (texts or lists))):
            return UNKNOWN
        try:
            return compute(left, right)
        except (ArithmeticError, TypeError):
            return UNKNOWN

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        values = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        parts = [self.evaluate(part, scope) for part in values]
        known = all(isinstance(part, (str, int)) and len(str(part)) < _MAX_TEXT for part in parts)
        return "".join(map(str, parts)) if known else UNKNOWN

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Any:
        values = [self.evaluate(side, scope) for side in (node.body, node.orelse)]
        self.evaluate(node.test, scope)
        return values[0] if values[0] == values[1] else UNKNOWN

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Any:
        values = [self.evaluate(value, scope) for value in node.values]
        # `config = config or {}` is the object.
        known = [value for value in values if not is_plain(value) and value is not UNKNOWN]
        return known[0] if known else UNKNOWN

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        left, *rights = (self.evaluate(side, scope) for side in (node.left, *node.comparators))
        if len(rights) != 1 or not is_plain(left) or not is_plain(rights[0]):
            return UNKNOWN
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return (left is rights[0]) == isinstance(node.ops[0], ast.Is)
        if isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            return (left == rights[0]) == isinstance(node.ops[0], ast.Eq)
        return UNKNOWN

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self.evaluate(node.value, scope)
        self._bind(node.target, value, scope)
        return value

    def _await(self, node: ast.Await, scope: Scope) -> Any:
        return self.evaluate(node.value, scope)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        owner, key = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        try:
            if isinstance(owner, dict) and isinstance(key, (int, str)):
                return owner[key]
            return owner[key] if isinstance(owner, (list, tuple)) and isinstance(key, int) else UNKNOWN
        except LookupError:
            return UNKNOWN

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self._get(self.evaluate(node.value, scope), node.attr)

    def _get(self, owner: Any, name: str) -> Any:
        if isinstance(owner, Imported):
            return self.resolved(Imported(f"{owner.path}.{name}"))
        if isinstance(owner, Instance):
            if name in owner.attributes:
                return owner.attributes[name]
            return self._member(owner.cls, name, owner) if owner.cls else UNKNOWN
        return self._member(owner, name, UNKNOWN) if isinstance(owner, ClassValue) else UNKNOWN

    def _member(self, cls: ClassValue, name: str, bound: Any, seen: set[ast.AST] | None = None) -> Any:
        seen = set() if seen is None else seen
        if cls.node in seen:
            return UNKNOWN
        seen.add(cls.node)
        for item in cls.node.body:
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and item.name == name:
                kinds = [getattr(decorator, "id", "") for decorator in item.decorator_list]
                if "staticmethod" in kinds:
                    return FunctionValue(item, cls.scope)
                return FunctionValue(item, cls.scope, cls if "classmethod" in kinds else bound)
            if isinstance(item, (ast.Assign, ast.AnnAssign)) and item.value is not None:
                targets = item.targets if isinstance(item, ast.Assign) else [item.target]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    return self.evaluate(item.value, cls.scope)
        for base in self.bases(cls):
            if isinstance(base, ClassValue) and (found := self._member(base, name, bound, seen)) is not UNKNOWN:
                return found
        return UNKNOWN

    def bases(self, cls: ClassValue) -> list[Any]:
        """Return the classes that a class of the script inherits from directly."""
        found = [self.evaluate(base, cls.scope) for base in cls.node.bases]
        return [base for base in found if base is not cls]

    def arguments(self, node: ast.Call, scope: Scope) -> Call:
        """Return the evaluated arguments of a call."""
        args = list(self._items(node.args, scope))
        keywords: dict[str, Any] = {}
        for word in node.keywords:
            value = self.evaluate(word.value, scope)
            if word.arg is not None:
                keywords[word.arg] = value
            elif isinstance(value, dict):
                keywords |= {str(key): item for key, item in value.items()}
        return Call(node, args, keywords)

    def _call_method(self, owner: Any, name: str, call: Call) -> Any:
        """Return the value of a method of a text, a list or a dict."""
        if isinstance(owner, str) and name in _TEXT_METHODS and is_plain(call.args) and not call.keywords:
            try:
                return getattr(owner, name)(*call.args) if len(owner) < _MAX_TEXT else UNKNOWN
            except (TypeError, ValueError):
                return UNKNOWN
        if isinstance(owner, dict) and name in ("keys", "values", "items"):
            return list(getattr(owner, name)())
        if isinstance(owner, dict) and name == "update":
            for item in (*call.args, call.keywords):
                owner |= item if isinstance(item, dict) else {}
        elif isinstance(owner, list) and name == "append" and call.args and len(owner) < _MAX_ITEMS:
            owner.append(call.args[0])
        return UNKNOWN

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        name, owner = "", None
        if isinstance(node.func, ast.Attribute):
            name, owner = node.func.attr, self.evaluate(node.func.value, scope)
            function = self._get(owner, name)
        else:
            function = self.evaluate(node.func, scope)
        call = self.arguments(node, scope)
        if isinstance(function, FunctionValue):
            return self.enter(function, call.args, call.keywords)
        if isinstance(function, ClassValue):
            return self._create(function, call)
        if isinstance(function, Imported):
            return self._builtin(function.path, call)
        if isinstance(owner, (str, list, dict)):
            return self._call_method(owner, name, call)
        return self._call_library(self, owner if name else function, name, call)

    def _create(self, cls: ClassValue, call: Call) -> Any:
        made = self._call_library(self, cls, "", call)
        made = Instance(cls, dict(call.keywords), call.args) if made is UNKNOWN else made
        if isinstance(made, Instance) and isinstance(start := self._member(cls, "__init__", made), FunctionValue):
            self.enter(start, call.args, call.keywords)
        return made

    def enter(
        self, function: FunctionValue, args: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
    ) -> Any:
        """Follow a function's statements, and return what it returns as far as that is known."""
        node = function.node
        count = self._calls.get(node, 0)
        is_long = not isinstance(node, ast.Lambda) and len(node.body) > _SHORT
        if self._depth >= _MAX_DEPTH or count >= _MAX_CALLS or (is_long and not self._is_relevant(node)):
            return UNKNOWN
        self._calls[node] = count + 1
        scope = Scope(function.scope)
        given = [*([] if function.bound is None else [function.bound]), *args]
        parameters = [*node.args.posonlyargs, *node.args.args]
        defaults = [*node.args.defaults]
        for parameter in [*parameters, *node.args.kwonlyargs]:
            scope.names[parameter.arg] = UNKNOWN
        for parameter, default in [
            *zip(reversed(parameters), reversed(defaults)),  # noqa: B905 - the last ones have defaults
            *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
        ]:
            if default is not None:
                scope.names[parameter.arg] = self.evaluate(default, function.scope)
        scope.names |= {parameter.arg: value for parameter, value in zip(parameters, given)}  # noqa: B905
        scope.names |= {name: value for name, value in (keywords or {}).items() if name in scope.names}
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body, scope)
        self._depth += 1
        try:
            self.run(node.body, scope)
        finally:
            self._depth -= 1
        known = [value for value in scope.returned if value is not UNKNOWN and value is not None]
        return known[-1] if known else UNKNOWN

    def _builtin(self, path: str, call: Call) -> Any:
        if path in _CONTAINERS:
            return self._container(path, call)
        if path == "dict":
            return {**(call.args[0] if call.args and isinstance(call.args[0], dict) else {}), **call.keywords}
        if (
            path == "isinstance"
            and len(call.args) == 2
            and isinstance(call.args[1], Imported)
            and is_plain(call.args[0])
        ):
            kinds = [kind.__name__ for kind in type(call.args[0]).__mro__]
            return call.args[1].path in kinds
        if path == "type" and len(call.args) == 1 and isinstance(call.args[0], (str, int, float)):
            return Imported(type(call.args[0]).__name__)
        if path == "range" and 0 < len(call.args) < 4 and all(isinstance(item, int) for item in call.args):
            try:
                return list(range(*call.args)[: _MAX_ITEMS + 1])
            except ValueError:
                return UNKNOWN
        return self._call_library(self, None, path, call)

    def _container(self, name: str, call: Call) -> Any:
        value = call.args[0] if call.args else []
        items = list(value) if isinstance(value, (list, tuple, dict)) else None
        try:
            return UNKNOWN if items is None or call.keywords else _CONTAINERS[name](items)
        except TypeError:
            return UNKNOWN


_EVALUATORS: dict[type, Callable[[Any, Any, Scope], Any]] = {
    ast.Dict: Evaluator._dict,
    ast.UnaryOp: Evaluator._unaryop,
    ast.BinOp: Evaluator._binop,
    ast.JoinedStr: Evaluator._joinedstr,
    ast.IfExp: Evaluator._ifexp,
    ast.BoolOp: Evaluator._boolop,
    ast.Compare: Evaluator._compare,
    ast.NamedExpr: Evaluator._namedexpr,
    ast.Await: Evaluator._await,
    ast.Subscript: Evaluator._subscript,
    ast.Attribute: Evaluator._attribute,
    ast.Call: Evaluator._call,
}
