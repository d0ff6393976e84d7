"""Ask on a terminal for trust in a folder of another user."""

from __future__ import annotations

import sys

from ..base.trust import UntrustedError, trust_folder
from ..logs.text.sanitize import plain


def ask_to_trust(error: UntrustedError) -> bool:
    """Ask for trust in the folder of a refused file, and store a yes. Return False without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    warning = f"{error.reason}. Its code runs with your permissions."
    question = f"{warning} Trust everything in {error.folder} from now on? [y/N] "
    print(plain(question), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        return False
    trust_folder(error.folder)
    return True
