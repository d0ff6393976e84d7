"""Writes to the terminal: none waits, the last frame is known to have arrived, and quitting drops the rest."""

from __future__ import annotations

import os
import pty
import threading
import time
import tty

import pytest
from support.waiting import NEVER, wait_until

from torchx_tui.tui.terminal import output as terminal_output
from torchx_tui.tui.terminal.output import QUESTION, TerminalOutput


class Link:
    """A pseudo-terminal whose other end reads only when it is told to."""

    def __init__(self) -> None:
        self._ours, self._theirs = pty.openpty()
        tty.setraw(self._theirs)
        self.output = TerminalOutput(self._theirs)

    def read(self, wanted: bytes) -> bytes:
        """Read until something came."""
        data = b""
        while wanted not in data:
            data += os.read(self._ours, 65536)
        return data

    def read_on(self) -> bytearray:
        """Read all that comes from now on, in a thread; return where it is put."""
        data = bytearray()

        def run() -> None:
            while True:
                try:
                    data.extend(os.read(self._ours, 65536))
                except OSError:
                    return

        threading.Thread(target=run, daemon=True).start()
        return data

    def answer(self) -> None:
        """Read until the question, and answer it."""
        self.read(QUESTION.encode())
        self.output.answered()
        wait_until(self.output.is_ready, "the end of the write")

    def close(self) -> None:
        self.output.close()
        # A write that waits ends with the terminal; before that its number may not become another one's.
        os.close(self._ours)
        wait_until(lambda: not _writers(), "the end of the last write")
        os.close(self._theirs)


def _writers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "terminal-output"]


@pytest.fixture
def link():
    made = Link()
    yield made
    made.close()


def answer(link: Link) -> None:
    link.output.write(QUESTION)
    link.answer()


def test_writing_never_waits(link):
    began = time.thread_time()
    for _ in range(500):
        link.output.write("x" * 10_000)
    assert time.thread_time() - began < 5
    assert not link.output.is_ready()


def test_next_frame_waits_for_the_answer_to_the_last_one(link):
    answer(link)
    link.output.write("frame")
    link.output.end_frame()
    link.read(QUESTION.encode())
    # The kernel took it, the terminal said nothing yet.
    assert not link.output.is_ready()
    link.output.write("more")
    link.output.end_frame()
    assert link.read(b"more").endswith(b"more")
    link.output.answered()
    # What came after the question has a question of its own.
    assert not link.output.is_ready()
    link.answer()
    # Without a frame there is nothing to ask about.
    link.output.end_frame()
    assert link.output.is_ready()


def test_terminal_that_never_answered_is_not_asked(link):
    link.output.write("frame")
    link.output.end_frame()
    assert link.read(b"frame") == b"frame"
    wait_until(link.output.is_ready, "the kernel's taking")


def test_terminal_that_stops_answering_does_not_hold_frames(link, monkeypatch):
    answer(link)
    link.output.write("x" * 1000)
    link.output.end_frame()
    link.read(QUESTION.encode())
    # The link may be down: frames wait.
    link.output.note_input()
    assert not link.output.is_ready()
    monkeypatch.setattr(terminal_output, "ANSWER_TIMEOUT_S", 0.0)
    # A key comes from it: it is there.
    link.output.note_input()
    wait_until(link.output.is_ready, "the kernel's taking")
    link.output.write("frame")
    link.output.end_frame()
    assert link.read(b"frame") == b"frame"
    # A late answer: it does answer, and is asked again.
    assert link.output.answered()
    link.answer()


def test_what_nobody_reads_is_dropped_at_the_end(link):
    answer(link)
    for _ in range(100):
        link.output.write("old frame " * 1000)
    link.output.end_frame()
    began = time.thread_time()
    link.output.drop_unsent()
    link.output.write("reset")
    assert time.thread_time() - began < 5
    data = link.read_on()
    link.output.close()
    wait_until(lambda: b"reset" in data, "the reset")
    # What was cut off is ended before the reset, and hardly any of the megabyte was sent.
    assert bytes(data).endswith(b"\x18\x1b\\\x1b[?2026lreset")
    assert len(data) < 200_000


def test_the_last_frame_is_shown_where_the_terminal_keeps_up(link, monkeypatch):
    monkeypatch.setattr(terminal_output, "LAST_FRAME_S", NEVER)
    answer(link)
    data = link.read_on()
    link.output.write("last frame")
    wait_until(lambda: b"last frame" in data, "the frame")
    link.output.end_frame()
    threading.Timer(0.05, link.output.answered).start()
    link.output.drop_unsent()
    link.output.write("reset")
    link.output.close()
    wait_until(lambda: b"reset" in data, "the reset")
    assert bytes(data) == b"last frame" + QUESTION.encode() + b"reset"
