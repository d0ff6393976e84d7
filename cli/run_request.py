"""Make a launch from a command line, an object on stdin and config."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backends.history.launch_record import LaunchOrigin
from ..base.errors import ConfigError
from ..base.trust import UntrustedError
from ..components.build import build_app, check_trusted, interpreter_of
from ..components.command_line import GivenTexts, parse_command_line
from ..components.finder import component_key, describe, find, name_here
from ..components.python_script import MODULE, is_python_name
from ..settings.launch_defaults import Given, LaunchDefaults, Resolved, resolve
from ..specs.errors import ArgumentError, UnknownSchedulerException
from .commands import flag, launch_options
from .output import say
from .trust import ask_to_trust

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..specs.roles import AppDef


class Launch(NamedTuple):
    """The arguments of `Runner.dryrun`, and of `Runner.run` with an origin."""

    app: AppDef
    scheduler: str
    cfg: dict[str, Any]
    workspace: str | None
    parent_run_id: str | None


def make_launch(arguments: Any, defaults: LaunchDefaults, runner: Runner) -> tuple[Launch, LaunchOrigin] | None:
    """Make the launch that the command line asks for; return None if it asked for a component's help, which is printed.

    Faults of config are printed on stderr, also if something else is wrong.

    Raises:
        ConfigError: config has a fault that would change the launch.
    """
    resolved = resolve(defaults)
    options: dict[str, Any] = {}
    try:
        if arguments.stdin:
            from .run_stdin import read_stdin

            default = None if arguments.ignore_config else defaults.scheduler()
            component, given, options = read_stdin(arguments, default.value if default else runner.scheduler_names()[0])
        else:
            component, given = _parse_component(arguments, "" if arguments.ignore_config else defaults.component())
            if getattr(arguments, "help", False):
                from .component_help import put_component_help

                put_component_help(describe(component), defaults)
                return None
        # The flag may have followed the component.
        if arguments.ignore_config:
            defaults = defaults.without_files()
            resolved = resolve(defaults)
        _refuse_faults(resolved)
        doc = describe(component)
        chosen = arguments.scheduler or doc.scheduler
        default = None if chosen else defaults.scheduler()
        scheduler = chosen or _check_scheduler(default, runner)
        known = runner.scheduler(scheduler).run_opts()
        resolved = resolve(defaults, scheduler, known, doc.name, doc)
        if arguments.scheduler_args:
            options = known.cfg_from_str(arguments.scheduler_args)
        elif options:
            options = known.cfg_from_json_repr(json.dumps(options))
        _refuse_faults(resolved)
    finally:
        for problem in resolved.problems:
            say(problem)
    # The options that a script itself sets have priority over config.
    resolved.options = {
        key: item
        for key, item in resolved.options.items()
        if key not in options and not (doc.scheduler and doc.parameter(key))
    }
    resolved.arguments = {key: item for key, item in resolved.arguments.items() if key not in given}
    texts = {**{key: item.value for key, item in resolved.arguments.items()}, **given}
    config = resolved.config()
    if default:
        config["scheduler"] = default.value
    workspace = arguments.workspace
    if workspace is None and (usual := defaults.workspace()) and runner.scheduler(scheduler).takes_workspace:
        workspace = config["workspace"] = usual.value
    elif workspace is None and is_python_name(component):
        workspace = runner.scheduler(scheduler).usual_workspace
    # A script is only read here; its dry run names the Python of its job.
    if arguments.verbose and doc.kind != "script":
        say(f"{component} is run by {interpreter_of(find(component)) or 'torchx-tui itself'}")
    try:
        check_trusted(find(component))
    except UntrustedError as error:
        if not ask_to_trust(error):
            raise
    app = build_app(component, texts, report=lambda text: say(f"{component}: {text}"))
    overrides: dict[str, dict[str, str]] = {}
    if arguments.set:
        from ..components.role_overrides import override_roles, read_overrides

        overrides = read_overrides(arguments.set)
        app = override_roles(app, overrides)
    origin = LaunchOrigin(component, texts, overrides, config=config, profile=defaults.profile, in_shell=True)
    cfg = {**{key: item.value for key, item in resolved.options.items()}, **options}
    return Launch(app, scheduler, cfg, workspace or None, arguments.parent_run_id), origin


def _parse_component(arguments: Any, default: str) -> tuple[str, GivenTexts]:
    """Return the component and its arguments; put the flags of run among these into ``arguments``.

    A flag is the component's if that has a parameter of the name. All words after ``--``, and from the first word for
    a component's ``*args`` on, are the component's.
    """
    words = list(arguments.rest)
    if arguments.module:
        words = [f"{MODULE}{arguments.module[0].strip()}", *arguments.module[1:], *words]
    if words[:1] == ["--"]:
        del words[0]
    is_named = words and (not words[0].startswith("-") or words[0].startswith(MODULE))
    component = words.pop(0) if is_named else default
    if is_python_name(component):
        # Config and history have one name for `./train.py` and `train.py`.
        component = name_here(component_key(component))
    if not component:
        raise ArgumentError("", "name a component, such as utils.echo: `torchx-tui builtins` lists components")
    options = (*launch_options(arguments.command), flag("--help", ""))
    return component, parse_command_line(component, words, options, arguments)


def _refuse_faults(resolved: Resolved) -> None:
    """Refuse to launch with less than config says; `make_launch` prints the faults."""
    if resolved.faults:
        way = "use --ignore-config to launch without .torchxconfig"
        way = way if resolved.file_faults else "use --profile NAME to launch with another profile"
        raise ConfigError(f"nothing was launched: correct that, or {way}")


def _check_scheduler(given: Given | None, runner: Runner) -> str:
    """Return the scheduler of config, or the default one."""
    if given is None:
        return runner.default_scheduler()
    try:
        runner.scheduler(given.value)
    except UnknownSchedulerException as error:
        raise ConfigError(f"{given.source}: {error}") from error
    return given.value
