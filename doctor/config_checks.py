"""Checks of config.toml, its profiles, and .torchxconfig."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends.torchxconfig import find_configs, nearest, read_config
from ..backends.types import Finding
from ..base.errors import ConfigError, TorchXTuiError
from ..base.files import NoHomeError, is_file
from ..base.timeouts import LimitedCaller
from ..settings.config import config_path, load_settings_lenient
from ..settings.launch_defaults import LaunchDefaults, resolve
from ..specs.handles import split_context
from . import Findings

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..settings.config import NotifySettings, Profile, Settings
    from ..specs.run_options import runopts

    Options = dict[str, runopts]

logger = logging.getLogger(__name__)

_OPTIONS_TIMEOUT_S = 10.0
# Prefixes of the sections of .torchxconfig that are not for a scheduler; only TorchX reads those of trackers.
_PREFIXES = ("component", "cli", "torchx", "tracker")


def config_findings(named: str | None) -> Findings:
    """Check config.toml.

    Args:
        named: the file of the command line, if there is one; it was read without a mistake.
    """
    try:
        path = Path(named) if named else config_path()
    except NoHomeError as error:
        yield Finding("warning", str(error), _EXAMPLE)
        return
    _, problem = (None, "") if named else load_settings_lenient()
    if problem:
        yield Finding("error", problem, f"correct it; {_EXAMPLE}")
    elif is_file(path):
        yield Finding("ok", f"{path} is used")
    else:
        yield Finding("ok", f"{path} does not exist: the defaults are used", _EXAMPLE)


_EXAMPLE = "config.example.toml of the project has every setting"


def launch_config_findings(settings: Settings, runner: Runner) -> Findings:
    """Check `.torchxconfig` and every profile; each mistake is reported once."""
    yield from dict.fromkeys(_launch_findings(settings, _run_options(runner)))


def _launch_findings(settings: Settings, options: Options) -> Findings:
    try:
        paths = find_configs()
    except ConfigError as error:
        yield Finding("error", str(error))
        paths = []
    if not paths:
        yield Finding("ok", "no .torchxconfig here or in the home folder", "`torchx-tui configure` writes one")
    for path in paths:
        yield from _file_findings(path, options)
    yield from _findings_of(LaunchDefaults.load(settings, None), options, list(options))
    for name, profile in settings.profiles.items():
        chosen = " (the chosen one)" if name == settings.launch.profile else ""
        yield Finding("ok", f"profile {name}{chosen}{f': {profile.scheduler}' if profile.scheduler else ''}")
        schedulers = [split_context(profile.scheduler)[0]] if profile.scheduler else _fitting(profile, options)
        if not schedulers:
            yield Finding(
                "warning", f"profiles.{name}.runopts: {', '.join(profile.runopts)}: no scheduler has them all"
            )
        yield from _findings_of(LaunchDefaults.load(settings, name), options, schedulers)


def _fitting(profile: Profile, options: Options) -> list[str]:
    """Return the schedulers that have all options of a profile that names no scheduler."""
    return [name for name, known in options.items() if all(known.canonical_key(key) for key in profile.runopts)]


def _run_options(runner: Runner) -> Options:
    options: Options = {}
    for name in runner.scheduler_names():
        registered, _ = split_context(name)
        if registered in options:
            continue
        caller = LimitedCaller(f"options-{registered}")
        try:
            options[registered] = caller.call(
                lambda name=registered: runner.scheduler(name).run_opts(), _OPTIONS_TIMEOUT_S
            )
        except Exception:  # whatever another package raises; its own check tells
            logger.warning("%s does not tell its run options", registered, exc_info=True)
    return options


def _file_findings(path: str, options: Options) -> Findings:
    try:
        sections = read_config(path)
    except ConfigError as error:
        yield Finding("error", str(error), "no setting of this file is used")
        return
    yield Finding("ok", f"{path} is used")
    for section in sections:
        if section not in options and section.partition(":")[0] not in _PREFIXES:
            yield Finding("warning", f"{path}: [{section}] is not a scheduler; {nearest(section, options)}")


def _findings_of(defaults: LaunchDefaults, options: Options, schedulers: Iterable[str]) -> Findings:
    """Yield the mistakes in launch defaults.

    Args:
        defaults: the defaults.
        options: the run options of every scheduler.
        schedulers: the schedulers that the defaults are for.
    """
    from ..components.finder import describe

    given = defaults.scheduler()
    if given and split_context(given.value)[0] not in options:
        yield Finding("error", f"{given.source}: {given.value} is not a scheduler; {nearest(given.value, options)}")
    found = [resolve(defaults)]
    found += [resolve(defaults, name, options[name]) for name in schedulers if name in options]
    for component in defaults.components():
        try:
            found.append(resolve(defaults, component=component, doc=describe(component)))
        except TorchXTuiError as error:
            yield Finding("warning", f"defaults for {component}: {error}")
    for resolved in found:
        yield from (Finding("warning", problem) for problem in resolved.problems)


def notify_findings(settings: NotifySettings) -> Findings:
    """Check the channels of notifications."""
    from ..notify.channels import channels, find_sendmail, used_variables

    names = [*channels(settings), *(["this terminal"] if settings.terminal else [])]
    if not names:
        yield Finding("ok", "notifications are off: [notify] of config.toml sets them up")
        return
    yield Finding("ok", f"{', '.join(settings.events) or 'nothing'}: sent by {', '.join(names)}")
    if settings.command and shutil.which(settings.command[0]) is None:
        yield Finding("error", f"notify.command: the program {settings.command[0]} is not found", "give its full path")
    for name in used_variables(settings):
        if not os.environ.get(name):
            hint = "set it in the environment that jobs are launched from"
            yield Finding("error", f"notify.webhook: the variable {name} is not set", hint)
    if settings.mail and find_sendmail() is None:
        yield Finding("error", "notify.mail: the program sendmail is not found", "install one, such as msmtp-mta")
