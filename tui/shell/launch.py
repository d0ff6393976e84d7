"""The commands that launch: run and dryrun."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...backends.launch_origin import LaunchOrigin
from ...specs import AppState, ConfigError, SchedulerError, UnknownSchedulerException, parse_app_handle
from ..launch_defaults import Given, LaunchDefaults
from ..make_runner import make_runner
from .output import put, put_json, say
from .run_arguments import add_dryrun_arguments, add_run_arguments, argument_texts, read_rest, read_stdin

if TYPE_CHECKING:
    from ...backends.runner import Runner
    from ...components import ComponentDoc
    from ...specs import AppDef, AppDryRunInfo, AppStatus, runopts
    from ..config import Settings

Texts = dict[str, str | list[str]]

# Words after the component after which there may be no launch, or one elsewhere.
_UNCLEAR = frozenset(("-s", "--scheduler", "--dryrun", "--open", "--help"))
# TorchX's own environment variable of a job that belongs to another.
_ENV_PARENT_RUN_ID = "TORCHX_PARENT_RUN_ID"


@dataclass
class _Launch:
    """What a command line and config make of a launch."""

    app: AppDef
    scheduler: str
    cfg: dict[str, Any]
    workspace: str | None
    origin: LaunchOrigin

    def dryrun(self, runner: Runner) -> AppDryRunInfo[Any]:
        return runner.dryrun(self.app, self.scheduler, self.cfg, self.workspace)

    def run(self, runner: Runner) -> str:
        return runner.run(self.app, self.scheduler, self.cfg, self.workspace, origin=self.origin)


def _run(arguments: Any, settings: Settings) -> int:
    defaults = LaunchDefaults.load(settings)
    with make_runner(settings) as runner:
        _expect_launch(arguments, defaults, runner)
        launch = _launch_of(arguments, defaults, runner)
        if launch is None:
            return 0
        _say_findings(launch, runner)
        if arguments.dryrun:
            return _print_request(launch, runner, as_json=arguments.json)
        if arguments.open:
            return _open(launch, settings)
        from .following import interruptible

        with interruptible():
            return _launch(launch, runner, arguments)


def _expect_launch(arguments: Any, defaults: LaunchDefaults, runner: Runner) -> None:
    """Let the scheduler begin what every launch needs, where it is clear already which one it is."""
    if arguments.dryrun or arguments.open or arguments.stdin or not _UNCLEAR.isdisjoint(arguments.rest):
        return
    given = defaults.scheduler()
    name = arguments.scheduler or (given.value if given else "")
    if name:
        # What is wrong with it is told when it is asked for its options.
        with suppress(UnknownSchedulerException, SchedulerError):
            runner.expect_launch(name)


def _dryrun(arguments: Any, settings: Settings) -> int:
    defaults = LaunchDefaults.load(settings)
    with make_runner(settings) as runner:
        launch = _launch_of(arguments, defaults, runner)
        if launch is None:
            return 0
        _say_findings(launch, runner)
        return _print_request(launch, runner, as_json=arguments.json)


def _print_request(launch: _Launch, runner: Runner, *, as_json: bool) -> int:
    info = launch.dryrun(runner)
    if as_json:
        put_json(_request_json(launch, info))
    else:
        put(str(info))
    return 0


def _request_json(launch: _Launch, info: AppDryRunInfo[Any]) -> dict[str, Any]:
    import dataclasses

    request: Any = info.request
    return {
        "scheduler": launch.scheduler,
        "cfg": dict(info.cfg),
        "app": None if info.app is None else dataclasses.asdict(info.app),
        "request": dataclasses.asdict(request) if hasattr(type(request), "__dataclass_fields__") else str(info),
    }


def _say_findings(launch: _Launch, runner: Runner) -> None:
    for finding in runner.preflight(launch.app, launch.scheduler, launch.cfg):
        if finding.level != "ok":
            say(f"warning: {finding.what}{f' ({finding.hint})' if finding.hint else ''}")


def _launch(launch: _Launch, runner: Runner, arguments: Any) -> int:
    from .following import end_or_leave, follow

    handle = ""
    status: AppStatus | None = None
    code = 0
    is_local = launch.scheduler.startswith("local")
    waits = not arguments.detach and (is_local or arguments.wait or arguments.log)
    try:
        handle = launch.run(runner)
        if arguments.detach:
            runner.detach(handle)
        if not arguments.json:
            print(handle, flush=True)
        if waits:
            status = follow(runner, handle, logs=is_local or arguments.log)
            code = 0 if status.state is AppState.SUCCEEDED else 1
    except KeyboardInterrupt as interrupt:
        code = end_or_leave(runner, handle, interrupt, ends=is_local and not arguments.detach)
        if not handle:
            return code
    if arguments.json:
        put_json(_launched_json(handle, status or runner.status(handle)))
    if status is not None and code:
        from .watch import say_status

        say_status(status)
    return code


def _launched_json(handle: str, status: AppStatus | None) -> dict[str, Any]:
    scheduler, _, app_id = parse_app_handle(handle)
    return {
        "handle": handle,
        "app_id": app_id,
        "scheduler": scheduler,
        "state": str(status.state) if status else None,
        "ui_url": status.ui_url if status else None,
    }


def _open(launch: _Launch, settings: Settings) -> int:
    from ..cli import open_dashboard

    def launched(runner: Runner) -> str:
        handle = launch.run(runner)
        print(handle, flush=True)
        return handle

    return open_dashboard(settings, launch=launched)


# What is launched --------------------------------------------------------------------------------------------------


def _launch_of(arguments: Any, defaults: LaunchDefaults, runner: Runner) -> _Launch | None:
    """Return what is to be launched, or None where the component's help was asked for, and printed."""
    from ...components import build_app, describe, parse_command_line

    if arguments.stdin:
        data = read_stdin(arguments)
        component = data["component_name"]
        given = argument_texts(component, data)
    else:
        data = {}
        rest = read_rest(arguments, defaults.component())
        component = rest.component
        if rest.wants_help:
            from .component_help import put_component_help

            put_component_help(describe(component), defaults)
            return None
        given = parse_command_line(component, rest.words)
    config: dict[str, str] = {}
    scheduler = _scheduler(arguments, defaults, runner, config)
    cfg = _options(arguments, data, defaults, scheduler, runner.run_opts(scheduler), config)
    given = _with_defaults(given, describe(component), defaults, config)
    app = build_app(component, given)
    overrides: dict[str, dict[str, str]] = {}
    if arguments.set:
        from ...components import override_roles, read_overrides

        overrides = read_overrides(arguments.set)
        app = override_roles(app, overrides)
    if arguments.parent_run_id:
        for role in app.roles:
            role.env[_ENV_PARENT_RUN_ID] = arguments.parent_run_id
    workspace = _workspace(arguments, defaults, runner, scheduler, config)
    for problem in defaults.problems:
        say(problem)
    return _Launch(app, scheduler, cfg, workspace, LaunchOrigin(component, given, overrides, config=config))


