"""A shell in a replica: the application leaves the terminal to it, and comes back at its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..terminal.external import run_outside

if TYPE_CHECKING:
    from ..dashboard import Dashboard


async def open_shell(dashboard: Dashboard, handle: str, role: str, replica: int) -> None:
    """Ask the backend how a shell is opened in a replica, and leave the terminal to it until it ends."""
    dashboard.status.say(f"Opening a shell in {role}/{replica}")
    try:
        command = await asyncio.to_thread(dashboard.runner.job(handle).shell_command, role, replica)
    except Exception as error:
        dashboard.status.say(f"no shell: {error}", failed=True)
        return
    _, failure = run_outside(dashboard, command, "a shell", f"{role}/{replica}: type exit to return to torchx-tui")
    if failure:
        dashboard.status.say(failure, failed=True)
    else:
        dashboard.status.clear()
