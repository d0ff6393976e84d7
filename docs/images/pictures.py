"""Make the pictures of the pages from real local jobs that the application launches and draws.

Run ``.venv/bin/python docs/images/pictures.py``; it takes about a minute. With the name of a folder only the story is
drawn, into that folder.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.pilot import Pilot

    from torchx_tui.tui.app import TorchXTuiApp

PATIENCE_SECONDS = 240.0

THEME = "torchx-dark"
CELL_WIDTH = 12.2
"""The width of a terminal's cell in the pictures, as Rich's SVG has it."""
FONT_SIZE = f"{CELL_WIDTH / 0.602:.2f}px"
"""At this size a character of the usual monospaced fonts is as wide as a cell: librsvg does not stretch text to it."""

_TEXT = re.compile(r'(<text [^>]*?x=")([\d.]+)(" [^>]*?textLength=")([\d.]+)("[^>]*>)(.*?)</text>')
_FONT_FACES = re.compile(r"\s*@font-face \{.*?\n    \}", re.DOTALL)
_SPACE = "&#160;"


def tidy(svg: str) -> str:
    """Return a picture that every renderer draws alike.

    librsvg drops spaces at the start of a text, so they become an offset. A page's image loads no font from another
    server, so these are left out.
    """

    def shift(match: re.Match[str]) -> str:
        head, x, middle, _, tail, text = match.groups()
        body = text.strip().replace(" ", _SPACE)
        while body.endswith(_SPACE):
            body = body.removesuffix(_SPACE)
        spaces = 0
        while body.startswith(_SPACE):
            body, spaces = body.removeprefix(_SPACE), spaces + 1
        if not body:
            return ""
        after = text.strip().count(_SPACE) - spaces - body.count(_SPACE)
        length = float(match[4]) - CELL_WIDTH * (spaces + after)
        return f"{head}{float(x) + CELL_WIDTH * spaces:.1f}{middle}{length:.1f}{tail}{body}</text>"

    return _TEXT.sub(shift, _FONT_FACES.sub("", svg)).replace("font-size: 20px", f"font-size: {FONT_SIZE}")


def animate(frames: list[tuple[str, float]], still: int) -> str:
    """Return one moving picture.

    Args:
        frames: pictures of one size, and how many seconds each is shown.
        still: the frame that a renderer without animation shows.
    """
    total = sum(seconds for _, seconds in frames)
    rules, groups, begin = [], [], 0.0
    for number, (svg, seconds) in enumerate(frames):
        shown = [f"{100 * begin / total:.2f}% {{ visibility: visible }}", f"{100 * (begin + seconds) / total:.2f}%"]
        before = "" if number == 0 else "0% { visibility: hidden } "
        rules.append(f"@keyframes frame{number} {{ {before}{shown[0]} {shown[1]}, 100% {{ visibility: hidden }} }}")
        body = svg[svg.index(">") + 1 : svg.rindex("</svg>")]
        visibility = "visible" if number == still else "hidden"
        animation = f"animation: frame{number} {total:g}s step-end infinite"
        groups.append(f'<g visibility="{visibility}" style="{animation}">{body}</g>')
        begin += seconds
    head = frames[0][0][: frames[0][0].index(">") + 1]
    return f"{head}<style>{' '.join(rules)}</style>{''.join(groups)}</svg>\n"


@contextmanager
def dashboard() -> Iterator[TorchXTuiApp]:
    """Give the application, on a state of its own, with this machine as the only backend."""
    from torchx_tui.backends import registry
    from torchx_tui.backends.runner import Runner
    from torchx_tui.settings.config import Settings
    from torchx_tui.tui.app import TorchXTuiApp

    registry.is_set_up = lambda name: name == "local_cwd"
    settings = Settings(theme=THEME)
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = state
        # The form names the Python of a job: it is the system's.
        os.environ.pop("VIRTUAL_ENV", None)
        os.environ["PATH"] = "/usr/bin:/bin"
        os.chdir(state)
        with Runner(scheduler_params=settings.scheduler_params()) as runner:
            app = TorchXTuiApp(runner, settings)
            app.who = "alice@login03"
            yield app


def draw(app: TorchXTuiApp) -> str:
    """Return a picture of the screen."""
    return tidy(app.export_screenshot(title="torchx-tui"))


def save(folder: Path, name: str, svg: str) -> None:
    """Write a picture."""
    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")


async def until(pilot: Pilot[None], *words: str, still: Callable[[], bool] = lambda: True) -> None:
    """Wait until words are on the screen, and it has come to rest."""
    deadline, before = time.monotonic() + PATIENCE_SECONDS, ""
    while True:
        assert time.monotonic() < deadline, f"waited for {words}"
        await pilot.pause(0.4)
        now = pilot.app.export_screenshot().replace("&#160;", " ")
        if now == before and all(word in now for word in words) and still():
            return
        before = now


async def draw_screens(folder: Path) -> None:
    """Launch jobs that succeed, fail, are cancelled and run; draw the Jobs, Logs and Metrics screens."""
    from torchx_tui.backends.history.launch_record import LaunchOrigin
    from torchx_tui.components.build import build_app

    with dashboard() as app:
        runner = app.runner

        def launch(component: str, **arguments: str) -> str:
            origin = LaunchOrigin(component, arguments)
            return runner.run(build_app(component, arguments), "local_cwd", {}, origin=origin)

        launch("utils.echo", msg="hello")
        launch("demo.train", steps="5", step_seconds="0.02", num_replicas="4")
        launch("demo.train", steps="9", step_seconds="0.02", num_replicas="4", fail_at_step="5", fail_rank="2")
        cancelled = launch("demo.train", steps="900")
        launch("utils.python", c="print(6 * 7)")
        live = launch("demo.train", steps="400", step_seconds="0.25", num_replicas="8")
        await asyncio.sleep(6)
        runner.job(cancelled).cancel()
        async with app.run_test(size=(120, 34)) as pilot:
            await pilot.pause(20)
            # One backend alone shows how far its jobs are, and why they failed.
            await pilot.press("1")
            await pilot.pause(2)
            save(folder, "jobs", draw(app))
            await pilot.press("l")
            await pilot.pause(3)
            save(folder, "logs", draw(app))
            await pilot.press("escape")
            await pilot.pause(1)
            await pilot.press("p")
            await pilot.pause(5)
            save(folder, "metrics", draw(app))
        runner.job(live).cancel()
        runner.job(live).wait()


async def fill(pilot: Pilot[None], name: str, text: str) -> None:
    """Go to a field of the form by tab and replace its text."""
    from torchx_tui.tui.launch.screen import LaunchScreen

    screen = pilot.app.screen
    assert isinstance(screen, LaunchScreen)
    while (row := screen.editor.form.focused_row()) is None or row.field.name != name:
        await pilot.press("tab")
    await pilot.press("end", "ctrl+u", *text)
    await until(pilot, "ready", still=lambda: screen.editor.is_answered)


async def draw_story(folder: Path) -> None:
    """Launch a job that fails, read why, change one value, launch it again; draw each step."""
    frames: list[tuple[str, float]] = []
    with dashboard() as app:

        def frame(seconds: float) -> str:
            frames.append((draw(app), seconds))
            return frames[-1][0]

        async with app.run_test(size=(120, 30)) as pilot:
            await until(pilot, "No jobs yet")
            frame(1.5)
            await pilot.press("n")
            await until(pilot, "demo.train")
            await pilot.press(*"demo")
            await until(pilot, "1 of")
            frame(2)
            await pilot.press("enter")
            await until(pilot, "fail_at_step")
            await fill(pilot, "fail_at_step", "3")
            frame(3)
            await pilot.press("ctrl+s")
            await until(pilot, "Failed")
            frame(2.5)
            await pilot.press("enter")
            await until(pilot, "Traceback")
            still = len(frames)
            save(folder, "why", frame(4))
            await pilot.press("escape")
            await until(pilot, "STATE")
            await pilot.press("e")
            await until(pilot, "last run")
            await fill(pilot, "fail_at_step", "-1")
            await pilot.press("ctrl+t")
            await until(pilot, "ready")
            save(folder, "relaunch", frame(4))
            await pilot.press("ctrl+s")
            await until(pilot, "Succeeded")
            frame(4)
    save(folder, "story", animate(frames, still))


if __name__ == "__main__":
    here = Path(__file__).absolute().parent
    asyncio.run(draw_story(Path(sys.argv[1]).absolute() if sys.argv[1:] else here))
    if not sys.argv[1:]:
        asyncio.run(draw_screens(here))
