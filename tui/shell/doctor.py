"""The command doctor: what is set up here, what is wrong, and for each fault what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...backends.responses import Finding
from ...specs import ConfigError
from ...specs.errors import described
from ..make_runner import make_runner
from .output import plain_lines, put, put_json

if TYPE_CHECKING:
    import argparse

    from ...backends.runner import Runner
    from ..config import Settings

# Seconds that one backend has to answer.
_PATIENCE = 10.0
_COLORS = {"ok": "32", "warning": "33", "error": "31"}


@dataclass(frozen=True)
class Told:
    """What was found out about one thing.

    Attributes:
        subject: what it is about, such as ``config``, or a scheduler's name.
        finding: the finding.
    """

    subject: str
    finding: Finding


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def _doctor(arguments: Any, settings: Settings) -> int:
    told: list[Told] = []
    subject = ""
    for one in _everything(arguments, settings):
        told.append(one)
        if not arguments.json:
            if one.subject != subject:
                put(f"{one.subject}")
            _put_finding(one.finding)
            sys.stdout.flush()
        subject = one.subject
    if arguments.json:
        put_json(
            [
                {"subject": one.subject, "level": one.finding.level, "what": one.finding.what, "hint": one.finding.hint}
                for one in told
            ]
        )
    return 1 if any(one.finding.level == "error" for one in told) else 0


def _put_finding(finding: Finding) -> None:
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


def _everything(arguments: Any, settings: Settings) -> Iterator[Told]:
    from ...backends.logout import logout_findings
    from .doctor_config import config_findings, launch_config_findings
    from .doctor_machine import folder_findings, program_findings, terminal_findings

    yield from _of("program", program_findings())
    yield from _of("config.toml", config_findings(arguments.config))
    runner = make_runner(settings)
    yield from _of("profiles and .torchxconfig", launch_config_findings(settings, runner))
    yield from _of("terminal", terminal_findings())
    yield from _of("folders", folder_findings())
    at_logout = logout_findings()
    yield from _of("logout", at_logout or [Finding("ok", "jobs on this machine go on after you log out")])
    for name, findings in _backend_findings(runner):
        yield from _of(name, [one for one in findings if one not in at_logout])


def _of(subject: str, findings: Iterable[Finding]) -> Iterator[Told]:
    return (Told(subject, finding) for finding in findings)


def _backend_findings(runner: Runner) -> Iterator[tuple[str, list[Finding]]]:
    """Ask every backend; one that hangs is left behind."""
    from ..limited_call import LimitedCaller, NoAnswerError

    caller = LimitedCaller("doctor")
    watched = runner.watched_schedulers()
    for name in runner.scheduler_names():
        if name not in watched:
            yield name, [Finding("ok", "not set up here")]
            continue
        try:
            yield name, caller.call(lambda name=name: runner.check(name), _PATIENCE) or [Finding("ok", "there")]
        except NoAnswerError as error:
            yield name, [Finding("error", str(error), "see whether what it asks, and the way to it, answers at all")]
        except Exception as error:  # whatever the scheduler of another package raises
            hint = "" if isinstance(error, ConfigError) else "`torchx-tui --debug doctor` writes more to the log file"
            yield name, [Finding("error", described(error), hint)]


def shown(path: Path) -> str:
    """Return a path as a person writes it, the home folder as ``~``."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


COMMANDS = {"doctor": (_add_doctor, _doctor)}
