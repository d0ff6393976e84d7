"""How far a launch or dry run has come, and the wish to end it: pulling images, building workspaces, many replicas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from ...specs.errors import LaunchCancelledError

T = TypeVar("T")


class Progress:
    """Carries words from a launch to who waits for it, and the wish to end it back.

    Args:
        show: called with each word of progress, from the thread of the launch.
    """

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show = show
        self._cancelled = threading.Event()
        self._enders: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def report(self, text: str) -> None:
        """Say how far it is.

        Raises:
            LaunchCancelledError: nobody wants it any more.
        """
        self.check()
        self._show(text)

    def check(self) -> None:
        """Go on only while somebody wants it.

        Raises:
            LaunchCancelledError: nobody wants it any more.
        """
        if self._cancelled.is_set():
            raise LaunchCancelledError

    def cancel(self) -> None:
        """End the launch at its next word, and what it waits for at once; a launch that is over is left alone."""
        self._cancelled.set()
        with self._lock:
            enders = self._enders[:]
        for end in enders:
            end()

    @contextmanager
    def ended_by(self, end: Callable[[], object]) -> Iterator[None]:
        """Within this, `cancel` calls ``end``, from another thread: it ends a read that waits.

        Raises:
            LaunchCancelledError: the launch was cancelled before, or meanwhile.
        """
        with self._lock:
            self._enders.append(end)
        try:
            if self._cancelled.is_set():
                raise LaunchCancelledError
            yield
        except Exception as error:
            # What was ended by force fails as it likes.
            if self._cancelled.is_set():
                raise LaunchCancelledError from error
            raise
        finally:
            with self._lock:
                self._enders.remove(end)


def while_wanted(items: Iterable[T]) -> Iterator[T]:
    """Yield items for as long as the current launch, or dry run, is wanted.

    Raises:
        LaunchCancelledError: it was cancelled.
    """
    progress = current_progress()
    for item in items:
        progress.check()
        yield item


_NOBODY = Progress(lambda text: None)
_current: ContextVar[Progress] = ContextVar("torchx_tui_launch_progress", default=_NOBODY)


def current_progress() -> Progress:
    """Return the progress of the launch that this thread makes; one that nobody sees outside of a launch."""
    return _current.get()


@contextmanager
def shown_progress(progress: Progress | None) -> Iterator[None]:
    """Within this, `current_progress` is ``progress``."""
    token = _current.set(progress or _NOBODY)
    try:
        yield
    finally:
        _current.reset(token)
