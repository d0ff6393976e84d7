"""Threads and frames, from the two forms in which stacks are told: faulthandler's text and py-spy's JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_MOST_THREADS, _MOST_FRAMES, _MOST_TEXT = 500, 500, 400
# faulthandler(3): `Thread 0x00007f67307f86c0 [name] (most recent call first):`; the name since Python 3.14.
_THREAD = re.compile(r"^(?:Current t|T)hread 0x[0-9a-f]+ *(?:\[(?P<name>[^\]]*)\])? *\(most recent call first\):")
_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line (?P<line>\d{1,9}|\?\?\?) in (?P<function>.*)$')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<frozen|\.so(?:\.|$)|^$")
# Where a process that was forked begins: what is below are the calls of its parent.
_FORKED = re.compile(r"/multiprocessing/(?:process|popen_fork|spawn)\.py$|/utils/data/_utils/worker\.py$")
MAIN_THREAD = "MainThread"


@dataclass(frozen=True)
class Frame:
    """One call of a stack.

    Args:
        function: its name.
        file: its file, as the process has it.
        line: the line in it; 0 where that is not known.
    """

    function: str
    file: str
    line: int

    @property
    def is_library(self) -> bool:
        """Whether it is Python's own or of an installed package; else it counts as the user's."""
        return _LIBRARY.search(self.file) is not None

    @property
    def place(self) -> str:
        """Where it is, short: ``train.py:212``."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"


@dataclass(frozen=True)
class Thread:
    """A thread.

    Args:
        name: its name, empty where it is not told.
        frames: its calls, innermost first.
        is_main: whether it is the process's main thread.
    """

    name: str
    frames: tuple[Frame, ...]
    is_main: bool


def parse_faulthandler(text: str) -> tuple[Thread, ...]:
    """Parse what faulthandler prints, also amid other lines; the main thread is the last one it tells."""
    threads: list[tuple[str, list[Frame]]] = []
    for line in text.splitlines():
        if head := _THREAD.match(line):
            if len(threads) >= _MOST_THREADS:
                break
            threads.append(((head["name"] or "")[:_MOST_TEXT], []))
        elif threads and (found := _FRAME.match(line)) and len(threads[-1][1]) < _MOST_FRAMES:
            number = int(found["line"]) if found["line"].isdigit() else 0
            threads[-1][1].append(Frame(found["function"][:_MOST_TEXT], found["file"][:_MOST_TEXT], number))
    last = len(threads) - 1
    return tuple(
        Thread(MAIN_THREAD if place == last and not name else name, tuple(frames), place == last)
        for place, (name, frames) in enumerate(threads)
        if frames
    )


def parse_pyspy(value: Any) -> tuple[Thread, ...]:
    """Parse what ``py-spy dump --json`` prints; what is malformed is left out."""
    threads = []
    items = value[:_MOST_THREADS] if isinstance(value, list) else []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("frames"), list):
            continue
        frames = tuple(_frames(item["frames"][:_MOST_FRAMES]))
        name = str(item.get("thread_name") or "")[:_MOST_TEXT]
        is_main = name == MAIN_THREAD or item.get("os_thread_id") == item.get("pid") is not None
        if frames:
            threads.append(Thread(name, frames, is_main))
    if threads and not any(thread.is_main for thread in threads):
        # A fork keeps the thread that it was made in.
        threads[0] = Thread(threads[0].name, threads[0].frames, True)
    return tuple(threads)


def _frames(items: Iterable[Any]) -> Iterable[Frame]:
    for item in items:
        if isinstance(item, dict):
            line = item.get("line")
            yield Frame(
                str(item.get("name") or "")[:_MOST_TEXT],
                str(item.get("filename") or "")[:_MOST_TEXT],
                line if type(line) is int and line > 0 else 0,
            )


def main_frames(threads: Iterable[Thread]) -> tuple[Frame, ...]:
    """Return the frames of the main thread, innermost first; nothing where it was not read."""
    return next((thread.frames for thread in threads if thread.is_main), ())


def own_frame(threads: Iterable[Thread]) -> Frame | None:
    """Return the innermost frame of the user's own in the main thread of a child, its parent's calls left out."""
    for frame in main_frames(threads):
        if _FORKED.search(frame.file):
            return None
        if not frame.is_library:
            return frame
    return None
