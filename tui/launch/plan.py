"""A snapshot of a form, to be built and launched in a thread."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...specs.run_options import quote_if_needed

if TYPE_CHECKING:
    from ...backends.history.launch_record import LaunchOrigin
    from ...backends.shared.progress import Progress
    from ...specs.roles import AppDef

# Characters for which a value of a sweep is shown in quotes.
_TO_QUOTE = " ,;'\""


@dataclass(frozen=True)
class LaunchPlan:
    """One launch.

    Attributes:
        component: the component's name, empty where `base` is launched.
        arguments: its arguments as text, by parameter; those at their defaults are left out.
        overrides: what is changed in roles, as text, by role and field.
        scheduler: the scheduler's name.
        cfg: run options; those at their defaults are left out.
        workspace: what to ship with the first role.
        usual_workspace: what is shipped if none is named.
        base: the AppDef of a job that no known component made.
        config: values from config, see `LaunchOrigin`.
        swept: its values in a sweep, as text, by name; empty without a sweep.
        ignores_config: whether `.torchxconfig` is ignored.
        profile: the profile in force; empty for none.
    """

    component: str
    arguments: Mapping[str, Any]
    overrides: Mapping[str, Mapping[str, str]]
    scheduler: str
    cfg: Mapping[str, Any]
    workspace: str = ""
    usual_workspace: str = ""
    base: AppDef | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    swept: Mapping[str, str] = field(default_factory=dict)
    ignores_config: bool = False
    profile: str = ""

    @property
    def name(self) -> str:
        """The component or the job."""
        return self.component or (self.base.name if self.base else "")

    @property
    def label(self) -> str:
        """Its values in a sweep, such as ``lr=0.1 batch=32``."""
        return " ".join(f"{name}={quote_if_needed(text, _TO_QUOTE)}" for name, text in self.swept.items())

    def made_app(self, progress: Progress | None = None) -> AppDef:
        """Build the AppDef without changes of roles.

        Args:
            progress: gets reports when it takes long, and can cancel.

        Raises:
            LaunchCancelledError: `progress` was cancelled.
            TorchXTuiError: an argument is wrong, or the component fails.
        """
        from ...components.build import build_app

        if self.base is not None:
            return self.base
        if progress is None:
            return build_app(self.component, self.arguments)
        return build_app(self.component, self.arguments, progress.check, progress.report)

    def interpreter(self) -> str:
        """Return the Python that runs the component, and why; empty for this program's own.

        Raises:
            TorchXTuiError: there is no such component.
        """
        from ...components.build import interpreter_of
        from ...components.finder import find

        chosen = None if self.base is not None else interpreter_of(find(self.component))
        return "" if chosen is None or chosen.path == sys.executable else str(chosen)

    def changed(self, app: AppDef) -> AppDef:
        """Apply the changes of roles to an AppDef.

        Raises:
            RoleOverrideError: a change is invalid.
        """
        from ...components.role_overrides import override_roles

        return override_roles(app, self.overrides)

    def app(self, progress: Progress | None = None) -> AppDef:
        """Build the AppDef that is launched; raises as `made_app` and `changed`."""
        return self.changed(self.made_app(progress))

    def origin(self, relaunch_of: str = "", group: str = "") -> LaunchOrigin:
        """Return the entry for the journal."""
        from ...backends.history.launch_record import LaunchOrigin

        return LaunchOrigin(
            self.component,
            self.arguments,
            self.overrides,
            relaunch_of,
            group,
            self.config,
            self.profile,
            swept=self.swept,
        )
