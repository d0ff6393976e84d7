"""What is written to the terminal, in a thread: a terminal that reads slowly holds up no key.

Textual's own thread takes 30 writes; the next one blocks the event loop until the terminal has read. Here writes are
never refused, and the screens send the next frame only when the terminal has taken the last one. Behind a
pseudo-terminal there may be an SSH connection with megabytes of buffers, so a frame ends with the question by which
Textual asks whether the terminal draws whole frames: its answer comes once the terminal has read so far. Of a terminal
that does not answer, what the kernel took counts as read.
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
_MOST_BYTES = 1 << 14
ANSWER_TIMEOUT_S = 5.0
"""A terminal that sends keys, but no answer for so long, does not answer any more."""
# Between two tries where another program has made the terminal non-blocking.
_RETRY_S = 0.01
LAST_FRAME_S = 0.3
"""How long the last frame may take to arrive when the program ends."""
# How long unblocking a write may take at the end, and how long writing the sequences that reset the terminal.
_UNBLOCK_S, _RESET_S = 0.4, 2.0
# Ends any sequence that was cut off: cancel, string terminator, end of frame.
_END_SEQUENCE = b"\x18\x1b\\\x1b[?2026l"


class TerminalOutput:
    """Writes to a terminal in a thread of its own; no caller waits for the terminal.

    Args:
        fileno: the terminal.
        encoding: of the text.
    """

    def __init__(self, fileno: int, encoding: str = "utf-8") -> None:
        self._fileno = fileno
        self._encoding = encoding
        self.written = 0
        """Bytes that were given to `write`."""
        # Its lock guards all that follows.
        self._changed = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._is_writing = False
        self._is_closed = False
        # The program ends: no question is asked any more, and then the write under way is given up.
        self._is_ending = self._is_dropping = False
        self._answers = False
        self._asked_at: float | None = None
        # Whether anything was written since the last question.
        self._has_more = False
        self._thread = threading.Thread(target=self._run, name="terminal-output", daemon=True)
        self._thread.start()

    def is_ready(self) -> bool:
        """Return whether the terminal has taken all that was written, as far as is known."""
        return self._asked_at is None and self._is_written()

    def write(self, text: str) -> None:
        """Write a text, after what was written before."""
        with self._changed:
            if not self._is_closed:
                data = text.encode(self._encoding, "replace")
                self._queue.append(data)
                self.written += len(data)
                self._has_more = self._has_more or text != QUESTION
                self._changed.notify_all()

    def end_frame(self) -> None:
        """Ask a terminal that answers to say when it has read so far, unless an answer is awaited."""
        with self._changed:
            if self._answers and self._has_more and self._asked_at is None and not self._is_ending:
                self.write(QUESTION)
                self._asked_at, self._has_more = time.monotonic(), False

    def answered(self) -> bool:
        """Note the terminal's answer; return whether it is the first one."""
        with self._changed:
            is_first, self._answers, self._asked_at = not self._answers, True, None
            self._changed.notify_all()
            self.end_frame()
        return is_first

    def note_input(self) -> None:
        """Note that something else came from the terminal: its link is not down."""
        with self._changed:
            if self._asked_at is not None and time.monotonic() - self._asked_at > ANSWER_TIMEOUT_S:
                self._answers, self._asked_at = False, None

    def drop_unsent(self) -> None:
        """Drop what the terminal does not take soon: who quits does not wait for frames that nobody looks at."""
        with self._changed:
            self._is_ending = True
            if self._changed.wait_for(self.is_ready, LAST_FRAME_S):
                return
            self._queue.clear()
            self._is_dropping = True
            give_up_at = time.monotonic() + _UNBLOCK_S
            while True:
                # A write that waits goes on when the kernel has dropped what it has.
                with suppress(termios.error):
                    termios.tcflush(self._fileno, termios.TCOFLUSH)
                if not self._is_writing or time.monotonic() > give_up_at:
                    break
                self._changed.wait(_RETRY_S)
            self._queue.append(_END_SEQUENCE)
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread, once it has written what is left, or without that when it takes too long."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._is_written(), _RESET_S)
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(0.1)

    def _is_written(self) -> bool:
        return not (self._queue or self._is_writing)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._is_closed)
                if self._is_closed:
                    return
                data = b"".join(self._queue)
                self._queue.clear()
                self._is_writing = True
            try:
                self._write(data)
            finally:
                with self._changed:
                    self._is_writing = False
                    self._changed.notify_all()

    def _write(self, data: bytes) -> None:
        was_dropping = self._is_dropping
        while data and self._is_dropping == was_dropping and not self._is_closed:
            try:
                data = data[os.write(self._fileno, data[:_MOST_BYTES]) :]
            except BlockingIOError:
                time.sleep(_RETRY_S)
            except OSError:
                self._is_closed = True
