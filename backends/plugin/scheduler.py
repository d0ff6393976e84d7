"""A scheduler written for TorchX's classes, behind the contract of `Scheduler`. It runs in a worker.

What the plugin raises passes through: `serve` makes it an error of this package.
"""

from __future__ import annotations

import builtins
import logging
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial, partialmethod
from itertools import chain
from typing import Any, get_args, get_origin

from ...specs.errors import AppDefError, JobNotFoundError, LogUnreadableError, UnknownReplicaError
from ...specs.from_torchx import from_torchx
from ...specs.roles import AppDef, AppDryRunInfo, Role
from ...specs.run_options import Cfg, runopts
from ...specs.status import AppState, is_terminal
from ..api import Scheduler
from ..shared.replicas import pick_replica
from ..types import Capabilities, DescribeAppResponse, Finding, ListAppResponse, Stream, line_pattern
from ..workspace import WorkspaceMixin
from .convert import ToTorchX, description_from_torchx, row_from_torchx, says_nothing
from .found import FoundScheduler
from .logs import LogSource

logger = logging.getLogger(__name__)

NEW_JOB_S = 30.0
"""Seconds in which a backend may not know yet a job that it has just taken."""
_SCALARS = (str, int, float, bool)


class TorchXScheduler(Scheduler[Cfg]):
    """Calls a scheduler of TorchX's classes, and converts its answers.

    Args:
        found: the plugin.
        session_name: the session part of handles.
        plugin: the scheduler that the plugin made, of TorchX's classes.
    """

    takes_contexts = False

    def __init__(self, found: FoundScheduler, session_name: str, plugin: Any) -> None:
        super().__init__(found.name, session_name)
        self.found = found
        # Unknown capabilities, such as whether retries are honoured, are assumed: a warning would be worse. An output
        # that the plugin refuses is left out from then on.
        streams = (Stream.COMBINED, Stream.STDOUT, Stream.STDERR) if _overrides(plugin, "log_iter") else ()
        self.capabilities = Capabilities(log_streams=streams, retries=True)
        self.describes_natively = _overrides(plugin, "describe_native")
        self._plugin = plugin
        self._options: runopts | None = None
        self._names: dict[str, str] = {}
        # When which apps were launched here.
        self._launched: dict[str, tuple[float, AppDef | None]] = {}

    def close(self) -> None:
        """Let the plugin free what it holds."""
        self._plugin.close()

    # Launching

    def run_opts(self) -> runopts:
        """Return the plugin's run options, those of its workspaces included."""
        if self._options is None:
            self._options = options_from_torchx(self._plugin.run_opts(), self.backend)
        return self._options

    def _submit_dryrun(self, app: AppDef, cfg: Cfg) -> AppDryRunInfo[Any]:
        converter = ToTorchX()
        info = self._plugin.submit_dryrun(converter.app(app), given_options(cfg, self.run_opts()))
        info._scheduler = self.backend
        text = "".join(f"# left out: {what}\n" for what in converter.left_out) + str(info)
        return AppDryRunInfo(info, lambda _: text)

    def schedule(self, dryrun_info: AppDryRunInfo[Any]) -> str:
        """Launch what a dry run gave, and return the id that the plugin gave the app."""
        app_id, app = str(self._plugin.schedule(dryrun_info.request)), dryrun_info.app
        self._launched[app_id] = time.monotonic(), app
        if app is not None:
            self._names[app_id] = app.name
        return app_id

    def _check(self, method: str, app: AppDef, scheduler: str, cfg: Cfg) -> None:
        check = getattr(self._plugin, method, None)
        if check is None:
            return  # an older TorchX has not all of them
        resolve = getattr(self._plugin, "_resolve_cfg", None) or self._plugin.run_opts().resolve
        try:
            check(ToTorchX().app(app), scheduler, resolve(given_options(cfg, self.run_opts())))
        except ValueError as error:
            raise AppDefError(str(error)) from error

    _pre_build_validate = partialmethod(_check, "_pre_build_validate")
    _validate = partialmethod(_check, "_validate")

    # Watching

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Describe an app; None when it does not exist. What the plugin leaves out is added where it is known here."""
        answer = self._plugin.describe(app_id)
        described = None if answer is None else description_from_torchx(answer)
        launched_at, app = self._launched.get(app_id, (-NEW_JOB_S, None))
        if described is None or says_nothing(described):
            if time.monotonic() - launched_at >= NEW_JOB_S:
                return None
            described = DescribeAppResponse(app_id, AppState.SUBMITTED)
        if app is not None and not described.roles:
            described.roles = app.roles
        described.name = self._names.get(app_id, "")
        return described

    def list(self, cfg: Cfg | None = None) -> builtins.list[ListAppResponse]:
        """Return every app that the plugin lists, and those that were just launched from here."""
        rows = [row_from_torchx(row) for row in self._plugin.list(*([] if cfg is None else [cfg])) or []]
        listed = {row.app_id for row in rows}
        for app_id, (launched_at, _) in tuple(self._launched.items()):
            if app_id not in listed and time.monotonic() - launched_at < NEW_JOB_S:
                described = self.describe(app_id)
                rows += [ListAppResponse(app_id, described.state)] if described else []
        for row in rows:
            row.name = row.name or self._names.get(row.app_id, "")
            self._names[row.app_id] = row.name
        return rows

    def describe_native(self, app_id: str) -> str:
        """Return the request that the plugin reads back.

        Raises:
            JobNotFoundError: there is no such app.
        """
        request = self._plugin.describe_native(app_id)
        if request is None:
            raise JobNotFoundError(app_id, self.backend)
        return str(request)

    # Ending

    def _cancel_existing(self, app_id: str) -> None:
        self._plugin.cancel(app_id)

    def cancel(self, app_id: str) -> None:
        """Ask for the app's end; one that is final or unknown is left alone."""
        described = self.describe(app_id)
        if described is not None and not is_terminal(described.state):
            self._cancel_existing(app_id)

    def _delete_existing(self, app_id: str) -> None:
        self._plugin.delete(app_id)
        self._launched.pop(app_id, None)

    # Logs

    def log_sources(
        self,
        app_id: str,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: Stream | None = None,
    ) -> tuple[builtins.list[LogSource], re.Pattern[str] | None]:
        """Return the outputs of the plugin that together are the one that is asked for, and the pattern of its lines.

        A plugin that does not merge its outputs refuses `COMBINED`: then both are read, side by side if they are
        followed.

        Raises:
            JobNotFoundError: there is no such app.
            LogUnreadableError: the plugin has no logs.
            UnknownReplicaError: there is no such role, replica or output.
        """
        from torchx.schedulers.api import Stream as TorchXStream

        pattern = line_pattern(regex)
        stream = self._check_replica(app_id, role_name, k, streams)
        read = partial(self._plugin.log_iter, app_id, role_name, k, since=since, until=until, should_tail=should_tail)

        def begin(output: Stream) -> Iterable[str]:
            return read(streams=TorchXStream(output.value))

        try:
            first = begin(stream)
            return [lambda: first], pattern
        except NotImplementedError as error:
            raise LogUnreadableError(f"{self.backend} could not give a log: {error}") from error
        except ValueError as error:
            if stream is not Stream.COMBINED:
                left = tuple(output for output in self.capabilities.log_streams if output != stream)
                self.capabilities = replace(self.capabilities, log_streams=left)
                raise UnknownReplicaError(f"{self.backend} could not give a log: {error}") from error
        both: builtins.list[LogSource] = [partial(begin, output) for output in (Stream.STDOUT, Stream.STDERR)]
        return (both if should_tail else [lambda: chain.from_iterable(source() for source in both)]), pattern

    def _check_replica(self, app_id: str, role_name: str, k: int, stream: Stream | None) -> Stream:
        """Return the output that is meant, having checked that there is such a replica."""
        known = self.capabilities.log_streams
        if not known:
            raise LogUnreadableError(f"{self.backend} has no logs to read")
        if stream is not None and stream not in known:
            valid = ", ".join(output.value for output in known)
            raise UnknownReplicaError(f"{self.backend} has no output {stream!s}: it has {valid}")
        described = self.describe(app_id)
        if described is None:
            raise JobNotFoundError(app_id, self.backend)
        if described.roles:  # else the plugin decides about them
            numbers = {role.name: {number: number for number in range(role.num_replicas)} for role in described.roles}
            pick_replica(app_id, numbers, role_name, k)
        return stream or Stream.COMBINED

    # Advice

    def check(self) -> builtins.list[Finding]:
        """Return where the plugin comes from. Its backend is not asked: launches wait for this."""
        self.run_opts()
        return [Finding("ok", f"TorchX's {type(self._plugin).__name__}, from {self.found.origin}")]

    def preflight(self, app: AppDef, cfg: Cfg) -> builtins.list[Finding]:
        """List what of an app the installed TorchX has no field for."""
        converter = ToTorchX()
        converter.app(app)
        return [Finding("warning", f"left out: {what}", "install a newer TorchX") for what in converter.left_out]


