"""The command metrics, and the progress in list and status, on real local jobs and files."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from support.command import Command
from support.waiting import wait_until

from torchx_tui.cli import progress
from torchx_tui.specs import SchedulerError, UnknownAppException

LOGS = Path(__file__).parent.parent / "diagnosis" / "data" / "logs"
TRAINER = """
import sys, time
for step in range(30):
    print(f"step {step}/40 loss {2.5 - step / 100:.4f} lr 1.94e-05", flush=True)
open("done", "w").close()
time.sleep(600)
"""


@pytest.fixture
def running(command: Command, tmp_path: Path) -> Iterator[str]:
    """The handle of a job that has printed 30 steps and goes on."""
    (tmp_path / "train.py").write_text(TRAINER)
    words = ["run", "-s", "local_cwd", "--detach", "utils.sh", "--", sys.executable, str(tmp_path / "train.py")]
    handle = command(*words).out.strip()
    try:
        wait_until(lambda: "step 29 of 40" in command("list", "-s", "local_cwd", "--wide").out, "30 steps in the log")
        yield handle
    finally:
        command("cancel", handle)


def test_a_running_job(command: Command, running: str) -> None:
    """The same in all forms, with the values as they were printed."""
    text = command("metrics", running).out
    assert text.startswith("Step 29 of 40, 72 %")
    assert ["loss", "2.2100", "2.21", "2.5", "30", "log", "of", "sh/0"] in [line.split() for line in text.splitlines()]
    assert "1.94e-05" in text
    data = command("metrics", running, "loss", "--json").data
    assert data["handle"] == running
    (loss,) = data["metrics"]
    assert (loss["name"], loss["printed"], loss["steps"][-1], loss["values"][0]) == ("loss", "2.2100", 29, 2.5)
    rows = list(csv.DictReader(io.StringIO(command("metrics", running, "l*", "--csv").out)))
    assert len(rows) == 60
    assert rows[0]["value"] == "2.5"
    assert "⡀" in command("metrics", running, "--plot").out
    assert command("status", running, "--json").data["progress"]["step"] == 29
    listed = command("list", "-s", "local_cwd", "--wide").out
    assert re.search(rf"{running}  sh +RUNNING +\d+s +\S+ +step 29 of 40, 72 %", listed)


@pytest.mark.parametrize("error", [UnknownAppException("it is not there"), SchedulerError("the connection is lost")])
def test_the_progress_of_a_job_that_cannot_be_read_any_more_is_left_out(
    command: Command, running: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def lose(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(progress, "progress_at_end", lose)
    ended = command("list", "-s", "local_cwd", "--wide")
    assert (ended.code, ended.err) == (0, "")
    assert re.fullmatch(rf"{running}  sh +RUNNING +\d+s +\S+", ended.out.splitlines()[1])


def test_a_file(command: Command) -> None:
    """A log, and a metric file by its name."""
    assert command("metrics", "--file", str(LOGS / "verl.src.log")).out.startswith("Step 40 of 105, 38 %")
    found = command("metrics", "--file", str(LOGS.parent / "hf.tfevents"), "train/loss", "--json").data
    assert found["metrics"][0]["from"] == "hf.tfevents"


def test_a_file_as_json(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("".join(f"step {n}/8 loss {2 - n / 4}\n" for n in range(3)))
    data = command("metrics", "--file", "a.log", "--json").data
    assert (data["file"], data["observations"]) == ("a.log", [])
    assert {"step": 2, "total": 8, "percent": 25}.items() <= data["progress"].items()
    assert data["metrics"] == [
        {
            "name": "loss", "from": "log of a.log", "last": 1.5, "printed": "1.5", "low": 1.5, "high": 2, "points": 3,
            "points_per_value": 1, "steps": [0, 1, 2], "values": [2, 1.75, 1.5],
        }
    ]  # fmt: skip


def test_the_table_of_a_file(command: Command, tmp_path: Path) -> None:
    values = ["2.5", "2.25", "nan"]
    (tmp_path / "a.log").write_text("".join(f"step {n}/8 loss {value}\n" for n, value in enumerate(values)))
    ended = command("metrics", "--file", "a.log")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "Step 2 of 8, 25 %",
        "loss is nan, once",
        "METRIC  LAST  LOW   HIGH  POINTS  FROM",
        "loss    nan   2.25  2.5   3       log of a.log",
    ]
    assert command("metrics", "--file", "a.log", "--json").data["observations"] == [
        {"kind": "nan", "sentence": "loss is nan, once"}
    ]
    rows = command("metrics", "--file", "a.log", "--csv").out.splitlines()
    assert rows[:2] == ["metric,step,time,value,low,high,points", "loss,0,,2.5,2.5,2.5,1"]
    assert len(rows) == 4
    (tmp_path / "a.log").write_text("nothing\n")
    assert command("metrics", "--file", "a.log").out.splitlines() == [
        "The log has no step",
        "No metrics: a value is shown from the second line that names it, such as `step 10 loss 2.31`",
    ]


def test_a_metric_file_that_is_broken(command: Command, tmp_path: Path) -> None:
    (tmp_path / "x.tfevents").write_bytes(b"x" * 300)
    ended = command("metrics", "--file", "x.tfevents")
    assert (ended.code, ended.err) == (
        0,
        "torchx-tui: x.tfevents cannot be read: it is not an event file, or is broken\n",
    )


class Screen(io.StringIO):
    """A stdout that is a terminal."""

    def __init__(self, encoding: str | None = "UTF-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str | None:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


def test_a_chart_has_colours_on_a_terminal_alone(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raw values are dim, smoothed ones bold, gaps yellow; a metric over decades has a logarithmic axis."""
    values = [10 / (1 + n) ** 1.5 if n != 7 else float("nan") for n in range(40)]
    (tmp_path / "a.log").write_text("".join(f"step {n}/80 loss {v:.5f} lr 0.1\n" for n, v in enumerate(values)))
    monkeypatch.delenv("NO_COLOR", raising=False)
    words = ("metrics", "--file", "a.log", "loss", "lr", "--plot")
    plain = command(*words).out
    assert "\x1b" not in plain
    heads = [line.split() for line in plain.splitlines() if "log of a.log" in line]
    assert heads == [["loss", "0.03953", "log", "log", "of", "a.log"], ["lr", "0.1", "log", "of", "a.log"]]
    assert plain == command(*words, "--smoothing", "0.91").out
    unsmoothed = command(*words, "--smoothing=0")
    assert unsmoothed.code == 0
    assert unsmoothed.out != plain
    # Of the loss alone where none is named, as wide as the terminal up to 120 columns, with its axis 16 rows.
    monkeypatch.setenv("NO_COLOR", "1")
    for columns, width in (("60", 60), ("200", 120)):
        monkeypatch.setenv("COLUMNS", columns)
        progress, head, *rows = command("metrics", "--file", "a.log", "--plot").out.splitlines()
        assert (progress, head.split()[0], len(rows)) == ("Step 39 of 80, 48 %", "loss", 16)
        assert max(map(len, rows)) == width
        assert rows == [row.rstrip() for row in rows]
    for encoding, signs in (("UTF-8", "│⣀"), ("utf8", "│⣀"), ("ascii", "|*"), ("latin-1", "|*"), (None, "|*")):
        monkeypatch.setattr(sys, "stdout", screen := Screen(encoding))
        command(*words)
        assert all(sign in screen.getvalue() for sign in signs)
        assert not any(sign in screen.getvalue() for sign in "│⣀|*" if sign not in signs)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(sys, "stdout", screen := Screen())
    command(*words)
    painted = screen.getvalue()
    assert set(re.findall(r"\x1b\[([0-9;]*)m", painted)) == {"2;36", "1", "33", "2", "0"}
    for code, cells in (
        ("2;36", "[\u2800-\u28ff]+"),
        ("1", "[\u2800-\u28ff]+"),
        ("33", "━ NaN, 1 point"),
        ("2", " +10┤"),
    ):
        assert re.search(rf"\x1b\[{code}m{cells}\x1b\[0m", painted)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", screen := Screen())
    command(*words)
    assert screen.getvalue() == plain


