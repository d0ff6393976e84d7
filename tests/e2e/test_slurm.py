"""Jobs of a real Slurm cluster, by keys alone."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from actions import cancel, fill, launch, open_form, submit
from support.waiting import CLUSTER_PATIENCE

pytestmark = pytest.mark.slow


@pytest.fixture
def app(terminal, slurm_cluster, tmp_path):
    """Open the dashboard beside a cluster that runs the jobs of other tests, too."""
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = slurm\n")
    return terminal(environ={"SLURM_CONF": slurm_cluster}, wait="No jobs yet|Asking|STATE")


def test_four_replicas_on_two_nodes(app, tmp_path):
    values = {"steps": "600", "num_replicas": "4", "step_seconds": "0.5", "image": str(tmp_path)}
    launch(app, "demo.train", {**values, "nodes": "2", "sbatch_args": "--ntasks-per-node=2"})
    app.wait(r"Running +demo-train\S* \d+ .*slurm +4/4", CLUSTER_PATIENCE)
    app.wait(lambda text: all(re.search(rf"^.*\b{k}[│┆].*step", text, re.MULTILINE) for k in range(4)))
    app.press("enter", wait="─ Replicas")
    app.press("tab", wait="━ Replicas")
    for number in range(4):
        app.press(str(number), wait=rf"trainer/{number} +● Running")
    cancel(app)
    app.wait(r"cancelled by \S+ after")
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


def test_a_script_of_ones_own(app, slurm_cluster, tmp_path):
    (tmp_path / "own.sbatch").write_text(SCRIPT)
    open_form(app, "own.sbatch")
    fill(app, {"config": "a.yaml", "time": "20"})
    # Which of them, other jobs on the cluster say.
    app.wait("Slurm would start it at|Slurm gives no estimate of the start")
    submit(app)
    app.wait(r"Running\s+own.sbatch \d+", CLUSTER_PATIENCE)
    app.wait("config is a.yaml")
    app.wait(r"a task[\s\S]*a task", CLUSTER_PATIENCE)
    (job_id,) = re.findall(r"Running\s+own.sbatch (\d+)", app.text())[:1]

    def shown(name: str) -> str:
        environ = {**os.environ, "SLURM_CONF": slurm_cluster}
        text = subprocess.run(["scontrol", "show", "job", job_id], env=environ, capture_output=True, text=True).stdout
        # A controller that is busy may not answer.
        return next(iter(text.partition(f"{name}=")[2].split()), "")

    app.wait(lambda _: shown("TimeLimit") == "00:20:00")
    app.press("A", wait="More actions")
    app.press("j")
    app.press("enter", wait="limit: a time")
    app.press("15")
    app.press("enter", wait=lambda _: shown("TimeLimit") == "00:15:00")
    cancel(app)
    app.wait(r"Cancelled\s+own.sbatch \d+")
    # Launched again with its form: what was given then stands there.
    app.press("e", wait=r"time\s+20\s+last run")
    app.press("escape")
    app.press("q")
    assert app.wait_for_end() == 0


ARRAY = """#!/bin/bash
#SBATCH --array=0-19%2
#SBATCH --time=10
#SBATCH --mem=10M
echo "task $SLURM_ARRAY_TASK_ID of the array"
[ "$SLURM_ARRAY_TASK_ID" -lt 4 ] || sleep 600
"""


def test_an_array_of_20_tasks_two_at_once(app, tmp_path):
    (tmp_path / "sweep.sbatch").write_text(ARRAY)
    open_form(app, "sweep.sbatch")
    submit(app)
    app.wait(r"Running\s+sweep.sbatch \d+", CLUSTER_PATIENCE)
    # The tasks that end make room for others; two run at once.
    app.wait("4 done, 2 running, 14 pending: its array runs as many")
    app.press("enter", wait=r"━ Replicas|─ Replicas")
    app.wait("raise the array's limit")
    app.wait(r"19 ○")
    # A task by its number: its log alone.
    app.press("l", wait=r"›  Logs[\s\S]*task 5 of the array")
    app.press("#", wait="all 20, merged")
    app.press("5", "enter", wait=lambda text: "task 5 of the array" in text and "task 4 of" not in text)
    app.press("escape", wait=r"─ Replicas")
    # One task is ended, and the next one takes its place.
    act(app, "end tasks", "4")
    app.wait("End tasks 4")
    app.press("y", wait="1 cancelled, 4 done, 2 running, 13 pending")
    act(app, "at once", "3")
    app.wait("3 running, 12 pending")
    cancel(app)
    app.wait(r"(Cancelled|Failed)\s+.*sweep.sbatch")
    app.press("escape")
    # None is lost of those that never started.
    app.wait(r"(Cancelled|Failed)\s+sweep.sbatch \d+\s+slurm\s+4/20")
    app.press("q")
    assert app.wait_for_end() == 0


def act(app, name: str, value: str) -> None:
    """Do one of a job's further actions, with a value."""
    app.press("A")
    rows = re.compile(r"│ +(\w+ ?\w*?) +[A-Z]")
    app.wait(lambda text: "More actions" in text and name in rows.findall(text))
    app.press(*["down"] * rows.findall(app.text()).index(name), "enter", wait=f"{name}: ")
    app.press(value)
    app.press("enter")
