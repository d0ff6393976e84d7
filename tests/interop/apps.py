"""The AppDefs of apps.yaml, made with either package's specs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from interop.plain_data import built

_FILE = yaml.full_load(Path(__file__).with_name("apps.yaml").read_text(encoding="utf-8"))
DOCKER: dict[str, Any] = _FILE["both"] | _FILE["docker"]
KUBERNETES: dict[str, Any] = _FILE["both"] | _FILE["kubernetes"]
_ROLE = {
    "name": "trainer",
    "image": "busybox:local",
    "entrypoint": "sh",
    "args": ["-c", "echo hello"],
    "resource": {"cpu": 1, "gpu": 0},
}


def whole(app: dict[str, Any]) -> dict[str, Any]:
    """Return an app of the file with the defaults filled in."""
    roles = [{name: value for name, value in {**_ROLE, **role}.items() if value is not None} for role in app["roles"]]
    return {"name": "job", **app, "roles": roles}


def made(specs: Any, app: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the AppDef of a package, and the options that it is launched with."""
    filled = whole({"roles": [{}], **app})
    cfg = filled.pop("cfg", {})
    return built(specs, filled), dict(cfg)


def pinned(name: str) -> str:
    """Return an app's id that is the same for both: what takes the place of `make_unique`."""
    return f"{name}-wq4xkz7dn2bcd"
