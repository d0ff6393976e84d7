"""How many GPUs the nodes of a cluster have."""

from __future__ import annotations

import time
from typing import Any

from .api_server import ApiError, ApiServer
from .pods import GPU

# A node with its images and conditions takes some kilobytes: of a larger cluster nothing is claimed.
_MOST_NODES = 200
# Seconds: a form asks again with every letter, and nodes come and go in minutes.
_KEPT = 60.0
_PATIENCE = 5.0


class GpuNodes:
    """Asks a server for its nodes, and remembers for a minute what it said.

    Args:
        server: the server.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._most: int | None = None
        self._until = 0.0

    def most(self) -> int | None:
        """Return the GPUs of the node that has most; None where that cannot be told.

        Raises:
            BackendUnavailableError: the server cannot be reached.
        """
        if time.monotonic() > self._until:
            self._most = self._ask()
            self._until = time.monotonic() + _KEPT
        return self._most

    def _ask(self) -> int | None:
        try:
            answer = self._server.request("GET", "/api/v1/nodes", params={"limit": _MOST_NODES}, timeout=_PATIENCE)
        except ApiError:
            return None
        if (answer.get("metadata") or {}).get("continue") or not answer.get("items"):
            return None
        return max(_gpus_of(node) for node in answer["items"])


def _gpus_of(node: dict[str, Any]) -> int:
    text = str(((node.get("status") or {}).get("allocatable") or {}).get(GPU) or "0")
    return int(text) if text.isdigit() else 0
