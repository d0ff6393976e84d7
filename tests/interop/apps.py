"""The AppDefs of apps.yaml, made with either package's specs."""

from pathlib import Path
from typing import Any

import yaml
from interop.plain_data import built

_FILE = yaml.full_load(Path(__file__).with_name("apps.yaml").read_text(encoding="utf-8"))
DOCKER = _FILE["both"] | _FILE["docker"]
KUBERNETES = _FILE["both"] | _FILE["kubernetes"]
_ROLE = {
    "name": "trainer",
    "image": "busybox:local",
    "entrypoint": "sh",
    "args": ["-c", "echo hello"],
    "resource": {"cpu": 1, "gpu": 0},
}


def made(specs, app):
    """Return the AppDef of a package, and the options that it is launched with."""
    filled: dict[str, Any] = {"name": "job", "roles": [{}], **app}
    cfg = filled.pop("cfg", {})
    roles = [{**_ROLE, **role} for role in filled["roles"]]
    filled["roles"] = [{name: value for name, value in role.items() if value is not None} for role in roles]
    return built(specs, filled), dict(cfg)


def pinned(name):
    """Return an app's id that is the same for both: what takes the place of `make_unique`."""
    return f"{name}-wq4xkz7dn2bcd"
