"""Who runs this."""

from __future__ import annotations

import os
import pwd


def user_name() -> str:
    """Return the login name of this process's user, or its number where there is no name."""
    # As `getpass.getuser` does, which brings the terminal's modes along; that is on the way to the first paint.
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if name := os.environ.get(variable):
            return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
