"""Answers that come bit by bit, of a server on loopback: cut anywhere, broken off, and ended by another thread."""

import socket
import subprocess
import threading
from contextlib import contextmanager
from types import MethodType, SimpleNamespace
from typing import Any

import pytest
import urllib3
from support.background import in_background
from support.waiting import PATIENCE

from torchx_tui.backends.shared.streaming_response import StreamingResponse

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\n"


@contextmanager
def answer(data):
    """Give the server's socket, the client's, and the answer that begins with this data."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, peers = listening.getsockname()[1], []

        def accept():
            peer, _ = listening.accept()
            peer.recv(1 << 16)
            peer.sendall(data)
            peers.append(peer)

        accepting = in_background(accept)
        pool = urllib3.PoolManager(timeout=0.2)
        response = pool.request("GET", f"http://127.0.0.1:{port}/", preload_content=False, retries=False)
        accepting.result(PATIENCE)
    client: Any = getattr(response.connection, "sock", None)
    made = StreamingResponse(response)
    with peers[0]:
        try:
            yield peers[0], client, made
        finally:
            made.close()


@pytest.mark.parametrize("data", [CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", UNTIL_CLOSED + b"abcde"])
def test_an_answer_to_its_end(data):
    with answer(data) as (server, _, made):
        if data.startswith(UNTIL_CLOSED):
            server.close()
        assert b"".join(iter(made.read, b"")) == b"abcde"
        assert made.read() == b""


def test_reads_have_no_timeout():
    with answer(CHUNKED + b"2\r\na") as (server, client, made):
        # A part of a chunk comes at once.
        assert made.read() == b"a"
        timer = threading.Timer(0.5, server.sendall, [b"b\r\n"])
        timer.start()
        assert made.read() == b"b"
        timer.join()
        assert client.gettimeout() is None
        # The end of the other machine is noticed.
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [client.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [30, 10, 3]


@pytest.mark.parametrize(
    "sent",
    [
        CHUNKED + b"5\r\nabc",
        CHUNKED + b"3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
    ],
)
def test_a_broken_answer_is_an_error(sent):
    with answer(sent) as (server, _, made):
        server.close()
        assert made.read() == b"abc"
        with pytest.raises(ConnectionResetError, match="connection broke"):
            made.read()


@pytest.mark.parametrize("head", [CHUNKED, UNTIL_CLOSED])
def test_another_thread_ends_a_blocked_read(head):
    with answer(head) as (_, _, made):
        reading = in_background(made.read)
        made.shut()
        assert reading.result(PATIENCE) == made.read() == b""


def test_objects_come_one_a_line():
    with answer(UNTIL_CLOSED + b'{"a": 1}\n\n{"b"') as (server, _, made):
        objects = made.objects()
        assert next(objects) == {"a": 1}
        server.sendall(b': 2}\n{"c": 3}')
        assert next(objects) == {"b": 2}
        server.close()
        assert list(objects) == [{"c": 3}]


def test_half_an_object_is_dropped():
    with answer(UNTIL_CLOSED + b'{"a": 1}\n{"b"') as (_, _, made):
        objects = made.objects()
        assert next(objects) == {"a": 1}
        made.shut()
        assert list(objects) == []


def test_a_huge_object_is_refused(monkeypatch):
    monkeypatch.setattr("torchx_tui.backends.shared.streaming_response._MAX_OBJECT_BYTES", 10)
    with answer(UNTIL_CLOSED + b'{"a": 1}\n{"b": "' + 20 * b"x") as (_, _, made):
        with pytest.raises(ConnectionResetError, match="a line of an answer has more than"):
            list(made.objects())


def test_chunks_that_are_there_come_at_once():
    with answer(CHUNKED + b"".join(b"1\r\n%c\r\n" % (65 + number % 26) for number in range(10_000))) as (*_, made):
        pieces = []
        while sum(map(len, pieces)) < 10_000:
            pieces.append(made.read())
        assert len(pieces) < 1_000
        assert b"".join(pieces).startswith(b"ABCDEF")


def test_an_answer_of_known_length():
    with answer(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc") as (*_, made):
        assert (made.read(), made.read()) == (b"abc", b"")


@pytest.mark.parametrize("chunk", [b"nonsense\r\n", b"-\r\n", b"x" * 100_000])
def test_an_odd_chunk_is_an_error(chunk):
    with answer(CHUNKED + b"1\r\na\r\n" + chunk) as (server, _, made):
        server.close()
        assert made.read() == b"a"
        with pytest.raises(ConnectionResetError, match="connection broke"):
            made.read()


def test_the_program_of_ssh_is_ended():
    """The connection is a process: its socket was never connected."""
    process: Any = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    connection = SimpleNamespace(proc=process)
    connection.shutdown = MethodType(lambda self, how: None, connection)
    response = urllib3.HTTPResponse(process.stdout, preload_content=False, sock_shutdown=connection.shutdown)
    made = StreamingResponse(response)
    reading = in_background(made.read)
    made.shut()
    assert reading.result(PATIENCE) == b""
    made.close()
    process.stdin.close()
    process.wait(PATIENCE)
