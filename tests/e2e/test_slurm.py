"""Jobs of a real Slurm cluster, by keys alone."""

from __future__ import annotations

import os
import re
import subprocess
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
    app.wait(r"Running\s+sh \d+")
    app.wait("hello from a node")
    app.wait("an aside")
    app.press("x")
    app.wait("Cancel this job")
    app.press("y")
    app.wait(r"Cancelled\s+sh \d+")
    app.press("q")
    assert app.wait_for_end() == 0


SCRIPT = """#!/bin/bash
# Prints what it was given.
#SBATCH --time=10
#SBATCH --ntasks=2
config=$1
echo "config is $config"
srun echo a task
sleep 600
"""


def test_a_script_of_ones_own(terminal, slurm_cluster, tmp_path: Path):
    (tmp_path / "own.sbatch").write_text(SCRIPT)
    app = terminal(environ={"SLURM_CONF": slurm_cluster})
    app.wait("No jobs yet|Asking|STATE")
    open_form(app, "own.sbatch")
    fill(app, {"config": "a.yaml", "time": "20"})
    # Which of them, other jobs on the cluster say.
    app.wait("Slurm would start it at|Slurm gives no estimate of the start")
    submit(app)
    app.wait(r"Running\s+own.sbatch \d+")
    app.wait("config is a.yaml")
    app.wait(r"a task[\s\S]*a task")
    (job_id,) = re.findall(r"Running\s+own.sbatch (\d+)", app.text())[:1]

    def shown(name: str) -> str:
        environ = {**os.environ, "SLURM_CONF": slurm_cluster}
        text = subprocess.run(["scontrol", "show", "job", job_id], env=environ, capture_output=True, text=True).stdout
        return text.split(f"{name}=")[1].split()[0]

    assert shown("TimeLimit") == "00:20:00"
    app.press("A")
    app.wait("More actions")
    app.press("j")
    app.press("enter")
    app.wait("limit: a time")
    app.press("15")
    app.press("enter")
    app.wait(lambda _: shown("TimeLimit") == "00:15:00")
    app.press("x")
    app.wait("Cancel this job")
    app.press("y")
    app.wait(r"Cancelled\s+own.sbatch \d+")
    # Launched again with its form: what was given then stands there.
    app.press("e")
    app.wait(r"time\s+20\s+last run")
    app.press("escape")
    app.press("q")
    assert app.wait_for_end() == 0
