from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis.internal.conjecture import providers
from interop.release_0_7 import HOW, NIGHTLY, PYTHON, is_installed
from support.waiting import PATIENCE, wait_until

Launcher = Callable[..., str]

# TorchX reads the texts of options from its source whenever it is asked for them: most of what a case would take.
_getsource = functools.lru_cache(maxsize=256)(inspect.getsource)


@pytest.fixture(autouse=True)
def same_cases_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep hypothesis from trying constants of the modules that happen to be loaded: those of the tests before."""
    if hasattr(providers, "_get_local_constants"):
        none = type(providers._get_local_constants())()
        monkeypatch.setattr(providers, "_get_local_constants", lambda: none)
        providers.CONSTANTS_CACHE.cache.clear()


@pytest.fixture
def torchx(require: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> str:
    """Want TorchX itself, and keep it from reading the settings of the person who runs the tests."""
    present = importlib.util.find_spec("torchx") is not None
    require("interop", present, "install torchx-nightly, `pip install -e .[interop]`")
    monkeypatch.setenv("TORCHXCONFIG", "")
    monkeypatch.setattr(inspect, "getsource", _getsource)
    return "torchx"


@pytest.fixture
def release() -> str:
    """Return which release of TorchX is run; tests of several override it."""
    return NIGHTLY


@pytest.fixture
def interpreter(torchx: str, release: str, require: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the Python that this release of TorchX is installed for."""
    if release == NIGHTLY:
        return sys.executable
    require("interop", is_installed(), HOW)
    # That it is empty says nothing to the release before: the home folder is empty too.
    monkeypatch.delenv("TORCHXCONFIG")
    return str(PYTHON)


@pytest.fixture
def python(interpreter: str, tmp_path: Path) -> Launcher:
    """Return what runs Python, where TorchX is installed, in the environment of its call, and gives its stdout."""

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [interpreter, "-W", "ignore", *arguments],
            cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def cli(python: Launcher) -> Launcher:
    """Return what runs TorchX's command line and gives its stdout."""

    def ask(arguments: Sequence[str]) -> list[str]:
        try:
            return [python("-m", "torchx.cli.main", *arguments)]
        except AssertionError as error:
            # Its list inspects each container by itself, and fails if one is removed meanwhile, such as another test's.
            if "No such container" not in str(error):
                raise
            return []

    return lambda *arguments: wait_until(lambda: ask(arguments), f"torchx {arguments[0]}")[0]
