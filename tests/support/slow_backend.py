"""A plug-in whose jobs a test makes up, for the installed command."""

from __future__ import annotations

import json
from pathlib import Path

from support import slow_scheduler

SETTINGS = "[watch]\ninterval_seconds = 0.2\nslowest_seconds = 0.5\n"


class Backend:
    """The plug-in's scheduler, as the test decides how it does.

    Args:
        folder: where its files are.
        settings: more of config.toml.
    """

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.folder = folder
        packages = folder / "packages"
        info = packages / "slow-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[torchx_tui.schedulers]\nslow = slow_jobs:create_scheduler\n")
        (packages / "slow_jobs.py").write_text(Path(slow_scheduler.__file__).read_text())
        self.set(SETTINGS + settings)
        self.environ = {
            "PYTHONPATH": str(packages),
            "SLOW_FOLDER": str(folder),
            "TORCHX_TUI_CONFIG": str(folder / "config.toml"),
            "TORCHX_PLUGINS_SOURCE": "2",
        }

    def set(self, settings: str) -> None:
        (self.folder / "config.toml").write_text(settings)

    def has(self, jobs: dict[str, str]) -> None:
        """Let there be these jobs, the newest first."""
        (self.folder / "next.json").write_text(json.dumps(jobs))
        (self.folder / "next.json").rename(self.folder / "jobs.json")

    def hold_cancels(self) -> None:
        (self.folder / "cancel").touch()
