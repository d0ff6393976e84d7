"""Clocks that jump, files of a network: states are right afterwards, and no line is lost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from actions import open_with
from support.odd_machine import make_odd

pytestmark = pytest.mark.slow

DAY = 86_400


def test_a_clock_that_jumps(terminal, tmp_path):
    environ, clock = make_odd(tmp_path / "odd", files=False)
    script, go = tmp_path / "job.py", tmp_path / "go"
    script.write_text("import os, time\nwhile not os.path.exists('go'): time.sleep(0.1)\n")
    app = open_with(terminal, "utils.python", {"script": str(script), "name": "waits"}, environ=environ)
    for number, jump in enumerate((DAY, -DAY, -10 * 365 * DAY), 1):
        if number > 1:
            # Launched by the time of the jump before.
            go.unlink()
            app.press("r")
        app.wait(r"Running +waits")
        clock.write_text(str(jump))
        app.press("n", wait="Component")
        app.press("escape", wait=r"Running +waits")
        go.touch()
        app.wait(lambda text, number=number: len(re.findall(r"Succeeded +waits", text)) == number)
    clock.write_text("0")
    app.press("R", wait=lambda text: len(re.findall(r"Succeeded +waits", text)) == 3)
    app.press("q")
    assert app.wait_for_end() == 0


def test_files_without_locks_whose_sizes_come_late(terminal, tmp_path, own_home):
    environ, _ = make_odd(tmp_path / "odd", files=True)
    other = terminal(environ=environ, wait="No jobs yet")
    app = open_with(terminal, "demo.train", {"steps": "30", "step_seconds": "0.05"}, environ=environ)
    for number in range(2):
        if number:
            app.press("r")
        other.wait(lambda text, number=number: len(re.findall(r"(?:Running|Succeeded) +demo-train", text)) > number)
    for one in (app, other):
        one.wait(lambda text: len(re.findall(r"Succeeded +demo-train", text)) == 2)
        one.press("l", wait=r"› +Logs")
        one.wait(r"step +30\b")
        one.press("g", wait=r"step +1\b")
        one.press("escape", "q")
        assert one.wait_for_end() == 0
    records = [json.loads(path.read_text()) for path in Path(own_home).rglob("journal/**/*.json")]
    assert len(records) == 2
    assert {record["scheduler"] for record in records} == {"local_cwd"}
