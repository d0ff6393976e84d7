"""Guards of code that draws data: what it raises is logged, and never ends the program."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

from rich.segment import Segment
from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

from .palette import STYLES
from .status import Status

_log = logging.getLogger(__name__)

_WORDS = "cannot be drawn; the log file says why"

Render = TypeVar("Render", bound=Callable[..., Any])


def guard_render(render: Render) -> Render:
    """Decorate `render` of a widget: draw a note where it raises."""
    return _guard(render, lambda _: Text(f" {_WORDS}", STYLES.failed))


def guard_render_line(render_line: Render) -> Render:
    """Decorate `render_line` of a widget: draw a note in the row where it raises."""
    return _guard(render_line, lambda widget: Strip([Segment(f" {_WORDS}")]).crop_extend(0, widget.size.width, None))


def _guard(method: Render, note: Callable[[Widget], object]) -> Render:
    @wraps(method)
    def guarded(widget: Widget, *arguments: object) -> object:
        try:
            return method(widget, *arguments)
        except Exception as error:
            _log_once(f"{type(widget).__name__} {_WORDS.partition(';')[0]}: {type(error).__name__}: {error}"[:200])
            return note(widget)

    return cast("Render", guarded)


@contextmanager
def guard_update(status: Status, what: str) -> Iterator[None]:
    """Say in the status line that something cannot be drawn, where the block that updates its widgets raises."""
    try:
        yield
    except Exception as error:
        _log_once(f"{what} {_WORDS.partition(';')[0]}: {type(error).__name__}: {error}"[:200])
        status.say(f"{what} {_WORDS}", failed=True)


# A row is drawn many times a second: each failure is logged once.
@lru_cache(maxsize=1_000)
def _log_once(words: str) -> None:
    _log.exception(words)
