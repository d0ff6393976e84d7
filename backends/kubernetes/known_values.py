"""What the run options of kubernetes can be on a server."""

from __future__ import annotations

from ...specs import SchedulerError
from ..logs.sanitize import plain
from .api_server import ApiError, ApiServer
from .contexts import read_contexts

# Where the objects are that an option names; more than so many are no help to choose from.
_PLACES = {
    "namespace": "/api/v1/namespaces",
    "queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
    "service_account": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "priority_class": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
_MOST = 200


def known_values(server: ApiServer) -> dict[str, list[str]]:
    """Return what each run option can be; nothing of what cannot be listed.

    Args:
        server: the server.
    """
    found: dict[str, list[str]] = {}
    try:
        found["context"] = list(read_contexts().names)
        for option, path in _PLACES.items():
            if names := _names(server, path.format(namespace=server.namespace)):
                found[option] = names
    except (SchedulerError, ValueError):
        return found
    return found


def _names(server: ApiServer, path: str) -> list[str]:
    try:
        items = server.request("GET", path, params={"limit": _MOST}).get("items") or []
    except ApiError:
        return []
    return [name for one in items if plain(name := str(one["metadata"]["name"])) == name]