def test_a_chart_where_there_is_nothing_to_draw(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("step 1 loss 2\n")
    assert command("metrics", "--file", "a.log", "--plot").out == "No metrics to plot: no value occurs twice\n"


def test_values_that_are_not_finite_are_valid_json(command: Command) -> None:
    """JSON has no nan."""
    out = command("metrics", "--file", str(LOGS / "nanogpt.src.log"), "loss", "--json").out
    assert json.loads(out, parse_constant=lambda name: pytest.fail(name))["metrics"][0]["last"] == "nan"


def test_own_names(command: Command, tmp_path: Path) -> None:
    """What config adds and denies."""
    config = tmp_path / "own.toml"
    config.write_text('[metrics]\nnames = ["zeal"]\ndenied = ["loss"]\n')
    (tmp_path / "a.log").write_text("".join(f"step {n} loss: 1.5\nzeal: 0.5 step\n" for n in range(3)))
    out = command("--config", str(config), "metrics", "--file", str(tmp_path / "a.log")).out
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["zeal"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["metrics"], "name a job or a file: give a job's handle, or --file with a log file"),
        (["metrics", "--file", "none.log"], "none.log cannot be read: No such file or directory"),
        (["metrics", "--file", str(LOGS / "nanogpt.src.log"), "loose"], "there is no metric loose. There are: loss,"),
        *(
            (["metrics", "--file", "x", f"--smoothing={text}"], f"{text}: a number from 0 to less than 1 is needed")
            for text in ("1", "2", "-0.5", "much", "nan")
        ),
    ],
)
def test_mistakes_are_said(command: Command, words: list[str], sentence: str) -> None:
    """What is wrong, and what there is."""
    ended = command(*words)
    assert ended.code == 2
    assert sentence in ended.err
