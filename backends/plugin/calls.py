"""Call a plugin's code in its worker, and convert what it raises to errors of this package."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CalledProcessError
from typing import TypeVar

from ...base.errors import TorchXTuiError, describe_error
from ...specs.errors import InvalidRunConfigException, SchedulerError

T = TypeVar("T")


class PluginError(SchedulerError):
    """A plugin raised something.

    Args:
        name: The scheduler's name.
        what: What it was asked to do.
        reason: What it raised.
        may_have_printed_more: Whether what it printed last is the better part of the reason.
    """

    def __init__(self, name: str, what: str, reason: str, *, may_have_printed_more: bool = True) -> None:
        super().__init__(f"{name} could not {what}: {reason}")
        self.may_have_printed_more = may_have_printed_more


def ask(name: str, what: str, function: Callable[[], T]) -> T:
    """Call a function of a plugin.

    Args:
        name: The scheduler's name.
        what: What is done, for messages, such as "list jobs".
        function: The call.

    Raises:
        TorchXTuiError: It raised something; the message names the plugin.
    """
    try:
        return function()
    except BaseException as error:  # SystemExit too
        raise _translate(name, what, error) from error


def _translate(name: str, what: str, error: BaseException) -> TorchXTuiError:
    if isinstance(error, TorchXTuiError):
        return error
    if type(error).__name__ == "InvalidRunConfigException":
        return InvalidRunConfigException(
            str(error).partition(". Given: ")[0],
            str(getattr(error, "cfg_key", "")),
            getattr(error, "cfg", {}) or {},
        )
    if not isinstance(error, CalledProcessError):
        return PluginError(name, what, describe_error(error))
    told = error.stderr or error.output or b""
    text = (told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)).strip()
    command = [error.cmd] if isinstance(error.cmd, (str, bytes)) else list(error.cmd)
    ended = f"{command[0]} ended with {error.returncode}"
    if not text:
        return PluginError(name, what, ended)
    return PluginError(name, what, f"{ended}: {text.splitlines()[-1].strip()}", may_have_printed_more=False)
