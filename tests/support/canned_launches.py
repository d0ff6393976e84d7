"""A scheduler with canned answers that launches, in the working folder."""

from __future__ import annotations

from typing import Any

from support.canned import CannedScheduler

from torchx_tui.backends.api import Capabilities
from torchx_tui.specs.roles import AppDryRunInfo
from torchx_tui.specs.status import AppState


class CannedLaunches(CannedScheduler):
    """Launches at once."""

    capabilities = Capabilities(working_folder=True)

    def _submit_dryrun(self, app, cfg) -> AppDryRunInfo[Any]:
        return AppDryRunInfo(app, repr)

    def schedule(self, dryrun_info):
        app_id = f"job-{len(self.apps)}"
        self.add(app_id, AppState.RUNNING, 1)
        return app_id
