"""The errors of jobs, components and schedulers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..base.errors import TorchXTuiError, join_names

# The job model ------------------------------------------------------------------------------------------------------


class AppDefError(TorchXTuiError, ValueError):
    """An AppDef that cannot be launched, written or read: no role, no entrypoint, a slash in its name."""


class UnknownRoleError(TorchXTuiError, KeyError):
    """The AppDef has no role of the name."""


class UnknownResourceError(TorchXTuiError, KeyError):
    """No named resource has the name."""


class MountError(TorchXTuiError, ValueError, KeyError):
    """The text of a mount is malformed. TorchX raises ValueError or KeyError, by the fault: this is both."""


class InvalidRunConfigException(TorchXTuiError, ValueError):
    """A run option is unknown, missing or of another type than declared.

    Args:
        invalid_reason: What is wrong, without a full stop.
        cfg_key: The option at fault.
        cfg: The given options.
    """

    def __init__(self, invalid_reason: str, cfg_key: str, cfg: Mapping[str, Any]) -> None:
        super().__init__(f"{invalid_reason}. Given: {dict(cfg) if cfg else '<EMPTY>'}")
        self.invalid_reason = invalid_reason
        self.cfg_key = cfg_key


class MalformedAppHandleException(TorchXTuiError, ValueError):
    """A text is not an app handle."""

    def __init__(self, app_handle: str) -> None:
        super().__init__(f"{app_handle} is not of the form: <scheduler_backend>://<session_name>/<app_id>")
        self.app_handle = app_handle


# Where jobs come from -----------------------------------------------------------------------------------------------


class ComponentNotFoundException(TorchXTuiError):
    """No component has the name."""


class ComponentValidationException(TorchXTuiError):
    """A component breaks the rules of `validate`, so that no form can be made from it."""


class ComponentLoadError(TorchXTuiError):
    """A component could not be read or run: a syntax error, an exception, `sys.exit`.

    Args:
        path: The file, or the module's name where there is no file.
        line: The line at fault, counted from 1, or None where it is unknown.
        reason: What happened there.
    """

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        super().__init__(f"{path}{f':{line}' if line else ''}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


class ArgumentError(TorchXTuiError, ValueError):
    """The text of a component's argument is not a value of its type.

    Args:
        parameter: The parameter's name; empty if the error is not about one parameter.
        reason: The error and the valid values.
    """

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}" if parameter else reason)
        self.parameter = parameter
        self.reason = reason


class RoleOverrideError(TorchXTuiError, ValueError):
    """A change to a role of an AppDef is not possible.

    Args:
        role: The role's name.
        field: The field's name, empty where the fault is the role itself.
        reason: The error and the valid values.
    """

    def __init__(self, role: str, field: str, reason: str) -> None:
        super().__init__(f"{role}.{field}: {reason}" if field else f"{role}: {reason}")
        self.role = role
        self.field = field
        self.reason = reason


# Where jobs run -----------------------------------------------------------------------------------------------------


class UnknownSchedulerException(TorchXTuiError, ValueError):
    """No scheduler is registered under the name."""

    def __init__(self, scheduler_backend: str, valid: Iterable[str] = ()) -> None:
        import difflib

        names = list(valid)
        close = difflib.get_close_matches(scheduler_backend, names, n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        choices = join_names(names, "none is available")
        super().__init__(f"There is no scheduler {scheduler_backend}. {hint}Valid schedulers: {choices}")
        self.scheduler_backend = scheduler_backend


class UnknownAppException(TorchXTuiError):
    """The backend does not know the app: never launched there, or removed since."""

    def __init__(self, app_handle: str) -> None:
        super().__init__(f"{app_handle} is not known: it was never launched there, or its backend has removed it")
        self.app_handle = app_handle


class SchedulerError(TorchXTuiError):
    """A backend could not carry out a request.

    Args:
        what: What is wrong.
        hint: What to do about it, a sentence or its part after a colon.
    """

    def __init__(self, what: str, hint: str = "") -> None:
        separator = ". " if hint[:1].isupper() else ": "
        super().__init__(f"{what}{separator}{hint}" if hint else what)
        self.what = what
        self.hint = hint


class BackendUnavailableError(SchedulerError):
    """A backend cannot be reached: not running, not installed, not permitted."""


class NotAllowedError(SchedulerError):
    """The backend does not allow this user to do it; a retry does not help."""


class LaunchCancelledError(SchedulerError):
    """A launch was cancelled by its user before anything ran."""

    def __init__(self) -> None:
        super().__init__("The launch was ended before anything ran")


class UnknownReplicaError(TorchXTuiError, ValueError):
    """An app has no such role or replica, or its scheduler no such output; a retry does not help."""


class LogUnreadableError(SchedulerError, NotImplementedError):
    """A replica's log is stored where it cannot be read back."""


class JobNotFoundError(SchedulerError):
    """A job that an action needs is gone.

    Args:
        app_id: The job's id.
        backend: The scheduler that was asked.
    """

    def __init__(self, app_id: str, backend: str = "") -> None:
        super().__init__(f"There is no job {app_id}{f' on {backend}' if backend else ''}: it may have been removed")
        self.app_id = app_id


class ReadOnlyError(TorchXTuiError):
    """An action would change jobs while the program is read-only."""

    def __init__(self, what: str = "This") -> None:
        super().__init__(f"{what} is not possible with --read-only: start again without it")
