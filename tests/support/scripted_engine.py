"""A Docker engine that answers as a test scripts it, on loopback: what a real one is slow, or loath, to say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker_engine.client import Engine

from .scripted_server import Answer, Asked, ScriptedServer, serving

_VERSION = "1.41"


class ScriptedEngine(ScriptedServer):
    """Answers by method and path, the path without the version of the API."""

    def __init__(self) -> None:
        super().__init__()
        self.answers["GET", "/version"] = 200, {"ApiVersion": _VERSION}

    @property
    def host(self) -> str:
        """What ``DOCKER_HOST`` is set to."""
        return self.url.replace("http:", "tcp:")

    def engine(self) -> Engine:
        """Return what asks it."""
        return Engine({"DOCKER_HOST": self.host})

    def answer(self, asked: Asked) -> Answer | None:
        return super().answer(asked._replace(path=asked.path.removeprefix(f"/v{_VERSION}")))

    def has(self, *containers: dict[str, Any]) -> None:
        """Let it list these containers, see `listed`."""
        self.answers["GET", "/containers/json"] = 200, list(containers)


def listed(k: int = 0, state: str = "running", status: str = "", **changes: Any) -> dict[str, Any]:
    """Return a replica of role ``worker`` of ``app-x`` as an engine lists it; its id is ``c`` and its number."""
    marks = {labels.APP_ID: "app-x", labels.ROLE_NAME: "worker", labels.REPLICA_ID: str(k)}
    known = {"Id": f"c{k}", "Image": "busybox", "State": state, "Status": status, "Labels": marks, "Created": 100}
    return {**known, **changes}


def refused(status: int, message: str) -> Answer:
    """Return a refusal as an engine words it."""
    return status, {"message": message}


def events(*told: dict[str, Any]) -> bytes:
    """Return the words of progress of a pull, a push or a build."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in told)


@contextmanager
def scripted_engine() -> Iterator[ScriptedEngine]:
    """Give an engine that runs."""
    with serving(ScriptedEngine()) as made:
        yield made
