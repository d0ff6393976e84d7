"""Which replica and stream is meant, and what is said where there is none."""

import pytest

from torchx_tui.backends.shared.replicas import format_numbers, pick_replica
from torchx_tui.backends.types import Stream, parse_stream

ROLES = {"trainer": {0: "t0", 1: "t1", 2: "t2", 3: "t3"}, "reader": {0: "r0"}}


def test_a_replica_is_picked():
    assert pick_replica("app", ROLES, "trainer", 3) == "t3"


@pytest.mark.parametrize(
    ("roles", "role", "k", "message"),
    [
        (ROLES, "writer", 0, "app has no role writer. Its roles: trainer, reader"),
        (ROLES, "trainer", 7, "Role trainer of app has no replica 7. Valid: 0 to 3"),
        (ROLES, "trainer", -1, "Role trainer of app has no replica -1. Valid: 0 to 3"),
        (ROLES, "reader", 1, "Role reader of app has no replica 1. Valid: 0"),
        ({"sh": {}}, "sh", 0, "Role sh of app has no replica 0. Valid: there is none"),
        ({}, "sh", 0, "app has no role sh. Its roles: there is none"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(roles, role, k, message):
    with pytest.raises(ValueError) as raised:
        pick_replica("app", roles, role, k)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("numbers", "text"), [([2, 0, 1], "0 to 2"), ([0, 1, 2, 5, 7, 8], "0 to 2, 5, 7 to 8"), ([4], "4")]
)
def test_numbers_are_given_as_ranges(numbers, text):
    assert format_numbers(numbers) == text


def test_streams_by_name():
    assert parse_stream(None) is Stream.COMBINED
    assert parse_stream("stderr") is Stream.STDERR
    with pytest.raises(ValueError, match=r"there is no stream logs\. Valid: .*stderr"):
        parse_stream("logs")
