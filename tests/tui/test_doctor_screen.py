"""The Doctor screen: what is wrong comes first, as it is found out, and nothing breaks it."""

import threading
from contextlib import asynccontextmanager

from support.canned import CannedScheduler
from support.dashboard import make_app
from support.screens import WIDE, Driver, jobs_of
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


@asynccontextmanager
async def doctor_of(folder, size=WIDE):
    """Start the dashboard, and open the screen by the command palette."""
    async with jobs_of(make_app(CannedScheduler(), folder), size, rows=0) as jobs:
        commands = await jobs.open(CommandsScreen, "colon")
        await jobs.press(*"doctor", shows="Doctor: check this installation", on="drawn")
        await jobs.until(lambda: commands.query_one(CommandList).option_count == 1, "the command alone")
        await jobs.open(DoctorScreen, "down", "enter")
        yield Driver(jobs.pilot)


async def ended(page: Driver, *texts: str) -> None:
    """Wait for the end of a look, and for texts."""
    await page.until(lambda: page.screen.is_done, "the end")
    await page.shows(*texts, on="drawn")


async def test_what_is_wrong_comes_first(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "diagnose", lambda *_: iter([FINE, WARNING, ERROR]))
    async with doctor_of(tmp_path) as page:
        await ended(page, "1 error, 1 warning", "torchx-tui 1")
        order = ["To fix", "no [engine]", "start it", "60x20", "make the window larger", "In order", "torchx-tui 1"]
        places = [page.drawn().index(words) for words in order]
        assert places == sorted(places)
        copied = []
        monkeypatch.setattr(page.app.terminal_clipboard, "copy", lambda text, what: copied.append((text, what)))
        await page.press("y", until=lambda: copied, what="the copy")
        lines = copied[0][0].splitlines()
        assert lines[0] == "ok: program: torchx-tui 1"
        assert lines[1] == "warning: terminal: the terminal has 60x20 (make the window larger)"
        assert "\x1b" not in copied[0][0]
        await page.open(JobsScreen, "escape")


async def test_findings_are_shown_while_a_backend_is_waited_for(tmp_path, monkeypatch):
    goes_on = threading.Event()

    def slowly(*_):
        yield FINE
        goes_on.wait(PATIENCE)
        raise ZeroDivisionError("no backend")

    monkeypatch.setattr(doctor, "diagnose", slowly)
    async with doctor_of(tmp_path, (80, 24)) as page:
        await page.shows("torchx-tui 1", "looking", on="drawn")
        assert not page.screen.is_done
        goes_on.set()
        await ended(page, "ZeroDivisionError: no backend")
        monkeypatch.setattr(doctor, "diagnose", lambda *_: iter([FINE]))
        await page.press("R")
        await ended(page, "nothing to fix")


async def test_findings_are_listed_once_after_another_look(tmp_path, monkeypatch):
    """The first look has a finding on its way when the key is pressed."""
    goes_on, looks = threading.Event(), []

    def slow(*_):
        looks.append(None)
        if len(looks) == 1:
            goes_on.wait(PATIENCE)
        yield WARNING

    monkeypatch.setattr(doctor, "diagnose", slow)
    async with doctor_of(tmp_path) as page:
        await page.until(lambda: looks, "the first look")
        await page.press("R")
        await ended(page)
        goes_on.set()
        await page.pilot.pause(0.2)
        assert page.drawn().count("60x20") == 1