def _scheduler(arguments: Any, defaults: LaunchDefaults, runner: Runner, config: dict[str, str]) -> str:
    given = None if arguments.scheduler else defaults.scheduler()
    if given is None:
        return arguments.scheduler or runner.default_scheduler()
    try:
        runner.scheduler(given.value)
    except UnknownSchedulerException as error:
        raise ConfigError(f"{given.source}: {error}") from error
    config["scheduler"] = given.value
    return given.value


def _options(
    arguments: Any,
    data: dict[str, Any],
    defaults: LaunchDefaults,
    scheduler: str,
    known: runopts,
    config: dict[str, str],
) -> dict[str, Any]:
    """Return the run options, those of config among them, and put these into ``config`` as text."""
    given: dict[str, Any] = {}
    if arguments.scheduler_args:
        given = known.cfg_from_str(arguments.scheduler_args)
    elif data.get("scheduler_args") or data.get("scheduler_cfg"):
        import json

        both = {**(data.get("scheduler_cfg") or {}), **(data.get("scheduler_args") or {})}
        given = known.cfg_from_json_repr(json.dumps(both))
    taken = {key: one.value for key, one in defaults.options(scheduler, known).items() if key not in given}
    if taken:
        from ...specs.cfg_text import format_value

        config.update({key: format_value(value) for key, value in taken.items()})
    return {**taken, **given}


def _with_defaults(given: Texts, doc: ComponentDoc, defaults: LaunchDefaults, config: dict[str, str]) -> Texts:
    """Return the component's arguments, those of config among them, and put these into ``config``."""
    taken: dict[str, Given] = defaults.arguments(doc.name, doc)
    texts: Texts = {key: one.value for key, one in taken.items() if key not in given}
    config.update({f"component.{key}": str(text) for key, text in texts.items()})
    return {**texts, **given}


def _workspace(
    arguments: Any, defaults: LaunchDefaults, runner: Runner, scheduler: str, config: dict[str, str]
) -> str | None:
    """Return what is shipped; what config says is left out where the scheduler takes no workspace."""
    given = defaults.workspace() if arguments.workspace is None else None
    if given is None:
        return arguments.workspace or None
    if not runner.scheduler(scheduler).capabilities.workspace:
        return None
    config["workspace"] = given.value
    return given.value


COMMANDS: dict[str, tuple[Callable[..., None], Callable[..., int]]] = {
    "run": (add_run_arguments, _run),
    "dryrun": (add_dryrun_arguments, _dryrun),
}
