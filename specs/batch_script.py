"""A user's own batch script in an AppDef: what of it travels in its role's metadata, from components to schedulers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..base.validation import is_dict_of, is_list_of, is_text
from .roles import Role

KEY = "sbatch"
"""The name in a role's metadata."""
ROLE = "batch"
"""The role that a batch script is."""


@dataclass(frozen=True)
class BatchScript:
    """A script that a scheduler runs as it is.

    Args:
        text: the script.
        options: options of ``sbatch`` that win over those in the script, each as ``--name=value`` or ``--name``.
        args: the script's arguments.
        settings: every option that is in force, of the script or beside it, as its value by its long name.
        env: variables of its environment, beside those that its submitter has.
    """

    text: str
    options: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def role(self) -> Role:
        """Return the role that stands for it."""
        told = {
            "script": self.text, "options": [*self.options], "args": [*self.args], "settings": {**self.settings},
            "variables": [*self.env],
        }  # fmt: skip
        # As every role's, so that secret values are masked.
        return Role(ROLE, "", entrypoint=KEY, env={**self.env}, metadata={KEY: told})


def script_of(roles: Sequence[Role]) -> BatchScript | None:
    """Return the batch script of an app that is one; None of another app, and where it is malformed."""
    for role in roles:
        told = role.metadata.get(KEY)
        if isinstance(told, dict) and is_text(told.get("script")):
            lists = [told.get(name, []) for name in ("options", "args", "variables")]
            settings = told.get("settings", {})
            if all(map(is_list_of(is_text), lists)) and is_dict_of(is_text)(settings):
                # Its role's environment has variables of the launch besides.
                env = {name: role.env[name] for name in lists[2] if name in role.env}
                return BatchScript(told["script"], tuple(lists[0]), tuple(lists[1]), settings, env)
    return None
