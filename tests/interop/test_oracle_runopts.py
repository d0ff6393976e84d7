"""Run options held against TorchX's: declared, resolved, read from text and from JSON, printed."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.oracle import Refused, cases, hold, names_of, outcome, theirs

import torchx_tui.specs as our_specs

Declared = tuple[str, Any, Any, bool]  # name, type, default, required

KINDS: list[Any] = [str, int, float, bool, list[str], dict[str, str]]
NAMES = ["log_dir", "clusterName", "cluster_name", "FOO", "foo", "retries", "a"]
WORDS = ["a", "1", "2.5", "true", "NO", "x:1", "x:1,y:2", "a;b", "a,b", "'q,r'", '"s=t"', "", " ", "-3", "é"]
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(width=16), st.sampled_from(WORDS),
    st.lists(st.sampled_from(["a", "b", 1, None]), max_size=3),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from(["c", "d", 1]), max_size=2),
)  # fmt: skip
DECLARED = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(KINDS), VALUES, st.booleans()),
    max_size=5, unique_by=lambda one: one[0],
)  # fmt: skip
BY_KIND = {"s": str, "log_dir": str, "i": int, "f": float, "b": bool, "t": list[str], "d": dict[str, str], "FOO": str}
EVERY: list[Declared] = [(name, kind, None, False) for name, kind in BY_KIND.items()]
GOOD = {
    "s": st.sampled_from(WORDS), "log_dir": st.sampled_from(WORDS), "i": st.sampled_from(["1", "-3", "1_0", " 7"]),
    "f": st.sampled_from(["2.5", "1e-3", "nan", "3"]), "b": st.sampled_from(["true", "NO", "on", "0", "maybe"]),
    "t": st.lists(st.sampled_from(WORDS), max_size=3).map(",".join), "FOO": st.sampled_from(WORDS),
    "d": st.lists(st.sampled_from(["x:1", "y:2", "x:a:b", "'p,q':r", "z", ""]), max_size=3).map(";".join),
}  # fmt: skip
RIGHT = st.dictionaries(st.sampled_from(list(GOOD)), st.integers(), max_size=4).flatmap(
    lambda names: st.tuples(*(GOOD[name].map(lambda text, name=name: f"{name}={text}") for name in names))
)
CFGS = st.dictionaries(st.sampled_from([*BY_KIND, "logDir", "foo", "none_such"]), VALUES, max_size=4)
# Pieces that are well-formed, and the signs that make them not so.
PIECES = st.sampled_from(
    [*BY_KIND, "logDir", "foo", "nope", *WORDS, "=", "=", "=", ",", ",", ";", "'", '"', "\\'", " "]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=9).map("".join),
    *(RIGHT.map(separator.join) for separator in (",", ";", " , ")),
)
JSONS = st.one_of(CFGS.map(json.dumps), VALUES.map(json.dumps), st.text(max_size=8))


def made(package: Any, declared: list[Declared]) -> Any:
    options = package.runopts()
    for name, kind, default, required in declared:
        if not required and (default is None or is_of(kind, default)):
            options.add(name, type_=kind, help=f"what {name} is", default=default)
        else:
            options.add(name, type_=kind, help=f"what {name} is", required=required)
    return options


def is_of(kind: Any, value: Any) -> bool:
    return our_specs.runopts.is_type(value, kind)


def compare(declared: list[Declared], act: Callable[[Any], Any], explain: Any, case: Any) -> None:
    their_options, our_options = made(theirs("torchx.specs"), declared), made(our_specs, declared)
    hold("runopts", outcome(lambda: act(their_options)), outcome(lambda: act(our_options)), explain, (declared, case))


def spelled_otherwise(declared: list[Declared], names: list[str]) -> bool:
    """Return whether one of the names is another spelling that TorchX does not know."""
    their_options, our_options = made(theirs("torchx.specs"), declared), made(our_specs, declared)
    return any(their_options.canonical_key(name) != our_options.canonical_key(name) for name in names)


@given(st.sampled_from(KINDS), VALUES, st.booleans())
@cases(1000)
def test_declaring(torchx: str, kind: Any, default: Any, required: bool) -> None:
    def declare(package: Any) -> Any:
        options = package.runopts()
        options.add("it", type_=kind, help="", default=default, required=required)
        return [(name, option.default, option.is_required) for name, option in options]

    def explain(_their: Any, _our: Any) -> str | None:
        return "a list for a dict" if mixed_up(kind, default) else None

    case = (kind, default, required)
    hold(
        "runopts", outcome(lambda: declare(theirs("torchx.specs"))), outcome(lambda: declare(our_specs)), explain, case
    )


def mixed_up(kind: Any, value: Any) -> bool:
    return kind in (list[str], dict[str, str]) and type(value) is {list[str]: dict, dict[str, str]: list}[kind]


@given(st.one_of(DECLARED, st.just(EVERY)), CFGS, st.booleans())
@cases(1500)
def test_resolving(torchx: str, declared: list[Declared], cfg: dict[str, Any], ignore_unknown: bool) -> None:
    def explain(_their: Any, _our: Any) -> str | None:
        if spelled_otherwise(declared, list(cfg)):
            return "spellings"
        options = made(our_specs, declared)
        typed = {options.canonical_key(name): value for name, value in cfg.items()}
        return "a list for a dict" if any(mixed_up(kind, typed.get(name)) for name, kind, *_ in declared) else None

    compare(declared, lambda options: options.resolve(cfg, ignore_unknown=ignore_unknown), explain, cfg)


@given(TEXTS)
@cases(2000)
def test_reading_a_text(torchx: str, text: str) -> None:
    def explain(their: Any, our: Any) -> str | None:
        unquoted = re.sub(r"""(['"])(?:\\.|(?!\1).)*?\1""", "Q", text)
        if spelled_otherwise(EVERY, re.findall(r"\w+", text)):
            return "spellings"
        if re.search(r"=\s*(=|$|[,;][^=]*=)|^\s*=|[,;]\s*=", unquoted) and isinstance(our, Refused):
            return "a missing key or value"
        if isinstance(their, Refused) and their.names[0] == "IndexError":
            return "a pair without a colon"
        return "quotes" if "'" in text or '"' in text else None

    compare(EVERY, lambda options: options.cfg_from_str(text), explain, text)


@given(JSONS, st.booleans())
@cases(1500)
def test_reading_json(torchx: str, text: str, ignore_unknown: bool) -> None:
    def explain(their: Any, our: Any) -> str | None:
        cfg = outcome(lambda: json.loads(text))
        if not isinstance(cfg, dict):
            return "JSON of another form"
        if spelled_otherwise(EVERY, list(cfg)):
            return "spellings"
        return "JSON of another form" if isinstance(our, Refused) else None

    compare(EVERY, lambda options: options.cfg_from_json_repr(text, ignore_unknown=ignore_unknown), explain, text)


@given(DECLARED, DECLARED)
@cases(1000)
def test_printed_help(torchx: str, declared: list[Declared], more: list[Declared]) -> None:
    compare(declared, repr, lambda *_: None, "help")
    package = theirs("torchx.specs")
    their_both, our_both = (
        made(package, declared) | made(package, more),
        made(our_specs, declared) | made(our_specs, more),
    )
    hold("runopts", (repr(their_both), len(their_both)), (repr(our_both), len(our_both)), lambda *_: None, more)


ONE: dict[str, Any] = {name: ((name, kind, None, False),) for name, kind in [("t", list[str]), ("d", dict[str, str])]}
ONE |= {"FOO": (("FOO", str, None, False),), "s": (("s", str, None, False), ("u", str, None, False))}
# Of each entry: the options, what is asked of them, what TorchX gives and what ours do.
EXAMPLES: dict[str, tuple[Any, Callable[[Any], Any], str, str]] = {
    "spellings": (ONE["FOO"], lambda one: one.cfg_from_str("foo=1"), "InvalidRunConfigException", "{'FOO': '1'}"),
    "a list for a dict": (ONE["d"], lambda one: one.resolve({"d": ["a"]}), "{'d': ['a']}", "InvalidRunConfigException"),
    "a missing key or value": (
        ONE["s"], lambda one: one.cfg_from_str("s=1,u="), "{'s': '1,u'}", "InvalidRunConfigException"
    ),
    "a pair without a colon": (
        ONE["d"], lambda one: one.cfg_from_str("d=x"), "IndexError", "InvalidRunConfigException"
    ),
    "quotes": (ONE["s"], lambda one: one.cfg_from_str(r"s='it\'s'")["s"], r'''"it\\'s"''', '''"it's"'''),
    "JSON of another form": (
        ONE["t"], lambda one: one.cfg_from_json_repr('{"t": "ab"}'), "{'t': ['a', 'b']}", "InvalidRunConfigException"
    ),
    "types of the module typing": (
        (("t", list[str], None, False),), lambda one: typed_by_typing(one), "typing.List[str]", "list"
    ),
}  # fmt: skip


def typed_by_typing(options: Any) -> Any:
    options.add("t", type_=typing.List[str], help="")  # noqa: UP006 - as old schedulers write it
    return Bare(repr(options).partition("t=T (")[2].partition(", None")[0])


class Bare(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@pytest.mark.parametrize("name", names_of("runopts"))
def test_each_difference_is_there(torchx: str, name: str) -> None:
    declared, act, their_text, our_text = EXAMPLES[name]
    assert repr(outcome(lambda: act(made(theirs("torchx.specs"), declared)))) == their_text
    assert repr(outcome(lambda: act(made(our_specs, declared)))) == our_text


def test_no_example_is_left_over() -> None:
    assert set(EXAMPLES) == set(names_of("runopts"))
