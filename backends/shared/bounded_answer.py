"""Read HTTP responses with limits: a server or a proxy may send gigabytes, or stall."""

from __future__ import annotations

import time
from typing import Any

from ...base.files import LARGE

_READ_BYTES = 1 << 18


class AnswerError(OSError):
    """A response was refused; the message has the reason and is safe to show."""


def read_answer(response: Any, deadline: float, limit: int = LARGE) -> bytes:
    """Read the body of a response and release its connection; close the connection if the response is refused.

    The request must have sent ``Accept-Encoding: identity``. A compressed response is refused, because 1 MB can
    become 1 GB.

    Args:
        response: urllib3's response, unread.
        deadline: the time at which it must be complete (`time.monotonic`).
        limit: its maximum size in bytes.

    Raises:
        AnswerError: the response is too large, or compressed.
        TimeoutError: the deadline has passed.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.lower() not in ("", "identity"):
            raise AnswerError("it sent a compressed answer, which was not asked for")
        while data := response.read1(_READ_BYTES, decode_content=False):
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
