"""The command doctor: what is set up, what is wrong, and what to do about it."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from ..doctor.checks import diagnose
from ..settings.make_runner import make_runner
from .output import colored, plain_lines, put, put_json

if TYPE_CHECKING:
    from ..backends.types import Finding
    from ..settings.config import Settings

_COLORS = {"ok": "32", "warning": "33", "error": "31"}


def doctor(arguments: Any, settings: Settings) -> int:
    if arguments.notify:
        return _test_notify(settings)
    found = []
    subject = ""
    for item in diagnose(settings, make_runner(settings), arguments.config):
        found.append(item)
        if not arguments.json:
            if item.subject != subject:
                put(item.subject)
            print_finding(item.finding)
            sys.stdout.flush()
        subject = item.subject
    if arguments.json:
        put_json([{"subject": item.subject, **dataclasses.asdict(item.finding)} for item in found])
    return 1 if any(item.finding.level == "error" for item in found) else 0


def _test_notify(settings: Settings) -> int:
    """Send a test message on each channel; return 1 if one fails or none is configured."""
    from ..backends.types import Finding
    from ..notify.channels import deliver
    from ..notify.message import Message

    message = Message("test", "local_cwd://torchx/test", "test", "SENT", "torchx-tui doctor --notify sent this")
    results = deliver(message, settings.notify, tries=1)
    for name, error in results.items():
        print_finding(Finding("error" if error else "ok", f"{name}: {error}" if error else name))
    if not results:
        print_finding(Finding("warning", "nothing is set up", "set notify.command, webhook or mail in config.toml"))
    return 0 if results and not any(results.values()) else 1


def print_finding(finding: Finding) -> None:
    clean = plain_lines if sys.stdout.isatty() else str
    level = colored(f"{finding.level:<7}", _COLORS[finding.level], sys.stdout)
    print(f"  {level}  {clean(finding.what)}")
    if finding.hint:
        print(f"           {clean(finding.hint)}")
