"""Requests to an API server: errors, retries and waiting."""

import socket
import ssl
import time
from types import SimpleNamespace

import pytest
from backend.kubernetes.tables import table
from support.scripted_server import scripted_server

from torchx_tui.backends.kube import api_server
from torchx_tui.backends.kube.api_server import ApiError, ApiServer, describe_refusal, describe_unavailable
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError


@table("refusals.yaml", "messages", "status answer message")
def test_message_of_a_refusal(status, answer, message):
    assert describe_refusal(status, answer.get("message", answer.get("reason", "")), "prod", 2.0) == message


def named(name):
    """Return an exception class of a package, which is known by its name."""
    return type(name, (Exception,), {})


OF_PROD = "the API server of prod (h) "


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ssl.SSLError(1, "wrong version"), "TLS with the API server of prod (h) fails: "),
        (socket.gaierror(-2, "x"), f"{OF_PROD}cannot be found: no machine has this name"),
        (ConnectionRefusedError(), f"{OF_PROD}refuses the connection"),
        (TimeoutError(), f"{OF_PROD}does not answer: it is busy, or the way to it is cut"),
        (named("ReadTimeoutError")(), f"{OF_PROD}does not answer"),
        (named("ProxyError")("refused\nmore"), f"the proxy to {OF_PROD}does not work: refused: check"),
        (FileNotFoundError(2, "x", "/a.pem"), "the API server of prod needs /a.pem, which does not exist"),
        (named("ConfigException")("no context"), "the kubeconfig cannot be used: no context"),
        (ConnectionResetError(), f"{OF_PROD}closed the connection during an answer"),
        (EOFError(), f"{OF_PROD}closed the connection during an answer"),
        (named("ProtocolError")("x"), f"{OF_PROD}closed the connection during an answer"),
        (KeyError("odd"), f"{OF_PROD}cannot be used: 'odd'"),
        (ValueError(), f"{OF_PROD}cannot be used: ValueError"),
    ],
)
def test_message_of_an_unreachable_server(error, words):
    assert describe_unavailable(error, "h", "prod").startswith(words)
    if "cannot be used: '" not in words and "ValueError" not in words:
        around = Exception("around")
        around.__cause__ = error
        assert describe_unavailable(around, "h", "prod").startswith(words)


def test_message_without_context_and_address():
    assert describe_unavailable(TimeoutError(), "", "").startswith("the API server does not answer")
    untrusted = ssl.SSLCertVerificationError(1, "x")
    untrusted.verify_message = "self-signed certificate"
    assert describe_unavailable(untrusted, "", "") == (
        "the API server shows a certificate that is not trusted: self-signed certificate: check its authority"
    )


# Requests


@pytest.fixture
def scripted():
    with scripted_server() as made:
        yield made


@pytest.fixture
def server(scripted):
    made = scripted.api()
    yield made
    made.close()


def answer_in_turn(scripted, *answers):
    left = iter(answers)
    scripted.answers["GET", "/things"] = lambda asked: next(left)


def test_request_and_answer(scripted, server):
    assert (server.host, server.context, server.namespace) == ("", "", "default")
    scripted.gives("/things", {"a": 1})
    assert server.request("GET", "/things", params={"limit": 5, "selector": "a=b,c"}) == {"a": 1}
    assert server.host == scripted.url
    assert server.request("POST", "/things", body={"b": 2}) == {"b": 2}
    assert [one.params for one in scripted.asked] == [{"limit": "5", "selector": "a=b,c"}, {}]
    names = ("User-Agent", "Accept", "Content-Type")
    assert {tuple(one.headers[name] for name in names) for one in scripted.asked} == {
        ("torchx-tui", "application/json", "application/json")
    }
    answer = server.open("/things", {"follow": "true"}, accept="*/*")
    assert list(answer.objects()) == [{"a": 1}]
    assert (scripted.asked[-1].params, scripted.asked[-1].headers["Accept"]) == ({"follow": "true"}, "*/*")
    answer.close()
    server.close()
    assert server.host == ""
    assert server.request("GET", "/things") == {"a": 1}
    server.configuration().host += "/"
    assert server.request("GET", "/things") == {"a": 1}


