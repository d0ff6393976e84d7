"""A canned scheduler that takes launches."""

from __future__ import annotations

import os
from typing import Any

from support.canned import CannedScheduler

from torchx_tui.backends.types import Finding
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.specs.status import AppState


class LaunchingScheduler(WorkspaceMixin[Any], CannedScheduler):
    """Launches job-1, which is in the state that a test chose.

    Attributes:
        state: the state of job-1.
        interrupts: signals that this process gets when the job's log is read.
        detached: the jobs that were detached.
    """

    log_files: Any = None  # it has lines only

    def __init__(self) -> None:
        super().__init__()
        self.interrupts: list[int] = []
        self.detached: list[str] = []
        self.state = AppState.SUCCEEDED

    def build_workspace_and_update_role(self, role: Any, workspace: str, cfg: Any) -> None:
        """Leave the image as it is."""

    def schedule(self, dryrun_info: Any) -> str:
        self.add("job-1", self.state, 1)
        return "job-1"

    def own_app_ids(self) -> list[str]:
        return []

    def detach(self, app_id: str) -> None:
        self.detached.append(app_id)

    def end_own(self) -> None:
        """End nothing: there are none."""

    def log_iter(self, *_: Any, **__: Any) -> Any:
        for number in self.interrupts:
            os.kill(os.getpid(), number)
        return iter(["a line\n"])

    def preflight(self, app: Any, cfg: Any) -> list[Finding]:
        return [Finding("ok", "all is well"), Finding("warning", "it is late", "sleep"), Finding("error", "no")]
