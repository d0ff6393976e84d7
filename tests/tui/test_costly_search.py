"""No pattern that somebody types into the log pane holds up its keys."""

import asyncio
import re
import time

import pytest
from costly_patterns import BAIT, COSTLY, PATTERNS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_app import logs_of, written

from torchx_tui.logs.pattern import engine

# What is meant is a freeze of seconds. It is measured in CPU time, of which others on the machine take nothing.
_FREEZE = 1.5


class Beat:
    """Measures how much CPU time the process uses, in whatever thread, before the event loop gets on."""

    longest = 0.0

    async def __aenter__(self):
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_):
        self._task.cancel()

    async def _run(self):
        while True:
            began = time.process_time()
            await asyncio.sleep(0.01)
            self.longest = max(self.longest, time.process_time() - began)


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "LINE_LIMIT_S", 0.03)
    monkeypatch.setattr(engine, "BLOCK_LIMIT_S", 0.2)
    return written(tmp_path, b"".join(line + b"\n" for line in BAIT) * 6)


async def search(log, patterns):
    """Search for each, press a key at once; it is answered, and the search comes to an end or a message."""
    async with logs_of(log, size=(100, 30)) as logs, Beat() as beat:
        await logs.until(lambda: logs.status.exact and logs.rows(), "the lines")
        logs.field.regex = True
        for text in patterns:
            beat.longest = 0.0
            await logs.type(text)
            await logs.until(lambda: logs.view.has_focus, "the search")
            before = logs.view.times
            await logs.press("t")
            await logs.until(lambda before=before: logs.view.times != before, "an answer to the key")
            state = logs.pane._search._finder.search.state
            await logs.until(lambda state=state: state.failure or state.complete, "the end of the search")
            if state.failure:
                assert "takes too long" in state.failure
                await logs.shows("takes too long", on="words")
            assert beat.longest < _FREEZE, text


# All of them are for the tests of the engine.
@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.soak)])
async def test_known_costly_patterns(log, step):
    await search(log, COSTLY[::step])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=3)
@given(st.lists(st.tuples(PATTERNS, st.sampled_from(("!", "$", r"\1!", "(?!x)[^ab!]", ""))), min_size=5, max_size=10))
def test_any_pattern(log, made):
    patterns = [f"({inner}){end}" for inner, end in made]
    for text in patterns:
        re.compile(text)
    asyncio.run(search(log, patterns))
