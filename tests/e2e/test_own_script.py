"""A person's own training script, launched by keys alone."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from actions import fill, go_to, open_form, submit, wait_top
from support.component_files import make_environment
from support.docker_registry import PROGRAM, local_registry
from support.kubernetes_cluster import in_namespace
from support.waiting import TORCH_PATIENCE

pytestmark = pytest.mark.slow

SCRIPT = """
import argparse, os, sys, time
import {package}
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
if args.lr > 1:
    raise ValueError("the loss is not finite")
for step in range(1, 6):
    print(f"step {{step}}/5 loss {{args.lr + args.seed + 1 / step:.4f}}", flush=True)
    time.sleep(0.05)
print(f"lr {{args.lr}} trained by {{sys.executable}}", flush=True)
"""
RANKS = """
import os
import torch.distributed as dist
if __name__ == "__main__":
    dist.init_process_group("gloo")
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}", flush=True)
    # A rank that ends before the others are connected is a failure of the job.
    dist.barrier()
    dist.destroy_process_group()
"""


def test_fail_fix_sweep_and_compare_in_a_project(terminal, tmp_path):
    python = make_environment(tmp_path / ".venv") / "bin" / "python"
    [site] = (tmp_path / ".venv" / "lib").glob("python*/site-packages")
    (site / "only_in_the_project.py").touch()
    (tmp_path / "train.py").write_text(SCRIPT.format(package="only_in_the_project"))
    app = terminal(wait="No jobs yet")
    open_form(app, "train.py")
    app.wait(re.escape(str(python)[:40]))
    fill(app, {"lr": "5"})
    submit(app)
    wait_top(app, "Failed")
    app.press("enter", wait=r"━ Why[\s\S]*ValueError: the loss is not finite")
    app.press("escape", wait="STATE")
    app.press("e", wait=r"^▌\S")
    app.wait(r"lr +5 +last run")
    fill(app, {"lr": "0.5"})
    submit(app)
    wait_top(app, "Succeeded")
    app.press("g", wait=f"lr 0.5 trained by {re.escape(str(python))[:30]}")
    open_form(app, "train.py")
    fill(app, {"lr": "0.1, 0.2", "seed": "1..3"})
    app.wait("submits 6 jobs")
    app.press("ctrl+s", wait="Type 6")
    app.press("6", "enter", wait=lambda text: len(re.findall(r"Succeeded +train lr=0\.[12] seed=[123] ", text)) == 6)
    # All of the sweep in one chart.
    app.press("/")
    app.press("group:train", "enter", wait="6 of 8")
    app.press("*", wait="6 marked")
    app.press("o", wait=r"─ 6 jobs")
    rows = [f"Succeeded +train +{seed} +0\\.{lr} " for seed in (1, 2, 3) for lr in (1, 2)]
    app.wait(lambda text: all(re.search(row, text) for row in rows))


@pytest.mark.torch
def test_torchrun_starts_two_ranks_of_a_script(terminal, tmp_path, require):
    require("torch", importlib.util.find_spec("torch") is not None, "pip install torch")
    (tmp_path / "train.py").write_text(RANKS)
    app = terminal(environ={"VIRTUAL_ENV": sys.prefix}, wait="No jobs yet")
    open_form(app, "train.py")
    go_to(app, "launcher")
    app.press("right", wait="nproc_per_node")
    fill(app, {"nproc_per_node": "2"})
    submit(app)
    wait_top(app, "Succeeded", TORCH_PATIENCE)
    app.wait(lambda text: all(f"rank {rank} of 2" in text for rank in range(2)))


def write_project_of_image(folder) -> None:
    """Write a script and how it gets into the image `python:local`, which has python3 only."""
    (folder / "train.py").write_text(SCRIPT.format(package="json"))
    (folder / "python").write_text('#!/bin/sh\nexec python3 "$@"\n')
    (folder / "python").chmod(0o755)
    (folder / "Dockerfile.torchx").write_text("ARG IMAGE\nFROM $IMAGE\nCOPY . .\nCOPY python /usr/bin/python\n")


def test_script_is_shipped_into_a_container(terminal, own_engine, tmp_path):
    own_engine.start(python=True)
    write_project_of_image(tmp_path)
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = local_docker\n")
    app = terminal(wait=r"✓ +docker +Docker \d")
    open_form(app, "train.py")
    fill(app, {"lr": "0.3", "image": "python:local"})
    submit(app)
    wait_top(app, "Succeeded")
    app.wait(r"lr 0\.3 trained by /usr/bin/python3")


def test_script_is_shipped_to_kubernetes(terminal, own_engine, kubernetes_cluster, require, tmp_path):
    require("docker-registry", PROGRAM is not None, "apt install docker-registry")
    own_engine.start(python=True)
    write_project_of_image(tmp_path)
    path = in_namespace(kubernetes_cluster.kubeconfig, kubernetes_cluster.namespace, tmp_path / "kubeconfig")
    (tmp_path / "registry").mkdir()
    with local_registry(tmp_path / "registry") as address:
        # What the node keeps for itself is all that is asked for: the machine has few cores.
        (tmp_path / ".torchxconfig").write_text(
            "[cli:run]\nscheduler = kubernetes\nworkspace = .\n[kubernetes]\nqueue = default\n"
            f"reserved_millicpu = 1000\nimage_repo = {address}/train\n[component:train.py]\nimage = python:local\n"
        )
        app = terminal(environ={"KUBECONFIG": path}, wait=r"✓ +kubernetes +Kubernetes v\d")
        open_form(app, "train.py")
        app.wait(r"queue +default")
        fill(app, {"lr": "0.3"})
        submit(app)
        wait_top(app, "Succeeded", TORCH_PATIENCE)
        app.wait(r"lr 0\.3 trained by /usr/bin/python3")


def test_script_runs_on_slurm(terminal, slurm_cluster, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT.format(package="json"))
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = slurm\n")
    app = terminal(environ={"SLURM_CONF": slurm_cluster}, wait="No jobs yet|Asking|STATE")
    open_form(app, "train.py")
    fill(app, {"lr": "0.3"})
    submit(app)
    app.wait(r"Succeeded\s+train \d+")
    app.wait(r"lr 0\.3 trained by /")
