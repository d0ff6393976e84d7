"""The commands run and dryrun."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ..base.errors import ConfigError
from ..base.validation import JsonObject
from ..settings.launch_defaults import LaunchDefaults
from ..settings.make_runner import make_runner
from ..specs.errors import InvalidRunConfigException
from .jobs import exit_code, job_json
from .output import put, put_json, say
from .run_request import Launch, make_launch
from .trust import ask_to_trust

if TYPE_CHECKING:
    from ..backends.history.launch_record import LaunchOrigin
    from ..backends.runner import Runner
    from ..settings.config import Settings
    from ..specs.roles import AppDryRunInfo
    from ..specs.status import AppStatus


def dryrun(arguments: Any, settings: Settings) -> int:
    arguments.dryrun, arguments.notify = True, False
    return run(arguments, settings)


def run(arguments: Any, settings: Settings) -> int:
    # Local jobs inherit it, and component functions may read it.
    os.environ.setdefault("TORCHX_CONTEXT_NAME", "cli_run")
    if arguments.notify:
        from .notify import with_all_events

        settings = with_all_events(settings)
    defaults = _load_defaults(arguments, settings)
    with make_runner(settings) as runner:
        try:
            made = make_launch(arguments, defaults, runner)
            if made is None:
                return 0
            launch, origin = made
            for finding in runner.preflight(launch.app, launch.scheduler, launch.cfg):
                if finding.level != "ok":
                    say(f"{finding.level}: {finding.what}{f' ({finding.hint})' if finding.hint else ''}")
            if arguments.dryrun:
                info = runner.dryrun(*launch)
                if arguments.verbose and info.interpreter:
                    say(f"the job's Python is {info.interpreter}")
                if arguments.json:
                    put_json(_request_json(launch, info))
                else:
                    put(str(info))
                return 0
            if arguments.open:
                from .dashboard import open_dashboard

                def run_and_print(runner: Runner) -> str:
                    handle = runner.run(*launch, origin=origin)
                    print(handle, flush=True)
                    return handle

                return open_dashboard(settings, launch=run_and_print, config_file=arguments.config)
            from .follow import interruptible

            with interruptible():
                return _launch(launch, origin, runner, arguments, settings)
        except InvalidRunConfigException as error:
            where = "give them with -cfg KEY=VALUE,... or in .torchxconfig"
            raise ConfigError(f"{error}; `torchx-tui runopts` lists run options, {where}") from error


def _load_defaults(arguments: Any, settings: Settings) -> LaunchDefaults:
    """Load the launch defaults; ask for trust in a `.torchxconfig` of another user."""
    defaults = LaunchDefaults.load(settings)
    is_ignored = arguments.ignore_config or "--ignore-config" in arguments.rest
    if defaults.untrusted is not None and not is_ignored and ask_to_trust(defaults.untrusted):
        return _load_defaults(arguments, settings)
    return defaults


def _request_json(launch: Launch, info: AppDryRunInfo[Any]) -> JsonObject:
    import dataclasses

    request: Any = info.request
    return {
        "scheduler": launch.scheduler,
        "cfg": dict(info.cfg),
        "app": None if info.app is None else dataclasses.asdict(info.app),
        "request": dataclasses.asdict(request) if dataclasses.is_dataclass(request) else str(info),
    }


def _launch(launch: Launch, origin: LaunchOrigin, runner: Runner, arguments: Any, settings: Settings) -> int:
    from .follow import end_or_leave, follow, suspending
    from .notify import notify_end

    handle = ""
    status: AppStatus | None = None
    code = 0
    is_local = launch.scheduler.startswith("local")
    waits = not arguments.detach and (is_local or arguments.wait or arguments.log)
    passes_stdin = waits and not arguments.stdin and _can_read_stdin()
    runner.scheduler(launch.scheduler).passes_stdin = passes_stdin
    try:
        handle = runner.run(*launch, origin=origin)
        job = runner.job(handle)
        if arguments.notify:
            from ..notify.helper import want

            want(handle)
        if arguments.detach:
            runner.detach(handle)
        if not arguments.json:
            _put_handle(handle)
        if waits:
            replicas = sum(role.num_replicas for role in launch.app.roles)
            reads_terminal = passes_stdin and launch.scheduler == "local_cwd" and replicas == 1 and os.isatty(0)
            with suspending(job) if reads_terminal else nullcontext():
                status = follow(job, logs=is_local or arguments.log)
            code = exit_code(status.state)
            notify_end(settings, handle, status)
    except KeyboardInterrupt as interrupt:
        code = end_or_leave(runner, handle, interrupt, ends=is_local and not arguments.detach)
        if not handle:
            return code
    if arguments.json:
        now = status or runner.job(handle).status()
        put_json({**job_json(handle, now.state if now else None), "ui_url": now.ui_url if now else None})
    if status is not None and code:
        put(status.format(), sys.stderr)
    return code


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
