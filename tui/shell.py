"""The commands of the shell: run, list, status, log, cancel, delete, in plain text."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..backends.api import Stream
from ..backends.launch_origin import LaunchOrigin
from ..backends.logs.sanitize import plain
from ..backends.runner import Runner
from ..components import build_app, parse_command_line
from ..specs import (
    AppState,
    BackendUnavailableError,
    MalformedAppHandleException,
    UnknownAppException,
    is_terminal,
)

if TYPE_CHECKING:
    from .config import Settings

# HANDLE, then a role, then replica numbers.
_LOG_TARGET = re.compile(r"^(?P<handle>\w+://[^/]*/[^/]+)(?:/(?P<role>[^/]+)(?:/(?P<replicas>\d+(?:,\d+)*))?)?/?$")


def run_command(arguments: Any, settings: Settings) -> int:
    """Carry out one command of `build_parser` and return its exit code.

    Raises:
        TorchXTuiError: it could not be carried out.
    """
    with Runner(
        read_only=settings.read_only, scheduler_params=settings.scheduler_params(), contexts=settings.contexts()
    ) as runner:
        return _COMMANDS[arguments.command](runner, arguments)


def _run(runner: Runner, arguments: Any) -> int:
    scheduler = arguments.scheduler or runner.default_scheduler()
    cfg = runner.run_opts(scheduler).cfg_from_str(arguments.scheduler_args) if arguments.scheduler_args else {}
    given = parse_command_line(arguments.component, arguments.arguments)
    app = build_app(arguments.component, given)
    for finding in runner.preflight(app, scheduler, cfg):
        if finding.level != "ok":
            words = f"warning: {finding.what}{f' ({finding.hint})' if finding.hint else ''}"
            print(plain(words), file=sys.stderr)
    if arguments.dryrun:
        request = str(runner.dryrun(app, scheduler, cfg, arguments.workspace or None))
        print(plain_lines(request) if sys.stdout.isatty() else request)
        return 0
    handle = runner.run(
        app, scheduler, cfg, arguments.workspace or None, origin=LaunchOrigin(arguments.component, given)
    )
    print(handle, flush=True)
    if arguments.detach:
        runner.detach(handle)
        return 0
    return _follow(runner, handle)


def _follow(runner: Runner, handle: str) -> int:
    """Print the logs of a job until it ends; what ends this process ends the job."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise_interrupt)
    try:
        described = runner.describe(handle)
        targets = [(role.name, k) for role in (described.roles if described else []) for k in range(role.num_replicas)]
        _print_logs(runner, handle, targets, tail=True, file=sys.stderr)
        status = runner.wait(handle)
    except KeyboardInterrupt:
        runner.end_own_jobs()
        print(f"cancelled {handle}", file=sys.stderr)
        return 130
    if status.state is AppState.SUCCEEDED:
        return 0
    print(plain_lines(status.format()), file=sys.stderr)
    return 1


def _raise_interrupt(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def _list(runner: Runner, arguments: Any) -> int:
    names = [arguments.scheduler] if arguments.scheduler else runner.watched_schedulers()
    rows = [("APP HANDLE", "APP NAME", "APP STATUS")]
    for name in names:
        try:
            rows += [(plain(app.app_handle), plain(app.name), app.state.name) for app in runner.list(name)]
        except BackendUnavailableError as error:
            if arguments.scheduler:
                raise
            print(plain(f"torchx-tui: {name} is left out: {error}"), file=sys.stderr)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _status(runner: Runner, arguments: Any) -> int:
    status = runner.status(arguments.handle)
    if status is None:
        raise UnknownAppException(arguments.handle)
    roles = [role for role in arguments.roles.split(",") if role] or None
    if arguments.json:
        data: dict[str, Any] = status.to_json(roles)
        print(json.dumps({**data, "handle": arguments.handle}, default=str))
    else:
        print(plain_lines(status.format(roles)))
    return 0


def _log(runner: Runner, arguments: Any) -> int:
    match = _LOG_TARGET.match(arguments.handle)
    if match is None:
        raise MalformedAppHandleException(arguments.handle)
    handle = match["handle"]
    described = runner.describe(handle)
    if described is None:
        raise UnknownAppException(handle)
    replicas = [int(k) for k in match["replicas"].split(",")] if match["replicas"] else None
    targets = [
        (role.name, k)
        for role in described.roles
        if match["role"] in (None, role.name)
        for k in (replicas if replicas is not None else range(role.num_replicas))
    ]
    if not targets:
        known = ", ".join(role.name for role in described.roles)
        raise UnknownAppException(f"{handle}/{match['role']} (roles: {known})")
    stream = Stream(arguments.streams) if arguments.streams else None
    _print_logs(runner, handle, targets, tail=arguments.tail, file=sys.stdout, regex=arguments.regex, streams=stream)
    return 0


def _print_logs(
    runner: Runner,
    handle: str,
    targets: list[tuple[str, int]],
    *,
    tail: bool,
    file: Any,
    regex: str | None = None,
    streams: Stream | None = None,
) -> None:
    """Print the logs of replicas as they come, each line after the replica that wrote it."""
    lock = threading.Lock()
    safe = file.isatty()
    failures: list[Exception] = []
    iterators: list[Iterable[str]] = []

    def print_one(role: str, k: int, lines: Iterable[str]) -> None:
        prefix = f"{plain(role)}/{k} " if len(targets) > 1 or tail else ""
        try:
            for line in lines:
                body = line.rstrip("\r\n")
                with lock:
                    print(f"{prefix}{plain(body) if safe else body}", file=file, flush=tail)
        except Exception as error:
            failures.append(error)

    threads = []
    for role, k in targets:
        lines = runner.log_lines(handle, role, k, regex, None, None, tail, streams)
        iterators.append(lines)
        threads.append(threading.Thread(target=print_one, args=(role, k, lines), daemon=True))
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    finally:
        for lines in iterators:
            close = getattr(lines, "close", None)
            if close is not None:
                close()
    if failures:
        raise failures[0]


def _cancel(runner: Runner, arguments: Any) -> int:
    _known(runner, arguments.handle)
    runner.cancel(arguments.handle)
    return 0


def _delete(runner: Runner, arguments: Any) -> int:
    runner.delete(arguments.handle)
    return 0


def _known(runner: Runner, handle: str) -> None:
    described = runner.describe(handle)
    if described is None:
        raise UnknownAppException(handle)
    if is_terminal(described.state):
        print(f"{handle} has ended already: {described.state.name}", file=sys.stderr)


def say(text: str) -> None:
    """Say something to the person who runs the command, on stderr."""
    print(plain_lines(f"torchx-tui: {text}"), file=sys.stderr)


def plain_lines(text: str) -> str:
    """Return a text of several lines without anything that a terminal would act on."""
    return "\n".join(plain(line) for line in text.splitlines())


_COMMANDS = {
    "run": _run,
    "list": _list,
    "status": _status,
    "log": _log,
    "cancel": _cancel,
    "delete": _delete,
}
