"""What a command line and config make of a launch: component, arguments, scheduler, run options, workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..backends.history.launch_record import ARGUMENT_PREFIX, LaunchOrigin
from ..base.errors import ConfigError
from ..base.trust import UntrustedError
from ..settings.launch_defaults import LaunchDefaults, Resolved, resolve
from ..specs.errors import UnknownSchedulerException
from .output import say
from .run_arguments import read_rest
from .trust import ask_to_trust

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..specs.roles import AppDef, AppDryRunInfo
    from ..specs.run_options import runopts

Texts = dict[str, str | list[str]]


@dataclass
class Launch:
    """What a command line and config make of a launch."""

    app: AppDef
    scheduler: str
    cfg: dict[str, Any]
    workspace: str | None
    origin: LaunchOrigin
    parent_run_id: str | None = None

    def dryrun(self, runner: Runner) -> AppDryRunInfo[Any]:
        """Return the request, see `Runner.dryrun`."""
        return runner.dryrun(self.app, self.scheduler, self.cfg, self.workspace, self.parent_run_id)

    def run(self, runner: Runner) -> str:
        """Launch it and return the handle, see `Runner.run`."""
        return runner.run(self.app, self.scheduler, self.cfg, self.workspace, self.parent_run_id, origin=self.origin)


def launch_of(arguments: Any, defaults: LaunchDefaults, runner: Runner) -> Launch | None:
    """Return the launch; None if the component's help was asked for and printed.

    Mistakes in config are printed on stderr, also if something else is wrong.

    Raises:
        ConfigError: config cannot be read, so the job would be launched elsewhere than it says.
    """
    mistakes = [resolve(defaults)]
    try:
        return _launch_of(arguments, defaults, runner, mistakes)
    finally:
        for problem in mistakes[-1].problems:
            say(problem)


def _refuse_faults(resolved: Resolved) -> None:
    """Refuse to launch with less than config says; `launch_of` prints the faults."""
    if resolved.faults:
        way = "use --ignore-config to launch without .torchxconfig"
        way = way if resolved.file_faults else "use --profile NAME to launch with another profile"
        raise ConfigError(f"nothing was launched: correct that, or {way}")


def _launch_of(arguments: Any, defaults: LaunchDefaults, runner: Runner, mistakes: list[Resolved]) -> Launch | None:
    from ..components.build import build_app, interpreter_of
    from ..components.command_line import parse_command_line
    from ..components.finder import describe, find

    if arguments.stdin:
        from .run_stdin import argument_texts, read_stdin

        usual = None if arguments.ignore_config else defaults.scheduler()
        data = read_stdin(arguments, usual.value if usual else runner.scheduler_names()[0])
        component = data["component_name"]
        given = argument_texts(component, data)
    else:
        data = {}
        rest = read_rest(arguments, "" if arguments.ignore_config else defaults.component())
        component = rest.component
        if rest.wants_help:
            from .component_help import put_component_help

            put_component_help(describe(component), defaults)
            return None
        given = parse_command_line(component, rest.words)
    # Among the component's arguments as well, so known only now.
    if arguments.ignore_config:
        defaults = defaults.without_files()
        mistakes.append(resolve(defaults))
    _refuse_faults(mistakes[-1])
    config: dict[str, str] = {}
    doc = describe(component)
    scheduler = _scheduler(arguments, defaults, runner, config, doc.scheduler)
    known = runner.scheduler(scheduler).run_opts()
    resolved = resolve(defaults, scheduler, known, doc.name, doc)
    mistakes.append(resolved)
    cfg = _options(arguments, data, resolved, known, config)
    for key in [key for key in config if doc.scheduler and doc.parameter(key)]:
        # What the script says of itself counts more than what config says of every launch.
        del config[key], cfg[key]
    _refuse_faults(resolved)
    given = _with_defaults(given, resolved, config)
    if arguments.verbose:
        say(f"{component} is run by {interpreter_of(find(component)) or 'torchx-tui itself'}")
    _require_trust(component)
    app = build_app(component, given, report=lambda text: say(f"{component}: {text}"))
    overrides: dict[str, dict[str, str]] = {}
    if arguments.set:
        from ..components.role_overrides import override_roles, read_overrides

        overrides = read_overrides(arguments.set)
        app = override_roles(app, overrides)
    workspace = _workspace(arguments, defaults, runner, scheduler, config)
    origin = LaunchOrigin(component, given, overrides, config=config, profile=defaults.profile)
    return Launch(app, scheduler, cfg, workspace, origin, arguments.parent_run_id)


def _require_trust(component: str) -> None:
    """Ask for trust in a component of another user. Raises UntrustedError without it."""
    from ..components.build import check_trusted
    from ..components.finder import find

    try:
        check_trusted(find(component))
    except UntrustedError as error:
        if not ask_to_trust(error):
            raise


def _scheduler(arguments: Any, defaults: LaunchDefaults, runner: Runner, config: dict[str, str], only: str = "") -> str:
    """Return the scheduler that is chosen, that of the component where it has only one, else config's or the usual."""
    chosen = arguments.scheduler or only
    given = None if chosen else defaults.scheduler()
    if given is None:
        return chosen or runner.default_scheduler()
    try:
        runner.scheduler(given.value)
    except UnknownSchedulerException as error:
        raise ConfigError(f"{given.source}: {error}") from error
    config["scheduler"] = given.value
    return given.value


def _options(
    arguments: Any, data: dict[str, Any], resolved: Resolved, known: runopts, config: dict[str, str]
) -> dict[str, Any]:
    """Return the run options, those of config among them, and put these into ``config`` as text."""
    given: dict[str, Any] = {}
    if arguments.scheduler_args:
        given = known.cfg_from_str(arguments.scheduler_args)
    elif data.get("scheduler_args") or data.get("scheduler_cfg"):
        import json

        both = {**(data.get("scheduler_cfg") or {}), **(data.get("scheduler_args") or {})}
        given = known.cfg_from_json_repr(json.dumps(both))
    taken = {key: option.value for key, option in resolved.options.items() if key not in given}
    if taken:
        from ..specs.run_options import format_value

        config.update({key: format_value(value) for key, value in taken.items()})
    return {**taken, **given}


def _with_defaults(given: Texts, resolved: Resolved, config: dict[str, str]) -> Texts:
    """Return the component's arguments, those of config among them, and put these into ``config``."""
    texts: Texts = {key: item.value for key, item in resolved.arguments.items() if key not in given}
    config.update({f"{ARGUMENT_PREFIX}{key}": str(text) for key, text in texts.items()})
    return {**texts, **given}


def _workspace(
    arguments: Any, defaults: LaunchDefaults, runner: Runner, scheduler: str, config: dict[str, str]
) -> str | None:
    """Return what is shipped; what config says is left out where the scheduler takes no workspace."""
    given = defaults.workspace() if arguments.workspace is None else None
    if given is None:
        return arguments.workspace or None
    if not runner.scheduler(scheduler).takes_workspace:
        return None
    config["workspace"] = given.value
    return given.value
