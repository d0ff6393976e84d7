"""Who runs this."""

from __future__ import annotations

import getpass
import os


def user_name() -> str:
    """Return the login name of this process's user, or its number where there is no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
