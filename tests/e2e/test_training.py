"""Real training jobs: torchrun on two nodes, two workers on a node, Hugging Face's Trainer, Lightning."""

import csv
import importlib.util
import json
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from actions import cancel, launch, wait_top
from support.docker_registry import free_port
from support.processes import processes_of_job
from support.terminal import COMMAND, Terminal
from support.waiting import PATIENCE, TORCH_PATIENCE, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.torch]

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPT = EXAMPLES / "ddp_digits.py"
GRACE_SECONDS = 2.0


@pytest.fixture(autouse=True)
def torch(require):
    """Skip where what the example trains with is not installed."""
    present = all(importlib.util.find_spec(name) for name in ("torch", "sklearn"))
    require("torch", present, "pip install 'torchx-tui[examples]'")


@pytest.fixture
def trainers(require):
    """Skip where the trainers of the other examples are not installed."""
    present = all(importlib.util.find_spec(name) for name in ("transformers", "accelerate", "lightning", "tensorboard"))
    require("trainers", present, "pip install 'torchx-tui[examples]'")


def test_two_nodes_train_to_the_end(terminal, tmp_path):
    app = terminal(wait="No jobs yet")
    launch(
        app,
        "dist.torchrun",
        {"script_args": "--epochs 6", "script": str(SCRIPT), "j": "2x1", "rdzv_port": str(free_port())},
    )
    wait_top(app, "Running")
    row = wait_top(app, "Succeeded", TORCH_PATIENCE)
    assert "2/2" in row
    app.press("l", wait="›  Logs")
    app.press("g", wait=lambda text: all(f"rank {rank} of 2" in text for rank in range(2)))
    # torchrun may print a page of its own when its agents leave at different times: page to the line.
    accuracy = re.compile(r"[01]│.*accuracy (0\.\d\d)")
    for _ in range(12):
        if accuracy.search(app.text()):
            break
        before = app.text()
        app.press("ctrl+d", wait=lambda text, before=before: text != before or accuracy.search(text))
    found = accuracy.search(app.text())
    # By rank 0; which replica has it torchrun decides, by the order of process ids, which begin anew at times.
    assert found, app.text()
    assert float(found[1]) > 0.8
    # The curve is that of one rank: each epoch once, to the last digit that it printed.
    app.press("p", wait="━ Metrics")
    printed = defaultdict(list)
    for log in Path(os.environ["XDG_STATE_HOME"]).rglob("ddp_digits/[01]/stdout.log"):
        for epoch, rank, loss in re.findall(r"epoch (\d+)/6 rank (\d) loss ([\d.]+)", log.read_text()):
            printed[rank].append((float(epoch), float(loss)))
    app.wait(lambda text: any(f"loss {losses[-1][1]:.4f}" in re.sub(" +", " ", text) for losses in printed.values()))
    assert saved_curves(app, tmp_path)["loss"] in printed.values()


