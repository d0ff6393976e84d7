"""The commands that launch: run and dryrun."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ..base.errors import ConfigError
from ..settings.launch_defaults import LaunchDefaults
from ..settings.make_runner import make_runner
from ..specs.errors import InvalidRunConfigException
from ..specs.handles import parse_app_handle
from ..specs.status import AppState
from .output import put, put_json, say
from .run_arguments import add_dryrun_arguments, add_run_arguments
from .run_request import Launch, launch_of
from .trust import ask_to_trust

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..settings.config import Settings
    from ..specs.roles import AppDryRunInfo
    from ..specs.status import AppStatus


def _run(arguments: Any, settings: Settings) -> int:
    # Local jobs inherit it, and component functions may read it.
    os.environ.setdefault("TORCHX_CONTEXT_NAME", "cli_run")
    if arguments.notify:
        from .notify import with_all_events

        settings = with_all_events(settings)
    defaults = _load_defaults(arguments, settings)
    with make_runner(settings) as runner, _advised():
        launch = launch_of(arguments, defaults, runner)
        if launch is None:
            return 0
        _say_findings(launch, runner)
        if arguments.dryrun:
            return _print_request(launch, runner, as_json=arguments.json)
        if arguments.open:
            return _open(launch, settings, arguments.config)
        from .follow import interruptible

        with interruptible():
            return _launch(launch, runner, arguments, settings)


def _load_defaults(arguments: Any, settings: Settings) -> LaunchDefaults:
    """Load the launch defaults; ask for trust in a `.torchxconfig` of another user."""
    defaults = LaunchDefaults.load(settings)
    ignored = arguments.ignore_config or "--ignore-config" in arguments.rest
    if defaults.untrusted is not None and not ignored and ask_to_trust(defaults.untrusted):
        return _load_defaults(arguments, settings)
    return defaults


@contextmanager
def _advised() -> Iterator[None]:
    """Add to an error about run options how they are found out and given."""
    try:
        yield
    except InvalidRunConfigException as error:
        where = "give them with -cfg KEY=VALUE,... or in .torchxconfig"
        raise ConfigError(f"{error}; `torchx-tui runopts` lists run options, {where}") from error


def _dryrun(arguments: Any, settings: Settings) -> int:
    defaults = _load_defaults(arguments, settings)
    with make_runner(settings) as runner, _advised():
        launch = launch_of(arguments, defaults, runner)
        if launch is None:
            return 0
        _say_findings(launch, runner)
        return _print_request(launch, runner, as_json=arguments.json)


def _print_request(launch: Launch, runner: Runner, *, as_json: bool) -> int:
    info = launch.dryrun(runner)
    if as_json:
        put_json(_request_json(launch, info))
    else:
        put(str(info))
    return 0


def _request_json(launch: Launch, info: AppDryRunInfo[Any]) -> dict[str, Any]:
    import dataclasses

    request: Any = info.request
    return {
        "scheduler": launch.scheduler,
        "cfg": dict(info.cfg),
        "app": None if info.app is None else dataclasses.asdict(info.app),
        "request": dataclasses.asdict(request) if hasattr(type(request), "__dataclass_fields__") else str(info),
    }


def _say_findings(launch: Launch, runner: Runner) -> None:
    for finding in runner.preflight(launch.app, launch.scheduler, launch.cfg):
        if finding.level != "ok":
            say(f"{finding.level}: {finding.what}{f' ({finding.hint})' if finding.hint else ''}")


def _launch(launch: Launch, runner: Runner, arguments: Any, settings: Settings) -> int:
    from .follow import end_or_leave, follow, suspending
    from .notify import tell_end

    handle = ""
    status: AppStatus | None = None
    code = 0
    is_local = launch.scheduler.startswith("local")
    waits = not arguments.detach and (is_local or arguments.wait or arguments.log)
    passes_stdin = waits and not arguments.stdin and _can_read_stdin()
    runner.scheduler(launch.scheduler).passes_stdin = passes_stdin
    try:
        handle = launch.run(runner)
        if arguments.notify:
            from ..notify.helper import want

            want(handle)
        if arguments.detach:
            runner.detach(handle)
        if not arguments.json:
            _put_handle(handle)
        if waits:
            with suspending(runner, handle) if _reads_terminal(launch, passes_stdin) else nullcontext():
                status = follow(runner, handle, logs=is_local or arguments.log)
            code = 0 if status.state is AppState.SUCCEEDED else 1
            tell_end(settings, handle, status)
    except KeyboardInterrupt as interrupt:
        code = end_or_leave(runner, handle, interrupt, ends=is_local and not arguments.detach)
        if not handle:
            return code
    if arguments.json:
        put_json(_launched_json(handle, status or runner.job(handle).status()))
    if status is not None and code:
        from .status import say_status

        say_status(status)
    return code


def _reads_terminal(launch: Launch, passes_stdin: bool) -> bool:
    replicas = sum(role.num_replicas for role in launch.app.roles)
    return passes_stdin and launch.scheduler == "local_cwd" and replicas == 1 and os.isatty(0)


def _put_handle(handle: str) -> None:
    try:
        print(handle, flush=True)
    except OSError:
        say(f"launched {handle}, which cannot be written to stdout")
        raise


def _can_read_stdin() -> bool:
    """Return whether stdin is open and, if it is a terminal, this process is in the foreground."""
    try:
        os.fstat(0)
        return not os.isatty(0) or os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _launched_json(handle: str, status: AppStatus | None) -> dict[str, Any]:
    scheduler, _, app_id = parse_app_handle(handle)
    return {
        "handle": handle,
        "app_id": app_id,
        "scheduler": scheduler,
        "state": str(status.state) if status else None,
        "ui_url": status.ui_url if status else None,
    }


def _open(launch: Launch, settings: Settings, config_file: str | None) -> int:
    from .main import open_dashboard

    def launched(runner: Runner) -> str:
        handle = launch.run(runner)
        print(handle, flush=True)
        return handle

    return open_dashboard(settings, launch=launched, config_file=config_file)


COMMANDS: dict[str, tuple[Callable[..., None], Callable[..., int]]] = {
    "run": (add_run_arguments, _run),
    "dryrun": (add_dryrun_arguments, _dryrun),
}
