"""A real training job: torchrun on two nodes with two workers each, to its end, and cancelled in the middle."""

import importlib.util
import re
import socket
import time
from pathlib import Path

import pytest
from actions import launch, wait_top
from support.processes import processes_of_job
from support.waiting import PROMPT, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.torch]

SCRIPT = Path(__file__).parents[2] / "examples" / "ddp_digits.py"
GRACE_SECONDS = 2.0


@pytest.fixture(autouse=True)
def torch(require):
    """Skip where what the example trains with is not installed."""
    present = all(importlib.util.find_spec(name) for name in ("torch", "sklearn"))
    require("torch", present, "pip install 'torchx-tui[examples]'")


@pytest.fixture
def port():
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_four_workers_train_to_the_end(terminal, port):
    app = terminal()
    app.wait("No jobs yet")
    launch(
        app,
        "dist.torchrun",
        {"script_args": "--epochs 6", "script": str(SCRIPT), "j": "2x2", "rdzv_port": str(port)},
    )
    wait_top(app, "Running")
    row = wait_top(app, "Succeeded")
    assert "2/2" in row
    app.press("l")
    app.wait("›  Logs")
    app.press("g")
    app.wait(lambda text: all(f"rank {rank} of 4" in text for rank in range(4)))
    # torchrun may print a page of its own when its agents leave at different times: page to the line.
    accuracy = re.compile(r"[01]│.*accuracy (0\.\d\d)")
    for _ in range(12):
        if accuracy.search(app.text()):
            break
        before = app.text()
        app.press("ctrl+d")
        app.wait(lambda text, before=before: text != before or accuracy.search(text))
    found = accuracy.search(app.text())
    # By rank 0; which replica has it torchrun decides, by the order of process ids, which begin anew at times.
    assert found, app.text()
    assert float(found[1]) > 0.8


def test_cancelled_in_the_middle_no_process_is_left(terminal, port, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(f"[local]\ngrace_seconds = {GRACE_SECONDS}\n")
    app = terminal(environ={"TORCHX_TUI_CONFIG": str(config)})
    app.wait("No jobs yet")
    launch(
        app,
        "dist.torchrun",
        {
            "script_args": "--stubborn --epochs 1000 --step-seconds 0.05",
            "script": str(SCRIPT),
            "j": "2x2",
            "rdzv_port": str(port),
        },
    )
    wait_top(app, "Running")
    # Every rank is in the middle of its training.
    app.wait(lambda text: all(f"rank {rank} loss" in text for rank in range(4)))
    name = re.findall(r"ddp_digits-[a-z0-9]{10,16}", app.text())[0]
    # Two shells or torchruns, and two workers of each.
    assert len(processes_of_job(f"/{name}")) >= 6
    app.press("x")
    app.wait("Keep running")
    app.press("y")
    asked = time.monotonic()
    wait_until(lambda: not processes_of_job(f"/{name}"), "the end of every process")
    took = time.monotonic() - asked
    wait_top(app, "Cancelled")
    assert took < PROMPT
    app.press("enter")
    app.wait(r"cancelled by \S+ after")
