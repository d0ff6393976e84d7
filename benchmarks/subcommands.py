"""Each subcommand of the shell from its start to its end, beside the same one of TorchX itself, on local_cwd.

Medians of rounds that take turns, since TorchX's `run` waits in steps of a second. Budget: no subcommand slower than
TorchX's, `run --wait utils.echo` in half its time. Of jobs of another process TorchX knows nothing on this scheduler:
its status, describe, log, list and cancel end with an error there, and are measured all the same. Both run from
compiled files, as when they are installed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks._sizes import scaled

ROUNDS = scaled(10, 1)
PATIENCE_SECONDS = 60.0
_RUN: tuple[str, ...] = ("run", "-s", "local_cwd", "--wait", "utils.echo", "--msg", "hi")
# HANDLE stands for a job that was launched before.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--help",),
    ("builtins",),
    ("builtins", "--print", "utils.echo"),
    ("runopts",),
    ("runopts", "local_cwd"),
    ("configure", "--print"),
    ("list", "-s", "local_cwd"),
    ("status", "HANDLE"),
    ("describe", "HANDLE"),
    ("log", "HANDLE"),
    ("cancel", "HANDLE"),
    ("delete", "local_cwd://torchx/none"),
    ("run", "-s", "local_cwd", "--dryrun", "utils.echo", "--msg", "hi"),
    _RUN,
)
# The most that ours may take, as a part of TorchX's time.
_BUDGETS: dict[tuple[str, ...], float] = {_RUN: 0.5}


def milliseconds(argv: list[str], environ: Mapping[str, str], folder: Path) -> float:
    """Return how long a command takes, in milliseconds."""
    began = time.perf_counter()
    subprocess.run(
        argv,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return (time.perf_counter() - began) * 1e3


def run() -> list[tuple[str, str]]:
    """Return a row for each subcommand: both medians, and their ratio."""
    ours = str(Path(sys.executable).with_name("torchx-tui"))
    theirs = str(Path(sys.executable).with_name("torchx"))
    if not Path(theirs).exists():
        return [("TorchX", "not installed here: not measured")]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        environ = {**os.environ, "HOME": folder, "XDG_STATE_HOME": f"{folder}/state", "TORCHXCONFIG": ""}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        environ["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"
        launched = subprocess.run(
            [ours, *_RUN], cwd=home, env=environ, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
        )
        handle = launched.stdout.strip()
        return [_row(words, [ours, theirs], handle, environ, home) for words in COMMANDS]


def _row(
    words: tuple[str, ...], programs: list[str], handle: str, environ: Mapping[str, str], folder: Path
) -> tuple[str, str]:
    argv = [handle if word == "HANDLE" else word for word in words]
    taken: dict[str, list[float]] = {program: [] for program in programs}
    for program in programs:
        milliseconds([program, *argv], environ, folder)
    for _ in range(ROUNDS):
        for program in programs:
            taken[program].append(milliseconds([program, *argv], environ, folder))
    ours, theirs = (statistics.median(taken[program]) for program in programs)
    budget = _BUDGETS.get(words, 1.0)
    verdict = "" if ours / theirs <= budget else "  MISSED"
    return " ".join(words), f"{ours:.0f} ms, TorchX {theirs:.0f} ms: {ours / theirs:.2f} (budget {budget:g}){verdict}"
