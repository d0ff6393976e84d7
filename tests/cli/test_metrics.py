"""The command metrics, and the progress in list and status, on real local jobs and files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from support.command import Screen
from support.waiting import wait_until

from torchx_tui.cli import progress
from torchx_tui.specs.errors import SchedulerError, UnknownAppException
from torchx_tui.specs.status import AppState

LOGS = Path(__file__).parent.parent / "diagnosis" / "data" / "logs"
TRAINER = """
import sys, time
for step in range(30):
    print(f"step {step}/40 loss {2.5 - step / 100:.4f} lr 1.94e-05", flush=True)
open("done", "w").close()
time.sleep(600)
"""


@pytest.fixture
def running(command, tmp_path):
    """The handle of a job that has printed 30 steps and goes on."""
    (tmp_path / "train.py").write_text(TRAINER)
    words = ["run", "-s", "local_cwd", "--detach", "utils.sh", "--", sys.executable, str(tmp_path / "train.py")]
    handle = command(*words).out.strip()
    try:
        wait_until(lambda: "step 29 of 40" in command("list", "-s", "local_cwd", "--wide").out, "30 steps in the log")
        yield handle
    finally:
        command("cancel", handle)


def test_running_job(command, running):
    text = command("metrics", running).out
    assert text.startswith("Step 29 of 40, 72 %")
    assert re.search(r"^loss +2\.2100 +2\.21 +2\.5 +30 +log of sh/0$", text, re.MULTILINE)
    assert "1.94e-05" in text
    data = command("metrics", running, "loss", "--json").data
    assert (data["handle"], [one["name"] for one in data["metrics"]]) == (running, ["loss"])
    assert len(command("metrics", running, "l*", "--csv").out.splitlines()) == 61
    assert "⡀" in command("metrics", running, "--plot").out
    assert command("status", running, "--json").data["progress"]["step"] == 29
    listed = command("list", "-s", "local_cwd", "--wide").out
    assert re.search(rf"{running}  sh +RUNNING +\d+s +\S+ +step 29 of 40, 72 %", listed)


@pytest.mark.parametrize("error", [UnknownAppException("it is not there"), SchedulerError("the connection is lost")])
def test_list_leaves_out_unreadable_progress(command, scheduler, monkeypatch, error):
    scheduler.add("job-1", AppState.RUNNING, 60)
    scheduler.log_files = lambda *_: {}
    monkeypatch.setattr(progress, "progress_at_end", reading := Mock(side_effect=error))
    ended = command("list", "-s", "local_cwd", "--wide")
    assert (ended.code, ended.err, reading.called) == (0, "", True)
    assert re.fullmatch(r"local_cwd://torchx/job-1  job +RUNNING( +\d+[dhms]+)+", ended.out.splitlines()[1])


def test_file_of_metrics(command):
    assert command("metrics", "--file", str(LOGS / "verl.src.log")).out.startswith("Step 40 of 105, 38 %")
    found = command("metrics", "--file", str(LOGS.parent / "hf.tfevents"), "train/loss", "--json").data
    assert found["metrics"][0]["from"] == "hf.tfevents"


@pytest.fixture
def chart(command, tmp_path, monkeypatch):
    """Return a function that prints the charts of a loss over decades, with a gap, and of a learning rate."""
    values = [10 / (1 + n) ** 1.5 if n != 7 else float("nan") for n in range(60)]
    (tmp_path / "a.log").write_text("".join(f"step {n}/90 loss {v:.5f} lr 0.1\n" for n, v in enumerate(values)))
    monkeypatch.delenv("NO_COLOR", raising=False)

    def printed(*words: str, screen: Screen | None = None) -> str:
        with monkeypatch.context() as patched:
            if screen:
                patched.setattr(sys, "stdout", screen)
            ended = command("metrics", "--file", "a.log", "--plot", *words)
        assert ended.code == 0
        return screen.getvalue() if screen else ended.out

    return printed


def test_chart_in_a_pipe(chart):
    plain = chart("loss", "lr")
    assert "\x1b" not in plain
    heads = [" ".join(line.split()) for line in plain.splitlines() if "log of a.log" in line]
    # A metric over decades has a logarithmic axis.
    assert heads == ["loss 0.02152 light smoothing log log of a.log", "lr 0.1 light smoothing log of a.log"]
    assert chart("loss", "lr", "--smoothing", "light") == plain
    assert chart("loss", "lr", "--smoothing=none") != plain


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("200", 120)])
def test_chart_width(chart, monkeypatch, columns, width):
    """The loss alone, where no metric is named."""
    monkeypatch.setenv("COLUMNS", columns)
    summary, head, *rows = chart().splitlines()
    assert (summary, head.split()[0], len(rows)) == ("Step 59 of 90, 65 %", "loss", 16)
    assert max(map(len, rows)) == width
    assert rows == [row.rstrip() for row in rows]


@pytest.mark.parametrize(
    ("encoding", "signs"), [("UTF-8", "│⣀"), ("utf8", "│⣀"), ("ascii", "|*"), ("latin-1", "|*"), (None, "|*")]
)
def test_chart_signs_of_an_encoding(chart, encoding, signs):
    screen = Screen()
    screen.encoding = encoding
    assert {sign for sign in "│⣀|*" if sign in chart("loss", screen=screen)} == set(signs)


def test_chart_has_colours_on_a_terminal(chart, monkeypatch):
    plain, painted = chart("loss"), chart("loss", screen=Screen())
    assert set(re.findall(r"\x1b\[([0-9;]*)m", painted)) == {"2;36", "1", "33", "2", "0"}
    # Raw values are dim, smoothed ones bold, gaps yellow.
    for pattern in (r"2;36m[\u2800-\u28ff]+", r"1m[\u2800-\u28ff]+", "33m━ NaN, 1 point", "2m +10┤"):
        assert re.search(rf"\x1b\[{pattern}\x1b\[0m", painted)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert chart("loss", screen=Screen()) == plain
