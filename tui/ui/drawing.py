"""Guards that log exceptions of drawing code, so that they never end the program."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from ..status import Status
from .palette import Text

_log = logging.getLogger(__name__)

_NOTE = "cannot be drawn; see the log file"

Render = TypeVar("Render", bound=Callable[..., Any])


def guard_render(render: Render) -> Render:
    """Decorate a widget's `render`: draw a note if it raises."""
    return _guard(render, lambda _: Text(f" {_NOTE}", "$style-failed"))


def guard_render_line(render_line: Render) -> Render:
    """Decorate a widget's `render_line`: draw a note in the row if it raises."""
    return _guard(render_line, lambda widget: Strip([Segment(f" {_NOTE}")]).crop_extend(0, widget.size.width, None))


def _guard(method: Render, note: Callable[[Widget], object]) -> Render:
    @wraps(method)
    def guarded(widget: Widget, *arguments: object) -> object:
        try:
            return method(widget, *arguments)
        except Exception as error:
            _log_once(f"{type(widget).__name__} {_NOTE.partition(';')[0]}: {type(error).__name__}: {error}"[:200])
            return note(widget)

    return cast("Render", guarded)


@contextmanager
def guard_update(status: Status, what: str) -> Iterator[None]:
    """Show a note in the status line if the block, which updates widgets, raises."""
    try:
        yield
    except Exception as error:
        _log_once(f"{what} {_NOTE.partition(';')[0]}: {type(error).__name__}: {error}"[:200])
        status.say(f"{what} {_NOTE}", failed=True)


# Log each failure once: a row may be drawn many times a second.
@lru_cache(maxsize=1_000)
def _log_once(text: str) -> None:
    _log.exception(text)
