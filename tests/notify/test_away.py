"""Who tells when nobody looks: `run --notify`, `wait`, `doctor --notify`, a dashboard of jobs that run elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.hook import Hook
from support.shell import shell
from support.slow_backend import Backend
from support.terminal import Terminal
from support.waiting import wait_until

from torchx_tui.notify.helper import is_wanted

HANDLE = "slow://torchx/train-1"


@pytest.fixture
def backend(tmp_path, hook):
    """A backend that runs jobs elsewhere: no supervisor of ours tells of them."""
    return Backend(tmp_path / "slow", f'[notify]\nevents = ["failure"]\nwebhook = "{hook.url}"\n')


@pytest.fixture
def dashboard(backend, tmp_path):
    opened: list[Terminal] = []

    def start() -> Terminal:
        opened.append(Terminal(environ=backend.environ, cwd=tmp_path))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.__exit__()


def config(folder: Path, *lines: str) -> dict[str, str]:
    path = folder / "config.toml"
    path.write_text("\n".join(["[notify]", *lines]))
    return {"TORCHX_TUI_CONFIG": str(path)}


def told(hook: Hook, number: int) -> list[tuple[str, str]]:
    """Wait for so many messages; return the job and the state of each."""
    wait_until(lambda: len(hook.posted) >= number, f"{number} messages")
    return [(body["handle"], body["state"]) for _, _, body in hook.posted]


def test_a_dashboard_tells_of_jobs_that_run_elsewhere(backend, hook, dashboard):
    """Once, however many dashboards see the end; what succeeds is told only where it is wanted."""
    backend.has({"train-1": "RUNNING", "eval-1": "RUNNING"})
    first, second = dashboard(), dashboard()
    for app in (first, second):
        app.wait(r"Running +train-1")
    backend.has({"train-1": "FAILED", "eval-1": "SUCCEEDED"})
    for app in (first, second):
        app.wait(r"Failed +train-1")
    assert told(hook, 1) == [(HANDLE, "FAILED")]
    # By the next one that is told, each helper of the first end has said what it had to say.
    backend.has({"train-2": "RUNNING", "train-1": "FAILED", "eval-1": "SUCCEEDED"})
    first.wait(r"Running +train-2")
    backend.has({"train-2": "FAILED", "train-1": "FAILED", "eval-1": "SUCCEEDED"})
    assert told(hook, 2) == [(HANDLE, "FAILED"), ("slow://torchx/train-2", "FAILED")]


def test_wait_tells_of_the_end(backend, hook):
    """Of a failure, with what `wait` itself says and its exit code."""
    backend.has({"train-1": "FAILED", "eval-1": "SUCCEEDED"})
    assert shell("wait", "slow://torchx/eval-1", environ=backend.environ).returncode == 0
    done = shell("wait", HANDLE, environ=backend.environ)
    assert done.returncode == 1, done.stderr
    assert told(hook, 1) == [(HANDLE, "FAILED")]


def test_run_with_notify_tells_of_one_job(tmp_path, hook):
    """All that happens to it, though the settings want nothing told; a second job is not told of."""
    environ = config(tmp_path, "events = []", f'webhook = "{hook.url}"')
    quiet = shell("run", "-s", "local_cwd", "utils.echo", cwd=tmp_path, environ=environ)
    assert quiet.returncode == 0, quiet.stderr
    done = shell("run", "-s", "local_cwd", "--notify", "utils.echo", cwd=tmp_path, environ=environ)
    assert done.returncode == 0, done.stderr
    handle = done.stdout.split()[0]
    assert told(hook, 1) == [(handle, "SUCCEEDED")]
    assert is_wanted(handle)
    assert not is_wanted(quiet.stdout.split()[0])


def test_run_with_notify_needs_a_way(tmp_path):
    """It says which settings there are, and launches nothing."""
    done = shell("run", "-s", "local_cwd", "--notify", "utils.echo", cwd=tmp_path)
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "set notify.command, webhook, mail or terminal in config.toml" in done.stderr


def test_doctor_sends_a_message(tmp_path, hook):
    """On every way, and says which of them fails, with no secret."""
    out = tmp_path / "told.json"
    program = tmp_path / "tell"
    program.write_text(f"#!{sys.executable}\nimport sys\nopen({str(out)!r}, 'w').write(sys.stdin.read())")
    program.chmod(0o700)
    environ = config(tmp_path, f'command = ["{program}"]', f'webhook = "{hook.url}/$HOOK_PATH"')
    environ = {**environ, "HOOK_PATH": "T0/hidden"}
    done = shell("doctor", "--notify", environ=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path for path, _, _ in hook.posted] == ["/T0/hidden"]
    assert json.loads(out.read_text())["event"] == "test"
    hook.answers = [404]
    done = shell("doctor", "--notify", environ=environ)
    assert done.returncode == 1
    assert "404" in done.stdout + done.stderr
    assert "hidden" not in done.stdout + done.stderr
