"""TorchX 0.7.0 in a process of its own, and the two releases beside us in this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interop.component_calls import built_by_us
from interop.oracle import Refused
from interop.releases import Release, pinned
from support.oracle_counts import ALL_CASES
from support.waiting import PATIENCE

import torchx_tui.specs as our_specs
from torchx_tui.backends.docker import labels, scheduler
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.kubernetes.request import manifest

NIGHTLY, BEFORE = "nightly", "0.7.0"
RELEASES = [NIGHTLY, BEFORE] if ALL_CASES else [NIGHTLY]
"""Those whose programs are run: the one before by `make oracle` alone."""
PYTHON = Path(sys.prefix, "torchx-0.7", "bin", "python")
"""The Python that `make oracle` installs TorchX 0.7.0 for."""
HOW = "install torchx 0.7.0: `make .venv/torchx-0.7/.installed`"
_SERVER = Path(__file__).with_name("release_server.py")
ADDED_LABELS = {labels.APP_DEF, labels.APP_NAME, labels.SESSION, labels.USER, labels.REPLICAS, labels.ROLE_INDEX}
"""The labels of containers that TorchX does not have."""


class Release07:
    """TorchX 0.7.0; ask it as a `Release` is asked."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [PYTHON, "-W", "ignore", str(_SERVER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip
        if self._line().strip() != "ready":
            raise RuntimeError(f"TorchX 0.7.0 does not start: {self._process.communicate()[1]}")

    def ask(self, operation: str, *arguments: Any) -> Any:
        """Return what an operation gives, or of what kind its error is."""
        assert self._process.stdin
        print(json.dumps([operation, *arguments]), file=self._process.stdin, flush=True)
        return json.loads(self._line())

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=PATIENCE)


def is_installed() -> bool:
    """Return whether TorchX 0.7.0 is where `make oracle` puts it."""
    return PYTHON.exists() and any(PYTHON.parents[1].glob("lib/python*/site-packages/torchx-0.7.0.dist-info"))


def our_release() -> Release:
    """Return what is asked of us in the same way; the labels and ports that only ours have are left out."""
    docker = DockerScheduler("torchx")

    def request(app: Any, cfg: dict[str, Any]) -> Any:
        made = docker.submit_dryrun(app, cfg).request
        for container in made.containers:
            container.kwargs.pop("ports", None)
            for name in ADDED_LABELS:
                container.kwargs["labels"].pop(name, None)
        return made

    def job(app: Any, arguments: dict[str, Any]) -> Any:
        return manifest.app_to_resource(app, "default", **arguments)

    return Release(our_specs, request, job, built_by_us)


def pin_ours(set_attribute: Callable[[Any, str, Any], None]) -> None:
    """Make the ids of our apps those that `releases` gives TorchX's."""
    for module in (scheduler, manifest):
        set_attribute(module, "make_unique", pinned)


def value_of(answer: dict[str, Any]) -> Any:
    """Return an answer's value, or its error."""
    return Refused.told(answer["refused"], answer["of"]) if "refused" in answer else answer["value"]
