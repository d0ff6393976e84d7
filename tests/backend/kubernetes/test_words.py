"""Why a server refuses or cannot be reached, in words; and what a watch and a container ask for."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest
from backend.kubernetes.apps import container, resource, role
from support.scripted_server import Asked, scripted_server

from torchx_tui.backends.kubernetes.api_server import ApiError, describe_refusal, describe_unavailable
from torchx_tui.backends.kubernetes.request.pods import cores, megabytes
from torchx_tui.backends.kubernetes.watching import ObjectWatch
from torchx_tui.specs import Resource
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
def test_why_a_request_was_refused(status: int, answer: dict[str, Any], words: str) -> None:
    assert describe_refusal(status, answer, "prod", 2.0) == words


class ProxyError(Exception):
    """As urllib3 has it."""


class ReadTimeoutError(Exception):
    """As urllib3 has it."""


class ProtocolError(Exception):
    """As urllib3 has it."""


class ConfigException(Exception):
    """As the package `kubernetes` has it."""


def around(error: BaseException) -> Exception:
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
        (
            ProxyError("refused\nmore"),
            "the proxy to the API server of prod (h) does not work: refused: check",
        ),
        (FileNotFoundError(2, "x", "/a.pem"), "the API server of prod needs /a.pem, which does not exist"),
        (ConfigException("no context"), "the kubeconfig cannot be used: no context"),
        (ConnectionResetError(), "the API server of prod (h) closed the connection during an answer"),
        (EOFError(), "the API server of prod (h) closed the connection during an answer"),
        (ProtocolError("x"), "the API server of prod (h) closed the connection during an answer"),
        (KeyError("odd"), "the API server of prod (h) cannot be used: 'odd'"),
        (ValueError(), "the API server of prod (h) cannot be used: ValueError"),
    ],
)
def test_why_a_server_cannot_be_reached(error: BaseException, words: str) -> None:
    assert describe_unavailable(error, "h", "prod").startswith(words)
    if not words.endswith(("'odd'", "ValueError")):
        assert describe_unavailable(around(error), "h", "prod") == describe_unavailable(error, "h", "prod")


def test_without_a_context_and_an_address() -> None:
    assert describe_unavailable(TimeoutError(), "", "").startswith("the API server does not answer")
    untrusted = ssl.SSLCertVerificationError(1, "x")
    untrusted.verify_message = "self-signed certificate"
    assert describe_unavailable(untrusted, "", "") == (
        "the API server shows a certificate that is not trusted: self-signed certificate: check its authority"
    )


# Watches


def events(*told: Any) -> tuple[list[tuple[str, Any]], Asked]:
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


def test_a_watch_goes_on_from_a_version() -> None:
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
def test_a_watch_that_cannot_go_on(item: dict[str, Any], status: int, words: str) -> None:
    with pytest.raises(ApiError, match=words) as raised:
        events({"type": "ERROR", "object": item})
    assert raised.value.status == status


@pytest.mark.parametrize("event", [{"type": 1, "object": {}}, {"type": "ADDED"}, {"type": "ADDED", "object": []}])
def test_what_is_no_event(event: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no event of a watch"):
        events(event)


# What a container asks for


def asked(cpu: float = -1, gpu: int = -1, memory: int = -1, devices: Any = None, **options: Any) -> dict[str, Any]:
    wanted = Resource(cpu, gpu, memory, devices=devices or {})  # type: ignore[arg-type]
    return container(resource(role(resource=wanted), **options))["resources"]


def test_nodes_keep_some_of_what_they_have() -> None:
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


def test_devices_are_counted() -> None:
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
def test_an_amount(text: Any, amount: float | None) -> None:
    assert cores(text) == (pytest.approx(amount) if amount is not None else None)


def test_memory_in_megabytes() -> None:
    assert (megabytes("1"), megabytes("1500k"), megabytes("2M"), megabytes("x")) == (1, 2, 2, None)
