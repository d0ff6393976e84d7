"""Why a server refuses or cannot be reached, in words; and what a watch and a container ask for."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from backend.kubernetes.apps import container, resource, role
from support.scripted_server import scripted_server

from torchx_tui.backends.kubernetes import api_server
from torchx_tui.backends.kubernetes.api_server import (
    ApiError,
    ApiServer,
    ForbiddenError,
    describe_refusal,
    describe_unavailable,
)
from torchx_tui.backends.kubernetes.request.pods import cores, megabytes
from torchx_tui.backends.kubernetes.watching import ObjectWatch
from torchx_tui.specs import BackendUnavailableError, Resource
from torchx_tui.specs.named_resources_aws import EFA_DEVICE

FORBIDDEN = 'pods is forbidden: User "{}" cannot list resource "pods" in API group "{}"{}'


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (401, {}, "the API server of prod does not know who you are: the token or certificate is wrong or expired; log "
         "in again"),
        (429, {}, "the API server of prod is busy and asks to wait for 2 s (HTTP 429)"),
        (410, {"message": "too old resource version"}, "the list is outdated: it is read again"),
        (500, {"message": "etcd"}, "the API server of prod cannot answer now (HTTP 500): etcd"),
        (503, {"reason": "Away"}, "the API server of prod cannot answer now (HTTP 503): Away"),
        (404, {"message": "m\x1b[2J"}, "m"),
        (409, {}, "HTTP 409"),
        (403, {"message": "no"}, "no"),
        (403, {"message": FORBIDDEN.format("alice", "", ' in the namespace "space"')},
         "not allowed: alice may not list pods in namespace space: ask the cluster's administrator for this right"),
        (403, {"message": FORBIDDEN.format("alice", "batch.volcano.sh", "")},
         "not allowed: alice may not list pods.batch.volcano.sh in the whole cluster: "
         "ask the cluster's administrator for this right"),
        (403, {"message": FORBIDDEN.format("system:anonymous", "", "")},
         "the API server does not know who you are, and nobody else may list pods in the whole cluster: the "
         "kubeconfig's token or certificate is missing, or the program that it names for it does not work"),
    ],
)  # fmt: skip
def test_why_a_request_was_refused(status, answer, words):
    assert describe_refusal(status, answer, "prod", 2.0) == words


class ProxyError(Exception):
    """As urllib3 has it."""


class ReadTimeoutError(Exception):
    """As urllib3 has it."""


class ProtocolError(Exception):
    """As urllib3 has it."""


class ConfigException(Exception):
    """As the package `kubernetes` has it."""


def around(error):
    """Return an error that came of another one."""
    made = Exception("around")
    made.__cause__ = error
    return made


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ssl.SSLError(1, "wrong version"), "TLS with the API server of prod (h) fails: "),
        (socket.gaierror(-2, "x"), "the API server of prod (h) cannot be found: no machine has this name"),
        (ConnectionRefusedError(), "the API server of prod (h) refuses the connection"),
        (TimeoutError(), "the API server of prod (h) does not answer: it is busy, or the way to it is cut"),
        (ReadTimeoutError(), "the API server of prod (h) does not answer"),
        (ProxyError("refused\nmore"), "the proxy to the API server of prod (h) does not work: refused: check"),
        (FileNotFoundError(2, "x", "/a.pem"), "the API server of prod needs /a.pem, which does not exist"),
        (ConfigException("no context"), "the kubeconfig cannot be used: no context"),
        (ConnectionResetError(), "the API server of prod (h) closed the connection during an answer"),
        (EOFError(), "the API server of prod (h) closed the connection during an answer"),
        (ProtocolError("x"), "the API server of prod (h) closed the connection during an answer"),
        (KeyError("odd"), "the API server of prod (h) cannot be used: 'odd'"),
        (ValueError(), "the API server of prod (h) cannot be used: ValueError"),
    ],
)
def test_why_a_server_cannot_be_reached(error, words):
    assert describe_unavailable(error, "h", "prod").startswith(words)
    if not words.endswith(("'odd'", "ValueError")):
        assert describe_unavailable(around(error), "h", "prod") == describe_unavailable(error, "h", "prod")


def test_without_a_context_and_an_address():
    assert describe_unavailable(TimeoutError(), "", "").startswith("the API server does not answer")
    untrusted = ssl.SSLCertVerificationError(1, "x")
    untrusted.verify_message = "self-signed certificate"
    assert describe_unavailable(untrusted, "", "") == (
        "the API server shows a certificate that is not trusted: self-signed certificate: check its authority"
    )


# What is asked of a server


@pytest.fixture
def scripted():
    with scripted_server() as made:
        yield made


def test_a_question_and_its_answer(scripted):
    server = scripted.api()
    assert (server.host, server.context, server.namespace) == ("", "", "default")
    scripted.answers["GET", "/things"] = 200, {"a": 1}
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
    server.close()


@pytest.mark.parametrize("answer", [(200, b"[1]"), (200, b"<html>log in"), (200, b"[" * 100_000), (200, b"")])
def test_an_answer_that_is_no_object(scripted, answer):
    scripted.answers["GET", "/things"] = answer
    words = f"^{scripted.url} answered /things with something that is not an object: .*is there a proxy"
    with pytest.raises(BackendUnavailableError, match=words):
        scripted.api().request("GET", "/things")


def test_a_connection_that_is_closed_is_tried_again_where_nothing_is_changed(scripted):
    server = scripted.api()
    answers: Iterator[Any] = iter([None, (200, {"a": 1}), None, None])
    scripted.answers["GET", "/things"] = lambda asked: next(answers)
    scripted.answers["POST", "/things"] = lambda asked: None
    assert server.request("GET", "/things") == {"a": 1}
    assert len(scripted.asked) == 2
    with pytest.raises(BackendUnavailableError, match="closed the connection during an answer"):
        server.request("GET", "/things")
    assert len(scripted.asked) == 4
    with pytest.raises(BackendUnavailableError, match="closed the connection during an answer"):
        server.request("POST", "/things", body={})
    assert len(scripted.asked) == 5
    server.close()


@pytest.mark.parametrize(
    ("header", "waits", "words"),
    [
        (None, [1.0, 1.0], "asks to wait for 1 s"),
        ("2", [2.0, 2.0], "asks to wait for 2 s"),
        ("3", [3.0, 3.0], "asks to wait for 3 s"),
        ("4", [], "asks to wait for 4 s"),
        ("0", [0.1, 0.1], "asks to wait for 0 s"),
        ("soon", [1.0, 1.0], "asks to wait for 1 s"),
    ],
)
def test_a_server_that_is_busy_is_given_time(scripted, monkeypatch, header, waits, words):
    slept: list[float] = []
    monkeypatch.setattr(
        api_server, "time", SimpleNamespace(sleep=slept.append, time=lambda: 1.0, monotonic=time.monotonic)
    )
    busy = 429, {}, {} if header is None else {"Retry-After": header}
    scripted.answers["GET", "/things"] = busy
    server = scripted.api()
    with pytest.raises(ApiError, match=words) as raised:
        server.request("GET", "/things")
    assert (slept, raised.value.status) == (waits, 429)
    if waits:
        answers = iter([busy, (200, {"a": 1})])
        scripted.answers["GET", "/things"] = lambda asked: next(answers)
        assert server.request("GET", "/things") == {"a": 1}
    server.close()


def test_who_is_not_known_logs_in_once_more(scripted):
    server = scripted.api()
    answers = iter([(401, {}), (200, {"a": 1}), (401, {}), (401, {})])
    scripted.answers["GET", "/things"] = lambda asked: next(answers)
    assert server.request("GET", "/things") == {"a": 1}
    with pytest.raises(BackendUnavailableError, match="does not know who you are"):
        server.request("GET", "/things")
    assert len(scripted.asked) == 4
    server.close()


@pytest.mark.parametrize(
    ("answer", "kind", "words", "reason", "details"),
    [
        ((403, {"message": "no", "reason": "Forbidden"}), ForbiddenError, "no", "Forbidden", {}),
        ((422, {"message": "odd", "details": {"causes": []}}), ApiError, "odd", "", {"causes": []}),
        ((422, {"message": "odd", "details": [1]}), ApiError, "odd", "", {}),
        ((404, b" in\xff plain words \n"), ApiError, "in\ufffd plain words", "", {}),
        ((404, b"[1]"), ApiError, "HTTP 404", "", {}),
        ((400, b"x" * 400), ApiError, "x" * 300, "", {}),
    ],
)
def test_what_a_refusal_says(scripted, answer, kind, words, reason, details):
    scripted.answers["GET", "/things"] = answer
    with pytest.raises(ApiError) as raised:
        scripted.api().request("GET", "/things")
    error = raised.value
    assert (type(error), str(error), error.status) == (kind, words, answer[0])
    assert (error.reason, error.details) == (reason, details)
    scripted.answers["GET", "/things"] = 503, b"upstream is away"
    with pytest.raises(BackendUnavailableError, match=r"cannot answer now \(HTTP 503\): upstream is away"):
        scripted.api().request("GET", "/things")


@pytest.mark.parametrize(
    ("text", "context", "namespace", "words"),
    [
        ("{", "", "default", "is not a kubeconfig"),
        ("", "", "default", "the kubeconfig cannot be used: "),
        ('{"current-context": "a", "contexts": [{"name": "a", "context": {"namespace": "space"}}]}', "a", "space",
         "the kubeconfig cannot be used: "),
        (None, "", "default", "There is no kubeconfig: create ~/.kube/config, or name it in KUBECONFIG"),
    ],
)  # fmt: skip
def test_a_kubeconfig_that_leads_nowhere(tmp_path, monkeypatch, text, context, namespace, words):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    if text is not None:
        (tmp_path / "kubeconfig").write_text(text)
    server = ApiServer()
    assert (server.context, server.namespace, server.host) == (context, namespace, "")
    with pytest.raises(BackendUnavailableError, match=words):
        server.request("GET", "/version")
    assert ApiServer("named").context == "named"


# Watches


def events(*told):
    """Return what a watch gives where the server tells this, and what the server was asked."""
    with scripted_server() as made:
        server = made.api()
        made.answers["GET", "/things"] = 200, told[0]
        watch = ObjectWatch(server, "/things", {"labelSelector": "a=b"})
        watch.open("7")
        try:
            return list(watch.events()), made.asked[-1]
        finally:
            watch.shut()
            watch.close()
            watch.close()
            server.close()


def test_a_watch_that_was_ended_before_it_began_tells_nothing():
    with scripted_server() as made:
        server = made.api()
        made.answers["GET", "/things"] = 200, {"type": "ADDED", "object": {}}
        watch = ObjectWatch(server, "/things")
        assert list(watch.events()) == []
        watch.shut()
        watch.open("7")
        assert list(watch.events()) == []
        watch.close()
        server.close()


def test_a_watch_goes_on_from_a_version():
    found, asked = events({"type": "ADDED", "object": {"a": 1}})
    assert found == [("ADDED", {"a": 1})]
    assert asked.params.pop("timeoutSeconds").isdigit()
    assert asked.params == {
        "labelSelector": "a=b",
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
    }


@pytest.mark.parametrize(
    ("item", "status", "words"),
    [
        ({"code": 410, "message": "too old"}, 410, "too old"),
        ({"code": "410"}, 0, "the watch ended"),
        ({}, 0, "the watch ended"),
    ],
)
def test_a_watch_that_cannot_go_on(item, status, words):
    with pytest.raises(ApiError, match=words) as raised:
        events({"type": "ERROR", "object": item})
    assert raised.value.status == status


@pytest.mark.parametrize("event", [{"type": 1, "object": {}}, {"type": "ADDED"}, {"type": "ADDED", "object": []}])
def test_what_is_no_event(event):
    with pytest.raises(ValueError, match="no event of a watch"):
        events(event)


# What a container asks for


def asked(cpu=-1, gpu=-1, memory=-1, devices=None, **options):
    wanted = Resource(cpu, gpu, memory, devices=devices or {})  # type: ignore[arg-type]
    return container(resource(role(resource=wanted), **options))["resources"]


def test_nodes_keep_some_of_what_they_have():
    assert asked(2, 1, 2000) == {
        "limits": {"cpu": "2000m", "memory": "2000M", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "1900m", "memory": "976M", "nvidia.com/gpu": "1"},
    }
    assert asked(0.05, 0, 500) == {
        "limits": {"cpu": "50m", "memory": "500M"},
        "requests": {"cpu": "0m", "memory": "0M"},
    }
    assert asked() == {"limits": {}, "requests": {}}
    assert asked(1, -1, 2000, reserved_millicpu=0, reserved_memmb=1000)["requests"] == {
        "cpu": "1000m",
        "memory": "1000M",
    }


def test_devices_are_counted():
    given = {EFA_DEVICE: 4, "x/y": 2}
    assert asked(devices=given)["limits"] == {EFA_DEVICE: "4", "x/y": "2"}
    assert asked(devices=given, efa_device_count=1)["limits"] == {EFA_DEVICE: "1", "x/y": "2"}
    assert asked(devices=given, efa_device_count=0)["limits"] == {"x/y": "2"}
    assert asked(efa_device_count=3)["limits"] == {EFA_DEVICE: "3"}


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2", 2.0), ("1500m", 1.5), ("1k", 1e3), ("2M", 2e6), ("1Ki", 1024.0), ("1Mi", 1048576.0), ("1e3", 1e3),
        (".5", 0.5), (3, 3.0), ("1E", 1e18), ("5u", 5e-6), ("7n", 7e-9), ("+1", 1.0), ("", None), (None, None),
        ("x", None), ("1e22", None), ("1" * 41, None), ("1KB", None),
    ],
)  # fmt: skip
def test_an_amount(text, amount):
    assert cores(text) == (pytest.approx(amount) if amount is not None else None)


def test_memory_in_megabytes():
    assert (megabytes("1"), megabytes("1500k"), megabytes("2M"), megabytes("x")) == (1, 2, 2, None)
