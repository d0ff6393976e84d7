"""A terminal that takes 50 KB/s, or nothing at all: keys are answered, quitting is quick, the terminal is left sane."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from actions import wait_top
from support.component_files import ComponentFile
from support.shell import shell
from support.terminal import Terminal
from support.waiting import PATIENCE

RATE = 50_000
SIZE = (200, 50)

PROGRAM = """
import sys, time
rate, began, done = int(sys.argv[1]), time.monotonic(), 0
while (now := time.monotonic() - began) < 900:
    due = int(now * rate)
    sys.stdout.write("".join(f"line {n:9d} {'x' * 120}" + chr(10) for n in range(done, due)))
    sys.stdout.flush()
    done = due
    time.sleep(0.02)
"""


@pytest.fixture
def component_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return ComponentFile(tmp_path / "jobs.py").write(
        f'''
def flood(rate: int = 100) -> AppDef:
    """Print lines for a while."""
    return AppDef("flood", [Role("r", "", entrypoint="python3", args=["-c", {PROGRAM!r}, str(rate)])])


def quiet() -> AppDef:
    """Print a line, and nothing more."""
    return AppDef("quiet", [Role("r", "", entrypoint="sh", args=["-c", "echo just this; sleep 3600"])])
'''
    )


def last_line(app: Terminal) -> int:
    """Return the number of the last line of the job on the screen."""
    return max((int(number) for number in re.findall(r"line +(\d+) x", app.text())), default=-1)


def assert_left_sane(app: Terminal) -> None:
    """Look whether each mode that was set is reset at the end."""
    raw = bytes(app.raw)
    for mode, at_end in (
        (1049, b"l"),
        (1000, b"l"),
        (1003, b"l"),
        (1006, b"l"),
        (2004, b"l"),
        (1004, b"l"),
        (25, b"h"),
        (7, b"h"),
    ):
        settings = re.findall(rb"\x1b\[\?%d([hl])" % mode, raw)
        assert settings[-1:] == [at_end], (mode, raw[-300:])
    frames = re.findall(rb"\x1b\[\?2026([hl])", raw)
    assert frames[-1:] == [b"l"], raw[-300:]
    assert b"\x1b[<u" in raw[raw.rfind(b"\x1b[>") :]


def open_job(terminal, component: str, *arguments: str) -> Terminal:
    """Open the dashboard on a job that runs already, so that quitting asks nothing."""
    launched = shell("run", "--detach", component, *arguments, cwd=Path.cwd())
    assert launched.returncode == 0, launched.stderr
    app = terminal(size=SIZE, cwd=Path.cwd())
    wait_top(app, "Running")
    return app


def open_flood(terminal, rate: int) -> Terminal:
    """Open the logs of a job that prints so many lines a second, on a terminal that is slow from then on."""
    app = open_job(terminal, "jobs.py:flood", f"--rate={rate}")
    app.press("l", wait="›  Logs")
    app.wait(lambda _: last_line(app) > 0)
    app.rate = RATE
    return app


def leave(app: Terminal) -> None:
    """Quit."""
    app.press("q")
    assert app.wait_for_end(PATIENCE) == 0


@pytest.mark.slow
@pytest.mark.parametrize("rate", [100, 10_000])
def test_keys_are_answered_while_a_flood_is_followed(terminal, component_file, rate):
    app = open_flood(terminal, rate)
    # Each key's effect: times with milliseconds and none, wrapped and not, paused and following.
    for key, effect in (
        ("t", r"^ *\d\d:\d\d:\d\d\.\d{3}"),
        ("t", r"^ *\+\d:\d\d:\d\d [^\n]*line"),
        ("t", r"^ *│? ?line"),
        ("t", r"^ *\d\d:\d\d:\d\d [^\n]*line"),
        ("w", "wrap on"),
        ("w", "wrap off"),
        ("k", r"Paused|new lines"),
        ("?", "Wrap long lines"),
        ("escape", r"Paused|new lines"),
        ("G", "Following"),
    ):
        app.press(key, wait=effect, patience=PATIENCE)
    shown = last_line(app)
    app.wait(lambda _: last_line(app) > shown, PATIENCE)
    leave(app)
    assert_left_sane(app)


def test_a_held_key_does_not_pile_up(terminal, component_file):
    """What is drawn for a key is what the last of them asks for, not one screen for each."""
    app = open_flood(terminal, 1000)
    app.press("g", wait=r"line +0 x", patience=PATIENCE)
    app.process.write(b"j" * 300)
    app.wait(lambda _: last_line(app) >= 300, PATIENCE)
    leave(app)
    assert_left_sane(app)


def test_quitting_does_not_wait_for_the_terminal(terminal, component_file):
    app = open_flood(terminal, 10_000)
    app.rate = 1
    for key in "twtwtw":
        app.press(key)
    app.press("q")
    assert app.wait_for_end(PATIENCE) == 0


def test_nothing_is_sent_while_nothing_changes(terminal, component_file):
    app = open_job(terminal, "jobs.py:quiet")
    app.wait("just this")
    for keys, shown in (((), "STATE"), (("l",), "›  Logs")):
        app.press(*keys, wait=shown)
        # A change of state, the toast of it, the message in the status line: until they are all gone.
        sent, quiet_since = len(app.raw), time.monotonic()
        deadline = quiet_since + PATIENCE
        while time.monotonic() - quiet_since < 3:
            assert time.monotonic() < deadline, f"never quiet: {bytes(app.raw[-500:])!r}"
            if len(app.raw) != sent:
                sent, quiet_since = len(app.raw), time.monotonic()
            time.sleep(0.02)
    leave(app)
