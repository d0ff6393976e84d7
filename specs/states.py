"""The states of an app and of its replicas."""

from __future__ import annotations

from enum import Enum


class AppState(int, Enum):
    """Where an app is between being described and its end. Numbers are TorchX's and part of its JSON.

    UNSUBMITTED, SUBMITTED, PENDING, RUNNING follow one another up to SUCCEEDED, FAILED or CANCELLED. A scheduler that
    preempts takes RUNNING back to PENDING. UNKNOWN is a backend that could not tell.
    """

    UNSUBMITTED = 0
    SUBMITTED = 1
    PENDING = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    CANCELLED = 6
    UNKNOWN = 7

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{self.name} ({self.value})"

    def __format__(self, format_spec: str) -> str:
        # Before Python 3.12 an int enum formats as its number.
        return format(self.name, format_spec)


ReplicaState = AppState

_TERMINAL = frozenset({AppState.SUCCEEDED, AppState.FAILED, AppState.CANCELLED})
_STARTED = _TERMINAL | {AppState.RUNNING}


def is_terminal(state: AppState) -> bool:
    """Return whether nothing follows the state."""
    return state in _TERMINAL


def is_started(state: AppState) -> bool:
    """Return whether an app in the state has run or runs."""
    return state in _STARTED


def may_follow(before: AppState, after: AppState) -> bool:
    """Return whether a backend may report one state after another.

    A final state stays. A live one moves forward, back from RUNNING to PENDING (preemption, a restart), and to and
    from UNKNOWN.
    """
    if before == after or AppState.UNKNOWN in (before, after):
        return before not in _TERMINAL or before == after
    if before in _TERMINAL:
        return False
    return after > before or (before, after) == (AppState.RUNNING, AppState.PENDING)
