"""No pattern that somebody types into the log pane holds up its keys."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import pytest
from costly_patterns import BAIT, COSTLY, PATTERNS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_app import LogApp
from log_writing import LogWriter
from textual.pilot import Pilot

from torchx_tui.logs.pattern import engine
from torchx_tui.tui.logs.search_row import SearchRow

_LINE_LIMIT_S = 0.03
# What is meant is a freeze of seconds. It is measured in CPU time, of which others on the machine take nothing.
_FREEZE = 1.5


class Beat:
    """Measures how much CPU time the process uses, in whatever thread, before the event loop gets on."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> Beat:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            began = time.process_time()
            await asyncio.sleep(0.01)
            self.longest = max(self.longest, time.process_time() - began)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogWriter:
    monkeypatch.setattr(engine, "LINE_LIMIT_S", _LINE_LIMIT_S)
    monkeypatch.setattr(engine, "BLOCK_LIMIT_S", 0.2)
    writer = LogWriter(tmp_path)
    writer.write(b"".join(line + b"\n" for line in BAIT) * 6)
    return writer


async def search(app: LogApp, pilot: Pilot[None], text: str) -> None:
    """Search for an expression, press keys at once; they are answered, and the search comes to an end or a message."""
    row = app.query_one(SearchRow)
    await pilot.press("slash")
    await app.until(lambda: row.input.has_focus)
    row.regex = True
    row.input.value = text
    await pilot.press("enter")
    await app.until(lambda: app.view.has_focus)
    before = app.view.times
    await pilot.press("t")
    await app.until(lambda: app.view.times != before)
    found = app.pane._search._finder.search
    assert found is not None
    await app.until(lambda: found.state.failure or found.state.complete)
    if found.state.failure:
        assert "takes too long" in found.state.failure
        await app.until(lambda: "takes too long" in app.search_words())


# The engine is held to all of them by tests of its own.
@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.soak)])
async def test_known_costly_patterns(log: LogWriter, step: int) -> None:
    app = LogApp([log.log])
    async with app.run_test(size=(100, 30)) as pilot, Beat() as beat:
        await app.until(lambda: app.pane.status.exact and app.rows())
        for text in COSTLY[::step]:
            beat.longest = 0.0
            await search(app, pilot, text)
            assert beat.longest < _FREEZE, text


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=3
)
@given(st.lists(st.tuples(PATTERNS, st.sampled_from(("!", "$", r"\1!", "(?!x)[^ab!]", ""))), min_size=5, max_size=10))
def test_any_pattern(log: LogWriter, made: list[tuple[str, str]]) -> None:
    async def run() -> None:
        app = LogApp([log.log])
        async with app.run_test(size=(100, 30)) as pilot, Beat() as beat:
            await app.until(lambda: app.pane.status.exact and app.rows())
            for inner, end in made:
                text = f"({inner}){end}"
                re.compile(text)
                beat.longest = 0.0
                await search(app, pilot, text)
                assert beat.longest < _FREEZE, text

    asyncio.run(run())
