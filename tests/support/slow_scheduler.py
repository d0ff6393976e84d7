"""A plug-in's scheduler whose jobs a test makes up, and whose cancels wait as long as it likes.

The environment names a folder, SLOW_FOLDER. A file ``cancel`` there keeps cancels waiting while it exists. Jobs are
JSON in ``jobs.json``: the state of each by its app id, the newest first.
"""

from __future__ import annotations

import builtins
import json
import os
import time
from pathlib import Path
from typing import Any

from torchx_tui.backends.api import DescribeAppResponse, Finding, ListAppResponse, Scheduler
from torchx_tui.specs.roles import AppDryRunInfo, Role
from torchx_tui.specs.status import AppState

FOLDER = Path(os.environ.get("SLOW_FOLDER", "."))


class SlowScheduler(Scheduler[Any]):
    """Jobs that a test makes up."""

    def list(self, cfg: Any = None) -> builtins.list[ListAppResponse]:
        now = time.time()
        return [
            ListAppResponse(
                app_id, AppState[state], name=app_id, submitted_at=now - 60 * number - 60, replicas_wanted=1
            )
            for number, (app_id, state) in enumerate(_jobs().items())
        ]

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        state = _jobs().get(app_id)
        role = Role("r", "image", entrypoint="true")
        return DescribeAppResponse(app_id, AppState[state], roles=[role], name=app_id) if state else None

    def log_iter(self, *_: Any, **__: Any):
        return iter(())

    def check(self) -> builtins.list[Finding]:
        return []

    def _submit_dryrun(self, app: Any, cfg: Any) -> AppDryRunInfo[Any]:
        return AppDryRunInfo(app, str)

    def schedule(self, dryrun_info: AppDryRunInfo[Any]) -> str:
        raise NotImplementedError

    def _cancel_existing(self, app_id: str) -> None:
        while (FOLDER / "cancel").exists():
            time.sleep(0.05)
        (FOLDER / "jobs.json").write_text(json.dumps({**_jobs(), app_id: "CANCELLED"}))


def create_scheduler(session_name: str, **_: Any) -> SlowScheduler:
    return SlowScheduler("slow", session_name)


def _jobs() -> dict[str, str]:
    path = FOLDER / "jobs.json"
    return json.loads(path.read_text()) if path.exists() else {}
