"""What an image is on this machine: a folder that replicas are started in."""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...base.files import is_folder
from ...specs.errors import AppDefError
from ...specs.roles import Role
from ...specs.run_options import CfgVal


@dataclass
class ReplicaParam:
    """How one replica is started.

    Args:
        args: the program and its arguments.
        env: environment variables that the launch adds; ``PATH`` comes before what PATH was.
        stdout: the file for its output.
        stderr: the file for its errors.
        combined: the file that both are brought together in.
        cwd: the folder that it is started in.
    """

    args: list[str]
    env: dict[str, str]
    stdout: str | None = None
    stderr: str | None = None
    combined: str | None = None
    cwd: str | None = None


class ImageProvider(abc.ABC):
    """Makes images available on this machine."""

    @abc.abstractmethod
    def fetch(self, image: str) -> str:
        """Return the folder that the image was brought to, empty when there is nothing to bring."""

    def fetch_role(self, role: Role) -> str:
        """Return the folder of the role's image; the role may be changed to fit it."""
        return self.fetch(role.image)

    def get_cwd(self, image: str) -> str | None:
        """Return the absolute folder that replicas are started in, None for the current one."""
        return None

    def get_entrypoint(self, img_root: str, role: Role) -> str:
        """Return where the role's program is: inside the image's folder, but for an absolute path."""
        return os.path.join(img_root, role.entrypoint)  # noqa: PTH118 - it leaves `./` as it is

    def get_replica_param(
        self,
        img_root: str,
        role: Role,
        stdout: str | None = None,
        stderr: str | None = None,
        combined: str | None = None,
    ) -> ReplicaParam:
        """Return how a replica of the role is started.

        Args:
            img_root: what `fetch_role` returned; it is called once a role, this once a replica.
            role: the role, its macros substituted.
            stdout: the file for its output.
            stderr: the file for its errors.
            combined: the file that both are brought together in.
        """
        args = [self.get_entrypoint(img_root, role), *role.args]
        return ReplicaParam(args, dict(role.env), stdout, stderr, combined, self.get_cwd(role.image))


class CWDImageProvider(ImageProvider):
    """Runs everything in the current folder and ignores the image's name.

    Args:
        cfg: the run options.
    """

    def __init__(self, cfg: Mapping[str, CfgVal]) -> None:
        self.cfg = cfg

    def fetch(self, image: str) -> str:
        """Return the current folder."""
        return str(Path.cwd())

    def get_cwd(self, image: str) -> str | None:
        """Return the current folder."""
        return str(Path.cwd())

    def get_entrypoint(self, img_root: str, role: Role) -> str:
        """Return the role's program as it is named, which PATH may have."""
        return role.entrypoint


class LocalDirectoryImageProvider(ImageProvider):
    """Takes the image's name for a folder on this machine and runs the role there.

    Args:
        cfg: the run options.
    """

    def __init__(self, cfg: Mapping[str, CfgVal]) -> None:
        self.cfg = cfg

    def fetch(self, image: str) -> str:
        """Return the image's folder.

        Raises:
            AppDefError: it is no folder.
        """
        if not is_folder(image):
            raise AppDefError(f"Invalid image name: {image}, does not exist or is not a directory")
        return image

    def get_cwd(self, image: str) -> str | None:
        """Return the image's folder as an absolute path."""
        return str(Path(image).absolute())

    def get_entrypoint(self, img_root: str, role: Role) -> str:
        """Return the role's program as it is named; the folder is the one that it is started in."""
        return role.entrypoint
