"""Whether the system ends a user's processes when they log out, as systemd can be told to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ...base.files import path_exists, read_file, user_name
from ..types import Finding

_FOLDERS = ("usr/lib/systemd", "run/systemd", "etc/systemd")
_SETTING = re.compile(r"^\s*(KillUserProcesses|KillExcludeUsers)\s*=\s*(.*?)\s*$", re.MULTILINE)
_HINT = "`loginctl enable-linger`, then start it with `systemd-run --user --scope torchx-tui`"


def logout_findings(root: Path = Path("/"), user: str | None = None) -> list[Finding]:
    """Return a warning where jobs would end with the login session of this process.

    Args:
        root: the file system that is looked at.
        user: whose processes they are; this process's user if None.
    """
    name = user or user_name()
    try:
        group = (root / "proc/self/cgroup").read_text()
    except OSError:
        return []
    if "/session-" in group and _kills(root, name):
        return [Finding("warning", "logging out ends jobs on this machine (KillUserProcesses)", _HINT)]
    lingers = path_exists(root / "var/lib/systemd/linger" / name)
    if "/user@" in group and not lingers:
        return [Finding("warning", "the end of your last login ends jobs on this machine", "`loginctl enable-linger`")]
    return []


def _kills(root: Path, user: str) -> bool:
    """Whether logind ends what a user leaves behind; its documented defaults: no, and root never."""
    settings = {"KillUserProcesses": "no", "KillExcludeUsers": "root"}
    for path in _files(root):
        try:
            settings.update(_SETTING.findall(read_file(path).decode("utf-8", "replace")))
        except OSError:
            continue
    ends = settings["KillUserProcesses"].lower() in ("yes", "true", "on", "1", "y", "t")
    return ends and user not in settings["KillExcludeUsers"].split()


def _files(root: Path) -> Iterable[Path]:
    for folder in _FOLDERS:
        yield root / folder / "logind.conf"
    drop_ins = {path.name: path for folder in _FOLDERS for path in (root / folder / "logind.conf.d").glob("*.conf")}
    for name in sorted(drop_ins):
        yield drop_ins[name]
