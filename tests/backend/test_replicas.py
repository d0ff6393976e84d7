"""Which replica and stream is meant, and the error where there is none."""

import pytest
from backend.tables import TABLES

from torchx_tui.backends.shared.replicas import format_numbers, pick_replica
from torchx_tui.backends.types import Stream, parse_stream


def test_a_replica_is_picked():
    assert pick_replica("app", {"trainer": {0: "t0", 3: "t3"}, "reader": {3: "r3"}}, "trainer", 3) == "t3"


@pytest.mark.parametrize(("roles", "role", "k", "message"), TABLES["replicas"]["unknown"])
def test_an_unknown_replica_is_an_error(roles, role, k, message):
    replicas = {name: dict.fromkeys(range(count)) for name, count in roles.items()}
    with pytest.raises(ValueError) as raised:
        pick_replica("app", replicas, role, k)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("numbers", "text"), [([2, 0, 1], "0 to 2"), ([0, 1, 2, 5, 7, 8], "0 to 2, 5, 7 to 8"), ([4], "4")]
)
def test_numbers_are_given_as_ranges(numbers, text):
    assert format_numbers(numbers) == text


def test_streams_by_name():
    assert (parse_stream(None), parse_stream("stderr")) == (Stream.COMBINED, Stream.STDERR)
    with pytest.raises(ValueError, match=r"there is no stream logs\. Valid: .*stderr"):
        parse_stream("logs")
