import functools
import importlib.util
import inspect
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis.internal.conjecture import providers
from support.waiting import PATIENCE, wait_until

Launcher = Callable[..., str]

# TorchX reads the help of options from its source at each call, which would take most of the time of a case.
_getsource = functools.lru_cache(maxsize=256)(inspect.getsource)


@pytest.fixture(autouse=True)
def same_cases_each_time(monkeypatch):
    """Keep hypothesis from trying constants of the modules that happen to be loaded: those of the tests before."""
    if hasattr(providers, "_get_local_constants"):
        none = type(providers._get_local_constants())()
        monkeypatch.setattr(providers, "_get_local_constants", lambda: none)
        providers.CONSTANTS_CACHE.cache.clear()


@pytest.fixture
def torchx(require, monkeypatch):
    """Skip without TorchX, and keep it from reading the user's settings."""
    present = importlib.util.find_spec("torchx") is not None
    require("interop", present, "install torchx-nightly, `pip install -e .[interop]`")
    monkeypatch.setenv("TORCHXCONFIG", "")
    monkeypatch.setattr(inspect, "getsource", _getsource)


@pytest.fixture
def python(torchx, tmp_path):
    """Return a function that runs Python, with TorchX installed, in the current environment, and returns its stdout."""

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", *arguments],
            cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def cli(python):
    """Return a function that runs TorchX's command line and returns its stdout."""

    def ask(arguments):
        try:
            return [python("-m", "torchx.cli.main", *arguments)]
        except AssertionError as error:
            # It inspects each listed container, and fails if another test has just removed one.
            if "No such container" not in str(error):
                raise
            return []

    return lambda *arguments: wait_until(lambda: ask(arguments), f"torchx {arguments[0]}")[0]
