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
from support.waiting import wait_until

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, time
kind, replica = sys.argv[1], int(sys.argv[2])
for step in range(100_000):
    time.sleep(0.2)
    loss = "nan" if kind == "nan" and step >= 20 else f"{2 - step / 100_000:.4f}"
    data_time = 0.09 if kind == "slow" and replica == 2 else 0.02
    print(f"step {step}/100000 loss: {loss} data_time: {data_time}", flush=True)
    if kind == "healthy" and step % 50 == 49:
        print("saving checkpoint", flush=True)
        time.sleep(3)
    if kind == "stalled" and step == 20:
        time.sleep(3600)
"""
SLOW = "slow 4.5x: python/2, its data_time is 0.09, elsewhere 0.02"
NOTES = {"stalled", "slow", "nan", "spike", "quiet", "buffered"}


def output(command: list[str], **options: Any) -> str:
    """Run a command to its end, and return what it prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


@pytest.fixture
def launched(own_home, tmp_path):
    """Return a function that launches a job of a kind, and returns its handle."""
    (tmp_path / "train.py").write_text(SCRIPT)
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def launch(kind: str, replicas: int = 1) -> str:
        options = ["-s", "local_cwd", "--detach", "utils.python", "--script", "train.py", "--name", kind]
        more = ["--num_replicas", str(replicas), "--", kind, "${replica_id}"]
        return output([COMMAND, "run", *options, *more], cwd=tmp_path, env=environ).strip()

    return launch


def notes_of(handle: str) -> dict[str, str]:
    """Return what `status --json` says of a job's course."""
    told = json.loads(output([COMMAND, "status", "--json", handle]))
    return {name: words for name, words in told.get("progress", {}).items() if name in NOTES}


def test_what_is_wrong_is_said_and_nothing_else(launched, terminal):
    handles = {kind: launched(kind, 3 if kind == "slow" else 1) for kind in ("healthy", "stalled", "nan", "slow")}
    app = terminal()
    app.wait(lambda text: text.count("● Running") >= 4)
    # The newest is the first.
    app.press("g", "enter")
    app.wait(rf"! S{SLOW[1:]}")
    app.wait("python 3 .* 1 slow")
    app.wait(r"0 ●   1 ●   2 !")
    app.press("escape", "j", "enter")
    app.wait(r"! Loss is nan, [\d,]+ times")
    app.press("escape", "j", "enter")
    app.wait("Stalled  since")
    sentence = r"No step for (\d+)s, usually 0\.2s; no replica prints anything"
    found = re.search(sentence, app.wait(sentence))
    assert found
    # Not before the limit, of half a minute.
    assert int(found[1]) >= 30
    assert notes_of(handles["slow"]) == {"slow": SLOW}
    assert list(notes_of(handles["nan"])) == ["nan"]
    assert wait_until(lambda: notes_of(handles["stalled"]), "the stall")["stalled"].startswith("no step for ")
    assert notes_of(handles["healthy"]) == {}
    # Of the others no stall was announced.
    announced = set(re.findall(rb"(healthy|stalled|nan|slow)-[a-z0-9]+ stalled: ", bytes(app.raw)))
    assert announced <= {b"stalled"}
    app.press("q")
