"""A scheduler with canned answers that launches, in the working folder, and knows digests of images."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from support.canned import CannedScheduler

from torchx_tui.backends.api import Capabilities
from torchx_tui.specs.roles import AppDryRunInfo
from torchx_tui.specs.status import AppState


class Imaged(CannedScheduler):
    """Launches at once, and knows digests of images."""

    capabilities = Capabilities(working_folder=True)

    def __init__(self) -> None:
        super().__init__()
        self.digests: dict[str, str] = {}
        self.asked: list[list[str]] = []
        self.failure: Exception | None = None
        self.waits: threading.Event | None = None
        self.on_asked: Callable[[], object] = lambda: None
        self.on_schedule: Callable[[], object] = lambda: None

    def _submit_dryrun(self, app, cfg) -> AppDryRunInfo[Any]:
        return AppDryRunInfo(app, repr)

    def schedule(self, dryrun_info):
        self.on_schedule()
        # A launch pulls what is newer elsewhere.
        self.digests = {image: digest.replace("old", "new") for image, digest in self.digests.items()}
        app_id = f"job-{len(self.apps)}"
        self.add(app_id, AppState.RUNNING, 1)
        return app_id

    def image_digests(self, images):
        self.asked.append(list(images))
        self.on_asked()
        if self.waits is not None:
            self.waits.wait(60)
        if self.failure is not None:
            raise self.failure
        return {image: self.digests[image] for image in images if image in self.digests}
