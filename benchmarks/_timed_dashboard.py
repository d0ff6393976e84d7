"""The dashboard, noting how late its event loop is: ``python -m benchmarks._timed_dashboard FILE``."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from torchx_tui.cli.main import main
from torchx_tui.tui import app as app_module

_BEAT = 0.005
# Less is what a timer is always late by (s).
_NOTED = 0.01


class TimedApp(app_module.TorchXTuiApp):
    """Appends a line to a file each time that its loop is late: when (`time.perf_counter`), and by how much (s)."""

    # Found beside the class that names them.
    CSS_PATH = [Path(app_module.__file__).parent / "styles" / name for name in ("base.tcss", "jobs.tcss")]
    noted = Path(sys.argv[-1])

    def on_mount(self) -> None:
        """Begin to measure."""
        self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        with self.noted.open("a", buffering=1) as file:
            while True:
                began = time.perf_counter()
                await asyncio.sleep(_BEAT)
                late = time.perf_counter() - began - _BEAT
                if late > _NOTED:
                    file.write(f"{began} {late}\n")


def lateness(path: Path, since: float) -> list[float]:
    """Return how late the loop was each time (s), from a time on (`time.perf_counter`)."""
    pairs = [line.split() for line in path.read_text().splitlines()]
    return [float(late) for at, late in pairs if float(at) >= since] or [0.0]


if __name__ == "__main__":
    app_module.TorchXTuiApp = TimedApp  # type: ignore[misc]
    sys.exit(main([]))
