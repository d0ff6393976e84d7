"""Run options compared with TorchX's: declared, resolved, read from text and from JSON, printed."""

import json
import re
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.oracle import WORDS, Refused, cases, check_example, compare, each_difference, outcome, theirs

import torchx_tui.specs as our_specs

pytestmark = pytest.mark.usefixtures("torchx")

AREA = "runopts"
KINDS = [str, int, float, bool, list[str], dict[str, str]]
OF = {kind: st.sampled_from(words) for kind, words in WORDS[AREA].items()}
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(width=16), OF["values"],
    st.lists(st.sampled_from(["a", "b", 1, None]), max_size=3),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from(["c", "d", 1]), max_size=2),
)  # fmt: skip
# Of each option: name, type, default, and whether it is required.
DECLARED = st.lists(
    st.tuples(OF["names"], st.sampled_from(KINDS), VALUES, st.booleans()),
    max_size=5, unique_by=lambda one: one[0],
)  # fmt: skip
BY_KIND = {"s": str, "log_dir": str, "i": int, "f": float, "b": bool, "t": list[str], "d": dict[str, str], "FOO": str}
EVERY = [(name, kind, None, False) for name, kind in BY_KIND.items()]
GOOD = {
    "s": OF["values"], "log_dir": OF["values"], "FOO": OF["values"], "i": OF["ints"], "f": OF["floats"],
    "b": OF["bools"], "t": st.lists(OF["values"], max_size=3).map(",".join),
    "d": st.lists(OF["pairs"], max_size=3).map(";".join),
}  # fmt: skip
RIGHT = st.dictionaries(st.sampled_from(list(GOOD)), st.integers(), max_size=4).flatmap(
    lambda names: st.tuples(*(GOOD[name].map(lambda text, name=name: f"{name}={text}") for name in names))
)
CFGS = st.dictionaries(st.sampled_from([*BY_KIND, "logDir", "foo", "none_such"]), VALUES, max_size=4)
# Pieces that are well-formed, and the signs that make them not so.
PIECES = st.sampled_from([*BY_KIND, *WORDS[AREA]["values"], *WORDS[AREA]["signs"]])
TEXTS = st.one_of(
    st.lists(PIECES, max_size=9).map("".join),
    *(RIGHT.map(separator.join) for separator in (",", ";", " , ")),
)
JSONS = st.one_of(CFGS.map(json.dumps), VALUES.map(json.dumps), st.text(max_size=8))


def made(specs, declared):
    options = specs.runopts()
    for name, kind, default, required in declared:
        if not required and (default is None or our_specs.runopts.is_type(default, kind)):
            options.add(name, type_=kind, help=f"what {name} is", default=default)
        else:
            options.add(name, type_=kind, help=f"what {name} is", required=required)
    return options


def spelled_otherwise(declared, names):
    """Return whether one of the names is another spelling that TorchX does not know."""
    their_options, our_options = made(theirs(), declared), made(our_specs, declared)
    return any(their_options.canonical_key(name) != our_options.canonical_key(name) for name in names)


def mixed_up(kind, value):
    return (kind, type(value)) in ((list[str], dict), (dict[str, str], list))


@given(st.sampled_from(KINDS), VALUES, st.booleans())
@cases(1000)
def test_declaring(kind, default, required):
    def declare(specs):
        options = specs.runopts()
        options.add("it", type_=kind, help="", default=default, required=required)
        return [(name, option.default, option.is_required) for name, option in options]

    def explain(their, our):
        return "a list for a dict" if mixed_up(kind, default) else None

    compare(AREA, declare, explain, (kind, default, required))


@given(st.one_of(DECLARED, st.just(EVERY)), CFGS, st.booleans())
@cases(1500)
def test_resolving(declared, cfg, ignore_unknown):
    def explain(their, our):
        if spelled_otherwise(declared, list(cfg)):
            return "spellings"
        options = made(our_specs, declared)
        typed = {options.canonical_key(name): value for name, value in cfg.items()}
        return "a list for a dict" if any(mixed_up(kind, typed.get(name)) for name, kind, *_ in declared) else None

    def resolve(specs):
        return made(specs, declared).resolve(cfg, ignore_unknown=ignore_unknown)

    compare(AREA, resolve, explain, (declared, cfg))


@given(TEXTS)
@cases(2000)
def test_reading_a_text(text):
    def explain(their, our):
        unquoted = re.sub(r"""(['"])(?:\\.|(?!\1).)*?\1""", "Q", text)
        if spelled_otherwise(EVERY, re.findall(r"\w+", text)):
            return "spellings"
        if isinstance(our, Refused) and "is given twice" in str(our.error):
            return "a key twice"
        if re.search(r"=\s*(=|$|[,;][^=]*=)|^\s*=|[,;]\s*=", unquoted) and isinstance(our, Refused):
            return "a missing key or value"
        if isinstance(their, Refused) and their.names[0] == "IndexError":
            return "a pair without a colon"
        return "quotes" if "'" in text or '"' in text else None

    compare(AREA, lambda specs: made(specs, EVERY).cfg_from_str(text), explain, text)


@given(JSONS, st.booleans())
@cases(1500)
def test_reading_json(text, ignore_unknown):
    def explain(their, our):
        cfg = outcome(lambda: json.loads(text))
        if not isinstance(cfg, dict):
            return "JSON of another form"
        if spelled_otherwise(EVERY, list(cfg)):
            return "spellings"
        return "JSON of another form" if isinstance(our, Refused) else None

    def read(specs):
        return made(specs, EVERY).cfg_from_json_repr(text, ignore_unknown=ignore_unknown)

    compare(AREA, read, explain, text)


@given(DECLARED, DECLARED)
@cases(1000)
def test_printed_help(declared, more):
    compare(AREA, lambda specs: repr(made(specs, declared)), case=declared)
    compare(AREA, lambda specs: repr(both := made(specs, declared) | made(specs, more)) + str(len(both)), case=more)


@each_difference(AREA)
def test_each_difference_is_there(difference):
    def names(specs):
        return {
            "typing": typing,
            "options": lambda **kinds: made(specs, [(*one, None, False) for one in kinds.items()]),
        }

    check_example(difference, names)
