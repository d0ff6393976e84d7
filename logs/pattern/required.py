"""The literal texts that every match of a regular expression contains, so that only lines with them are searched."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    from re import _constants as _ops
    from re import _parser as _parse
else:
    import sre_constants as _ops
    import sre_parse as _parse

# Every matching line has at least one of these texts.
Alternatives = tuple[str, ...]

_MAX_BRANCHES = 16


class ParsedRegex(NamedTuple):
    """The result of parsing a regular expression.

    Attributes:
        requirements: every matching line has at least one text of each entry.
        has_upper: whether it has an upper-case letter.
        ignores_case: whether a flag in it ignores case, in all or a part of it.
    """

    requirements: list[Alternatives]
    has_upper: bool
    ignores_case: bool


def parse_regex(text: str) -> ParsedRegex:
    """Parse a regular expression in Python's syntax.

    Raises:
        re.error: it is not valid.
    """
    with warnings.catch_warnings():
        # Python warns of a nested set at a POSIX class such as [[:alpha:]].
        warnings.simplefilter("ignore")
        tree: Any = _parse.parse(text)
    items = list(tree)
    # Python reads a POSIX class as a set and a bracket; the engines do not.
    requirements = [] if "[:" in text else _required(items)
    ignores = bool(tree.state.flags & _ops.SRE_FLAG_IGNORECASE) or _folds(items)
    return ParsedRegex(requirements, _has_upper(items), ignores)


def _required(items: Iterable[tuple[Any, Any]]) -> list[Alternatives]:
    requirements: list[Alternatives] = []
    run: list[str] = []

    def end_run() -> None:
        if run:
            requirements.append(("".join(run),))
            run.clear()

    for op, value in items:
        if op is _ops.LITERAL:
            run.append(chr(value))
            continue
        if op in (_ops.AT, _ops.ASSERT, _ops.ASSERT_NOT):
            continue
        if op is _ops.SUBPATTERN and all(inner is _ops.LITERAL for inner, _ in value[-1]):
            run += [chr(code) for _, code in value[-1]]
            continue
        end_run()
        requirements += _required_of(op, value)
    end_run()
    return requirements


def _required_of(op: Any, value: Any) -> list[Alternatives]:
    """List the requirements of one item that is not a literal."""
    if op is _ops.SUBPATTERN:
        return _required(value[-1])
    if op is getattr(_ops, "ATOMIC_GROUP", None):
        return _required(value)
    if op in _repeats():
        return _required(value[2]) if value[0] >= 1 else []
    if op is _ops.BRANCH and len(value[1]) <= _MAX_BRANCHES:
        texts: list[str] = []
        for branch in value[1]:
            best = max(_required(branch), key=lambda alternatives: min(map(len, alternatives)), default=None)
            if best is None:
                return []
            texts += best
        return [tuple(texts)] if len(texts) <= _MAX_BRANCHES else []
    return []


def _repeats() -> tuple[Any, ...]:
    return (_ops.MAX_REPEAT, _ops.MIN_REPEAT, getattr(_ops, "POSSESSIVE_REPEAT", None))


def _children(op: Any, value: Any) -> list[Iterable[tuple[Any, Any]]]:
    if op is _ops.SUBPATTERN:
        return [value[-1]]
    if op in (_ops.ASSERT, _ops.ASSERT_NOT):
        return [value[1]]
    if op is getattr(_ops, "ATOMIC_GROUP", None):
        return [value]
    if op is _ops.IN:
        return [value]
    if op in _repeats():
        return [value[2]]
    if op is _ops.BRANCH:
        return list(value[1])
    if op is _ops.GROUPREF_EXISTS:
        return [branch for branch in value[1:] if branch is not None]
    return []


def _has_upper(items: Iterable[tuple[Any, Any]]) -> bool:
    for op, value in items:
        if op in (_ops.LITERAL, _ops.NOT_LITERAL) and chr(value).isupper():
            return True
        if op is _ops.RANGE and (chr(value[0]).isupper() or chr(value[1]).isupper()):
            return True
        if any(_has_upper(child) for child in _children(op, value)):
            return True
    return False


def _folds(items: Iterable[tuple[Any, Any]]) -> bool:
    for op, value in items:
        if op is _ops.SUBPATTERN and len(value) == 4 and value[1] & _ops.SRE_FLAG_IGNORECASE:
            return True
        if any(_folds(child) for child in _children(op, value)):
            return True
    return False
