"""A shell in a replica: the application leaves the terminal to it, and comes back at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message
from textual.worker import get_current_worker

from ..messages import ShellFound, Told
from ..terminal.external import run_outside

if TYPE_CHECKING:
    from ..dashboard import Dashboard


class ReplicaShell:
    """Opens a shell.

    Args:
        app: the app that leaves the terminal.
        handle: the job's handle.
        role: the role's name.
        replica: the replica's number in its role.
    """

    def __init__(self, app: Dashboard, handle: str, role: str, replica: int) -> None:
        self._app = app
        self._handle = handle
        self._role = role
        self._replica = replica

    def open(self) -> None:
        """Ask the backend, off the event loop, how it is opened; it opens once that is known."""
        self._app.status.say(f"Opening a shell in {self._role}/{self._replica}")
        self._app.run_worker(self._find, thread=True, group="shell", exclusive=True, exit_on_error=False)

    def _find(self) -> None:
        found: Message
        try:
            command = self._app.runner.job(self._handle).shell_command(self._role, self._replica)
            found = ShellFound(command, f"{self._role}/{self._replica}")
        except Exception as error:
            found = Told(f"no shell: {error}", failed=True)
        # Asked for once more meanwhile, the later answer opens it.
        if not get_current_worker().is_cancelled:
            self._app.post_from_thread(found)


def run_shell(app: Dashboard, message: ShellFound) -> None:
    """Leave the terminal to a shell until it ends."""
    _, failure = run_outside(app, message.command, "a shell", f"{message.where}: exit goes back to torchx-tui")
    if failure:
        app.status.say(failure, failed=True)
    else:
        app.status.clear()
