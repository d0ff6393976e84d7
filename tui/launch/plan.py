"""What a form says, to be built and launched in a thread while the form may go on changing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...backends.history.launch_record import LaunchOrigin
    from ...backends.shared.progress import Progress
    from ...specs.roles import AppDef


@dataclass(frozen=True)
class LaunchPlan:
    """One launch.

    Attributes:
        component: the component's name, empty where `base` is launched.
        arguments: its arguments as text, by parameter; those at their defaults are left out.
        overrides: what is changed in roles, as text, by role and field.
        scheduler: where.
        cfg: run options; those at their defaults are left out.
        workspace: what to ship with the first role.
        base: the AppDef of a job that no component of ours made.
        config: what config gave, see `LaunchOrigin`.
        label: what tells it from the others of a sweep, such as ``lr=0.1 batch=32``; empty for a launch of its own.
        ignores_config: whether `.torchxconfig` is left out.
        profile: the profile in force; empty for none.
    """

    component: str
    arguments: Mapping[str, Any]
    overrides: Mapping[str, Mapping[str, str]]
    scheduler: str
    cfg: Mapping[str, Any]
    workspace: str = ""
    base: AppDef | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    label: str = ""
    ignores_config: bool = False
    profile: str = ""

    @property
    def name(self) -> str:
        """What is launched, in a word."""
        return self.component or (self.base.name if self.base else "")

    def made_app(self, progress: Progress | None = None) -> AppDef:
        """Return the AppDef as its component makes it, without changes.

        Args:
            progress: is told when it takes long, and can end it.

        Raises:
            LaunchCancelledError: `progress` ended it.
            TorchXTuiError: an argument is wrong, or the component fails.
        """
        from ...components.build import build_app

        if self.base is not None:
            return self.base
        if progress is None:
            return build_app(self.component, self.arguments)
        return build_app(self.component, self.arguments, progress.check, progress.report)

    def interpreter(self) -> str:
        """Return the interpreter that runs the component, and why that; empty where it is this program's own.

        Raises:
            TorchXTuiError: there is no such component.
        """
        from ...components.build import interpreter_of
        from ...components.finder import find

        chosen = None if self.base is not None else interpreter_of(find(self.component))
        return "" if chosen is None or chosen.path == sys.executable else str(chosen)

    def changed(self, app: AppDef) -> AppDef:
        """Return an AppDef with the changes in its roles.

        Raises:
            RoleOverrideError: one cannot be made.
        """
        from ...components.role_overrides import override_roles

        return override_roles(app, self.overrides)

    def app(self, progress: Progress | None = None) -> AppDef:
        """Return the AppDef that is launched. Raises as `made_app` and `changed` do."""
        return self.changed(self.made_app(progress))

    def origin(self, relaunch_of: str = "", group: str = "") -> LaunchOrigin:
        """Return what the journal keeps of it."""
        from ...backends.history.launch_record import LaunchOrigin

        return LaunchOrigin(
            self.component, self.arguments, self.overrides, relaunch_of, group, self.config, self.profile
        )