class TorchXWorkspaceScheduler(WorkspaceMixin[Any], TorchXScheduler):
    """Lets the plugin build the workspaces of roles; its run options already have those of its workspaces."""

    def build_workspaces(self, roles: Sequence[Role], cfg: Cfg) -> None:
        """Let the plugin build each role's workspace."""
        converter = ToTorchX()
        built = [converter.role(role) for role in roles]
        self._plugin.build_workspaces(built, given_options(cfg, self.run_opts()))
        for role, made in zip(roles, built, strict=True):
            vars(role).update(vars(from_torchx(made)))


def _overrides(plugin: Any, method: str) -> bool:
    from torchx.schedulers.api import Scheduler as TorchXBase

    return getattr(type(plugin), method, None) is not getattr(TorchXBase, method, None)


def options_from_torchx(declared: Any, name: str) -> runopts:
    """Make run options of TorchX's.

    Args:
        declared: TorchX's `runopts`.
        name: the scheduler's, for the log file.
    """
    options = runopts()
    for key, option in declared:
        kind = _option_type(option.opt_type)
        default = option.default
        if default is not None and not runopts.is_type(default, kind):
            # As a text it would not be what the plugin expects: left out, it takes its own.
            logger.warning("%s: the option %s is %s, its default %r", name, key, option.opt_type, default)
            default = None
        options.add(
            str(key),
            kind,
            " ".join(str(option.help or "").split()),
            default,
            bool(option.is_required) and default is None,
            aliases=[str(alias) for alias in getattr(option, "aliases", None) or []],
            deprecated_aliases=[str(alias) for alias in getattr(option, "deprecated_aliases", None) or []],
        )
    return options


def _option_type(kind: Any) -> Any:
    """Return one of the types that run options can have; text for any other."""
    base, arguments = get_origin(kind) or kind, [one for one in get_args(kind) if one is not type(None)]
    if base is list:
        return list[str]
    if base is dict:
        return dict[str, str]
    if len(arguments) == 1:
        kind = arguments[0]
    return kind if kind in _SCALARS else str


def given_options(cfg: Cfg, options: runopts) -> dict[str, Any]:
    """Return the resolved run options without those that have neither value nor default: the plugin has its own."""
    declared = dict(options)
    return {
        key: value for key, value in cfg.items() if value is not None or getattr(declared.get(key), "default", None)
    }
