"""Texts of mounts and app handles compared with TorchX's."""

from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from interop.oracle import WORDS, Refused, cases, check_example, compare, each_difference, theirs

import torchx_tui.specs as our_specs

pytestmark = pytest.mark.usefixtures("torchx")

PATHS, TYPES, KEYS, FLAGS, MORE = (WORDS["mounts"][kind] for kind in ("paths", "types", "keys", "flags", "more"))
OPTIONS = st.one_of(
    st.sampled_from(TYPES),
    st.builds("{}={}".format, st.sampled_from(KEYS), st.sampled_from(PATHS)),
    st.sampled_from([*FLAGS, *MORE]),
)
# Mounts that are well-formed, but for an option or two.
USUAL = st.builds(
    lambda kind, source, target, more: [kind, f"src={source}", f"dst={target}", *more],
    st.sampled_from(TYPES[:3]), st.sampled_from(PATHS), st.sampled_from(PATHS),
    st.lists(st.sampled_from([*FLAGS, *MORE[:4]]), max_size=1),
)  # fmt: skip
MOUNTS = st.one_of(st.lists(OPTIONS, max_size=6), st.lists(USUAL, max_size=3).map(lambda all: list(chain(*all))))
LETTERS = st.text(st.sampled_from("ab:/.@-_ \n\té"), max_size=12)
HANDLES = st.one_of(LETTERS, st.builds("{}://{}/{}".format, LETTERS, LETTERS, LETTERS))


@given(MOUNTS)
@example(["type=bind", "src=~/a/", "dst=/b"])
@example(["type=bind", "src=/a", "dst=/b", "readonly=maybe"])
@example(["type=device", "src=/a", "perm=rx"])
@cases(3000)
def test_mounts(options):
    def explain(their, our):
        said = str(our.error) if isinstance(our, Refused) else ""
        if any(one.startswith(("readonly=", "read_only=")) for one in options) and (not said or "readonly=" in said):
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

    compare("mounts", lambda specs: specs.parse_mounts(options), explain, options)


@given(HANDLES)
@cases(3000)
def test_handles(handle):
    def explain(their, our):
        return "line breaks" if "\n" in handle else None

    compare("handles", lambda specs: specs.parse_app_handle(handle), explain, handle)


@given(st.tuples(LETTERS, LETTERS, LETTERS))
@cases(300)
def test_making_handles(parts):
    assert our_specs.make_app_handle(*parts) == theirs().make_app_handle(*parts)


@each_difference("mounts")
def test_each_difference_of_mounts_is_there(difference):
    check_example(difference, lambda specs: {"mounts": lambda text: specs.parse_mounts(text.split(","))})


@each_difference("handles")
def test_each_difference_of_handles_is_there(difference):
    check_example(difference)
