"""Files of components, written for a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEADER = "from __future__ import annotations\nfrom torchx_tui.specs import AppDef, Role\n"


class ComponentFile:
    """A Python file in a folder of its own, whose components are named by it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, text: str, header: str = HEADER) -> ComponentFile:
        self.path.write_text(header + text)
        return self

    def name(self, function: str) -> str:
        return f"{self.path}:{function}"

    def line_of(self, text: str) -> int:
        lines = self.path.read_text().splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)


def make_environment(folder: Path) -> Path:
    """Make an environment with nothing installed: neither TorchX nor torchx-tui nor yaml."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder
