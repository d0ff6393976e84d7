"""Jobs of a real Slurm cluster, by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from actions import fill, open_form, submit

pytestmark = pytest.mark.slow


def test_launch_read_and_cancel(terminal, slurm_cluster, tmp_path: Path):
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = slurm\n")
    app = terminal(environ={"SLURM_CONF": slurm_cluster})
    # Slurm lists the jobs of other tests, too.
    app.wait("No jobs yet|Asking|STATE")
    open_form(app, "utils.sh")
    app.wait("partition")
    fill(app, {"args": "sh -c 'echo hello from a node; echo an aside >&2; sleep 600'"})
    submit(app)
    # A number is no name.
    app.wait(r"Running\s+sh \d+", 60)
    app.wait("hello from a node", 60)
    app.wait("an aside", 60)
    app.press("x")
    app.wait("Cancel this job")
    app.press("y")
    app.wait(r"Cancelled\s+sh \d+", 60)
    app.press("q")
    assert app.wait_for_end() == 0
