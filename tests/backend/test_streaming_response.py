"""Answers that come bit by bit, of a server on loopback: cut anywhere, broken off, and ended by another thread."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import Any

import pytest
import urllib3
from support.waiting import PATIENCE

from torchx_tui.backends.shared.streaming_response import ChunkedBody, StreamingResponse

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\n"


class Server:
    """Sends what a test tells it to, to the one who asks."""

    def __init__(self):
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.peer: socket.socket | None = None
        self.asking: Any = None
        """The socket of the one who asks."""

    def accept(self, head):
        self.peer, _ = self._listening.accept()
        self.peer.recv(1 << 16)
        self.peer.sendall(head)

    def send(self, data):
        assert self.peer is not None
        self.peer.sendall(data)

    def end(self):
        if self.peer is not None:
            self.peer.close()
        self._listening.close()


@contextmanager
def answer(head, body=b"", *, ended=False):
    server = Server()
    thread = threading.Thread(target=server.accept, args=(head + body,))
    thread.start()
    pool = urllib3.PoolManager(timeout=0.2)
    response = pool.request("GET", f"http://127.0.0.1:{server.port}/", preload_content=False, retries=False)
    thread.join(PATIENCE)
    server.asking = getattr(response.connection, "sock", None)
    if ended:
        server.end()
    made = StreamingResponse(response)
    try:
        yield server, made
    finally:
        made.close()
        server.end()


def whole(made):
    return b"".join(iter(made.read, b""))


@pytest.mark.parametrize(
    ("head", "body"), [(CHUNKED, b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"), (UNTIL_CLOSED, b"abcde")]
)
def test_an_answer_to_its_end(head, body):
    with answer(head, body, ended=head is UNTIL_CLOSED) as (_, made):
        assert whole(made) == b"abcde"
        assert made.read() == b""


def test_it_waits_longer_than_other_answers_may_take():
    with answer(CHUNKED, b"2\r\na") as (server, made):
        # A part of a chunk comes at once.
        assert made.read() == b"a"
        timer = threading.Timer(0.5, server.send, [b"b\r\n"])
        timer.start()
        assert made.read() == b"b"
        timer.join()


@pytest.mark.parametrize("body", [b"5\r\nabc", b"3\r\nabc\r\n"])
def test_an_answer_that_breaks_off_is_told_from_one_that_ends(body):
    with answer(CHUNKED, body, ended=True) as (_, made):
        assert made.read() == b"abc"
        with pytest.raises(ConnectionResetError, match="connection broke"):
            made.read()


def test_a_read_that_is_blocked_is_ended_by_another_thread():
    for head in (CHUNKED, UNTIL_CLOSED):
        with answer(head) as (_, made):
            found = []
            reader = threading.Thread(target=lambda made=made, found=found: found.append(made.read()))
            reader.start()
            made.shut()
            reader.join(PATIENCE)
            assert not reader.is_alive()
            assert found == [b""]
            assert made.read() == b""


def test_objects_as_they_come_one_a_line():
    with answer(UNTIL_CLOSED, b'{"a": 1}\n\n{"b"', ended=False) as (server, made):
        objects = made.objects()
        assert next(objects) == {"a": 1}
        server.send(b': 2}\n{"c": 3}')
        assert next(objects) == {"b": 2}
        server.end()
        assert list(objects) == [{"c": 3}]


def test_half_an_object_of_an_answer_that_was_ended_is_none():
    with answer(UNTIL_CLOSED, b'{"a": 1}\n{"b"') as (_, made):
        objects = made.objects()
        assert next(objects) == {"a": 1}
        made.shut()
        assert list(objects) == []


def test_another_machine_that_is_gone_is_noticed():
    with answer(CHUNKED) as (server, _):
        assert server.asking.gettimeout() is None
        assert server.asking.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [server.asking.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [30, 10, 3]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_chunks_however_they_are_cut(size):
    data = b"3\r\na\r\n\r\nA;name=x\r\n0123456789\r\n0\r\n\r\n"
    body = ChunkedBody()
    assert b"".join(body.feed(data[at : at + size]) for at in range(0, len(data), size)) == b"a\r\n0123456789"
    assert body.ended


@pytest.mark.parametrize(
    ("data", "head"), [(b"nonsense\r\n", b"nonsense"), (b"\r\n1\r\n", b""), (b"1\r\na\r\n\r\n1\r\n", b"\r\n")]
)
def test_what_is_no_chunk(data, head):
    with pytest.raises(ConnectionResetError) as raised:
        ChunkedBody().feed(data)
    assert str(raised.value) == f"no chunk of an answer begins with {head!r}"


class OverSsh:
    """An answer that came through ssh: its file has neither `read1` nor a socket."""

    chunked = True
    read1 = None

    def __init__(self, *lines):
        self.fp = self._fp = self.channel = self
        self._lines = list(lines)
        self.done: list[object] = []

    def readline(self, _most):
        return self._lines.pop(0)

    def settimeout(self, seconds):
        self.done.append(seconds)

    def shutdown(self, how):
        self.done.append(how)

    def close(self):
        self.done.append("closed")


def test_an_answer_through_ssh():
    answered = OverSsh(b"4\r\n", b"abc\n", b"\r\n", b"0\r\n", b"\r\n")
    made = StreamingResponse(answered)
    assert (made.read(), made.read()) == (b"abc\n", b"")
    made.close()
    assert answered.done == [None, socket.SHUT_RDWR, "closed"]
