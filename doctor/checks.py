"""All checks of doctor: program, config, terminal, folders, logout, plugins, backends."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..backends.types import Finding
from ..base.errors import ConfigError, describe_error

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..settings.config import Settings

logger = logging.getLogger(__name__)

# A plugin's worker may take 20 s to start and 8 s to load the plugin, and reports that itself.
PATIENCE_SECONDS = 30.0
_MORE = "torchx-tui.log in the state folder has the traceback"


@dataclass(frozen=True)
class Diagnosed:
    """A finding about a subject, such as ``config.toml`` or a scheduler."""

    subject: str
    finding: Finding


def diagnose(settings: Settings, runner: Runner, config_file: str | None) -> Iterator[Diagnosed]:
    """Run all checks and yield their findings, grouped by subject.

    Args:
        settings: the settings in force.
        runner: gives access to the backends.
        config_file: the config file of the command line, if there is one.
    """
    from ..backends.shared.logout import logout_findings
    from .config_checks import config_findings, launch_config_findings, notify_findings
    from .machine_checks import folder_findings, program_findings, terminal_findings
    from .plugin_checks import interpreter_findings, plugin_findings

    at_logout = logout_findings()
    for subject, findings in (
        ("program", program_findings()),
        ("config.toml", config_findings(config_file)),
        ("profiles and .torchxconfig", launch_config_findings(settings, runner)),
        ("notify", notify_findings(settings.notify)),
        ("terminal", terminal_findings()),
        ("folders", folder_findings()),
        ("logout", at_logout or [Finding("ok", "jobs on this machine continue after you log out")]),
        ("components", interpreter_findings()),
        ("plugins", plugin_findings(runner)),
    ):
        yield from _of(subject, findings)
    for name, findings in _backend_findings(runner):
        yield from _of(name, [finding for finding in findings if finding not in at_logout])


def _of(subject: str, findings: Iterable[Finding]) -> Iterator[Diagnosed]:
    """Yield the findings about a subject; a check that raises is itself a finding."""
    try:
        for finding in findings:
            yield Diagnosed(subject, finding)
    except Exception as error:
        logger.exception("looking at %s failed", subject)
        yield Diagnosed(subject, Finding("error", f"this check failed: {describe_error(error)}", _MORE))


def _backend_findings(runner: Runner) -> Iterator[tuple[str, list[Finding]]]:
    """Check every backend, each with a timeout."""
    from ..base.timeouts import LimitedCaller, NoAnswerError

    watched = runner.watched_schedulers()
    for name in runner.scheduler_names():
        if name not in watched:
            yield name, [Finding("ok", "not set up here")]
            continue
        try:
            # One caller each: it refuses further calls after three that hang.
            caller = LimitedCaller(f"doctor-{name}")
            findings = caller.call(lambda name=name: runner.check(name), PATIENCE_SECONDS)
            yield name, findings or [Finding("ok", "available")]
        except NoAnswerError as error:
            yield name, [Finding("error", str(error), "check that its server is running and can be reached from here")]
        except Exception as error:  # whatever the scheduler of another package raises
            hint = "" if isinstance(error, ConfigError) else _MORE
            logger.exception("checking %s failed", name)
            yield name, [Finding("error", describe_error(error), hint)]
