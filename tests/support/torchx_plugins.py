"""Packages as others write them for TorchX, as if installed: modules and entry points in a folder for PYTHONPATH."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from torchx_tui.backends import registry
from torchx_tui.backends.plugin.remote import forget_failures
from torchx_tui.guest.worker import Worker
from torchx_tui.specs.resource_names import named_resources

PROCESS_JOBS = Path(__file__).parent / "process_jobs.py"


def has_torchx() -> bool:
    """Tell whether TorchX is installed."""
    return find_spec("torchx") is not None


class Plugins:
    """A folder of installed packages.

    Args:
        folder: it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)

    def module(self, name: str, text: str) -> None:
        """Write a module, with dots in its name within packages that have no file of their own."""
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))

    def distribution(self, name: str, group: str, **points: str) -> None:
        """Make an installed package of this name with entry points in one group."""
        info = self.folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")

    def process_jobs(self, name: str = "processes") -> None:
        """Install a scheduler that runs processes, written against TorchX's classes."""
        shutil.copy(PROCESS_JOBS, self.folder / "acme_process_jobs.py")
        self.distribution("acme-process-jobs", "torchx.schedulers", **{name: "acme_process_jobs:create"})


@contextmanager
def as_if_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    """Give a folder whose packages are as if installed, in this process and in those that it starts.

    The guests of their schedulers are ended with it.

    Args:
        folder: it is made; what is imported of it has ``acme`` or ``torchx_plugins`` in front of its name.
        monkeypatch: takes back what is set.
    """
    made = Plugins(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("TORCHX_PLUGINS_SOURCE", "3")
    workers: list[Worker] = []
    init = Worker.__init__

    def init_and_remember(worker: Worker, *arguments: Any, **settings: Any) -> None:
        workers.append(worker)
        init(worker, *arguments, **settings)

    monkeypatch.setattr(Worker, "__init__", init_and_remember)
    forget_plugins()
    try:
        yield made
    finally:
        for worker in workers:
            worker.close()
        forget_plugins()


def forget_plugins() -> None:
    """Look for plugins anew."""
    for name in [*sys.modules]:
        if name.startswith(("acme", "torchx_plugins")):
            del sys.modules[name]
    importlib.invalidate_caches()
    registry._plugins.cache_clear()
    forget_failures()
    named_resources.reset()
