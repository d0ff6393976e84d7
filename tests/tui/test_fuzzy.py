"""Fuzzy search: what matches, what is better, which letters are lit, and that no name makes it slow."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.tui.ui.fuzzy import fuzzy_match


@pytest.mark.parametrize(
    ("query", "text", "lit"),
    [
        ("ddp", "dist.ddp", "5 6 7"),
        ("DDP", "dist.ddp", "5 6 7"),
        ("train", "restrain/jobs.py:train", "17 18 19 20 21"),
        ("dtr", "demo.train", "0 5 6"),
        ("eco", "utils.echo", "6 7 9"),
        ("py tra", "jobs.py:train", "5 6 8 9 10"),
        ("ö", "jobs/größe.py:f", "7"),
    ],
)
def test_what_matches_and_what_is_lit(query, text, lit):
    score, places = fuzzy_match(query, text)
    assert score > 0
    assert " ".join(map(str, places)) == lit


@pytest.mark.parametrize(("query", "text"), [("ddpp", "dist.ddp"), ("x", ""), ("ba", "ab"), ("py zz", "jobs.py:f")])
def test_what_does_not(query, text):
    assert fuzzy_match(query, text) == (0.0, ())


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("ddp", "dist.ddp", "dist.ddp_sweep_dxdxp"[5:] + "d.d.p"),
        ("sh", "utils.sh", "utils.touch"),
        ("train", "demo.train", "jobs.py:retrain"),
        ("utils.sh", "utils.sh", "utils.sh_all"),
    ],
)
def test_what_is_better(query, better, worse):
    assert fuzzy_match(query, better)[0] >= fuzzy_match(query, worse)[0] > 0


@given(st.text(min_size=1, max_size=8), st.text(max_size=40))
def test_lit_letters_are_those_of_the_query_in_their_order(query, text):
    score, places = fuzzy_match(query, text)
    assert (score > 0) == bool(places)
    assert list(places) == sorted(set(places))
    assert all(0 <= place < len(text) for place in places)
    if places and len(query.split()) == 1 and len(text.lower()) == len(text):
        assert [text[place].lower() for place in places] == list(query.lower().split()[0])


def test_no_name_makes_it_slow():
    """A search that tries every way to match would not end in years."""
    began = time.thread_time()
    fuzzy_match("ae" * 20 + "ae", "a-e-" * 60)
    fuzzy_match("ae" * 20 + "x", "a-e-" * 60 + "x")
    assert time.thread_time() - began < 5