def test_cancelled_in_the_middle_no_process_is_left(terminal, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(f"[local]\ngrace_seconds = {GRACE_SECONDS}\n")
    app = terminal(environ={"TORCHX_TUI_CONFIG": str(config)}, wait="No jobs yet")
    launch(
        app,
        "dist.torchrun",
        {
            "script_args": "--stubborn --epochs 1000 --step-seconds 0.05",
            "script": str(SCRIPT),
            "j": "1x2",
            "rdzv_port": str(free_port()),
        },
    )
    wait_top(app, "Running")
    # Every rank is in the middle of its training.
    app.wait(lambda text: all(f"rank {rank} loss" in text for rank in range(2)), TORCH_PATIENCE)
    name = re.findall(r"ddp_digits-[a-z0-9]{10,16}", app.text())[0]
    # torchrun, and its two workers.
    assert len(processes_of_job(f"/{name}")) >= 3
    cancel(app)
    asked = time.monotonic()
    wait_until(lambda: not processes_of_job(f"/{name}"), "the end of every process")
    took = time.monotonic() - asked
    wait_top(app, "Cancelled")
    assert took < PATIENCE
    app.press("enter", wait=r"cancelled by \S+ after")


Curves = dict[str, list[tuple[float, float]]]


def saved_curves(app: Terminal, folder: Path) -> Curves:
    """Save the data of the Metrics screen, and return its points by metric."""
    before = {*folder.glob("*-metrics*.svg")}
    app.press("S", wait="✓ Saved ")
    # The picture is written after the data.
    [picture] = wait_until(lambda: {*folder.glob("*-metrics*.svg")} - before, "the files")
    path = picture.with_suffix(".csv")
    curves = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            curves[row["metric"]].append((float(row["step"]), float(row["value"])))
    return dict(curves)


def events(folder: Path) -> Curves:
    """Return what TensorBoard itself reads below a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    [path] = folder.rglob("events.out.tfevents.*")
    read = EventAccumulator(str(path), size_guidance={"scalars": 0})
    read.Reload()
    return {tag: [(point.step, point.value) for point in read.Scalars(tag)] for tag in read.scalars.Keys()}


def train(terminal: Callable[..., Terminal], script: str, *arguments: str) -> Terminal:
    """Train with an example in the dashboard: look at what it does, then at its metrics, until its end."""
    app = terminal(
        arguments=[
            *(COMMAND, "run", "-s", "local_cwd", "--open", "utils.python", "--script", str(EXAMPLES / script), "--"),
            *arguments,
        ],
        environ={"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HF_HUB_OFFLINE": "1"},
    )
    # Its chart stands on the job's screen, unless the machine is so busy that it ends before that.
    app.wait(r"Progress  train[/_]loss (.*\n)+.*[\u2801-\u28ff]{2}|✓ Succeeded", TORCH_PATIENCE)
    app.press("p", wait="━ Metrics")
    return app


def test_curves_of_hugging_faces_trainer(terminal, trainers, tmp_path):
    """All points of its own files, to the last digit, though it prints four of them."""
    app = train(terminal, "hf_digits.py", "--output-dir", "out", "--epochs", "3", "--step-seconds", "0.05")
    app.wait("✓ Succeeded")
    states = sorted((tmp_path / "out").rglob("trainer_state.json"), key=lambda path: path.stat().st_mtime)
    truth = defaultdict(list, events(tmp_path / "out"))
    for row in json.loads(states[-1].read_text())["log_history"]:
        for name in row.keys() - {"step"}:
            truth[name].append((row["step"], row[name]))
    last = truth["loss"][-1][1]
    app.wait(rf"loss +{last:.6g}\b")
    names = {"loss", "grad_norm", "learning_rate", "epoch", "eval_loss", "eval_accuracy"}

    def is_whole() -> bool:
        curves = saved_curves(app, tmp_path)
        plain = {name.removeprefix("train/").replace("eval/", "eval_") for name in curves}
        return names <= plain and curves == {name: truth[name] for name in curves}

    # What was logged after the last loss may be read after it.
    wait_until(is_whole, "all points, to the last digit,")
    assert (len(truth["loss"]), states[-1].parent.name) == (13, "checkpoint-135")


def test_curves_of_lightning(terminal, trainers, tmp_path):
    """All points of its table, which are those of its events; its bar is drawn once, at the end."""
    app = train(terminal, "lightning_digits.py", "--epochs", "3", "--step-seconds", "0.05")
    app.wait("✓ Succeeded")
    truth = defaultdict(list)
    with (tmp_path / "lightning_logs" / "csv" / "version_0" / "metrics.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            for name in row.keys() - {"step"}:
                if row[name]:
                    truth[name].append((float(row["step"]), float(row[name])))
    app.wait(rf"val_loss +{truth['val_loss'][-1][1]:.6g}\b")
    # What was logged after that value may be read after it.
    curves = wait_until(lambda: (saved := saved_curves(app, tmp_path)) == truth and saved, "all points")
    assert {name: curves[name] for name in ("train_loss", "val_loss", "val_acc")}.items() <= events(
        tmp_path / "lightning_logs"
    ).items()
