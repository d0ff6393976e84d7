"""Placeholders that a scheduler replaces when it starts a role."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .roles import Role


class macros:  # noqa: N801 - TorchX's name
    """The placeholders: put them into a role's entrypoint, args, values of env, or metadata.

    `img_root` is the folder that the image was unpacked to; `app_id` the app's id; `replica_id` the replica's number,
    kept when it is started again; `rank0_env` the *name* of the environment variable that holds the first replica's
    host, to be read by a shell or the program. `$$` stands for one `$`; anything else that looks like a placeholder
    stays as it is.
    """

    img_root = "${img_root}"
    base_img_root = "${base_img_root}"
    app_id = "${app_id}"
    replica_id = "${replica_id}"
    rank0_env = "${rank0_env}"

    @dataclass
    class Values:
        """The values of the placeholders in one replica.

        Args:
            img_root: The image's folder, empty in a container.
            app_id: The app's id.
            replica_id: The replica's number, from "0".
            base_img_root: Not used any more.
            rank0_env: The name of the variable with the first replica's host.
        """

        img_root: str
        app_id: str
        replica_id: str
        base_img_root: str = "DEPRECATED"
        rank0_env: str = ""

        def apply(self, role: Role) -> Role:
            """Return a copy of a role with its placeholders replaced and its overrides resolved."""
            duplicate = copy.deepcopy(role)
            resolved = {name: getattr(role, name) for name in role.overrides}
            duplicate.overrides = {}
            for name, value in resolved.items():
                setattr(duplicate, name, copy.deepcopy(value))
            duplicate.entrypoint = self.substitute(duplicate.entrypoint)
            duplicate.args = [self.substitute(arg) for arg in duplicate.args]
            duplicate.env = {name: self.substitute(value) for name, value in duplicate.env.items()}
            duplicate.metadata = self._nested(duplicate.metadata)
            return duplicate

        def substitute(self, arg: str) -> str:
            """Return a text with its placeholders replaced."""
            return Template(arg).safe_substitute(asdict(self))

        def to_dict(self) -> dict[str, str]:
            """Return the values by placeholder."""
            return asdict(self)

        def _nested(self, value: Any) -> Any:
            if isinstance(value, str):
                return self.substitute(value)
            if isinstance(value, dict):
                return {key: self._nested(inner) for key, inner in value.items()}
            if type(value) in (list, tuple):
                return type(value)(self._nested(inner) for inner in value)
            return value
