"""Answers of Docker engines and API servers that are endless, huge, compressed or never complete."""

import gzip
import resource
import time
from contextlib import closing
from unittest.mock import Mock

import pytest
from kubernetes.client import ApiClient, Configuration
from support.hostile_server import CHUNKED, OK, chunk, hostile_server, repeat, then

from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.backends.docker_engine.streams import ask
from torchx_tui.backends.kube import reflector
from torchx_tui.backends.kube.api_server import ApiServer
from torchx_tui.specs.errors import BackendUnavailableError

# Seconds that a client waits for the next part of an answer, and those in which all must be over.
TIMEOUT_S, OVER_S = 0.4, 30.0
MEGABYTE = b"x" * (1 << 20)
BOMB = gzip.compress(bytes(1 << 20)) * 200


def engine_at(address):
    return closing(Engine({"DOCKER_HOST": f"tcp://{address}"}, timeout=TIMEOUT_S))


def api_server_at(address, **limits):
    configuration = Configuration()
    configuration.host = f"http://{address}"
    return closing(ApiServer(client=ApiClient(configuration), **limits))


def ask_engine(address):
    with engine_at(address) as engine, engine.translate_errors():
        return engine.client().api.containers(all=True)


def ask_api_server(address):
    with api_server_at(address, timeout=TIMEOUT_S) as server:
        return server.request("GET", "/api/v1/pods")


def body_of(data):
    # In one piece: a second one would wait 40 ms for the first to be acknowledged.
    return then(OK + b"Content-Length: %d\r\n\r\n%b" % (len(data), data))


ENDLESS = chunk(MEGABYTE)
# The beginning of an answer, a piece that follows again and again, and the pause after each piece.
ANSWERS = {
    "nothing at all": (b"", b"", 0.05),
    "endless body": (CHUNKED, ENDLESS),
    "huge body": (OK + b"Content-Length: 100000000000\r\n\r\n", MEGABYTE),
    "body until the connection closes": (OK + b"\r\n", MEGABYTE),
    "body that drips": (CHUNKED, chunk(b" "), 0.05),
    "chunk head that drips": (CHUNKED, b"0", 0.05),
    "endless headers": (OK, b"X-More: 1\r\n"),
    "header without an end": (OK + b"X-More: ", MEGABYTE),
    "headers that drip": (OK + b"X-More: ", b"x", 0.05),
    "endless interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01),
    "gzip bomb": (OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(BOMB), BOMB),),
    "refusal with an endless body": (CHUNKED.replace(b"200 OK", b"500 Odd"), ENDLESS),
    "redirect with an endless body": (CHUNKED.replace(b"200 OK\r\n", b"302 Found\r\nLocation: /a\x1b[2J\r\n"), ENDLESS),
}


@pytest.mark.parametrize("client", [ask_engine, ask_api_server])
@pytest.mark.parametrize(("head", "again"), [(head, again) for head, *again in ANSWERS.values()], ids=ANSWERS)
def test_endless_answers_end(head, again, client):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    with hostile_server(lambda _: then(head, last=repeat(*again) if again else ())) as address:
        with pytest.raises(BackendUnavailableError) as raised:
            client(address)
    assert time.monotonic() - began < OVER_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10
    assert "\x1b" not in str(raised.value)


def test_endless_object_of_an_engine_is_an_error():
    def script(head):
        return then(CHUNKED, last=repeat(chunk(MEGABYTE))) if b"/events" in head else body_of(b'{"ApiVersion": "1.41"}')

    with hostile_server(script) as address, engine_at(address) as engine:
        answer = ask(engine.client(), "GET", "/events", {})
        with pytest.raises(ConnectionResetError, match="a line of an answer has more than 16 MB"):
            next(answer.objects())
        answer.close()


def test_endless_pages_of_a_list_are_an_error(monkeypatch):
    monkeypatch.setattr(reflector, "_LIST_S", 1.0)

    script = Mock(
        side_effect=lambda _: body_of(b'{"items": [], "metadata": {"continue": "more", "resourceVersion": "1"}}')
    )
    with hostile_server(script) as address, api_server_at(address) as server:
        with pytest.raises(BackendUnavailableError, match="did not list /jobs within 1 s"):
            list(reflector.list_pages(server, "/jobs"))
    assert script.call_count > 1