@pytest.mark.parametrize("text", [b"[1]", b"<html>log in", b"[" * 100_000, b""], ids=["list", "html", "deep", "empty"])
def test_answer_that_is_no_object(scripted, server, text):
    scripted.gives("/things", text)
    words = f"^{scripted.url} answered /things with something that is not an object: .*is there a proxy"
    with pytest.raises(BackendUnavailableError, match=words):
        server.request("GET", "/things")


def test_lost_answer_is_retried_only_for_reads(scripted, server):
    answer_in_turn(scripted, None, (200, {"a": 1}), None, None)
    scripted.answers["POST", "/things"] = lambda asked: None
    assert server.request("GET", "/things") == {"a": 1}
    for method, requests in (("GET", 4), ("POST", 5)):
        with pytest.raises(BackendUnavailableError, match="closed the connection during an answer"):
            server.request(method, "/things")
        assert len(scripted.asked) == requests


@pytest.mark.parametrize(
    ("header", "wait", "asked"),
    [(None, 1.0, 1), ("2", 2.0, 2), ("3", 3.0, 3), ("4", None, 4), ("0", 0.1, 0), ("soon", 1.0, 1)],
)
def test_busy_server_is_given_time(scripted, server, monkeypatch, header, wait, asked):
    waits = []
    clock = SimpleNamespace(sleep=waits.append, time=lambda: 1.0, monotonic=time.monotonic)
    monkeypatch.setattr(api_server, "time", clock)
    busy = 429, {}, {} if header is None else {"Retry-After": header}
    scripted.answers["GET", "/things"] = busy
    with pytest.raises(ApiError, match=f"asks to wait for {asked} s") as raised:
        server.request("GET", "/things")
    assert (waits, raised.value.status) == ([wait] * 2 if wait else [], 429)
    if wait:
        answer_in_turn(scripted, busy, (200, {"a": 1}))
        assert server.request("GET", "/things") == {"a": 1}


def test_unknown_user_logs_in_once_more(scripted, server):
    answer_in_turn(scripted, (401, {}), (200, {"a": 1}), (401, {}), (401, {}))
    assert server.request("GET", "/things") == {"a": 1}
    with pytest.raises(BackendUnavailableError, match="does not know who you are"):
        server.request("GET", "/things")
    assert len(scripted.asked) == 4


@table("refusals.yaml", "errors", "answer error message reason details")
def test_error_of_a_refusal(scripted, server, answer, error, message, reason, details):
    scripted.answers["GET", "/things"] = tuple(answer)
    with pytest.raises(SchedulerError) as raised:
        server.request("GET", "/things")
    assert (type(raised.value).__name__, str(raised.value)[-len(message) :]) == (error, message)
    if isinstance(raised.value, ApiError):
        found = raised.value
        assert (found.status, found.reason, found.details) == (answer[0], reason or "", details or {})
        assert str(found) == message


def test_long_refusal_is_shortened(scripted, server):
    scripted.answers["GET", "/things"] = 400, b"x" * 400
    with pytest.raises(ApiError, match=r"^x{300}$"):
        server.request("GET", "/things")


@table("refusals.yaml", "kubeconfigs", "text context namespace message")
def test_unusable_kubeconfig(tmp_path, monkeypatch, text, context, namespace, message):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    if text is not None:
        (tmp_path / "kubeconfig").write_text(text)
    server = ApiServer()
    assert (server.context, server.namespace, server.host) == (context, namespace, "")
    with pytest.raises(BackendUnavailableError, match=message):
        server.request("GET", "/version")
    assert ApiServer("named").context == "named"
