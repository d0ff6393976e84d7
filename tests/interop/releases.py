"""What is asked of a release of TorchX, and of us, in one way: an operation's name and plain data, plain data back.

TorchX 0.7.0 runs this in a process of its own (see release_server.py): the standard library and TorchX are imported.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import Any

from interop.plain_data import built, built_options, built_role, built_status, less_new, plain

_IMAGE = re.compile(r"ghcr.io/pytorch/torchx:[^ ]+")
VERSION_LABEL = "torchx.pytorch.org/version"


def pinned(name: str) -> str:
    """Return an app's id that is the same everywhere."""
    return f"{name}-wq4xkz7dn2bcd"


class Release:
    """What differs between packages in where it is found.

    Args:
        specs: the module of the classes.
        docker: makes the request of an AppDef and run options.
        kubernetes: makes the job, as plain data, of an AppDef and the arguments of `app_to_resource`.
        component: makes the AppDef of a component's name and a command line.
    """

    def __init__(self, specs: Any, docker: Any, kubernetes: Any, component: Any) -> None:
        self.specs, self.docker, self.kubernetes, self.component = specs, docker, kubernetes, component

    def ask(self, operation: str, *arguments: Any) -> Any:
        """Return what an operation gives, or of what kind its error is, as JSON would have it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                given: Any = {"value": _OPERATIONS[operation](self, *arguments)}
            except (Exception, SystemExit) as error:
                given = {"refused": [kind.__name__ for kind in type(error).__mro__], "of": type(error).__module__}
        return json.loads(json.dumps(given))


def torchx_release() -> Release:
    """Return the release of TorchX that is installed."""
    import torchx.schedulers.docker_scheduler as docker
    import torchx.schedulers.kubernetes_scheduler as kubernetes
    import torchx.specs as specs
    from torchx.specs.builders import materialize_appdef
    from torchx.specs.finder import get_component

    found: dict[str, Any] = {}

    def component(name: str, argv: list[str]) -> Any:
        if name not in found:
            found[name] = get_component(name).fn
        return materialize_appdef(found[name], argv)

    def job(app: Any, arguments: dict[str, Any]) -> Any:
        module: Any = kubernetes
        return module.sanitize_for_serialization(module.app_to_resource(app, "default", **arguments))

    scheduler = docker.create_scheduler("torchx")
    return Release(specs, lambda app, cfg: scheduler.submit_dryrun(app, cfg).request, job, component)


def pin_torchx(set_attribute: Callable[[Any, str, Any], None]) -> None:
    """Make the ids of TorchX's apps the same everywhere."""
    import torchx.schedulers.docker_scheduler as docker
    import torchx.schedulers.kubernetes_scheduler as kubernetes

    for module in (docker, kubernetes):
        set_attribute(module, "make_unique", pinned)


def _resolve(release: Release, declared: Any, cfg: Any) -> Any:
    return dict(sorted(built_options(release.specs, declared).resolve(cfg).items()))


def _read(release: Release, declared: Any, text: str) -> Any:
    return built_options(release.specs, declared).cfg_from_str(text)


def _macros(release: Release, values: dict[str, str], role: dict[str, Any]) -> Any:
    made = plain(release.specs.macros.Values(**values).apply(built_role(release.specs, **role)))
    return {name: made[name] for name in ("args", "env", "metadata", "image")}


def _mounts(release: Release, options: list[str]) -> Any:
    return plain(release.specs.parse_mounts(options))


def _handle(release: Release, handle: str) -> Any:
    parsed = release.specs.parse_app_handle(handle)
    return list(parsed if isinstance(parsed, tuple) else plain(parsed).values())[-3:]


def _resource(release: Release, arguments: dict[str, Any]) -> Any:
    return less_new(plain(release.specs.resource(**arguments)))


def _status(release: Release, status: dict[str, Any]) -> Any:
    made = built_status(release.specs, status)
    return [made.format(), made.is_terminal()]


def _docker(release: Release, app: dict[str, Any], cfg: dict[str, Any]) -> Any:
    request = release.docker(built(release.specs, app), cfg)
    made = [{"image": one.image, "command": one.command, **one.kwargs} for one in request.containers]
    for one in made:
        one["labels"] = {name: text for name, text in sorted(one["labels"].items()) if name != VERSION_LABEL}
    return json.loads(json.dumps(made, sort_keys=True))


def _kubernetes(release: Release, app: dict[str, Any], arguments: dict[str, Any]) -> Any:
    job = release.kubernetes(built(release.specs, app), arguments)
    for task in job["spec"]["tasks"]:
        task["template"]["metadata"]["labels"].pop(VERSION_LABEL)
    return json.loads(json.dumps(job, sort_keys=True))


def _component(release: Release, name: str, argv: list[str]) -> Any:
    made = less_new(plain(release.component(name, argv)))
    for role in made["roles"]:
        # Each release has an image of its own.
        role["image"] = _IMAGE.sub("IMAGE", role["image"])
    return json.loads(json.dumps(made, sort_keys=True))


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "resolve": _resolve,
    "read": _read,
    "help": lambda release, declared: repr(built_options(release.specs, declared)),
    "macros": _macros,
    "mounts": _mounts,
    "handle": _handle,
    "resource": _resource,
    "named": lambda release, name: less_new(plain(release.specs.get_named_resources(name))),
    "status": _status,
    "docker": _docker,
    "kubernetes": _kubernetes,
    "component": _component,
}
