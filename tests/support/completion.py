"""What the installed command answers to a shell's completion."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from .terminal import COMMAND
from .waiting import PATIENCE


def completed(line: str, tmp_path: Path) -> set[str]:
    """Return what the installed command answers to a shell that asks how a line goes on."""
    answer = tmp_path / "answer"
    answer.touch()
    environ = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SHELL": "fish",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    subprocess.run([COMMAND], env=environ, cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=False)
    return {word.partition("\t")[0].strip() for word in answer.read_text().split("\n")} - {""}
