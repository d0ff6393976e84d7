"""The Doctor screen: what is wrong comes first, as it is found out, and nothing breaks it."""

import threading

from support.canned import CannedScheduler
from support.dashboard import make_app, screen_text, until
from support.waiting import PATIENCE
from textual.command import CommandList

from torchx_tui.backends.types import Finding
from torchx_tui.doctor.checks import Diagnosed
from torchx_tui.tui.command_palette import CommandsScreen
from torchx_tui.tui.doctor import screen as doctor
from torchx_tui.tui.doctor.screen import DoctorScreen
from torchx_tui.tui.jobs.screen import JobsScreen

FINE = Diagnosed("program", Finding("ok", "torchx-tui 1"))
WARNING = Diagnosed("terminal", Finding("warning", "the terminal has 60x20", "make the window larger"))
ERROR = Diagnosed("local_docker", Finding("error", "no [engine] \x1b[31mhere", "start it"))


async def opened(pilot, app) -> DoctorScreen:
    """Open the screen by the command palette."""
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.answered, "the jobs")
    await pilot.press("colon")
    await until(pilot, lambda: isinstance(app.screen, CommandsScreen), "the commands")
    await pilot.press(*"doctor")
    await until(pilot, lambda: "Doctor: check this installation" in screen_text(app), "the command")
    await until(pilot, lambda: app.screen.query_one(CommandList).option_count == 1, "the command alone")
    await pilot.press("down", "enter")
    await until(pilot, lambda: isinstance(app.screen, DoctorScreen), "the screen")
    return app.screen


async def test_what_is_wrong_comes_first(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "diagnose", lambda *_: iter([FINE, WARNING, ERROR]))
    app = make_app(CannedScheduler(), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await until(pilot, lambda: screen.is_done and "1 error, 1 warning" in screen_text(app), "the sum")
        await until(pilot, lambda: "torchx-tui 1" in screen_text(app), "the list")
        drawn = screen_text(app)
        order = ["To fix", "no [engine]", "start it", "60x20", "make the window larger", "In order", "torchx-tui 1"]
        places = [drawn.index(words) for words in order]
        assert places == sorted(places)
        copied = []
        monkeypatch.setattr(app.terminal_clipboard, "copy", lambda text, what: copied.append((text, what)))
        await pilot.press("y")
        await until(pilot, lambda: copied)
        lines = copied[0][0].splitlines()
        assert lines[0] == "ok: program: torchx-tui 1"
        assert lines[1] == "warning: terminal: the terminal has 60x20 (make the window larger)"
        assert "\x1b" not in copied[0][0]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))


async def test_findings_are_shown_while_a_backend_is_waited_for(tmp_path, monkeypatch):
    goes_on = threading.Event()

    def slowly(*_):
        yield FINE
        goes_on.wait(PATIENCE)
        raise ZeroDivisionError("no backend")

    monkeypatch.setattr(doctor, "diagnose", slowly)
    app = make_app(CannedScheduler(), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app)
        await until(pilot, lambda: "torchx-tui 1" in screen_text(app) and "looking" in screen_text(app), "the first")
        assert not screen.is_done
        goes_on.set()
        await until(pilot, lambda: screen.is_done and "ZeroDivisionError: no backend" in screen_text(app), "the end")
        monkeypatch.setattr(doctor, "diagnose", lambda *_: iter([FINE]))
        await pilot.press("R")
        await until(pilot, lambda: screen.is_done and "nothing to fix" in screen_text(app), "another look")


async def test_findings_are_listed_once_after_another_look(tmp_path, monkeypatch):
    """The first look has a finding on its way when the key is pressed."""
    goes_on, looks = threading.Event(), []

    def slow(*_):
        looks.append(None)
        if len(looks) == 1:
            goes_on.wait(PATIENCE)
        yield WARNING

    monkeypatch.setattr(doctor, "diagnose", slow)
    app = make_app(CannedScheduler(), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await until(pilot, lambda: looks, "the first look")
        await pilot.press("R")
        await until(pilot, lambda: screen.is_done, "the end of the second")
        goes_on.set()
        await pilot.pause(0.2)
        assert screen_text(app).count("60x20") == 1
