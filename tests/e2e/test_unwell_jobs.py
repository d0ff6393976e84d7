"""Real jobs that hang, whose loss is nan, or that wait for a slow replica, beside a healthy one: what is said."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.terminal import COMMAND
from support.waiting import PATIENCE

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, time
kind, replica = sys.argv[1], int(sys.argv[2])
for step in range(100_000):
    time.sleep(0.2)
    loss = "nan" if kind == "nan" and step >= 20 else f"{2 - step / 100_000:.4f}"
    # Much of a step, also where that takes some times as long.
    data_time = 0.9 if kind == "slow" and replica == 2 else 0.2
    print(f"step {step}/100000 loss: {loss} data_time: {data_time}", flush=True)
    if kind == "healthy" and step % 50 == 49:
        print("saving checkpoint", flush=True)
        time.sleep(3)
    if kind == "stalled" and step == 20:
        time.sleep(3600)
"""
# The step whose loss is the first that is nan, the values of each replica that are compared, and the pause of a stall.
FIRST_NAN, COMPARED, PAUSE_S = 20, 32, 30
SLOW = "slow 4.5x: python/2, its data_time is 0.9, elsewhere 0.2"
NOTES = {"stalled", "slow", "nan", "spike", "quiet", "buffered"}


def output(command: list[str], **options: Any) -> str:
    """Run a command to its end, and return what it prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


@pytest.fixture
def launched(terminal, tmp_path):
    """Return a function that launches a job of a kind, and returns its handle; `terminal` ends what is left of it."""
    (tmp_path / "train.py").write_text(SCRIPT)
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def launch(kind: str, replicas: int = 1) -> str:
        options = ["-s", "local_cwd", "--detach", "utils.python", "--script", "train.py", "--name", kind]
        more = ["--num_replicas", str(replicas), "--", kind, "${replica_id}"]
        return output([COMMAND, "run", *options, *more], cwd=tmp_path, env=environ).strip()

    return launch


def progress_of(handle: str) -> dict[str, Any]:
    """Return what `status --json` says of a job's course."""
    return json.loads(output([COMMAND, "status", "--json", handle])).get("progress", {})


def notes_of(handle: str) -> dict[str, str]:
    """Return what it says is not well."""
    return {name: words for name, words in progress_of(handle).items() if name in NOTES}


def lines_of(handle: str) -> list[int]:
    """Return how many lines each replica has printed that can be read."""
    logs = Path(os.environ["XDG_STATE_HOME"]).rglob(f"{handle.rpartition('/')[2]}/python/*/combined.log")
    return [log.read_bytes().count(b"\n") for log in logs]


def test_what_is_wrong_is_said_and_nothing_else(launched, terminal):
    handles = {kind: launched(kind, 3 if kind == "slow" else 1) for kind in ("healthy", "stalled", "nan", "slow")}
    stalled = handles["stalled"]
    app = terminal(wait=lambda text: text.count("● Running") >= 4)
    # The newest is the first.
    app.press("g", "enter", wait=rf"! S{SLOW[1:]}")
    app.wait("python 3 .* 1 slow")
    app.wait(r"0 ●   1 ●   2 !")
    app.press("escape", "j", "enter", wait=r"! Loss is nan, [\d,]+ times")
    app.press("escape", "j", "enter", wait="Stalled  since", patience=PAUSE_S + PATIENCE)
    # On a busy machine a step takes longer, and it is a while until somebody looks.
    sentence = r"No step for (?:(\d+)m )?(\d+)s, usually \d+(?:\.\d)?s; no replica prints anything"
    found = re.search(sentence, app.wait(sentence))
    assert found
    assert 60 * int(found[1] or 0) + int(found[2]) >= PAUSE_S
    assert notes_of(handles["slow"]) == {"slow": SLOW}
    assert list(notes_of(handles["nan"])) == ["nan"]
    assert notes_of(stalled)["stalled"].startswith("no step for ")
    assert "\nStalled: no step for " in output([COMMAND, "status", stalled])
    assert notes_of(handles["healthy"]) == {}
    # Of the others no stall was announced.
    announced = set(re.findall(rb"(healthy|stalled|nan|slow)-[a-z0-9]+ stalled: ", bytes(app.raw)))
    assert announced <= {b"stalled"}
    app.press("q")
