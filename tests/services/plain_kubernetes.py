"""Asks an API server with nothing but Python's standard library. For the kubeconfigs that kubernetes-keys.sh writes."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

Object = dict[str, Any]

MERGE = "application/merge-patch+json"


class RefusedError(Exception):
    """The server says no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message


class Server:
    """An API server, asked by one thread at a time.

    Args:
        kubeconfig: a kubeconfig in JSON with one cluster, one user, and paths of their keys.
    """

    def __init__(self, kubeconfig: str) -> None:
        config = json.loads(Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._address = urlsplit(cluster["server"])
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._tls.load_cert_chain(user["client-certificate"], user["client-key"])
        self._connection: HTTPSConnection | None = None

    def ask(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        """Return the server's answer.

        Args:
            method: such as GET.
            path: with its query.
            body: what is sent.
            kind: the body's media type.

        Raises:
            RefusedError: the server says no.
            OSError, HTTPException: it does not answer.
        """
        if self._connection is None:
            self._connection = self._connect(10.0)
        try:
            data = None if body is None else json.dumps(body)
            self._connection.request(method, path, data, {"Content-Type": kind, "Accept": "application/json"})
            response = self._connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, HTTPException, ValueError):
            self._connection.close()
            self._connection = None
            raise
        if response.status >= 300:
            raise RefusedError(response.status, answer.get("message", ""))
        return answer

    def watch(self, path: str, query: Mapping[str, str], version: str) -> Iterator[Object]:
        """Give the events after a resource version, on a connection of their own, until the server ends it.

        Raises:
            RefusedError: the server says no.
            OSError, HTTPException: it went away.
        """
        connection = self._connect(90.0)
        asked = {**query, "watch": "true", "resourceVersion": version, "timeoutSeconds": "60"}
        try:
            connection.request("GET", f"{path}?{urlencode(asked)}", headers={"Accept": "application/json"})
            response = connection.getresponse()
            if response.status >= 300:
                raise RefusedError(response.status, response.read().decode("utf-8", "replace"))
            for line in response:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise RefusedError(event["object"].get("code", 0), event["object"].get("message", ""))
                yield event
        finally:
            connection.close()

    def _connect(self, timeout: float) -> HTTPSConnection:
        assert self._address.hostname is not None
        return HTTPSConnection(self._address.hostname, self._address.port, timeout=timeout, context=self._tls)
