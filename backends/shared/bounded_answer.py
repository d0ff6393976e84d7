"""Whole answers over HTTP, bounded in size and in time: a server or a proxy may send gigabytes, or nothing."""

from __future__ import annotations

import time
from typing import Any

from ...specs.files import LARGE

_READ = 1 << 18


class AnswerError(OSError):
    """An answer is not read to its end; the message says why and can be shown."""


def read_answer(response: Any, deadline: float, limit: int = LARGE) -> bytes:
    """Read the body of an answer and give its connection back; a connection of a refused answer is closed.

    The request must have asked for ``Accept-Encoding: identity``. A compressed answer is refused, because 1 MB can
    become 1 GB.

    Args:
        response: urllib3's response, unread.
        deadline: when it must be complete, on the clock of `time.monotonic`.
        limit: the most bytes that it may have.

    Raises:
        AnswerError: it is too large, or is compressed.
        TimeoutError: it takes too long.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.lower() not in ("", "identity"):
            raise AnswerError("it sent a compressed answer, which was not asked for")
        while data := response.read1(_READ, decode_content=False):
            pieces.append(data)
            size += len(data)
            if size > limit:
                raise AnswerError(f"it sent more than {limit >> 20} MB")
            if time.monotonic() > deadline:
                raise TimeoutError("its answer did not end in time")
    except BaseException:
        response.close()
        raise
    response.release_conn()
    return b"".join(pieces)
