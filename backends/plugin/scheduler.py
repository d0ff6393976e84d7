"""A scheduler written for TorchX's classes, behind the contract of `Scheduler`. It runs in a worker."""

from __future__ import annotations

import builtins
import copy
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar, get_args, get_origin

from ...base.errors import TorchXTuiError
from ...specs.errors import AppDefError, JobNotFoundError, SchedulerError, UnknownReplicaError
from ...specs.roles import AppDef, AppDryRunInfo, Role
from ...specs.run_options import CfgVal, runopts
from ...specs.status import AppState, is_terminal
from ..api import Scheduler
from ..types import Capabilities, DescribeAppResponse, Finding, ListAppResponse, Stream
from ..workspace import WorkspaceMixin
from .calls import ask
from .convert import ToTorchX, our_description, our_role, our_row, says_nothing
from .found import FoundScheduler
from .logs import PluginLogIterator, check_replica, outputs

# A backend may not tell everything yet of a job that it has just taken (s).
_NEW_SECONDS = 30.0


_PLAIN = (str, int, float, bool)
T = TypeVar("T")


class KnownApps:
    """Names, roles and times of apps; every method may be called from any thread."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._launched: dict[str, tuple[float, AppDef | None]] = {}
        self._lock = threading.Lock()

    def launched(self, app_id: str, app: AppDef | None) -> None:
        """Note that an app was launched."""
        with self._lock:
            self._launched[app_id] = time.monotonic(), copy.deepcopy(app)
            if app is not None:
                self._names[app_id] = app.name

    def deleted(self, app_id: str) -> None:
        """Note that an app is to be known no more."""
        with self._lock:
            self._launched.pop(app_id, None)

    def name(self, app_id: str, told: str = "") -> str:
        """Return an app's name, empty where nobody has told it.

        Args:
            app_id: the app's id.
            told: what the plugin calls it now.
        """
        with self._lock:
            return self._names.setdefault(app_id, told) if told else self._names.get(app_id, "")

    def new_ids(self) -> list[str]:
        """Return the apps that were launched a moment ago."""
        with self._lock:
            return [app_id for app_id in self._launched if self._is_new(app_id)]

    def completed(self, app_id: str, described: DescribeAppResponse | None) -> DescribeAppResponse | None:
        """Return a description with what is known beside: its name, roles that are not told, an app that is too new.

        Args:
            app_id: the app's id.
            described: what the plugin says; None where it does not know the app.
        """
        with self._lock:
            if described is None:
                if not self._is_new(app_id):
                    return None
                described = DescribeAppResponse(app_id, AppState.SUBMITTED)
            _, app = self._launched.get(app_id, (0.0, None))
            if app is not None and not described.roles:
                described.roles = copy.deepcopy(app.roles)
            described.name = self._names.get(app_id, "")
            return described

    def _is_new(self, app_id: str) -> bool:
        return app_id in self._launched and time.monotonic() - self._launched[app_id][0] < _NEW_SECONDS


logger = logging.getLogger(__name__)


def our_options(theirs: Any, name: str) -> runopts:
    """Return our run options.

    Args:
        theirs: TorchX's.
        name: the scheduler's, for the log file.
    """
    ours = runopts()
    for key, option in theirs:
        kind = _kind(option.opt_type)
        default = option.default
        if default is not None and not runopts.is_type(default, kind):
            # As a text it would not be what the plugin expects: left out, it takes its own.
            logger.warning("%s: the option %s is %s, its default %r", name, key, option.opt_type, default)
            default = None
        ours.add(
            str(key),
            kind,
            " ".join(str(option.help or "").split()),
            default,
            bool(option.is_required) and default is None,
            aliases=[str(alias) for alias in getattr(option, "aliases", None) or []],
            deprecated_aliases=[str(alias) for alias in getattr(option, "deprecated_aliases", None) or []],
        )
    return ours


def given_options(cfg: dict[str, Any], ours: runopts) -> dict[str, Any]:
    """Return run options as the plugin is given them: those without a value or default of ours are left to its own.

    Args:
        cfg: resolved run options.
        ours: their declaration.
    """
    declared = dict(ours)
    return {
        key: value for key, value in cfg.items() if value is not None or getattr(declared.get(key), "default", None)
    }


def _kind(kind: Any) -> Any:
    """Return one of the types that ours know; text for any other."""
    arguments = [argument for argument in get_args(kind) if argument is not type(None)]
    origin = get_origin(kind)
    if origin is list or kind is list:
        return list[str]
    if origin is dict or kind is dict:
        return dict[str, str]
    if origin is not None and len(arguments) == 1 and arguments[0] in _PLAIN:
        return arguments[0]
    return kind if kind in _PLAIN else str


def abilities_of(theirs: Any) -> Capabilities:
    """Return the capabilities of a scheduler of TorchX's.

    What no class tells, such as whether retries are honoured, is taken to be so: a warning would be worse. A log's
    outputs are not told either: those that are refused when they are asked for are left out from then on.

    Args:
        theirs: the scheduler.
    """
    from torchx.schedulers.api import Scheduler as TheirScheduler

    def has(*methods: str) -> bool:
        return any(getattr(type(theirs), name, None) is not getattr(TheirScheduler, name, None) for name in methods)

    has_logs = has("log_iter")
    return Capabilities(
        cancel=has("cancel", "_cancel_existing"),
        delete=has("delete", "_delete_existing"),
        log_follow=has_logs,
        log_streams=(Stream.COMBINED, Stream.STDOUT, Stream.STDERR) if has_logs else (),
        retries=True,
        resources=True,
        native=has("describe_native"),
        times=False,
        exit_codes=False,
        replica_counts=False,
        named_ids=False,
    )


class TorchXScheduler(Scheduler[Mapping[str, CfgVal]]):
    """Asks a scheduler of TorchX's, and answers in our terms.

    What the plugin raises becomes an error of ours with its name.

    Args:
        found: the plugin.
        session_name: the session part of handles.
        theirs: the scheduler that the plugin made.
    """

    takes_contexts = False

    def __init__(self, found: FoundScheduler, session_name: str, theirs: Any) -> None:
        super().__init__(found.name, session_name)
        self.found = found
        self._theirs = theirs
        self._apps = KnownApps()
        self._options: runopts | None = None
        self.capabilities = abilities_of(theirs)

    def _ask(self, what: str, function: Callable[[], T]) -> T:
        return ask(self.backend, what, function)

    def close(self) -> None:
        """Let the plugin free what it holds."""
        try:
            self._ask("close", self._theirs.close)
        except TorchXTuiError:
            return  # noted in the log file

    # Launching

    def run_opts(self) -> runopts:
        """Return the plugin's run options, those of its workspaces included."""
        if self._options is None:
            theirs = self._ask("tell its run options", self._theirs.run_opts)
            self._options = our_options(theirs, self.backend)
        return self._options

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[Any]:
        given = given_options(dict(cfg), self.run_opts())

        def dry_run() -> tuple[Any, str]:
            turned = ToTorchX()
            theirs = turned.app(app)
            info = self._theirs.submit_dryrun(theirs, given)
            info._scheduler = self.backend
            left_out = "".join(f"# left out: {what}\n" for what in turned.left_out)
            return info, left_out + str(info)

        info, text = self._ask("make the request", dry_run)
        return AppDryRunInfo(info, lambda _: text)

    def schedule(self, dryrun_info: AppDryRunInfo[Any]) -> str:
        """Launch what a dry run gave, and return the id that the plugin gave the app."""
        app_id = str(self._ask("launch", lambda: self._theirs.schedule(dryrun_info.request)))
        self._apps.launched(app_id, dryrun_info.app)
        return app_id

    def _pre_build_validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        self._check("_pre_build_validate", app, scheduler, cfg)

    def _validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        self._check("_validate", app, scheduler, cfg)

    def _check(self, method: str, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        check = getattr(self._theirs, method, None)
        if check is None:
            return  # an older TorchX has not all of them
        given = given_options(dict(cfg), self.run_opts())

        def refuse() -> None:
            resolve = getattr(self._theirs, "_resolve_cfg", None) or self._theirs.run_opts().resolve
            check(ToTorchX().app(app), scheduler, resolve(given))

        try:
            self._ask("accept this app", refuse)
        except SchedulerError as error:
            if isinstance(error.__cause__, ValueError):
                raise AppDefError(str(error.__cause__)) from error
            raise

    # Watching

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Describe an app; None when it does not exist."""
        answer = self._ask("describe a job", lambda: self._theirs.describe(app_id))
        described = None if answer is None else our_description(answer)
        return self._apps.completed(app_id, None if described is None or says_nothing(described) else described)

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> builtins.list[ListAppResponse]:
        """Return every app that the plugin lists, and those that were just launched from here."""
        answer = self._ask("list jobs", lambda: self._theirs.list(*([] if cfg is None else [cfg])))
        rows = [our_row(row) for row in answer or []]
        listed = {row.app_id for row in rows}
        for app_id in self._apps.new_ids():
            described = self.describe(app_id) if app_id not in listed else None
            if described is not None:
                rows.append(ListAppResponse(app_id, described.state))
        for row in rows:
            row.name = self._apps.name(row.app_id, row.name)
        return rows

    def describe_native(self, app_id: str) -> str:
        """Return the request that the plugin reads back.

        Raises:
            NotImplementedError: the plugin does not.
            JobNotFoundError: there is no such app.
        """
        if not self.capabilities.native:
            return super().describe_native(app_id)
        text = self._ask("read a request back", lambda: _text(self._theirs.describe_native(app_id)))
        if text is None:
            raise JobNotFoundError(app_id, self.backend)
        return text

    # Ending

    def _cancel_existing(self, app_id: str) -> None:
        self._ask("cancel a job", lambda: self._theirs.cancel(app_id))

    def cancel(self, app_id: str) -> None:
        """Ask for the app's end; one that is final or unknown is left alone."""
        described = self.describe(app_id)
        if described is not None and not is_terminal(described.state):
            self._cancel_existing(app_id)

    def _delete_existing(self, app_id: str) -> None:
        self._ask("delete a job", lambda: self._theirs.delete(app_id))
        self._apps.deleted(app_id)

    # Logs

    def log_iter(
        self,
        app_id: str,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: Stream | None = None,
    ) -> PluginLogIterator:
        """Return the log lines of one replica; see `Scheduler.log_iter`.

        Where the plugin does not merge stdout and stderr, they are read side by side.
        """
        from ..types import line_pattern

        pattern = line_pattern(regex)
        known = self.capabilities.log_streams
        stream = check_replica(self.describe(app_id), self.backend, app_id, role_name, k, streams, known)
        wanted = {"since": since, "until": until, "should_tail": should_tail}
        opens, refused = outputs(self.backend, self._theirs, (app_id, role_name, k), wanted, stream)
        if refused and stream is not Stream.COMBINED:
            self.capabilities = replace(
                self.capabilities, log_streams=tuple(output for output in known if output != stream)
            )
            raise UnknownReplicaError(refused)
        return PluginLogIterator(self.backend, opens, pattern)

    # Advice

    def check(self) -> builtins.list[Finding]:
        """Return where the plugin comes from. Its backend is not asked: launches wait for this."""
        self.run_opts()
        return [Finding("ok", f"TorchX's {type(self._theirs).__name__}, from {self.found.origin}")]

    def preflight(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[Finding]:
        """List what of an app the installed TorchX has no field for."""
        turned = ToTorchX()
        turned.app(app)
        return [Finding("warning", f"left out: {what}", "install a newer TorchX") for what in turned.left_out]


class TorchXWorkspaceScheduler(WorkspaceMixin[Any], TorchXScheduler):
    """Lets the plugin build the workspaces of roles; its run options already have those of its workspaces."""

    def build_workspaces(self, roles: Sequence[Role], cfg: Mapping[str, CfgVal]) -> None:
        """Let the plugin build each role's workspace, and take over what it made of the role."""
        given = given_options(dict(cfg), self.run_opts())

        def build() -> builtins.list[Any]:
            turned = ToTorchX()
            theirs = [turned.role(role) for role in roles]
            self._theirs.build_workspaces(theirs, given)
            return theirs

        for role, built in zip(roles, self._ask("build a workspace", build), strict=True):
            take_built(role, our_role(built))


def take_built(role: Role, built: Role) -> None:
    """Take over what a builder of workspaces may change: the image, and what replicas need to find the files."""
    role.image, role.env, role.mounts, role.metadata = built.image, built.env, built.mounts, built.metadata


def _text(info: Any) -> str | None:
    return None if info is None else str(info)
