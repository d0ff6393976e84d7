"""Macros held against TorchX's: what is replaced in a role, and what stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.oracle import cases, hold, names_of, outcome, theirs

import torchx_tui.specs as our_specs

NAMES = ["img_root", "app_id", "replica_id", "rank0_env", "base_img_root"]
WRITTEN = [f"${{{name}}}" for name in NAMES[:4]] + [f"${name}" for name in NAMES[:4]]
PIECES = st.sampled_from([*WRITTEN * 5, *["$", "$$", "${", "}", "${app_id", "${x}", "a ", "é"] * 3, "${base_img_root}"])
TEXTS = st.lists(PIECES, max_size=6).map("".join)
VALUES = st.fixed_dictionaries(dict.fromkeys(NAMES[:4], TEXTS))
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


def applied(package: Any, values: dict[str, str], given_role: dict[str, Any]) -> dict[str, Any]:
    role = package.Role(name="${app_id}", image="${img_root}", **given_role)
    made = package.macros.Values(**values).apply(role)
    kept = {name: getattr(role, name) for name in given_role} == given_role
    return {"kept": kept, **{name: getattr(made, name) for name in ("name", "image", *given_role)}}


@given(VALUES, ROLES)
@cases(1000)
def test_a_role(torchx: str, values: dict[str, str], role: dict[str, Any]) -> None:
    their_made = outcome(lambda: applied(theirs("torchx.specs"), values, role))
    our_made = outcome(lambda: applied(our_specs, values, role))

    def explain(their: Any, our: Any) -> str | None:
        if "base_img_root" in repr(role):
            return "base_img_root"
        if {**their, "entrypoint": ""} == {**our, "entrypoint": ""}:
            return "the entrypoint"
        apart = [name for name in their if their[name] != our[name] and name != "entrypoint"]
        return "lists in lists" if apart == ["metadata"] and deep(role["metadata"]) else None

    hold("macros", their_made, our_made, explain, (values, role))


def deep(value: Any, in_list: bool = False) -> bool:
    """Return whether there is a list in a list, or a tuple."""
    if isinstance(value, tuple) or (isinstance(value, list) and in_list):
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(deep(item, isinstance(value, list)) for item in inner)


@given(VALUES, TEXTS)
@cases(1000)
def test_a_text(torchx: str, values: dict[str, str], text: str) -> None:
    def explain(_their: Any, _our: Any) -> str | None:
        return "base_img_root" if "base_img_root" in text else None

    their_text = theirs("torchx.specs").macros.Values(**values).substitute(text)
    hold("macros", their_text, our_specs.macros.Values(**values).substitute(text), explain, (values, text))


def test_the_macros_are_the_same_texts(torchx: str) -> None:
    their_macros = theirs("torchx.specs").macros
    assert [getattr(their_macros, name) for name in NAMES[:4]] == [
        getattr(our_specs.macros, name) for name in NAMES[:4]
    ]


# Of each entry: the role, and what it becomes.
EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "the entrypoint": ({"entrypoint": "$app_id"}, {"entrypoint": "$app_id"}, {"entrypoint": "A"}),
    "lists in lists": ({"metadata": {"a": [["$app_id"]]}}, {"metadata": {"a": [["$app_id"]]}},
                       {"metadata": {"a": [["A"]]}}),
    "base_img_root": ({"args": ["${base_img_root}"]}, {"args": ["${base_img_root}"]}, {"args": ["DEPRECATED"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", names_of("macros"))
def test_each_difference_is_there(torchx: str, name: str) -> None:
    role, their_role, our_role = EXAMPLES[name]
    values = {"img_root": "I", "app_id": "A", "replica_id": "0", "rank0_env": "R"}
    their_made, our_made = applied(theirs("torchx.specs"), values, role), applied(our_specs, values, role)
    assert {field: their_made[field] for field in role} == their_role
    assert {field: our_made[field] for field in role} == our_role


def test_no_example_is_left_over() -> None:
    assert set(EXAMPLES) == set(names_of("macros"))
