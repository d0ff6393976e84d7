"""A scheduler written against TorchX's classes, behind our contract."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from ...specs import (
    AppDef,
    AppDryRunInfo,
    CfgVal,
    JobNotFoundError,
    TorchXTuiError,
    is_terminal,
    runopts,
)
from ...specs.module_files import parsing
from ..api import Scheduler
from ..responses import DescribeAppResponse, Finding, ListAppResponse, Stream
from .abilities import abilities_of
from .calls import ANSWER_SECONDS, LAUNCH_SECONDS, QUICK_SECONDS, PluginCalls
from .found import FoundScheduler
from .from_torchx import our_description, our_row, says_nothing
from .known_apps import KnownApps
from .log_reading import PluginLogIterator
from .logs import check_replica, outputs
from .options import given_options, our_options
from .refusing import refuse
from .to_torchx import ToTorchX

T = TypeVar("T")


class TorchXScheduler(Scheduler[Mapping[str, CfgVal]]):
    """Asks a scheduler of TorchX's, and answers in our terms.

    What the plugin raises becomes an error of ours with its name, what it prints is taken away from the terminal, and
    a call that hangs is given up.

    Args:
        found: the plugin.
        calls: the way into it.
        session_name: the session part of handles.
        theirs: the scheduler that the plugin made.
    """

    takes_contexts = False

    def __init__(self, found: FoundScheduler, calls: PluginCalls, session_name: str, theirs: Any) -> None:
        super().__init__(found.name, session_name)
        self.found = found
        self._theirs = theirs
        self._calls = calls
        self._apps = KnownApps()
        self._options: runopts | None = None
        self.capabilities = abilities_of(theirs)

    def _ask(self, what: str, function: Callable[[], T], seconds: float = ANSWER_SECONDS) -> T:
        return self._calls.call(what, function, seconds)

    def close(self) -> None:
        """Let the plugin free what it holds."""
        try:
            self._ask("close", self._theirs.close, 1.0)
        except TorchXTuiError:
            return  # noted in the log file

    # Launching

    def run_opts(self) -> runopts:
        """Return the plugin's run options, those of its workspaces included."""
        if self._options is None:
            theirs = self._ask("tell its run options", lambda: parsing(self._theirs.run_opts), QUICK_SECONDS)
            self._options = our_options(theirs, self.backend)
        return self._options

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[Any]:
        given = given_options(dict(cfg), self.run_opts())

        def dry_run() -> tuple[Any, str]:
            turned = ToTorchX()
            theirs = turned.app(app)
            info = parsing(lambda: self._theirs.submit_dryrun(theirs, given))
            info._scheduler = self.backend
            left_out = "".join(f"# left out: {what}\n" for what in turned.left_out)
            return info, left_out + str(info)

        info, text = self._ask("make the request", dry_run)
        return AppDryRunInfo(info, lambda _: text)

    def schedule(self, dryrun_info: AppDryRunInfo[Any]) -> str:
        """Launch what a dry run gave, and return the id that the plugin gave the app."""
        app_id = str(self._ask("launch", lambda: self._theirs.schedule(dryrun_info.request), LAUNCH_SECONDS))
        self._apps.launched(app_id, dryrun_info.app)
        return app_id

    def _pre_build_validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        self._check("_pre_build_validate", app, scheduler, cfg)

    def _validate(self, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        self._check("_validate", app, scheduler, cfg)

    def _check(self, method: str, app: AppDef, scheduler: str, cfg: Mapping[str, CfgVal]) -> None:
        refuse(self._calls, self._theirs, method, app, scheduler, given_options(dict(cfg), self.run_opts()))

    # Watching

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Return what the plugin knows of an app, None when it does not exist."""
        answer = self._ask("describe a job", lambda: self._theirs.describe(app_id))
        described = None if answer is None else our_description(answer)
        return self._apps.completed(app_id, None if described is None or says_nothing(described) else described)

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> builtins.list[ListAppResponse]:
        """Return every app that the plugin lists, and those that were just launched from here."""
        answer = self._ask("list jobs", lambda: self._theirs.list(*([] if cfg is None else [cfg])))
        rows = [our_row(one) for one in answer or []]
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
        from ..api import line_pattern

        pattern = line_pattern(regex)
        known = self.capabilities.log_streams
        stream = check_replica(self.describe(app_id), self.backend, app_id, role_name, k, streams, known)
        wanted = {"since": since, "until": until, "should_tail": should_tail}
        opens, refused = outputs(self._calls, self._theirs, (app_id, role_name, k), wanted, stream)
        if refused and stream is not Stream.COMBINED:
            self.capabilities = replace(self.capabilities, log_streams=tuple(one for one in known if one != stream))
            raise ValueError(refused)
        return PluginLogIterator(self._calls, opens, pattern)

    # Advice

    def check(self) -> builtins.list[Finding]:
        """Return where the plugin comes from. Its backend is not asked: launches wait for this."""
        self.run_opts()
        return [Finding("ok", f"TorchX's {type(self._theirs).__name__}, from {self.found.origin}")]

    def preflight(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> builtins.list[Finding]:
        """Return what of the app the installed TorchX has no place for."""
        turned = ToTorchX()
        turned.app(app)
        return [Finding("warning", f"left out: {what}", "install a newer TorchX") for what in turned.left_out]


def _text(info: Any) -> str | None:
    return None if info is None else str(info)
