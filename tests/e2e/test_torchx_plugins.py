"""Schedulers that are written against TorchX's classes, in the dashboard: one that works, beside some that do not."""

import pytest
from actions import cancel, fill, open_form, submit
from support.torchx_plugins import Plugins, has_torchx

pytestmark = pytest.mark.slow


@pytest.fixture
def environ(require, tmp_path):
    """Return the environment of a dashboard with a plugin, one that hangs and one that raises."""
    require("interop", has_torchx(), "torchx-nightly is not installed: pip install 'torchx-tui[interop]'")
    plugins = Plugins(tmp_path / "site")
    plugins.process_jobs()
    plugins.module("acme_hangs", "import threading; threading.Event().wait()")
    plugins.module("acme_raises", "print('noise'); raise RuntimeError('no licence')")
    plugins.distribution("acme", "torchx.schedulers", hangs="acme_hangs:create", raises="acme_raises:create")
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = processes\n[processes]\nfolder = x\n")
    return {
        "PYTHONPATH": str(plugins.folder),
        "PROCESS_JOBS": str(tmp_path / "jobs"),
        "TORCHX_PLUGINS_SOURCE": "3",
    }


def test_launch_follow_and_cancel_beside_broken_ones(terminal, environ):
    app = terminal(environ=environ, wait="No jobs yet|Asking")
    open_form(app, "utils.sh")
    # Its run options are in the form, with what it takes them for.
    assert "processes" in app.text()
    app.wait("folder")
    app.wait("nice")
    fill(app, {"args": "sh -c 'echo hello from a plugin; sleep 600'"})
    submit(app)
    app.wait(r"Running\s+sh")
    app.wait("hello from a plugin")
    # What is wrong with the others is told, and nothing of what they print.
    app.press(":")
    app.press("doctor")
    app.press("enter", wait=r"scheduler processes: acme_process_jobs:create of acme-process-jobs")
    app.wait(r"RuntimeError: no licence")
    app.wait(r"hangs\s+hangs was not loaded within 8 s: importing acme_hangs:create of")
    assert "nobody asked for" not in app.text()
    app.press("escape", wait=r"Running\s+sh")
    cancel(app)
    app.wait(r"Cancelled\s+sh")
    app.press("q")
    assert app.wait_for_end() == 0
