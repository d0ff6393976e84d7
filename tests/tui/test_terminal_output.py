"""What is handed to the terminal, what it has not taken yet, and when may be drawn."""

from __future__ import annotations

import os
import pty
import threading
import time
import tty
from types import SimpleNamespace

import pytest
from support.waiting import NEVER, wait_until

from torchx_tui.tui.terminal import output as terminal_output
from torchx_tui.tui.terminal.output import QUESTION, TerminalOutput
from torchx_tui.tui.ui import governor as governor_module
from torchx_tui.tui.ui.governor import Governor, Repaint


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


class OneGovernor(Governor):
    """Governs one output."""

    def __init__(self, output: TerminalOutput) -> None:
        super().__init__()
        self._output = output

    def output(self) -> TerminalOutput:
        return self._output


def answer(link: Link) -> None:
    link.output.write(QUESTION)
    link.read(QUESTION.encode())
    link.output.answered()


def test_writing_never_waits(link):
    began = time.thread_time()
    for _ in range(500):
        link.output.write("x" * 10_000)
    assert time.thread_time() - began < 5
    assert link.output.in_flight() > 4_000_000


def test_a_frame_is_in_flight_until_the_terminal_answers(link):
    answer(link)
    assert link.output.in_flight() == 0
    link.output.write("frame")
    link.output.end_frame()
    link.read(QUESTION.encode())
    # The kernel took it, the terminal said nothing yet.
    assert link.output.in_flight() == len("frame") + len(QUESTION)
    link.output.write("more")
    link.output.end_frame()
    assert link.read(b"more").endswith(b"more")
    link.output.answered()
    # What came after the question has a question of its own.
    link.read(QUESTION.encode())
    link.output.answered()
    assert link.output.in_flight() == 0


def test_a_terminal_that_never_answered_is_not_asked(link):
    link.output.write("frame")
    link.output.end_frame()
    assert link.read(b"frame") == b"frame"
    wait_until(lambda: link.output.in_flight() == 0, "the kernel's taking")


def test_a_terminal_that_answers_no_more_does_not_hold_frames(link, monkeypatch):
    answer(link)
    link.output.write("x" * 1000)
    link.output.end_frame()
    link.read(QUESTION.encode())
    monkeypatch.setattr(terminal_output, "NO_ANSWER", 0.0)
    assert link.output.in_flight()
    # A key comes from it: it is there.
    link.output.heard()
    wait_until(lambda: link.output.in_flight() == 0, "the kernel's taking")
    # It is asked again, and may answer again.
    link.output.write("y")
    link.output.end_frame()
    link.read(QUESTION.encode())
    link.output.answered()
    link.output.write("z")
    assert link.output.in_flight() == 1


def test_what_nobody_reads_is_dropped_at_the_end(link):
    answer(link)
    for _ in range(100):
        link.output.write("old frame " * 1000)
    link.output.end_frame()
    began = time.thread_time()
    link.output.end()
    link.output.write("reset")
    assert time.thread_time() - began < 5
    data = link.read_on()
    link.output.close()
    wait_until(lambda: b"reset" in data, "the reset")
    # What was cut off is ended before the reset, and hardly any of the megabyte was sent.
    assert bytes(data).endswith(b"\x18\x1b\\\x1b[?2026lreset")
    assert len(data) < 200_000


def test_the_last_frame_is_shown_where_the_terminal_keeps_up(link, monkeypatch):
    monkeypatch.setattr(terminal_output, "LAST_FRAME", NEVER)
    answer(link)
    data = link.read_on()
    link.output.write("last frame")
    wait_until(lambda: b"last frame" in data, "the frame")
    link.output.end_frame()
    threading.Timer(0.05, link.output.answered).start()
    link.output.end()
    link.output.write("reset")
    link.output.close()
    wait_until(lambda: b"reset" in data, "the reset")
    assert bytes(data) == b"last frame" + QUESTION.encode() + b"reset"


def test_nobody_reads_at_all_and_the_end_comes(link):
    answer(link)
    for _ in range(100):
        link.output.write("old frame " * 1000)
    link.output.end_frame()
    began = time.thread_time()
    link.output.end()
    link.output.close()
    assert time.thread_time() - began < 10


def test_logs_wait_for_the_terminal_keys_only_for_a_backlog(link, monkeypatch):
    now = [1000.0]
    for module in (terminal_output, governor_module):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    governor = OneGovernor(link.output)
    answer(link)
    assert governor.repaint_delay(Repaint(), 2000) == 0
    last = governor.repainted()
    link.output.write("x" * 16_000)
    link.output.end_frame()
    assert governor.repaint_delay(Repaint(), 2000) > 0
    # A key's frame may follow one frame of a log, not two.
    assert not governor.holds_frames()
    link.output.write("x" * 16_000)
    assert governor.holds_frames()
    # 32 KB were written since: it takes a while until a log may be drawn again, also when the terminal has them.
    link.read(QUESTION.encode())
    now[0] += 0.2
    link.output.answered()
    assert governor.repaint_delay(last, 2000) > 0.1
    # Having been busy for 0.2 s, the terminal rests for as long.
    assert governor.repaint_delay(Repaint(), 2000) > 0.01


def test_a_late_loop_halves_the_rate_and_gets_it_back_slowly(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    governor = Governor()

    def delay() -> float:
        return governor.repaint_delay(Repaint(1000.0), 80 * 24)

    usual = delay()
    assert usual == 1 / 8
    governor.was_late(0.1)
    assert delay() == usual
    governor.was_late(0.101)
    assert delay() == 2 * usual
    for _ in range(10):
        governor.was_late(1.0)
    assert delay() == 8 * usual
    governor.repainted()
    assert delay() == pytest.approx(7.6 * usual)
    for _ in range(100):
        governor.repainted()
    assert delay() == usual
