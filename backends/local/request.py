"""The request of local_cwd: which processes would be started, and its text for people."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...specs import AppDef, Role, macros, make_app_handle
from ..kept_app_def import RANK0_HOST
from ..progress import while_wanted
from ..readable_yaml import readable_yaml
from ..secrets import mask_data
from . import environment
from .gpus import VISIBLE_DEVICES, count_gpus, visible_devices
from .image_provider import ImageProvider, ReplicaParam
from .options import LocalOpts


@dataclass
class PopenRequest:
    """What is started for one app.

    Args:
        app_id: the app's id.
        log_dir: the app's folder.
        role_params: how each replica is started, by role.
        role_log_dirs: the folder of each replica, by role.
        private: whether the folder is our own, closed to other users.
    """

    app_id: str
    log_dir: str
    role_params: dict[str, list[ReplicaParam]] = field(default_factory=dict)
    role_log_dirs: dict[str, list[str]] = field(default_factory=dict)
    private: bool = field(default=True, kw_only=True)

    def replicas(self) -> Iterable[tuple[str, int, ReplicaParam]]:
        """Yield role, number and start of every replica, in order."""
        for role, params in self.role_params.items():
            for number, param in enumerate(params):
                yield role, number, param

    def __str__(self) -> str:
        return readable_yaml(_as_data(self))


def make_request(
    app: AppDef, app_id: str, folder: Path, session: str, opts: LocalOpts, images: ImageProvider, extra_paths: list[str]
) -> PopenRequest:
    """Return the request for an app.

    Args:
        app: the app.
        app_id: the id that it gets.
        folder: the folder that it gets.
        session: the session part of its handle.
        opts: the run options.
        images: makes the roles' images available.
        extra_paths: folders that are searched for programs first.

    Raises:
        AppDefError: an image cannot be had.
    """
    request = PopenRequest(app_id, str(folder), private=not opts.log_dir)
    devices = visible_devices(app, count_gpus()) if opts.auto_set_cuda_visible_devices else {}
    for role in app.roles:
        img_root = images.fetch_role(role)
        params, folders = [], []
        for number in while_wanted(range(role.num_replicas)):
            here = folder / role.name / str(number)
            values = macros.Values(img_root, app_id, str(number), rank0_env=RANK0_HOST)
            param = images.get_replica_param(
                img_root, values.apply(role), *(str(here / f"{name}.log") for name in ("stdout", "stderr", "combined"))
            )
            _complete(param, role, folder, here, opts, [values.substitute(path) for path in extra_paths])
            param.env.setdefault(environment.JOB_ID, make_app_handle("local_cwd", session, app_id))
            if role.name in devices:
                param.env[VISIBLE_DEVICES] = devices[role.name][number]
            params.append(param)
            folders.append(str(here))
        request.role_params[role.name] = params
        request.role_log_dirs[role.name] = folders
    return request


def _complete(
    param: ReplicaParam, role: Role, folder: Path, here: Path, opts: LocalOpts, extra_paths: list[str]
) -> None:
    """Add what TorchX sets for every local replica."""
    param.env["PATH"] = environment.role_path(param.env, extra_paths, param.cwd, opts.prepend_cwd)
    param.env[RANK0_HOST] = "localhost"
    param.env.setdefault(environment.ERROR_FILE, str(here / "error.json"))
    param.env.setdefault(environment.ELASTIC_LOG_DIR, str(folder / "torchelastic" / role.name))


def _as_data(request: PopenRequest) -> dict[str, Any]:
    """Return a request as plain data, secret values masked."""
    roles = {
        role: [
            {
                "replica": number,
                "command": param.args,
                "cwd": param.cwd or os.curdir,
                "env": dict(sorted(param.env.items())),
            }
            for number, param in enumerate(params)
        ]
        for role, params in request.role_params.items()
    }
    return mask_data({"app_id": request.app_id, "log_dir": request.log_dir, "roles": roles})
