"""What is written to the terminal, and how much of it the terminal has not taken yet.

Textual hands what it draws to a thread through a queue of 30 writes; the next one blocks the event loop until the
terminal has read: on a link of 50 KB/s for seconds. And how much is under way the kernel cannot tell: behind a
pseudo-terminal there may be an SSH connection with megabytes of buffers. So a frame ends with a question that most
terminals answer once they have come to it, the one by which Textual finds out whether the terminal draws whole frames.
Of a terminal that does not answer, what the kernel took counts as drawn.
"""

from __future__ import annotations

import os
import termios
import threading
import time
from collections import deque
from contextlib import suppress

QUESTION = "\x1b[?2026$p"

# Bytes of one write to the kernel: about a frame. What a write has begun with cannot be taken back.
_PART = 1 << 14
NO_ANSWER = 5.0
"""A terminal that sends keys, but no answer for so long (s), does not answer; it is asked again after as long."""
# Without keys the link may be down, and what is written now would be in the way of what comes after it; but in the end
# the terminal behind it is perhaps another one (s).
_LINK_DOWN = 60.0
# A write that takes longer had to wait for the terminal (s).
_BLOCKED = 0.01
LAST_FRAME = 0.3
"""At the end, how long what is under way may still arrive (s)."""
# How long it takes to take it back at most, and how long the sequences that reset the terminal may take (s).
_TAKE_BACK = 0.4
_RESET = 0.5
# The thread that writes may be late for them by so much, on a busy machine (s).
_LATE = 10.0
# Ends any sequence that was cut off: cancel, string terminator, end of frame.
_ABANDON = b"\x18\x1b\\\x1b[?2026l"


class TerminalOutput:
    """Writes to a terminal in a thread of its own; no caller waits for the terminal.

    Args:
        fileno: the terminal.
        encoding: of the text.
    """

    def __init__(self, fileno: int, encoding: str = "utf-8") -> None:
        self.written = 0
        """Bytes that were handed over in all."""
        self.rested_at = 0.0
        """When the terminal has rested for as long as the last frame kept it busy (`time.monotonic`)."""
        self._fileno = fileno
        self._encoding = encoding
        # Its lock guards all that follows.
        self._changed = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._is_writing = False
        self._taken_back = 0
        self._closed = False
        self._sent = 0
        self._taken = 0
        self._answers = False
        self._has_answered = False
        self._asked_at = 0.0
        self._asked_bytes: int | None = None
        self._least_seconds = float("inf")
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="terminal-output", daemon=True)
        self._thread.start()

    def in_flight(self) -> int:
        """Return how many bytes the terminal has not taken yet, as far as is known."""
        with self._changed:
            if self._asked_bytes is not None and time.monotonic() - self._asked_at > _LINK_DOWN:
                self._ask_no_more()
            return max(0, self.written - (self._taken if self._answers else self._sent))

    def write(self, text: str) -> None:
        """Hand a text over."""
        data = text.encode(self._encoding, "replace")
        with self._changed:
            if self._closed:
                return
            self._queue.append(data)
            self.written += len(data)
            if text == QUESTION:
                self._asked_at, self._asked_bytes = time.monotonic(), self.written
            self._changed.notify_all()

    def end_frame(self) -> None:
        """Ask the terminal to say when it has come to this point, unless an answer is still awaited."""
        with self._changed:
            if self._ending or self._asked_bytes is not None or self.written == self._taken:
                return
            # Only one that has answered before: another may print the question's last letter.
            ask_again = self._has_answered and time.monotonic() - self._asked_at > NO_ANSWER
            if self._answers or ask_again:
                self.write(QUESTION)

    def answered(self) -> bool:
        """Take note of the terminal's answer; return whether it is the first one."""
        with self._changed:
            first, self._has_answered = not self._has_answered, True
            if self._asked_bytes is not None:
                now = time.monotonic()
                seconds = now - self._asked_at
                self._least_seconds = min(self._least_seconds, seconds)
                self.rested_at = now + seconds - self._least_seconds
                self._taken, self._asked_bytes = self._asked_bytes, None
                self._answers = True
            self._changed.notify_all()
            self.end_frame()
        return first

    def heard(self) -> None:
        """Take note that something else came from the terminal: it is there."""
        with self._changed:
            if self._asked_bytes is not None and time.monotonic() - self._asked_at > NO_ANSWER:
                self._ask_no_more()

    def end(self) -> None:
        """Take back what the terminal does not take soon, before it is reset.

        Who quits does not wait for frames that nobody looks at any more.
        """
        with self._changed:
            self._ending = True
            if self._changed.wait_for(lambda: self.in_flight() == 0, LAST_FRAME):
                return
            self._queue.clear()
            self._taken_back += 1
            give_up_at = time.monotonic() + _TAKE_BACK
            while True:
                # What the kernel still has, so that a write that waits goes on, to be taken back as well.
                with suppress(termios.error):
                    termios.tcflush(self._fileno, termios.TCOFLUSH)
                if not self._is_writing or time.monotonic() > give_up_at:
                    break
                self._changed.wait(0.01)
            self._queue.append(_ABANDON)
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread, once it has written what is left, or without that when it takes too long."""
        with self._changed:
            # Until it has begun, no terminal holds it up.
            self._changed.wait_for(lambda: self._closed or self._is_writing or not self._queue, _LATE)
            self._changed.wait_for(lambda: self._closed or not (self._queue or self._is_writing), _RESET)
            self._closed = True
            self._changed.notify_all()
        self._thread.join(0.1)

    def _ask_no_more(self) -> None:
        self._answers, self._asked_bytes = False, None

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                data = b"".join(self._queue)
                self._queue.clear()
                self._is_writing = True
                self._changed.notify_all()
            self._write_all(data)
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    def _write_all(self, data: bytes) -> None:
        began, taken_back = time.monotonic(), self._taken_back
        sent = 0
        while sent < len(data) and self._taken_back == taken_back and not self._closed:
            try:
                done = os.write(self._fileno, data[sent : sent + _PART])
            except BlockingIOError:
                # Another program has left the terminal so.
                time.sleep(_BLOCKED)
                continue
            except OSError:
                with self._changed:
                    self._closed = True
                return
            sent += done
            with self._changed:
                self._sent += done
        now = time.monotonic()
        if not self._answers and now - began > _BLOCKED:
            self.rested_at = now + now - began
