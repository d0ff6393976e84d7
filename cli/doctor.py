"""The command doctor: what is set up here, what is wrong, and for each fault what to do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..doctor.checks import Diagnosed, diagnose
from ..settings.make_runner import make_runner
from .output import plain_lines, put, put_json

if TYPE_CHECKING:
    import argparse

    from ..backends.types import Finding
    from ..settings.config import Settings

_COLORS = {"ok": "32", "warning": "33", "error": "31"}


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")
    parser.add_argument(
        "--notify", action="store_true", help="send a test message as [notify] says, and say what failed"
    )


def _doctor(arguments: Any, settings: Settings) -> int:
    if arguments.notify:
        return _test_notify(settings)
    told: list[Diagnosed] = []
    subject = ""
    for item in diagnose(settings, make_runner(settings), arguments.config):
        told.append(item)
        if not arguments.json:
            if item.subject != subject:
                put(item.subject)
            print_finding(item.finding)
            sys.stdout.flush()
        subject = item.subject
    if arguments.json:
        put_json(
            [
                {
                    "subject": item.subject,
                    "level": item.finding.level,
                    "what": item.finding.what,
                    "hint": item.finding.hint,
                }
                for item in told
            ]
        )
    return 1 if any(item.finding.level == "error" for item in told) else 0


def _test_notify(settings: Settings) -> int:
    """Send a test message; return 1 where it did not leave on some way, or there is none."""
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
    """Print a finding and what to do about it, its level in colour on a terminal."""
    level = f"{finding.level:<7}"
    import os

    if sys.stdout.isatty():
        if not os.environ.get("NO_COLOR"):
            level = f"\x1b[{_COLORS[finding.level]}m{level}\x1b[0m"
        what, hint = plain_lines(finding.what), plain_lines(finding.hint)
    else:
        what, hint = finding.what, finding.hint
    print(f"  {level}  {what}")
    if hint:
        print(f"           {hint}")


COMMANDS = {"doctor": (_add_doctor, _doctor)}
