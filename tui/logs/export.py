"""What leaves the log pane: copies and saved files, made in a thread in steps, and stopped between two of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TypeVar

from ...logs.text.sanitize import format_size
from ..format import count
from .session import AnyLog
from .text import BATCH, LineForm, whole_lines

Result = TypeVar("Result")

# Seconds between two reports of progress.
_REPORT_INTERVAL_S = 0.5
# How long a cancel waits for a file that was being written to be removed (s).
_CLEAN_UP_S = 1.0
MOST_COPIED = 16_000_000
"""Bytes that are copied at most."""


class ExportError(Exception):
    """The work cannot be done; the message is a sentence for the user."""


async def run_steps(
    work: Generator[float | None, None, Result], report: Callable[[float | None], object] = lambda share: None
) -> Result:
    """Run a generator in a daemon thread and return its result; a cancel closes it at its next step.

    Args:
        work: yields its progress after each step, 0 to 1, None while that is not known.
        report: called with the progress now and then.
    """
    loop, stop = asyncio.get_running_loop(), threading.Event()
    result: asyncio.Future[Result] = loop.create_future()

    def post(call: Callable[..., object], *arguments: object) -> None:
        # The loop may be closed when the app ends.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: result.done() or call(*arguments))

    def run() -> None:
        reported_at = time.monotonic()
        try:
            while not stop.is_set():
                share = next(work)
                if time.monotonic() - reported_at > _REPORT_INTERVAL_S:
                    reported_at = time.monotonic()
                    post(report, share)
                # Other threads may have the interpreter between two steps.
                time.sleep(0)
            work.close()
        except StopIteration as end:
            post(result.set_result, end.value)
        except Exception as error:
            post(result.set_exception, error)

    thread = threading.Thread(target=run, name="log-export", daemon=True)
    thread.start()
    try:
        return await result
    finally:
        stop.set()
        await asyncio.to_thread(thread.join, _CLEAN_UP_S)


def copied_text(log: AnyLog, numbers: range) -> Generator[float | None, None, str]:
    """Join the safe text of lines, nothing before each; work for `run_steps`.

    Args:
        log: the log, which stays open.
        numbers: the lines' numbers, without gaps.

    Raises:
        ExportError: it is more than can be copied.
    """
    form = LineForm()
    texts: list[str] = []
    size = 0
    for number, line in enumerate(whole_lines(log, numbers.start, numbers.stop), 1):
        texts.append(form.text(line))
        size += len(texts[-1]) + 1
        if size > MOST_COPIED:
            lines = count(len(numbers), "line")
            raise ExportError(f"{lines} are more than {format_size(MOST_COPIED)}: save them to a file instead")
        if number % BATCH == 0:
            yield number / len(numbers)
    return "\n".join(texts)
