"""Choices side by side where there is no room for all of them."""

import pytest

from torchx_tui.tui.ui.choice_field import choices_in


@pytest.mark.parametrize(
    ("widths", "taken", "room", "shown"),
    [
        ([10, 10, 10], 0, 30, [0, 1, 2]),
        ([10, 10, 10], 2, 30, [0, 1, 2]),
        ([10, 10, 10, 10], 0, 34, [0, 1, 2]),
        ([10, 10, 10, 10], 3, 34, [1, 2, 3]),
        ([10, 10, 10, 10], 1, 24, [0, 1]),
        ([10, 50, 10], 1, 30, [1]),
        ([], 0, 30, []),
    ],
)
def test_the_one_taken_is_always_seen(widths, taken, room, shown):
    assert list(choices_in(widths, taken, room)) == shown
