"""Named resources of a site and of other packages, made in a worker: both ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

from ..base.errors import describe_error
from ..base.validation import JsonObject
from ..specs.errors import AppDefError, UnknownResourceError
from ..specs.resource_names import (
    RegisteredResource,
    has_registered_resources,
    named_resources,
    registered_resources,
)
from ..specs.resources import Resource
from ..specs.roles import AppDef, Role
from ..specs.serialize import appdef_from_dict, appdef_to_dict

# For all modules together.
_TIMEOUT_S = 30.0


def resources_from_guest(failed: Callable[[str, str], object]) -> list[RegisteredResource]:
    """List the named resources of a site and of other packages, made in a worker.

    Args:
        failed: Called with a module that cannot be read, and the reason.
    """
    if not has_registered_resources():
        return []
    # Most launches need no worker.
    from .interpreter import own_interpreter
    from .pool import BUILDER
    from .settings import guest_settings
    from .worker import Worker, WorkerError

    memory = guest_settings().memory_gigabytes
    try:
        worker = Worker("named-resources", own_interpreter(), BUILDER, memory_gigabytes=memory)
        with closing(worker):
            data = worker.call("make_resources", [], _TIMEOUT_S)
    except WorkerError as error:
        failed("named resources of other packages", str(error))
        return []
    for module, reason in data["problems"]:
        failed(str(module), str(reason))
    return [
        RegisteredResource(str(item["name"]), str(item["group"]), str(item["origin"]), _maker(item))
        for item in data["resources"]
    ]


def load_named_resources() -> None:
    """Load the named resources of other packages in a guest, unless they are loaded."""
    named_resources.load(resources_from_guest)


def _maker(item: JsonObject) -> Callable[[], Resource]:
    def make() -> Resource:
        if "error" in item:
            raise UnknownResourceError(str(item["error"]))
        try:
            return appdef_from_dict(item["app"]).roles[0].resource
        except AppDefError as error:
            raise UnknownResourceError(f"The named resource {item['name']} of {item['origin']}: {error}") from error

    return make


def make_resources() -> JsonObject:
    """Make all named resources of others; each is the role of an app, as plain data."""
    problems: list[list[str]] = []
    resources: list[JsonObject] = []
    for item in registered_resources(lambda module, reason: problems.append([module, reason])):
        made: JsonObject = {"name": item.name, "group": item.group, "origin": item.origin}
        try:
            role = Role(item.name, "", resource=item.make())
            made["app"] = json.loads(json.dumps(appdef_to_dict(AppDef(item.name, [role]))))
        except BaseException as error:  # SystemExit too
            made["error"] = describe_error(error)
        resources.append(made)
    return {"resources": resources, "problems": problems}
