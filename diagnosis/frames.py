"""Threads and their frames, parsed from faulthandler's text and py-spy's JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

_MAX_THREADS, _MAX_FRAMES, _MAX_TEXT = 500, 500, 400
# faulthandler(3): `Thread 0x00007f67307f86c0 [name] (most recent call first):`; the name since Python 3.14.
_THREAD = re.compile(r"^(?:Current t|T)hread 0x[0-9a-f]+ *(?:\[(?P<name>[^\]]*)\])? *\(most recent call first\):")
_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line (?P<line>\d{1,9}|\?\?\?) in (?P<function>.*)$')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<frozen|\.so(?:\.|$)|^$")
# The start of a forked process: the frames below are its parent's.
_FORKED = re.compile(r"/multiprocessing/(?:process|popen_fork|spawn)\.py$|/utils/data/_utils/worker\.py$")
MAIN_THREAD = "MainThread"


@dataclass(frozen=True)
class Frame:
    """One call of a stack.

    Attributes:
        line: the line number; 0 if unknown.
    """

    function: str
    file: str
    line: int

    @property
    def is_library(self) -> bool:
        """Whether the file belongs to Python or to an installed package, not to the user's code."""
        return _LIBRARY.search(self.file) is not None

    @property
    def location(self) -> str:
        """The file's name and the line: ``train.py:212``."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"


@dataclass(frozen=True)
class Thread:
    """A thread of a process.

    Attributes:
        name: its name; empty if unknown.
        frames: its calls, innermost first.
        is_main: whether it is the main thread.
    """

    name: str
    frames: tuple[Frame, ...]
    is_main: bool


def parse_faulthandler(text: str) -> tuple[Thread, ...]:
    """Parse faulthandler's output, which may have other lines in between; it prints the main thread last."""
    threads: list[tuple[str, list[Frame]]] = []
    for line in text.splitlines():
        if head := _THREAD.match(line):
            if len(threads) >= _MAX_THREADS:
                break
            threads.append(((head["name"] or "")[:_MAX_TEXT], []))
        elif threads and (found := _FRAME.match(line)) and len(threads[-1][1]) < _MAX_FRAMES:
            number = int(found["line"]) if found["line"].isdigit() else 0
            threads[-1][1].append(Frame(found["function"][:_MAX_TEXT], found["file"][:_MAX_TEXT], number))
    last = len(threads) - 1
    return tuple(
        Thread(name or MAIN_THREAD * (index == last), tuple(frames), index == last)
        for index, (name, frames) in enumerate(threads)
        if frames
    )


def parse_pyspy(value: Any) -> tuple[Thread, ...]:
    """Parse the output of ``py-spy dump --json``, leaving out malformed parts."""
    threads = []
    for item in value[:_MAX_THREADS] if isinstance(value, list) else ():
        if not isinstance(item, dict):
            continue
        frames = parse_frames(item.get("frames"))
        name = str(item.get("thread_name") or "")[:_MAX_TEXT]
        if frames:
            is_main = name == MAIN_THREAD or item.get("os_thread_id") == item.get("pid") is not None
            threads.append(Thread(name, frames, is_main))
    if threads and not any(thread.is_main for thread in threads):
        # A fork keeps only the thread that forked.
        threads[0] = replace(threads[0], is_main=True)
    return tuple(threads)


def parse_frames(items: Any, limit: int = _MAX_FRAMES) -> tuple[Frame, ...]:
    """Parse frames of py-spy or of the flight recorder, which have the same form; leave out malformed ones."""
    return tuple(
        Frame(
            str(item.get("name") or "")[:_MAX_TEXT],
            str(item.get("filename") or "")[:_MAX_TEXT],
            line if type(line := item.get("line")) is int and line > 0 else 0,
        )
        for item in (items[:limit] if isinstance(items, (list, tuple)) else ())
        if isinstance(item, dict)
    )


def main_frames(threads: Iterable[Thread]) -> tuple[Frame, ...]:
    """Return the frames of the main thread, innermost first; empty if it was not read."""
    return next((thread.frames for thread in threads if thread.is_main), ())


def user_frame(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost frame of the user's code."""
    return next((frame for frame in frames if not frame.is_library), None)


def child_frame(threads: Iterable[Thread]) -> Frame | None:
    """Return the innermost frame of the user's code that a child process runs, not its parent's before the fork."""
    for frame in main_frames(threads):
        if _FORKED.search(frame.file):
            return None
        if not frame.is_library:
            return frame
    return None
