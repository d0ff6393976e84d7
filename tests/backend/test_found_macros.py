"""Macros that are found again in what became of them: launching it again gives the same."""

import pytest
from backend.tables import TABLES
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends.shared.found_macros import Place, as_given, literal
from torchx_tui.specs.roles import macros

APP = "job-wq4xkz7dn2bcd"
PLACES = [Place(APP, 0, ("TORCHX_RANK0_HOST",)), Place(APP, 1, ("VC_A_0_HOSTS",)), Place(APP, 2, ("VC_A_0_HOSTS",))]


def became(text, count=3):
    """Return what a text becomes in replicas."""
    return [
        macros.Values("", place.app_id, str(place.replica_id), rank0_env=place.rank0_env[0]).substitute(text)
        for place in PLACES[:count]
    ]


@pytest.mark.parametrize("text", TABLES["found_macros"]["found"])
def test_macros_are_found(text):
    assert as_given(became(text), PLACES) == text


@given(
    st.lists(
        st.sampled_from(["${app_id}", "${replica_id}", "${rank0_env}", "$$", "$", "x", "7", " ", "{", "}", "a$b", "-"]),
        max_size=6,
    ).map("".join),
    st.integers(1, 3),
)
def test_found_macros_become_the_same_again(text, count):
    texts = became(text, count)
    found = as_given(texts, PLACES[:count])
    # Digits beside the number of a replica may hide it.
    if found is not None:
        assert became(found, count) == texts


@given(st.text(alphabet="${}apid_x", max_size=12))
def test_a_text_without_macros_becomes_itself(text):
    assert became(literal(text), 1) == [text]


@pytest.mark.parametrize("texts", TABLES["found_macros"]["different"])
def test_other_differences_are_no_macros(texts):
    assert as_given(texts, PLACES) is None
