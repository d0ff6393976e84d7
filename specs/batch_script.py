"""A user's own batch script, stored in the metadata of a role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..base.validation import is_dict_of, is_list_of, is_text
from .roles import Role

KEY = "sbatch"
"""The key in a role's metadata."""
ROLE = "batch"
"""The name of a batch script's role."""


@dataclass(frozen=True)
class BatchScript:
    """A script that a scheduler runs unchanged.

    Args:
        text: the script.
        options: options of ``sbatch`` that override the script's, each as ``--name=value`` or ``--name``.
        args: the script's arguments.
        settings: the values of all options, of the script and added, by long name.
        env: environment variables added to those of the submitter.
    """

    text: str
    options: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def role(self) -> Role:
        """Return the role that stores it."""
        fields = {
            "script": self.text, "options": [*self.options], "args": [*self.args], "settings": {**self.settings},
            "variables": [*self.env],
        }  # fmt: skip
        # In the role's environment, so that secret values are masked.
        return Role(ROLE, "", entrypoint=KEY, env={**self.env}, metadata={KEY: fields})


def script_of(roles: Sequence[Role]) -> BatchScript | None:
    """Return the batch script of an app; None for another app, or if it is malformed."""
    for role in roles:
        fields = role.metadata.get(KEY)
        if isinstance(fields, dict) and is_text(fields.get("script")):
            lists = [fields.get(name, []) for name in ("options", "args", "variables")]
            settings = fields.get("settings", {})
            if all(map(is_list_of(is_text), lists)) and is_dict_of(is_text)(settings):
                # The role's environment also has variables of the launch.
                env = {name: role.env[name] for name in lists[2] if name in role.env}
                return BatchScript(fields["script"], tuple(lists[0]), tuple(lists[1]), settings, env)
    return None
