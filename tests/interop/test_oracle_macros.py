"""Macros compared with TorchX's: what is replaced in a role, and what stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.oracle import cases, check_example, compare, each_difference, theirs

import torchx_tui.specs as our_specs

pytestmark = pytest.mark.usefixtures("torchx")

AREA = "macros"
NAMES = ["img_root", "app_id", "replica_id", "rank0_env"]
WRITTEN = [f"${{{name}}}" for name in NAMES] + [f"${name}" for name in NAMES]
PIECES = st.sampled_from([*WRITTEN * 5, *["$", "$$", "${", "}", "${app_id", "${x}", "a ", "é"] * 3, "${base_img_root}"])
TEXTS = st.lists(PIECES, max_size=6).map("".join)
VALUES = st.fixed_dictionaries(dict.fromkeys(NAMES, TEXTS))
NESTED = st.recursive(
    st.one_of(TEXTS, st.integers(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(st.sampled_from(["k", "${app_id}"]), inner, max_size=2),
    ),
    max_leaves=6,
)
ROLES = st.fixed_dictionaries(
    {
        "entrypoint": TEXTS,
        "args": st.lists(TEXTS, max_size=3),
        "env": st.dictionaries(TEXTS, TEXTS, max_size=2),
        "metadata": st.dictionaries(st.sampled_from(["a", "b"]), NESTED, max_size=2),
    }
)


def applied(specs, values, fields):
    """Return the fields of a role with macros replaced, and whether the role itself stayed as it was."""
    role = specs.Role(name="${app_id}", image="${img_root}", **fields)
    made = specs.macros.Values(**values).apply(role)
    kept = {name: getattr(role, name) for name in fields} == fields
    return {"kept": kept, **{name: getattr(made, name) for name in ("name", "image", *fields)}}


@given(VALUES, ROLES)
@cases(1000)
def test_a_role(values, role):
    def explain(their, our):
        if "base_img_root" in repr(role):
            return "base_img_root"
        apart = [name for name in their if their[name] != our[name] and name != "entrypoint"]
        if not apart:
            return "the entrypoint"
        return "lists in lists" if apart == ["metadata"] and is_deep(role["metadata"]) else None

    compare(AREA, lambda specs: applied(specs, values, role), explain, (values, role))


def is_deep(value, in_list=False):
    """Return whether there is a list in a list, or a tuple."""
    if isinstance(value, tuple) or (isinstance(value, list) and in_list):
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(is_deep(item, isinstance(value, list)) for item in inner)


@given(VALUES, TEXTS)
@cases(1000)
def test_a_text(values, text):
    def explain(their, our):
        return "base_img_root" if "base_img_root" in text else None

    compare(AREA, lambda specs: specs.macros.Values(**values).substitute(text), explain, (values, text))


@pytest.mark.parametrize("name", NAMES)
def test_a_macro_is_the_same_text(name):
    assert getattr(our_specs.macros, name) == getattr(theirs().macros, name)


@each_difference(AREA)
def test_each_difference_is_there(difference):
    values = {"img_root": "I", "app_id": "A", "replica_id": "0", "rank0_env": "R"}

    def names(specs):
        return {"applied": lambda **fields: specs.macros.Values(**values).apply(specs.Role("r", "i", **fields))}

    check_example(difference, names)
