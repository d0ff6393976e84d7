"""The example of a plug-in as if it were installed: its module and entry point in a folder for PYTHONPATH."""

from __future__ import annotations

import shutil
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "synthetic_scheduler"


def install_plugin(folder: Path) -> Path:
    """Put the synthetic scheduler into a folder; return the folder."""
    info = folder / "torchx_tui_synthetic-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torchx-tui-synthetic\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torchx_tui.schedulers]\nsynthetic = synthetic_jobs:create_scheduler\n")
    shutil.copy(EXAMPLE / "synthetic_jobs.py", folder)
    return folder
