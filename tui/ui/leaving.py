"""Leaving a screen once, however often it is asked for."""

from __future__ import annotations

from typing import Any

from textual.await_complete import AwaitComplete


class LeavesOnce:
    """What stands before a screen among the bases of a class whose screen leaves only while it is the one on top.

    Textual takes away whatever screen is on top: of two keys that come at once the second would take the one below.
    """

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave, with an answer; nothing happens where that was done already."""
        return super().dismiss(result) if self.is_active else AwaitComplete()  # type: ignore
