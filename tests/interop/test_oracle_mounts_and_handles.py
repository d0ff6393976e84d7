"""The texts of mounts and app handles held against TorchX's."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from interop.oracle import Refused, cases, hold, names_of, outcome, theirs

import torchx_tui.specs as our_specs

PATHS = ["/a", "/b c", "~", "~/a/", "~/a//b", "~nobody-here/x", "name", "", "a=b", "é"]
TYPES = ["type=bind", "type=volume", "type=device", "type=", "type=nfs", "type"]
WORDS = ["src", "source", "dst", "destination", "target"]
FLAGS = ["readonly", "read_only", "readonly=false", "read_only=true", "readonly=", "readonly=maybe", "read_only=No"]
OTHERS = ["perm=r", "perm=rwm", "perm=rx", "perm=", "size=1", "", "src", " dst=/x", "SRC=/a", "bind"]
OPTIONS = st.one_of(
    st.sampled_from(TYPES),
    st.builds("{}={}".format, st.sampled_from(WORDS), st.sampled_from(PATHS)),
    st.sampled_from([*FLAGS, *OTHERS]),
)
# Mounts that are well-formed, but for an option or two.
USUAL = st.builds(
    lambda kind, source, target, more: [kind, f"src={source}", f"dst={target}", *more],
    st.sampled_from(TYPES[:3]), st.sampled_from(PATHS), st.sampled_from(PATHS),
    st.lists(st.sampled_from([*FLAGS, *OTHERS[:4]]), max_size=1),
)  # fmt: skip
MOUNTS = st.one_of(st.lists(OPTIONS, max_size=6), st.lists(USUAL, max_size=3).map(lambda all: list(chain(*all))))
LETTERS = st.text(st.sampled_from("ab:/.@-_ \n\té"), max_size=12)
HANDLES = st.one_of(LETTERS, st.builds("{}://{}/{}".format, LETTERS, LETTERS, LETTERS))


@given(MOUNTS)
@example(["type=bind", "src=~/a/", "dst=/b"])
@cases(3000)
def test_mounts(torchx: str, options: list[str]) -> None:
    their_mounts = outcome(lambda: theirs("torchx.specs").parse_mounts(options))
    our_mounts = outcome(lambda: our_specs.parse_mounts(options))
    hold("mounts", their_mounts, our_mounts, lambda their, our: explained(options, our), options)


def explained(options: list[str], ours: Any) -> str | None:
    """Return the entry that a list of options falls under."""
    said = str(ours.error) if isinstance(ours, Refused) else ""
    if any(option.startswith(("readonly=", "read_only=")) for option in options) and (not said or "readonly=" in said):
        return "read_only=false"
    for words, name in [
        ("wants a value", "an empty value"),
        ("given twice", "given twice"),
        ("mount has no", "an option of another kind"),
        ("home", "an unknown home"),
    ]:
        if words in said:
            return name
    return "spaces" if any(option != option.strip() for option in options) else None


@given(HANDLES)
@cases(3000)
def test_handles(torchx: str, handle: str) -> None:
    def explain(_their: Any, _our: Any) -> str | None:
        return "line breaks" if "\n" in handle else None

    their_parts = outcome(lambda: theirs("torchx.specs").parse_app_handle(handle))
    hold("handles", their_parts, outcome(lambda: our_specs.parse_app_handle(handle)), explain, handle)


@given(LETTERS, LETTERS, LETTERS)
@cases(300)
def test_making_handles(torchx: str, scheduler: str, session: str, app_id: str) -> None:
    their_handle = theirs("torchx.specs").make_app_handle(scheduler, session, app_id)
    assert our_specs.make_app_handle(scheduler, session, app_id) == their_handle


BOUND = "[BindMount(src_path='{}', dst_path='{}', read_only={})]"
# Of each entry: the text, what TorchX makes of it and what ours is.
EXAMPLES: dict[str, dict[str, tuple[str, str, str]]] = {
    "mounts": {
        "read_only=false": (
            "type=bind,src=/a,dst=/b,readonly=false", BOUND.format("/a", "/b", True), BOUND.format("/a", "/b", False)
        ),
        "an empty value": ("type=bind,src=,dst=/b", BOUND.format("", "/b", False), "MountError"),
        "given twice": ("type=bind,src=/a,src=/c,dst=/b", BOUND.format("/c", "/b", False), "MountError"),
        "an option of another kind": ("type=bind,src=/a,dst=/b,perm=r", BOUND.format("/a", "/b", False), "MountError"),
        "spaces": ("type=bind, src=/a,dst=/b", "KeyError", BOUND.format("/a", "/b", False)),
        "an unknown home": (
            "type=bind,src=~nobody-here/x,dst=/b", BOUND.format("~nobody-here/x", "/b", False), "MountError"
        ),
    },
    "handles": {
        "line breaks": (
            "local_cwd://torchx/a\nb",
            "ParsedAppHandle(scheduler_backend='local_cwd', session_name='torchx', app_id='a')",
            "MalformedAppHandleException",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize(("area", "name"), [(area, name) for area in EXAMPLES for name in names_of(area)])
def test_each_difference_is_there(torchx: str, area: str, name: str) -> None:
    text, their_text, our_text = EXAMPLES[area][name]

    def read(package: Any) -> Any:
        return package.parse_mounts(text.split(",")) if area == "mounts" else package.parse_app_handle(text)

    assert repr(outcome(lambda: read(theirs("torchx.specs")))) == their_text
    assert repr(outcome(lambda: read(our_specs))) == our_text


@pytest.mark.parametrize("area", list(EXAMPLES))
def test_no_example_is_left_over(area: str) -> None:
    assert set(EXAMPLES[area]) == set(names_of(area))
